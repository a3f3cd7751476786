"""What is displayed when: pairs (time, value) that wait until their time has come.

When bucket l ends, a pair (that_l, vhat_l) with that_l >= t_l is added; from step that_l on vhat_l is shown,
until another pair comes due. Of pairs with the same time the one with the largest l counts. Pairs may come
due out of order; the display follows time. So what is shown is a function of the released pairs alone, and a
pair that is not due yet is shown by nothing: pending pairs, their number and l are secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.lift.integers import add, bit_width, multiply, shrink

__all__ = ["Pairs", "Schedule", "extrapolated", "latest"]

Integers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, repr=False)
class Pairs:
    """Pairs in order of time: parallel arrays of one length.

    Attributes:
        index: l - 1, the number of buckets that ended before.
        time: that_l.
        value: vhat_l, in output lattice steps.
    """

    index: Integers
    time: Integers
    value: Integers

    @classmethod
    def none(cls) -> Pairs:
        """Return no pairs."""
        empty = np.zeros(0, dtype=np.int64)
        return cls(empty, empty, empty)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, where: Any) -> Pairs:
        return Pairs(self.index[where], self.time[where], self.value[where])

    def joined(self, other: Pairs) -> Pairs:
        """Return these and then the others."""
        return Pairs(
            *(_joined(mine, yours) for mine, yours in zip(self.columns(), other.columns(), strict=True))
        )

    def columns(self) -> tuple[Integers, Integers, Integers]:
        """Return (index, time, value)."""
        return self.index, self.time, self.value

    def ordered(self) -> Pairs:
        """Return them in order of time, of equal times the one of the largest index."""
        pairs = self[np.lexsort((self.index, self.time))]
        last = np.ones(len(pairs), dtype=np.bool_)
        last[:-1] = pairs.time[1:] != pairs.time[:-1]
        return pairs[last]


def _joined(left: Integers, right: Integers) -> Integers:
    if left.dtype == right.dtype:
        return np.concatenate([left, right])
    return shrink(np.concatenate([left.astype(object), right.astype(object)]))


@dataclass(frozen=True, repr=False)
class Schedule:
    """Where the display stands. Secret, but for the pair that is shown.

    Attributes:
        shown: the pair shown now: one or none.
        pending: pairs not due yet, ordered.
    """

    shown: Pairs
    pending: Pairs

    @classmethod
    def start(cls) -> Schedule:
        """Return the beginning: nothing shown, nothing pending."""
        return cls(Pairs.none(), Pairs.none())

    def advanced(self, *, step: int, steps: int, new: Pairs) -> tuple[Schedule, Pairs, Integers]:
        """Let k steps pass.

        Args:
            step: steps before these.
            steps: k >= 1.
            new: pairs added during them, each at a step no later than its time.

        Returns:
            (the schedule after them, the pairs that were shown, for each step the position of its pair among
            these or -1 for none).
        """
        waiting = self.pending if len(new) == 0 else self.pending.joined(new).ordered()
        due = int(np.searchsorted(waiting.time, step + steps, side="right"))
        if due == 0:
            return Schedule(self.shown, waiting), self.shown, np.full(steps, len(self.shown) - 1)
        shown = self.shown.joined(waiting[:due])
        starts = np.maximum(waiting.time[:due], step + 1) - (step + 1)
        ends = np.append(starts, steps)
        counts = ends - np.append(0, starts)
        where = np.repeat(np.arange(-1, due) + len(self.shown), counts)
        return Schedule(shown[-1:], waiting[due:]), shown, where


def latest(pairs: Pairs, where: Integers) -> Integers:
    """Return the value shown at every step: that of its pair, 0 before the first one."""
    values = _joined(pairs.value, np.zeros(1, dtype=np.int64))  # the last one is for position -1
    return values[where]


def extrapolated(pairs: Pairs, where: Integers, *, step: int, delays: Integers, largest: int) -> Integers:
    """Return the value of each step's pair, carried on at the mean rate so far.

    With ttilde = that - alpha, an unbiased estimate of when the bucket ended, and rate = vhat / ttilde
    limited to [0, largest], step t shows floor(vhat + rate (t - ttilde) + 1/2); where ttilde < 1, vhat. A
    function of the pairs that are due, hence post-processing.

    Args:
        pairs: as from :meth:`Schedule.advanced`.
        where: likewise, shape (k,).
        step: steps before these.
        delays: alpha of each of the pairs, in steps.
        largest: the largest input, in output lattice steps.
    """
    ends = add(pairs.time, delays, sign=-1)
    known = ends >= 1
    below = np.where(known, ends, 1)
    limit = multiply(below, np.array(largest))
    rise = np.where(known, np.minimum(np.maximum(pairs.value, 0), limit), 0)
    one = np.ones(1, dtype=np.int64)
    ahead = add(np.arange(step + 1, step + 1 + len(where)), _joined(ends, 0 * one)[where], sign=-1)
    rise, below = _joined(rise, 0 * one)[where], _joined(below, one)[where]
    if bit_width(rise) + bit_width(ahead) > 60 or bit_width(below) > 60:
        rise, below, ahead = (part.astype(object) for part in (rise, below, ahead))
    return add(latest(pairs, where), shrink((2 * rise * ahead + below) // (2 * below)))
