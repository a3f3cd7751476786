"""Counters: private prefix sums of a stream."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trilift.counters.counter import Counter
from trilift.counters.defaults import chain_of, default_names
from trilift.counters.setup import Setup

if TYPE_CHECKING:
    from trilift.counters.biased_counter import BiasedCounter
    from trilift.counters.gaussian_counter import GaussianCounter

__all__ = ["BiasedCounter", "Counter", "GaussianCounter", "Setup", "chain_of", "default_names"]

_LATER = {"BiasedCounter": "biased_counter", "GaussianCounter": "gaussian_counter"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value
