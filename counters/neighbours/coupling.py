"""The coupling of checkpoints between a stream and an insertion neighbour of it.

A partition closes buckets at checkpoints t_1 < ... < t_k; bucket l is the steps t_{l-1}+1, ..., t_l, and what
comes after t_k is the tail, bucket k + 1. Let x be x' with X inserted at step i, and j >= i the step of the
BOT that absorbs the shift, or T + 1. Bucket p holds i, bucket q holds j (q = k + 1 if j > t_k). The partition
of x is coupled with the one of x' in which the checkpoints p+1, ..., q-2 come one step earlier and all others
are the same. Then

    sums(x) - sums(x') = X e_p + a (e_{p+1} - e_p) + b (e_q - e_{q-1}),   a = x'_{t_p}, b = x'_{t_{q-1}},
    gaps(x) - gaps(x') = e_{p+1} - e_{q-1} if q >= p + 3, else 0,

with X e_p alone for q = p, without the b term for q = p + 1, and without a coordinate k + 1, which is never
fed (p = k + 1: no change at all). For inputs >= 0, X, a and b are >= 0. So the sums differ in at most four
places and the gaps in at most two. The coupling is injective, and defined whenever the bucket that shrinks
has at least two steps: bucket p + 1 on the way from x to x', bucket q - 1 on the way back.

Here steps and checkpoints count from 1, as in this formula (a checkpoint is the number of steps in the
buckets up to it), and p and q are numbers of buckets from 1. What :mod:`trilift.counters.neighbours.edit`
calls step ``at`` is i - 1.

Source: "Edit-Neighboring Data Streams and Privacy under Continual Observation" (Andersson, Chaturvedi,
Henzinger, Safavi) for the use of such a coupling; the exact form of the differences is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from trilift.counters.neighbours.edit import absorbing_step
from trilift.counters.neighbours.streams import Number, as_stream, plain
from trilift.lift.checks import choice, fail, integer
from trilift.lift.errors import ParameterError

__all__ = ["Coupling", "couple", "gap_difference", "gaps", "interval_sums", "sum_difference"]


@dataclass(frozen=True)
class Coupling:
    """A partition and the one that is coupled with it.

    Attributes:
        first: bucket p of the insertion.
        last: bucket q of the absorbing step.
        checkpoints: the checkpoints of the other stream's partition.
    """

    first: int
    last: int
    checkpoints: tuple[int, ...]


def interval_sums(stream: Iterable[Any], *, checkpoints: Sequence[int]) -> tuple[Number, ...]:
    """Return the sums of the k buckets that checkpoints close; the tail has none.

    Args:
        stream: T items, ``None`` for BOT.
        checkpoints: t_1 < ... < t_k, numbers of steps, 1 <= t_1, t_k <= T.

    >>> interval_sums([1, 0, None, 1, 1], checkpoints=[2, 4])
    (1, 1)
    """
    items = as_stream(stream)
    ends = _checked(checkpoints, len(items))
    return tuple(
        plain(sum(item or 0 for item in items[start:end]), name="sum")
        for start, end in zip((0, *ends), ends, strict=False)
    )


def gaps(checkpoints: Sequence[int]) -> tuple[int, ...]:
    """Return the lengths of the buckets.

    >>> gaps([2, 4, 9])
    (2, 2, 5)
    """
    ends = _checked(checkpoints, None)
    return tuple(end - start for start, end in zip((0, *ends), ends, strict=False))


def couple(checkpoints: Sequence[int], *, inserted: int, absorbed: int, to: str = "base") -> Coupling:
    """Return the partition that is coupled with a given one.

    Args:
        checkpoints: t_1 < ... < t_k of the stream at hand.
        inserted: step i of the insertion, from 1.
        absorbed: step j >= i of the BOT that absorbs the shift, or T + 1.
        to: "base" if the stream at hand is the insertion x and the other one x', "insertion" the other way.

    Raises:
        ParameterError: the bucket that would shrink has a single step.

    >>> couple([2, 4, 6, 8], inserted=1, absorbed=8)
    Coupling(first=1, last=4, checkpoints=(2, 3, 6, 8))
    >>> couple([2, 3, 6, 8], inserted=1, absorbed=8, to="insertion").checkpoints
    (2, 4, 6, 8)
    """
    ends = _checked(checkpoints, None)
    start = integer("inserted", inserted, minimum=1)
    stop = integer("absorbed", absorbed, minimum=start)
    move = {"base": -1, "insertion": 1}[choice("to", to, ("base", "insertion"))]
    p, q = (1 + sum(end < step for end in ends) for step in (start, stop))
    shifted = tuple(end + move * (p < number < q - 1) for number, end in enumerate(ends, start=1))
    if any(after <= before for before, after in pairwise(shifted)):
        raise ParameterError(f"bucket {p + 1 if to == 'base' else q - 1} has one step: it cannot shrink")
    return Coupling(p, q, shifted)


def sum_difference(
    base: Iterable[Any], *, at: int, value: Any, checkpoints: Sequence[int]
) -> tuple[Number, ...]:
    """Return the difference of the coupled interval sums by the formula: insertion less base.

    Args:
        base: x', T items.
        at: step of the insertion **from 0**, as in :func:`trilift.counters.neighbours.insert`.
        value: the inserted item X.
        checkpoints: those of the insertion x.

    Returns:
        k numbers, at most four of them not 0.

    >>> sum_difference([1, 0, 1, 1, 0, 1, 1], at=0, value=1, checkpoints=[1, 3, 5, 7])
    (0, 1, 0, -1)
    """
    items = as_stream(base, name="base")
    ends = _checked(checkpoints, len(items))
    absorbed = absorbing_step(items, at=at) + 1
    p, q = (1 + sum(end < step for end in ends) for step in (at + 1, absorbed))
    terms: list[tuple[int, Number]] = [(p, plain(value, name="value"))]
    if q > p:
        moved = items[ends[p - 1] - 1] or 0
        terms += [(p + 1, moved), (p, -moved)]
    if q > p + 1:
        moved = items[ends[q - 2] - 1] or 0
        terms += [(q, moved), (q - 1, -moved)]
    result: list[Number] = [0] * len(ends)
    for number, amount in terms:
        if number <= len(ends):
            result[number - 1] += amount
    return tuple(plain(entry, name="sum") for entry in result)


def gap_difference(coupling: Coupling) -> tuple[int, ...]:
    """Return the difference of the coupled gaps by the formula: insertion less base.

    >>> gap_difference(Coupling(first=1, last=4, checkpoints=(2, 3, 6, 8)))
    (0, 1, -1, 0)
    """
    p, q = coupling.first, coupling.last
    moves = q >= p + 3
    return tuple(
        moves * ((number == p + 1) - (number == q - 1)) for number in range(1, len(coupling.checkpoints) + 1)
    )


def _checked(checkpoints: Sequence[int], steps: int | None) -> tuple[int, ...]:
    if (
        isinstance(checkpoints, str)
        or not isinstance(checkpoints, Iterable)
        or getattr(checkpoints, "ndim", 1) != 1
    ):
        raise fail("checkpoints", "a sequence of integers", checkpoints)
    ends = tuple(integer(f"checkpoints[{at}]", end, minimum=1) for at, end in enumerate(checkpoints))
    if any(after <= before for before, after in pairwise(ends)):
        raise ParameterError("checkpoints must increase")
    if steps is not None and ends and ends[-1] > steps:
        raise ParameterError(f"checkpoints must be at most {steps}, the number of steps, got {ends[-1]}")
    return ends
