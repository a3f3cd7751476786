"""Counters: private prefix sums of a stream."""

from trilift.counters.counter import Counter
from trilift.counters.defaults import chain_of, default_names
from trilift.counters.setup import Setup

__all__ = ["Counter", "Setup", "chain_of", "default_names"]
