"""trilift: private running counts by certified matrix factorisations.

>>> import trilift
>>> counter = trilift.Counter(1.0, horizon=365)
>>> isinstance(counter.update(1), int)
True

The names below are loaded when they are first used, so ``import trilift`` itself costs next to nothing. What
is not here lies in the rooms: ``trilift.lift``, ``trilift.artifacts``, ``trilift.stream``,
``trilift.counters``, ``trilift.factorize``, ``trilift.verify`` and ``trilift.experiments``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trilift.artifacts import Artifact, Certificate, Provenance, catalogue, find, load, load_stage, save
    from trilift.counters import BiasedCounter, Counter, GaussianCounter
    from trilift.counters.accounting import Budget
    from trilift.counters.edit.gaussian_cc import GaussianCC, HorizonGaussian
    from trilift.counters.edit.mechanism import ECC, SimECC
    from trilift.counters.edit.padding import EndingCounter
    from trilift.counters.edit.partition_cc import PartitionCC
    from trilift.counters.frames import PrivateCumsum, private_cumsum
    from trilift.counters.turnstile import DistinctCounter, SecondMoment
    from trilift.factorize import SearchResult, estimate_cost, search_direct, search_stage
    from trilift.lift import (
        ArtifactFormatError,
        CertificateError,
        Chain,
        ChainCost,
        Dyadic,
        HorizonError,
        MissingExtraError,
        ParameterError,
        Plan,
        ReplayError,
        Stage,
        StateError,
        TriliftError,
        chain_cost,
        plan,
    )
    from trilift.stream import Noise, make_ledger
    from trilift.verify import certify, check_certificate, from_search

__version__ = "0.1.0"

_HOME = {
    "Artifact": "artifacts",
    "ArtifactFormatError": "lift",
    "BiasedCounter": "counters",
    "Budget": "counters.accounting",
    "Certificate": "artifacts",
    "CertificateError": "lift",
    "Chain": "lift",
    "ChainCost": "lift",
    "Counter": "counters",
    "DistinctCounter": "counters.turnstile",
    "Dyadic": "lift",
    "ECC": "counters.edit.mechanism",
    "EndingCounter": "counters.edit.padding",
    "GaussianCC": "counters.edit.gaussian_cc",
    "GaussianCounter": "counters",
    "HorizonError": "lift",
    "HorizonGaussian": "counters.edit.gaussian_cc",
    "MissingExtraError": "lift",
    "Noise": "stream",
    "ParameterError": "lift",
    "PartitionCC": "counters.edit.partition_cc",
    "Plan": "lift",
    "PrivateCumsum": "counters.frames",
    "Provenance": "artifacts",
    "ReplayError": "lift",
    "SearchResult": "factorize",
    "SecondMoment": "counters.turnstile",
    "SimECC": "counters.edit.mechanism",
    "Stage": "lift",
    "StateError": "lift",
    "TriliftError": "lift",
    "catalogue": "artifacts",
    "certify": "verify",
    "chain_cost": "lift",
    "check_certificate": "verify",
    "estimate_cost": "factorize",
    "find": "artifacts",
    "from_search": "verify",
    "load": "artifacts",
    "load_stage": "artifacts",
    "make_ledger": "stream",
    "plan": "lift",
    "private_cumsum": "counters.frames",
    "save": "artifacts",
    "search_direct": "factorize",
    "search_stage": "factorize",
}

__all__ = [
    "ECC",
    "Artifact",
    "ArtifactFormatError",
    "BiasedCounter",
    "Budget",
    "Certificate",
    "CertificateError",
    "Chain",
    "ChainCost",
    "Counter",
    "DistinctCounter",
    "Dyadic",
    "EndingCounter",
    "GaussianCC",
    "GaussianCounter",
    "HorizonError",
    "HorizonGaussian",
    "MissingExtraError",
    "Noise",
    "ParameterError",
    "PartitionCC",
    "Plan",
    "PrivateCumsum",
    "Provenance",
    "ReplayError",
    "SearchResult",
    "SecondMoment",
    "SimECC",
    "Stage",
    "StateError",
    "TriliftError",
    "__version__",
    "catalogue",
    "certify",
    "chain_cost",
    "check_certificate",
    "estimate_cost",
    "find",
    "from_search",
    "load",
    "load_stage",
    "make_ledger",
    "plan",
    "private_cumsum",
    "save",
    "search_direct",
    "search_stage",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
