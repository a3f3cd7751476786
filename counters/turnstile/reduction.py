"""From additive error to a factor of 1 + eta: a conditional reduction around any additive algorithm.

Suppose an algorithm counts distinct items with an additive error that grows with the size of the domain only,
not with the length of the stream (a power of it smaller than 1). Then items may first be mapped to a domain
of about D / eta values, where hardly any collide, and the error is relative to D. The size must be right,
though, and D changes: so all powers of two are run beside each other, J maps each, and a constant-factor
algorithm says which to look at (theorem 4.2 of "Skirting additive error barriers for private turnstile
streams").

1. For i < ceil(log2 n) and j < J: pairwise independent maps h_ij into [2^i], plus the identity; each of these
   Q streams is given to the additive algorithm with 1/(2 Q) of the budget. A map is applied event by event,
   so neighbouring streams stay neighbours: composition alone.
2. A bound D_hi on D from an interval with half of the budget; m' = the least power of two >= 16 D_hi / eta.
3. The answer is the median over the maps into [m'], or the identity's if m' >= n.

At most D^2 / (2 m') <= eta D / 32 pairs collide on average, and a map loses at most one item a pair, in a
strict stream, where sums of frequencies do not cancel. So it loses more than eta D / 2 with probability at
most 1/16 (Markov; the source's constants give 1/8). Where most maps lose less, and most intervals hold, the
median of the lower ends is at most D, and that of the upper ends at least (1 - eta/2) D.

**No additive algorithm of such an error is known**, so nothing here is better than grouped MinHash today.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.turnstile.blueprint import Common, Mechanism, hash_words
from trilift.counters.turnstile.budget import Budget
from trilift.counters.turnstile.moment_bounds import median_failure
from trilift.counters.turnstile.polynomials import Polynomials
from trilift.counters.turnstile.reading import Readings
from trilift.lift.checks import integer, rational
from trilift.lift.errors import ParameterError
from trilift.stream.keys import DigestBuilder

__all__ = ["LOST_RATE", "MakeAdditive", "Reduction", "ReductionPlan", "reduction_plan"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]
Words = np.ndarray[Any, np.dtype[np.uint64]]

LOST_RATE = 1 / 16
"""Bound on the probability that a map loses more than eta D / 2 of D items."""

MakeAdditive = Callable[[int, Budget, str], Mechanism]
"""Makes the additive algorithm of (domain, budget, purpose): a mechanism whose readings bound the number of
distinct items. Its fingerprints are (value, 0) with a value below the domain, or the items' own for the
identity.
"""

_MOST_MAPS = 1 << 14
_MOST_COPIES = 255


@dataclass(frozen=True)
class ReductionPlan:
    """The maps, and what each may spend.

    Attributes:
        universe: n.
        eta: in (0, 1).
        levels: domains 2^0 .. 2^(levels - 1), and n itself.
        copies: J, odd.
        share: budget of every additive algorithm, 1/(2 Q).
        bound: budget of the constant-factor algorithm, a half.
        failure: bound on the probability that at some read half of the maps lose too much.
    """

    universe: int
    eta: Fraction
    levels: int
    copies: int
    share: Budget
    bound: Budget
    failure: float

    @property
    def maps(self) -> int:
        """Q, the number of additive algorithms."""
        return self.levels * self.copies + 1


def reduction_plan(
    budget: Budget, *, universe: int, eta: Any, common: Common, copies: int | None = None
) -> ReductionPlan:
    """Return the maps of a reduction.

    Args:
        budget: of everything.
        universe: n, number of possible items.
        eta: in (0, 1).
        common: horizon and so on; its failure is that of the maps.
        copies: J, odd; chosen by default.

    Raises:
        ParameterError: arguments out of range.

    >>> from trilift.counters.turnstile.budget import make_budget
    >>> common = Common(100, 1, None, Fraction(1, 100))
    >>> plan = reduction_plan(make_budget(1), universe=1000, eta=0.5, common=common)
    >>> plan.levels, plan.copies, plan.maps, plan.share.amount * plan.maps + plan.bound.amount
    (10, 9, 91, Fraction(1, 1))
    """
    n = integer("universe", universe, minimum=1, maximum=1 << 60)
    exact = rational("eta", eta, above=0)
    if exact >= 1:
        raise ParameterError("eta must be less than 1")
    levels = (n - 1).bit_length()
    least = next(
        (
            j
            for j in range(1, _MOST_COPIES, 2)
            if common.ticks * median_failure(j, LOST_RATE) <= float(common.failure)
        ),
        _MOST_COPIES,
    )
    j = least if copies is None else integer("copies", copies, minimum=1, maximum=1 << 20)
    if j % 2 == 0:
        raise ParameterError(f"copies must be odd, got {j}")
    maps = levels * j + 1
    if maps > _MOST_MAPS:
        raise ParameterError(f"maps must be at most {_MOST_MAPS}, got {maps}")
    return ReductionPlan(
        n,
        exact,
        levels,
        j,
        budget.part(Fraction(1, 2 * maps)),
        budget.part(Fraction(1, 2)),
        common.ticks * median_failure(j, LOST_RATE),
    )


class Reduction:
    """Counts distinct items within a factor of 1 + eta and whatever the additive algorithm errs by.

    Neighbours: streams that differ in one event. Guarantee: that of the budget, if every additive algorithm
    and the bound keep to their shares. Composition: they see streams that are neighbours again (a map acts
    event by event), and their epsilons or rhos add up to at most the budget (:class:`ReductionPlan`).
    Theorem: 4.2 of the source; the choice of the domain and medians are post-processing. Accuracy assumes a
    strict stream; nothing else does.

    Args:
        plan: from :func:`reduction_plan`.
        additive: makes the additive algorithm for a domain.
        bound: mechanism whose readings' upper ends bound the number of distinct items; with half the budget.
        key, stream_id: of the maps (accuracy rests on them, privacy does not).

    All mechanisms must release at the same steps.
    """

    def __init__(
        self, plan: ReductionPlan, additive: MakeAdditive, *, bound: Mechanism, key: bytes, stream_id: bytes
    ) -> None:
        self.plan, self._bound = plan, bound
        self._parts: list[Mechanism] = []
        for level in range(plan.levels):
            for copy in range(plan.copies):
                self._parts.append(additive(1 << level, plan.share, f"reduction/{level}/{copy}"))
        self._parts.append(additive(plan.universe, plan.share, "reduction/identity"))
        hashes = max(1, plan.levels * plan.copies)
        words = hash_words(key, stream_id=stream_id, purpose="turnstile/reduction maps", shape=(hashes, 2))
        self._hashes = Polynomials.drawn(words)
        digest = DigestBuilder("trilift/turnstile reduction/1").add("bound", bound.digest)
        digest.add("eta", plan.eta).add("universe", plan.universe).add("copies", plan.copies)
        for part in self._parts:
            digest.add("additive", part.digest)
        self.digest = digest.digest()

    def start(self) -> Any:
        """Return the exact states of the empty stream: the bound's, then all additive algorithms'."""
        return (self._bound.start(), *(part.start() for part in self._parts))

    def advanced(self, held: Any, prints: Words, signs: Integers, *, step: int) -> tuple[Any, Readings]:
        """Return the states after k more events, and what is released meanwhile; changes nothing."""
        first, bounds = self._bound.advanced(held[0], prints, signs, step=step)
        states, readings = [first], []
        values = self._hashes.values(prints[:, 0]) if self.plan.levels else None
        for index, (part, before) in enumerate(zip(self._parts, held[1:], strict=True)):
            mapped = prints
            if values is not None and index < len(self._parts) - 1:
                mask = np.uint64((1 << (index // self.plan.copies)) - 1)
                mapped = np.zeros_like(prints)
                mapped[:, 0] = values[:, index] & mask
            state, seen = part.advanced(before, mapped, signs, step=step)
            states.append(state)
            readings.append(seen)
        return tuple(states), self._chosen(bounds, readings)

    def domains(self, high: FloatArray) -> IntArray:
        """Return log2 m' for upper bounds of D, or the number of levels for the identity."""
        wanted = np.maximum(16.0 * np.asarray(high) / float(self.plan.eta), 1.0)
        fraction, exponent = np.frexp(wanted)
        levels = exponent - (fraction == 0.5)  # least i with 2^i >= wanted
        return np.asarray(np.minimum(levels, self.plan.levels).astype(np.int64))

    def _chosen(self, bounds: Readings, readings: Sequence[Readings]) -> Readings:
        plan = self.plan
        levels = self.domains(bounds.high)
        estimate, low, high = (np.empty(len(bounds)) for _ in range(3))
        for level in np.unique(levels).tolist():
            where = np.flatnonzero(levels == level)
            some = readings[level * plan.copies : (level + 1) * plan.copies]  # at the last level the identity
            estimate[where], low[where], high[where] = (
                np.median([getattr(one, name)[where] for one in some], axis=0)
                for name in ("estimate", "low", "high")
            )
            if level < plan.levels:
                high[where] /= 1.0 - float(plan.eta) / 2.0
        high = np.minimum(high, bounds.high)
        return Readings(bounds.step, estimate, np.minimum(np.maximum(low, bounds.low), high), high)

    def record(self, held: Any) -> Any:
        """Return the states for JSON."""
        return [part.record(state) for part, state in zip((self._bound, *self._parts), held, strict=True)]

    def restored(self, record: Any) -> Any:
        """Return the states of a record.

        Raises:
            ValueError, TypeError, KeyError: not states of this mechanism.
        """
        if not isinstance(record, list) or len(record) != len(self._parts) + 1:
            raise ValueError("not the states of this reduction")
        return tuple(
            part.restored(one) for part, one in zip((self._bound, *self._parts), record, strict=True)
        )
