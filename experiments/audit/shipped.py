"""Every shipped mechanism under audit, by name, at whatever budget is asked for."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from trilift.counters import BiasedCounter, Counter, GaussianCounter
from trilift.counters.edit import ECC, EndingCounter, GaussianCC, HorizonGaussian, PartitionCC, SimECC
from trilift.counters.turnstile import DistinctCounter, SecondMoment
from trilift.experiments.audit.buckets import BucketSubject
from trilift.experiments.audit.running import RunningSubject
from trilift.experiments.audit.single import (
    EndingSubject,
    bucket_pairs,
    hybrid_subject,
    prefix_gaussian_subject,
    swap_pairs,
    turnstile_pairs,
)
from trilift.experiments.audit.sketches import SketchSubject
from trilift.experiments.audit.subject import Subject
from trilift.experiments.audit.variants import BankSubject, ReplayedSubject
from trilift.lift import Chain, Dyadic, Stage
from trilift.lift.errors import ParameterError
from trilift.stream.gdp import ln_of, mu_for

__all__ = ["DELTA", "MECHANISMS", "PURE", "make_subject", "resolved"]

DELTA = Fraction(1, 100)
"""The delta of mechanisms that need one, if none is given: large enough to be seen in so many runs."""

_FINE = Fraction(1, 1 << 20)
_FINEST = Fraction(1, 1 << 56)  # finer than the last bit of a float near 1
_WIDE = 1024
_SIX = Fraction(1, 1 << 6)
_SEGMENT = 24  # steps: one segment, which ends after about 18 events at epsilon 1
_RATE, _RARE = 0.01, 0.0001
_APART = {SimECC: 100, ECC: 8}
_HALF, _ROUGH = Fraction(1, 2), Fraction(99, 100)  # intervals that promise little need few banks


def _plain(scale_left: Any, scale_right: Any, size: int = 4) -> Chain:
    """Return the chain L = a T, R = b I with a b = 1: few binary places, so that rounding meets ties."""
    left = Dyadic([[int(i >= j) for j in range(size)] for i in range(size)])
    right = Dyadic([[int(i == j) for j in range(size)] for i in range(size)])
    return Chain(Stage.plain(left * scale_left, right * scale_right))


def _counter(name: str, epsilon: Any, *, steps: int, kind: Any = RunningSubject, **options: Any) -> Subject:
    more = {key: options.pop(key) for key in ("inputs", "level", "changed", "width") if key in options}
    made = {"output_resolution": _FINE, "simulation_seed": 0} | options
    subject: Subject = kind(name, Counter(epsilon, **made), steps=steps, **more)
    return subject


def _gaussian(
    name: str, epsilon: Any, delta: Any, *, steps: int, kind: Any = RunningSubject, **options: Any
) -> Subject:
    more = {key: options.pop(key) for key in ("width",) if key in options}
    counter = GaussianCounter(epsilon, delta, output_resolution=_FINE, simulation_seed=0, **options)
    subject: Subject = kind(name, counter, steps=steps, delta=delta, **more)
    return subject


def _biased(name: str, epsilon: Any, delta: Any, *, steps: int, **options: Any) -> Subject:
    counter = BiasedCounter(epsilon, delta, output_resolution=_FINE, simulation_seed=0, **options)
    return RunningSubject(name, counter, steps=steps, delta=delta)


def _edit(
    name: str, kind: Any, epsilon: Any, delta: Any, *, steps: int, changes: int, **options: Any
) -> Subject:
    """Few events a step are expected, so that the counts get most of the budget: there neighbours differ."""
    prototype = kind(epsilon, delta, simulation_seed=0, **options)
    pairs = bucket_pairs(steps, apart=_APART[kind])
    return BucketSubject(name, "edit: one input inserted", prototype, pairs=pairs, changes=changes)


def _swap(name: str, epsilon: Any, delta: Any) -> Subject:
    prototype = PartitionCC(epsilon, delta, horizon=_SEGMENT, simulation_seed=0)
    pairs = swap_pairs(_SEGMENT)
    return BucketSubject(name, "swap: one input changed", prototype, pairs=pairs, changes=2)


def _turnstile(name: str, kind: Any, epsilon: Any, delta: Any, **options: Any) -> Subject:
    """Pure for delta 0; Gaussian noise with the rho of the mu-GDP that (epsilon, delta) allows otherwise."""
    budget: dict[str, Any] = {"epsilon": epsilon}
    if delta:
        mu = mu_for(epsilon, ln_delta=ln_of(delta)[0])
        budget = {"rho": mu * mu / 2}
    prototype = kind(**budget, horizon=4, every=2, simulation_seed=0, **options)
    terms: dict[str, Any] = {"epsilon": epsilon, "delta": Fraction(delta)}
    if options["method"] == "hybrid":
        return hybrid_subject(name, prototype, **terms)
    return SketchSubject(name, prototype, **terms, pairs=turnstile_pairs(4))


_TWO = ("stage-mean-9", "direct-mean-4")
_THREE = ("stage-mean-9", "stage-mean-9", "direct-mean-4")
_VECTORS = (((1, 0, 0), (0, 0, 1)), ((0, 1, 0), (0, 0, 0)), ((0, 1, 0), (1, 0, 0)))

PURE: dict[str, Callable[[str, Any], Subject]] = {
    "counter-step": lambda name, e: _counter(name, e, steps=1, horizon=1),
    "counter-mean": lambda name, e: _counter(name, e, steps=4, horizon=4, objective="mean"),
    "counter-max": lambda name, e: _counter(name, e, steps=16, horizon=16),
    "counter-two-levels": lambda name, e: _counter(
        name,
        e,
        steps=27,
        horizon=27,
        objective="mean",
        chain=_TWO,
        inputs=(1, 0.5),
        resolution=0.5,
        width=256,
    ),
    "counter-two-levels-max": lambda name, e: _counter(
        name, e, steps=27, horizon=27, chain=("stage-max-9", "direct-max-4"), width=256
    ),
    "counter-three-levels": lambda name, e: _counter(
        name, e, steps=100, horizon=100, objective="mean", chain=_THREE, width=256
    ),
    "counter-integers": lambda name, e: _counter(
        name, e, steps=4, horizon=4, objective="mean", output_resolution=None
    ),
    "counter-coarse": lambda name, e: _counter(
        name,
        e,
        steps=4,
        horizon=4,
        chain=_plain(Dyadic([[1]], 1), 2),
        bounds=(0, _WIDE),
        inputs=(_WIDE - 1, _WIDE, 1),
        output_resolution=None,
    ),
    "counter-halves": lambda name, e: _counter(
        name,
        e,
        steps=4,
        horizon=4,
        chain=_plain(2, Dyadic([[1]], 1)),
        bounds=(0, _WIDE),
        inputs=(_WIDE - 1, _WIDE, 1),
    ),
    "counter-fine": lambda name, e: _counter(name, e, steps=1, horizon=1, output_resolution=_FINEST),
    "counter-replayed": lambda name, e: _counter(
        name, e, steps=1, horizon=1, objective="mean", kind=ReplayedSubject
    ),
    "counter-vectors": lambda name, e: _counter(
        name, e, steps=3, horizon=4, objective="mean", dimension=3, norm_bound=1, changed=_VECTORS
    ),
    "counter-nonnegative": lambda name, e: _counter(
        name, e, steps=4, horizon=4, objective="mean", postprocess="nonnegative", level=1, inputs=(0,)
    ),
    "counter-monotone": lambda name, e: _counter(
        name, e, steps=4, horizon=4, objective="mean", postprocess="monotone"
    ),
    "counter-tapered": lambda name, e: _counter(name, e, steps=12, growth="tapered"),
    "counter-relay": lambda name, e: _counter(name, e, steps=66, growth="relay", width=256),
    "counter-doubling": lambda name, e: _counter(name, e, steps=8, growth="doubling"),
    "noise-bank": lambda name, e: _counter(
        name, e, steps=4, horizon=4, objective="mean", kind=BankSubject, width=16384
    ),
    "noise-bank-levels": lambda name, e: _counter(
        name, e, steps=27, horizon=27, objective="mean", chain=_TWO, kind=BankSubject, width=4096
    ),
    "distinct-grouped": lambda name, e: _turnstile(name, DistinctCounter, e, 0, method="grouped"),
    "distinct-minhash": lambda name, e: _turnstile(
        name, DistinctCounter, e, 0, method="minhash", copies=3, failure=_HALF
    ),
    "distinct-general": lambda name, e: _turnstile(name, DistinctCounter, e, 0, method="general"),
    "distinct-general-maps": lambda name, e: _turnstile(
        name, DistinctCounter, e, 0, method="general-maps", copies=3, failure=_HALF
    ),
    "distinct-hybrid": lambda name, e: _turnstile(name, DistinctCounter, e, 0, method="hybrid"),
    "moment-bucketed": lambda name, e: _turnstile(
        name, SecondMoment, e, 0, method="bucketed", rows=3, buckets=4
    ),
    "moment-rows": lambda name, e: _turnstile(
        name, SecondMoment, e, 0, method="rows", accuracy=_ROUGH, failure=_HALF
    ),
}
"""Pure mechanisms: makers of subjects from a name and an epsilon."""

APPROXIMATE: dict[str, Callable[[str, Any, Any], Subject]] = {
    "gaussian-chain": lambda name, e, d: _gaussian(name, e, d, steps=16, horizon=16),
    "gaussian-two-levels": lambda name, e, d: _gaussian(name, e, d, steps=24, horizon=24, chain=_l2_chain()),
    "gaussian-toeplitz": lambda name, e, d: _gaussian(name, e, d, steps=16, horizon=16, mechanism="toeplitz"),
    "gaussian-tapered": lambda name, e, d: _gaussian(name, e, d, steps=12),
    "gaussian-doubling": lambda name, e, d: _gaussian(name, e, d, steps=8, growth="doubling"),
    "noise-bank-gaussian": lambda name, e, d: _gaussian(
        name, e, d, steps=4, horizon=4, kind=BankSubject, width=16384
    ),
    "biased": lambda name, e, d: _biased(name, e, d, steps=4, horizon=4, objective="mean"),
    "biased-gaussian": lambda name, e, d: _biased(name, e, d, steps=8, horizon=8, base="gaussian"),
    "biased-endless": lambda name, e, d: _biased(name, e, d, steps=8),
    "simecc": lambda name, e, d: _edit(name, SimECC, e, d, steps=2000, horizon=2000, rate=_RATE, changes=8),
    "simecc-endless": lambda name, e, d: _edit(name, SimECC, e, d, steps=2000, rate=_RATE, changes=8),
    "ecc": lambda name, e, d: _edit(name, ECC, e, d, steps=3000, rate=_RARE, changes=3),
    "ending": lambda name, e, d: EndingSubject(name, EndingCounter(e, d, simulation_seed=0), steps=6),
    "gaussian-cc": lambda name, e, d: prefix_gaussian_subject(
        name, GaussianCC(e, d, output_resolution=_SIX, simulation_seed=0), steps=16
    ),
    "horizon-gaussian": lambda name, e, d: prefix_gaussian_subject(
        name, HorizonGaussian(e, d, horizon=16, output_resolution=_SIX, simulation_seed=0), steps=16
    ),
    "partition-cc": _swap,
    "distinct-grouped-gaussian": lambda name, e, d: _turnstile(name, DistinctCounter, e, d, method="grouped"),
    "distinct-minhash-gaussian": lambda name, e, d: _turnstile(
        name, DistinctCounter, e, d, method="minhash", copies=3, failure=_HALF
    ),
    "distinct-general-gaussian": lambda name, e, d: _turnstile(name, DistinctCounter, e, d, method="general"),
    "distinct-general-maps-gaussian": lambda name, e, d: _turnstile(
        name, DistinctCounter, e, d, method="general-maps", copies=3, failure=_HALF
    ),
    "distinct-hybrid-gaussian": lambda name, e, d: _turnstile(name, DistinctCounter, e, d, method="hybrid"),
    "moment-bucketed-gaussian": lambda name, e, d: _turnstile(
        name, SecondMoment, e, d, method="bucketed", rows=3, buckets=4
    ),
    "moment-rows-gaussian": lambda name, e, d: _turnstile(
        name, SecondMoment, e, d, method="rows", accuracy=_ROUGH, failure=_HALF
    ),
}
"""Mechanisms with a delta: makers of subjects from a name, an epsilon and a delta."""

MECHANISMS: tuple[str, ...] = (*PURE, *APPROXIMATE)
"""All names."""


def _l2_chain() -> tuple[str, ...]:
    from trilift.artifacts import catalogue_l2

    found = [e for e in catalogue_l2() if e.source == "shipped"]
    stage = min((e for e in found if e.certificate.kind == "stage"), key=lambda e: e.certificate.size)
    top = min((e for e in found if e.certificate.kind == "direct"), key=lambda e: e.certificate.size)
    return stage.name, top.name


_CLASSES = {
    "counter": ("counter-max", "counter-max"),
    "gaussiancounter": ("gaussian-chain", "gaussian-chain"),
    "biasedcounter": ("biased", "biased"),
    "endingcounter": ("ending", "ending"),
    "gaussiancc": ("gaussian-cc", "gaussian-cc"),
    "horizongaussian": ("horizon-gaussian", "horizon-gaussian"),
    "partitioncc": ("partition-cc", "partition-cc"),
    "distinctcounter": ("distinct-grouped", "distinct-grouped-gaussian"),
    "secondmoment": ("moment-bucketed", "moment-bucketed-gaussian"),
    "noisebank": ("noise-bank", "noise-bank-gaussian"),
}


def resolved(name: str, *, delta: Fraction | None = None) -> str:
    """Return the mechanism that a name means: classes stand for what they make by default.

    Raises:
        ParameterError: no such mechanism.

    >>> resolved("Counter"), resolved("DistinctCounter", delta=Fraction(1, 100)), resolved("ECC")
    ('counter-max', 'distinct-grouped-gaussian', 'ecc')
    """
    known = name.lower()
    if known in _CLASSES:
        return _CLASSES[known][1 if delta else 0]
    if known not in MECHANISMS:
        raise ParameterError(
            f"there is no mechanism {name!r} to audit (`trilift audit --mechanism list` names them)"
        )
    return known


def make_subject(name: str, *, epsilon: Fraction, delta: Fraction | None = None) -> Subject:
    """Return a shipped mechanism with a claim.

    Args:
        name: one of :data:`MECHANISMS`, or the name of a class.
        epsilon: > 0, exact.
        delta: in (0, 1), exact; :data:`DELTA` where one is needed and none is given.

    Raises:
        ParameterError: no such mechanism, or a budget that it refuses.

    >>> subject = make_subject("counter-mean", epsilon=Fraction(1))
    >>> len(subject.pairs()) > 0, subject.delta
    (True, Fraction(0, 1))
    """
    name = resolved(name, delta=delta)
    if delta is not None and not 0 <= delta < 1:
        raise ParameterError(f"delta must be a number >= 0 and < 1, got {float(delta)}")
    if name in PURE:
        subject = PURE[name](name, epsilon)
        subject.delta = Fraction(delta or 0)  # what is pure may be held to a weaker claim
        return subject
    asked = DELTA if delta is None else delta
    if asked == 0:
        raise ParameterError(f"{name} needs a delta > 0")
    return APPROXIMATE[name](name, epsilon, asked)
