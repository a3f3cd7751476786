"""The hybrid count: the exact count released now and then, corrected by grouped MinHash in between.

Half of the budget releases D after every B events with noise (the recompute estimator); such a release A, r
steps old, is off by at most E = r + e, because every event changes D by at most 1 and the noise of all
releases stays within e but for half of the failure. The other half pays for grouped MinHash, M.

* A > 2 E: the estimate is A, right up to a factor of 2 (D lies within A - E and A + E).
* otherwise it is M, clipped into [A - E, A + E]: on the good event clipping moves M towards D.

The interval is the intersection of both; each fails with half of ``failure``. Before the first release A = 0
and E is the number of steps.

Sensitivity: substituting one event changes the frequency of two items, or of one, at all later steps, so each
of the N releases changes by at most 2: l1 norm 2 N, squared l2 norm 4 N
(:mod:`trilift.counters.turnstile.budget`). B balances age and noise: Gaussian noise has standard deviation
sqrt(2 N / rho), N = T / B, so B grows as T^(1/3); Laplace noise has scale 2 N / epsilon and B grows as
T^(1/2): far less is gained.

**Memory**: this method keeps every item that is present, about 200 bytes each, unlike all others. Items are
told apart by 128-bit fingerprints, which do not collide in practice; if they did, privacy would be the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from trilift.counters.turnstile.bases import Base, make_base, restored_base
from trilift.counters.turnstile.blueprint import MOST_STEPS, Blueprint, Common
from trilift.counters.turnstile.budget import Budget, LedgerPart, TurnstileLedger
from trilift.counters.turnstile.reading import Readings
from trilift.counters.turnstile.sketch import Linear
from trilift.lift.checks import integer
from trilift.stream.keys import DigestBuilder

__all__ = ["Hybrid", "HybridState", "block_length", "hybrid_blueprint", "hybrid_mechanism"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]
Words = np.ndarray[Any, np.dtype[np.uint64]]

_HALF = Fraction(1, 2)
_SHIFT = 64
_HEX = 32


def block_length(budget: Budget, *, common: Common) -> int:
    """Return B, a multiple of ``every``: about where age and noise of a release add up to the least.

    Args:
        budget: of all releases.
        common: horizon and so on; its failure is that of the releases.

    >>> from trilift.counters.turnstile.budget import make_budget
    >>> block_length(make_budget(rho=Fraction(1, 2)), common=Common(10**5, 1, None, Fraction(1, 200)))
    131
    """
    steps, failure = float(common.ticks * common.every), float(common.failure)
    amount = float(min(budget.amount, Fraction(10**300)))  # huge budgets are refused elsewhere
    if budget.law == "gaussian":  # z is about 4.2: hardly anything depends on it
        z = NormalDist().inv_cdf(1.0 - failure / (2.0 * max(steps ** (2.0 / 3.0), 1.0)))
        best = math.exp(math.log(z * z * steps / (2.0 * amount)) / 3.0)
    else:
        best = math.sqrt(2.0 * steps / amount * math.log(max(math.sqrt(steps), 1.0) / failure))
    ticks = min(max(1, math.ceil(best / common.every)), common.ticks)
    return ticks * common.every


@dataclass(frozen=True, repr=False, eq=False)
class HybridState:
    """The exact state: frequencies, the count now and at the last release, and the sketch. Secret.

    Attributes:
        frequencies: of the items by fingerprint, none of them 0.
        changes: newer frequencies, 0 among them, that are not merged yet.
        present: items of frequency other than 0.
        released: what ``present`` was at the last release.
        sketch: exact counters of MinHash.
    """

    frequencies: dict[int, int]
    changes: dict[int, int]
    present: int
    released: int
    sketch: IntArray

    def settled(self) -> Self:
        """Merge the changes: the states before this one must not be used any more."""
        for item, frequency in self.changes.items():
            if frequency:
                self.frequencies[item] = frequency
            else:
                self.frequencies.pop(item, None)
        return replace(self, changes={})


class Hybrid:
    """Releases of the exact count and a sketch, together (see the module).

    Neighbours: streams that differ in one event. Guarantee and composition: the N releases are N numbers of
    sensitivity 2 each under independent noise, the sketch is one bank; both add up as the ledger says, in
    rationals. Theorems: the Laplace mechanism with discrete noise, or the Gaussian mechanism (Dong, Roth, Su
    2022) with real noise rounded once; choosing and clipping is post-processing.

    Args:
        sketch: grouped MinHash under its noise, with half of the budget.
        releases: noise of one release, 1/N of the other half.
        block: B, a multiple of the events a tick.
        common: horizon and so on; the failure is that of the releases.
        key, stream_id: of the counter.
    """

    def __init__(
        self,
        sketch: Linear,
        releases: Base,
        *,
        block: int,
        common: Common,
        key: bytes,
        stream_id: bytes,
    ) -> None:
        self._sketch, self.block, self._common = sketch, block, common
        self._count = release_count(common, block)
        bank = releases.bank(self._count, key=key, stream_id=stream_id, purpose="turnstile/hybrid/releases")
        self._noise: list[int] = bank.at(np.zeros(1, dtype=np.int64))[0].tolist()
        tail = float(common.failure) / (2.0 * self._count)
        self.error = float(releases.upper(np.zeros(1, dtype=np.int64), failure=tail)[0]) + 0.5
        digest = DigestBuilder("trilift/turnstile hybrid/1").add("sketch", sketch.digest)
        self.digest = digest.add("releases", bank.digest).add("block", block).digest()

    def __repr__(self) -> str:
        return f"Hybrid(block={self.block}, releases={self._count})"

    def start(self) -> HybridState:
        """Return the state of the empty stream."""
        return HybridState({}, {}, 0, 0, self._sketch.start())

    def advanced(
        self, held: HybridState, prints: Words, signs: Integers, *, step: int
    ) -> tuple[HybridState, Readings]:
        """Return the state after k more events, and what is released meanwhile; changes nothing."""
        sketch, seen = self._sketch.advanced(held.sketch, prints, signs, step=step)
        counts, changes, present = self._counted(held, prints, signs, step)
        first = step // self.block  # number of the last release before
        releases = self._released(first, [held.released, *counts])
        after = HybridState(
            held.frequencies, changes, present, counts[-1] if counts else held.released, sketch
        )
        return after, self._combined(seen, releases, first)

    def _counted(
        self, held: HybridState, prints: Words, signs: Integers, step: int
    ) -> tuple[list[int], dict[int, int], int]:
        """Return the exact counts at the releases, newer frequencies, and the count at the end."""
        old, changes, present = held.frequencies, dict(held.changes), held.present
        counts: list[int] = []
        block, now = self.block, step
        words, numbers = prints.tolist(), signs.tolist()
        for (low, high), sign in zip(words, numbers, strict=True):
            if sign:
                item = high << _SHIFT | low
                before = changes.get(item)
                if before is None:
                    before = old.get(item, 0)
                changes[item] = after = before + sign
                present += (after != 0) - (before != 0)
            now += 1
            if now % block == 0:
                counts.append(present)
        return counts, changes, present

    def _released(self, first: int, counts: list[int]) -> FloatArray:
        """Return the releases first, first + 1, ...; number 0 is the empty stream's 0."""
        noise = [
            self._noise[number - 1] if 0 < number <= self._count else 0
            for number in range(first, first + len(counts))
        ]
        return np.array([count + z for count, z in zip(counts, noise, strict=True)], dtype=np.float64)

    def _combined(self, seen: Readings, releases: FloatArray, first: int) -> Readings:
        number = np.minimum(seen.step // self.block, self._count)
        A = releases[number - first]
        age = (seen.step - number * self.block).astype(np.float64)
        E = age + np.where(number > 0, self.error, 0.0)
        cap = np.minimum(seen.step, self._common.most).astype(np.float64)
        least, most = np.clip(A - E, 0.0, cap), np.clip(A + E, 0.0, cap)
        estimate = np.where(A > 2.0 * E, np.minimum(A, cap), np.clip(seen.estimate, least, most))
        # if the two contradict each other, one has failed: an interval all the same
        low = np.maximum(seen.low, least)
        high = np.maximum(np.minimum(seen.high, most), low)
        return Readings(seen.step, estimate, low, high)

    def record(self, held: HybridState) -> Any:
        """Return the state for JSON; items in the order of their fingerprints, which tells nothing."""
        merged = replace(held, frequencies=dict(held.frequencies)).settled() if held.changes else held
        return {
            "sketch": self._sketch.record(held.sketch),
            "present": held.present,
            "released": held.released,
            "items": [[f"{item:0{_HEX}x}", merged.frequencies[item]] for item in sorted(merged.frequencies)],
        }

    def restored(self, record: Any) -> HybridState:
        """Return the state of a record.

        Raises:
            ValueError, TypeError, KeyError: not a state of this mechanism.
        """
        frequencies = {}
        for text, frequency in record["items"]:
            if not isinstance(text, str) or len(text) != _HEX or type(frequency) is not int or not frequency:
                raise ValueError("not a frequency")
            frequencies[int(text, 16)] = frequency
        present, released = (
            integer(name, record[name], minimum=0, maximum=MOST_STEPS) for name in ("present", "released")
        )
        if present != len(frequencies) or len(frequencies) != len(record["items"]):
            raise ValueError("the count contradicts the items")
        return HybridState(frequencies, {}, present, released, self._sketch.restored(record["sketch"]))


def release_count(common: Common, block: int) -> int:
    """Return N, the number of releases that the horizon has room for."""
    return common.horizon // block


def hybrid_blueprint(
    budget: Budget,
    *,
    common: Common,
    options: Mapping[str, Any],
    kind: str,
    saved: list[Any] | None,
    seed: int | None,
) -> Blueprint:
    """Return the public part of a hybrid counter.

    Args:
        budget: of everything.
        common: horizon and so on.
        options: of the sketch; and of a saved state, ``block``.
        kind: of the sketch's noise.
        saved: records of the two noises of a saved state.
        seed: of a simulation.
    """
    from trilift.counters.turnstile.distinct import base_of, sketch_options

    half = _halved(common)
    wanted = {name: options[name] for name in ("centre", "few_heavy", "closer", "thresholds", "copies")}
    full = sketch_options("grouped", wanted, common=half)
    share = budget.part(_HALF)
    block = block_length(share, common=half)
    if saved is not None:
        block = integer("block", options["block"], minimum=1, maximum=common.horizon)
        if block % common.every:
            raise ValueError("releases of the count fall between the released steps")
    count = release_count(common, block)
    base = base_of(share, common=half, kind=kind, saved=None if saved is None else saved[0], seed=seed)
    each = budget.part(_HALF / count)
    if saved is None:
        releases = make_base("tree", budget=each, ticks=1)
    else:
        releases = restored_base(saved[1], budget=each, ticks=1)
    parts = (
        LedgerPart.of("counters of grouped", banks=1, spent_by_one=base.spent, proof=base.as_text()),
        LedgerPart.of(
            "releases of the count",
            banks=count,
            spent_by_one=releases.spent,
            proof="independent exact noise, each changes by at most 2",
        ),
    )
    return Blueprint(
        quantity="DistinctCounter",
        method="hybrid",
        budget=budget,
        common=common,
        options={**full, "block": block},
        bases=(base, releases),
        ledger=TurnstileLedger(budget, parts),
        lines=(
            f"Mechanism: the exact count released after every {block} events, {count} times, and grouped"
            f" MinHash in between; {base.as_text()}.",
            "Memory: every item that is present is kept.",
        ),
    )


def _halved(common: Common) -> Common:
    return replace(common, failure=common.failure / 2)


def hybrid_mechanism(blueprint: Blueprint, *, key: bytes, stream_id: bytes) -> Hybrid:
    """Return the running mechanism of a hybrid counter's blueprint."""
    from trilift.counters.turnstile.distinct import make_sketch

    half = _halved(blueprint.common)
    base, releases = blueprint.bases
    sketch = make_sketch(
        "grouped", base=base, common=half, options=dict(blueprint.options), key=key, stream_id=stream_id
    )
    inner = Linear(
        sketch, base, every=half.every, key=key, stream_id=stream_id, purpose="turnstile/hybrid/sketch"
    )
    return Hybrid(
        inner, releases, block=blueprint.options["block"], common=half, key=key, stream_id=stream_id
    )
