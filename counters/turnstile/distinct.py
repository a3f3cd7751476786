"""How many distinct items are present in a turnstile stream, released at every step or at every k-th."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from trilift.counters.turnstile.bases import Base, make_base, restored_base
from trilift.counters.turnstile.blueprint import (
    Blueprint,
    Common,
    Mechanism,
    check_common,
    hash_words,
    restored_terms,
)
from trilift.counters.turnstile.budget import Budget, LedgerPart, TurnstileLedger, make_budget
from trilift.counters.turnstile.counter import TurnstileCounter
from trilift.counters.turnstile.grouped import Grouped, default_groups
from trilift.counters.turnstile.minhash import MinHash, default_copies
from trilift.counters.turnstile.sketch import Linear, Sketch
from trilift.lift.checks import choice, flag, integer
from trilift.lift.errors import ParameterError
from trilift.stream.keys import Secret

__all__ = ["METHODS", "DistinctCounter"]

METHODS = ("grouped", "minhash", "general", "general-maps", "hybrid")
THRESHOLDS = ("weak", "strong")


class DistinctCounter(TurnstileCounter):
    """Private count of the distinct items present: those whose insertions and removals do not add up to 0.

    Neighbours: streams that differ in one event, whose pair (item, sign) is another one; nothing shifts.
    Guarantee: all released values together are pure epsilon-DP (``epsilon``), rho-zCDP (``rho``), or
    (epsilon, delta)-DP (``epsilon`` and ``delta``), for adaptively chosen events. Composition: every bank of
    counters is changed by an event by 2 in l1 and in l2 norm at most; banks add up in epsilon or in rho
    (:mod:`trilift.counters.turnstile.budget`), exactly, in rationals. Theorems: the Laplace mechanism on the
    chain's R x, or Gaussian differential privacy (Dong, Roth, Su 2022), sums rounded once, as in
    :class:`trilift.stream.bank.NoiseBank`; whatever is read off the noisy counters is post-processing.

    Nothing of the guarantee assumes that the stream is strict (no item removed that is not present), and no
    value or error tells whether it is (no timing is promised): only the accuracy of some methods depends on
    it. Random bits come from ChaCha20 under a key drawn from the operating system; ideal ones are assumed.

    With ``every=k`` values are released after k, 2k, ... events only. The counters then take the sums of k
    events in one step. Neighbours differ in one such sum, by as much as the event itself, so the guarantee is
    the same; there is less noise, and T / k steps of it are drawn instead of T.

    Args:
        epsilon: budget of pure differential privacy; with ``delta`` of (epsilon, delta).
        delta: in (0, 1), for Gaussian noise.
        rho: budget of zCDP, for Gaussian noise.
        horizon: T, number of events.
        method: "grouped" (strict streams), "minhash" (the paper's, more noise), "general" (signed groups: any
            stream, far less accurate), "general-maps" (the paper's domain reduction: many counters), "hybrid"
            (exact counts released now and then, corrected by "grouped").
        base: "auto" or "chain" (certified artifacts), "tree" (binary), "toeplitz" (simulations only).
        every: a value is released after every so many events.
        universe: how many different items there can be, if known.
        failure: bound on the probability that some released interval is wrong.
        centre: whether the estimate is moved into the middle of what the interval allows (on a log scale).
        few_heavy: better estimates of few but frequent items ("grouped").
        closer: move the estimate to where sums and squares of the counters allow it to be ("grouped").
        narrow: end the interval where the sum of all counters, and the number of those that are clearly not
            empty, say that D cannot lie ("grouped").
        thresholds: "weak" (a few copies may err at a time) or "strong" (none does).
        copies: number of copies or groups or maps a level, odd; chosen by default.
        encode: turns an item into str, bytes, int or a tuple of them.
        simulation_seed: a public seed in place of a key: for tests and simulations, it protects nobody.
        state: file that keeps the state after every call; it must not exist.

    Raises:
        ParameterError: an argument that is not acceptable.
        StateError, OSError: the state exists, is in use, or cannot be written.

    >>> counter = DistinctCounter(rho=1, horizon=1000, every=100, simulation_seed=1)
    >>> seen = counter.extend([f"item {k}" for k in range(1000)], [1] * 1000)
    >>> len(seen), bool((seen.low <= seen.step).all() and (seen.step <= seen.high).all())
    (10, True)
    """

    def __init__(
        self,
        epsilon: Any = None,
        *,
        horizon: int,
        delta: Any = None,
        rho: Any = None,
        method: str = "grouped",
        base: str = "auto",
        every: int = 1,
        universe: int | None = None,
        failure: Any = Fraction(1, 100),
        centre: bool = True,
        few_heavy: bool = False,
        closer: bool = True,
        narrow: bool = True,
        thresholds: str = "weak",
        copies: int | None = None,
        encode: Callable[[Any], Any] | None = None,
        simulation_seed: int | None = None,
        state: str | os.PathLike[str] | None = None,
    ) -> None:
        seed = None if simulation_seed is None else integer("simulation_seed", simulation_seed)
        budget = make_budget(epsilon, delta=delta, rho=rho)
        common = check_common(horizon=horizon, every=every, universe=universe, failure=failure)
        chosen = choice("method", method, METHODS)
        options: dict[str, Any] = {
            "centre": flag("centre", centre),
            "few_heavy": flag("few_heavy", few_heavy),
            "closer": flag("closer", closer),
            "narrow": flag("narrow", narrow),
            "thresholds": choice("thresholds", thresholds, THRESHOLDS),
            "copies": copies,
        }
        blueprint = _blueprint(chosen, budget, common, options, kind=base, seed=seed)
        self._begin(blueprint, seed=seed, state=state, encode=encode)

    @classmethod
    def _restored(cls, record: dict[str, Any], seed: int | None) -> Blueprint:
        budget, common = restored_terms(record)
        method = choice("method", record["method"], METHODS)
        return _blueprint(method, budget, common, dict(record["options"]), saved=record["bases"], seed=seed)

    def _mechanism(self, blueprint: Blueprint, key: bytes, stream_id: bytes) -> Mechanism:
        if blueprint.method == "hybrid":
            from trilift.counters.turnstile.hybrid import hybrid_mechanism

            return hybrid_mechanism(blueprint, key=key, stream_id=stream_id)
        (base,) = blueprint.bases
        sketch = make_sketch(
            blueprint.method,
            base=base,
            common=blueprint.common,
            options=dict(blueprint.options),
            key=key,
            stream_id=stream_id,
        )
        return Linear(
            sketch,
            base,
            every=blueprint.common.every,
            key=key,
            stream_id=stream_id,
            purpose="turnstile/distinct",
        )


def _blueprint(
    method: str,
    budget: Budget,
    common: Common,
    options: dict[str, Any],
    *,
    kind: str = "auto",
    saved: list[Any] | None = None,
    seed: int | None,
) -> Blueprint:
    if method == "hybrid":
        from trilift.counters.turnstile.hybrid import hybrid_blueprint

        return hybrid_blueprint(budget, common=common, options=options, kind=kind, saved=saved, seed=seed)
    full = sketch_options(method, options, common=common)
    share = budget.part(Fraction(1, full["banks"]))
    base = base_of(share, common=common, kind=kind, saved=None if saved is None else saved[0], seed=seed)
    part = LedgerPart.of(
        f"counters of {method}", banks=full["banks"], spent_by_one=base.spent, proof=base.as_text()
    )
    return Blueprint(
        quantity="DistinctCounter",
        method=method,
        budget=budget,
        common=common,
        options=full,
        bases=(base,),
        ledger=TurnstileLedger(budget, (part,)),
        lines=(
            f"Mechanism: {METHOD_LINES[method]}; {base.as_text()}.",
            f"Accuracy: all released intervals hold together, but for a probability of {common.failure}.",
        ),
    )


METHOD_LINES = {
    "grouped": "grouped MinHash, the median over groups of one hash; accurate for strict streams",
    "minhash": "the median of MinHash copies; accurate for strict streams",
    "general": "signed grouped MinHash, for any turnstile stream",
    "general-maps": "domain reduction by signed hash maps, for any turnstile stream",
}


def base_of(
    share: Budget, *, common: Common, kind: str, saved: dict[str, Any] | None, seed: int | None
) -> Base:
    """Return the noise of one bank: chosen, or that of a state."""
    if saved is not None:
        return restored_base(saved, budget=share, ticks=common.ticks, seed=seed)
    return make_base(kind, budget=share, ticks=common.ticks, seed=seed)


def sketch_options(method: str, options: dict[str, Any], *, common: Common) -> dict[str, Any]:
    """Return the options of a method with the number of copies and of banks filled in.

    Raises:
        ParameterError: options that are not of this method, or copies that leave too much failure.
    """
    if options["few_heavy"] and method not in ("grouped", "hybrid"):
        raise ParameterError("few_heavy is for method='grouped'")
    weak = options["thresholds"] == "weak"
    rate, failure = (0.05, float(common.failure)) if weak else (0.0, float(common.failure) / 2)
    rates = {"failure": failure, "high": 1 / 16 + rate, "low": 0.05 + rate}
    least: int
    if method == "minhash":
        least = default_copies(common.ticks, **rates)
    elif method == "grouped":
        least = default_groups(common.ticks, **rates)
    else:
        from trilift.counters.turnstile.general import default_maps, signed_rates

        least = (
            default_groups(common.ticks, failure=failure, **signed_rates(rate))
            if method == "general"
            else default_maps(common)
        )
    copies = options["copies"]
    copies = least if copies is None else integer("copies", copies, minimum=1, maximum=1 << 20)
    if copies % 2 == 0:
        raise ParameterError(f"copies must be odd, got {copies}")
    banks = copies if method == "minhash" else 1
    if method == "general-maps":
        from trilift.counters.turnstile.general import maps_banks

        banks = maps_banks(common, copies)
    return {**options, "copies": copies, "banks": banks}


def make_sketch(
    method: str, *, base: Base, common: Common, options: dict[str, Any], key: bytes, stream_id: bytes
) -> Sketch:
    """Return the sketch of a method, its hash functions drawn from a key of their own.

    Args:
        method: all but "hybrid".
        base: noise of one bank.
        common: horizon and so on.
        options: from :func:`sketch_options`.
        key, stream_id: of the counter.

    Raises:
        ParameterError: a number of copies whose intervals fail more often than asked.
    """
    shared: dict[str, Any] = {"common": common, "thresholds": options["thresholds"]}
    words: dict[str, Any] = {"key": Secret(key), "stream_id": stream_id, "purpose": "turnstile/hashes"}
    sketch: Sketch
    if method == "grouped":
        sketch = Grouped(
            base,
            groups=options["copies"],
            centre=options["centre"],
            few_heavy=options["few_heavy"],
            closer=options.get("closer", True),
            narrow=options.get("narrow", False),
            **shared,
        )
    elif method == "minhash":
        hashes = hash_words(shape=(options["copies"], 2), **words)
        sketch = MinHash(base, copies=options["copies"], words=hashes, centre=options["centre"], **shared)
    else:
        from trilift.counters.turnstile.general import Maps, SignedGroups

        if method == "general":
            signed = {"centre": options["centre"], "closer": False}
            sketch = SignedGroups(base, groups=options["copies"], **signed, **shared)
        else:
            sketch = Maps(base, common=common, maps=options["copies"], keyed=words)
    if sketch.failure > float(common.failure):
        raise ParameterError(f"copies must be more: intervals fail with up to {sketch.failure:.3g}")
    return sketch
