"""Sketches of the second moment: rows of signed sums (A4) and tables of signed buckets (A4s).

Every estimate has the noise's own contribution taken off: E N^2 of a counter's noise does not depend on the
data, so subtracting it is free post-processing. The source leaves it in, where it exceeds the moment itself
unless F2 is large. All sums of squares are integers, so that an estimate is the same number however it was
computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from trilift.counters.turnstile.bases import Base
from trilift.counters.turnstile.moment_bounds import (
    RowPlan,
    chebyshev_interval,
    mean_interval,
    row_share,
    square_tails,
)
from trilift.counters.turnstile.moment_noise import fourth_moment, released_second_moment, square_variance
from trilift.counters.turnstile.polynomials import ROWS_PER_VALUE, Polynomials
from trilift.counters.turnstile.reading import Readings
from trilift.counters.turnstile.sketch import Sketch
from trilift.stream.keys import DigestBuilder

__all__ = ["RowSketch", "TableSketch", "sums_of_squares"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]
Words = np.ndarray[Any, np.dtype[np.uint64]]

_EVENTS = 1 << 11  # hashed at once, so that what they are hashed to stays in the cache
_INDEPENDENT = 4
"""Coefficients of a table's polynomials: 4-wise independent signs and buckets."""


def sums_of_squares(values: Integers) -> Integers:
    """Return the sums of squares along the last axis, exact for integers of any size."""
    if values.dtype.kind == "f":
        return np.asarray((values * values).sum(axis=-1))
    most = max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0))))
    if most * most * values.shape[-1] >= 1 << 63:
        values = values.astype(object)
    return np.asarray((values * values).sum(axis=-1))


def _pieces(ticks: IntArray) -> Iterator[tuple[slice, int, int]]:
    """Split events with ascending ticks into pieces: (events, first tick, last tick)."""
    for start in range(0, len(ticks), _EVENTS):
        stop = min(start + _EVENTS, len(ticks))
        yield slice(start, stop), int(ticks[start]), int(ticks[stop - 1])


def _clamped(values: FloatArray, steps: IntArray) -> FloatArray:
    """F2 lies between 0 and t^2, whatever the stream: |x_1| + |x_2| + ... <= t."""
    most = steps.astype(np.float64)
    return np.asarray(np.clip(values, 0.0, most * most))


def _readings(steps: IntArray, estimate: FloatArray, low: FloatArray, high: FloatArray) -> Readings:
    return Readings(steps, _clamped(estimate, steps), _clamped(low, steps), _clamped(high, steps))


class RowSketch(Sketch):
    """A4: m rows, each one counter that adds sigma_i(a_t) s_t; F2 is near the mean square.

    An event changes every row: m banks of one counter each. Needs no strictness.

    Args:
        base: the noise of one row, with 1/m of the budget.
        plan: rows, independence, and the interval's constants.
        words: uniform words of shape (polynomials, coefficients), 61 rows a polynomial.
        failure: of all intervals together.
    """

    def __init__(self, base: Base, plan: RowPlan, words: Words, *, failure: float) -> None:
        self.width = self.banks = plan.rows
        self.failure = failure
        self.base, self.plan = base, plan
        self._signs = Polynomials.drawn(words)

    @staticmethod
    def shape(plan: RowPlan) -> tuple[int, int]:
        """Return the shape of the words that its signs need."""
        return -(-plan.rows // ROWS_PER_VALUE), plan.coefficients

    def touched(self, prints: Words) -> tuple[IntArray, Integers]:
        """Return all rows, and their signs."""
        signs = self._signs.signs(prints[:, 0], rows=self.width)
        return np.broadcast_to(np.arange(self.width), signs.shape), signs.astype(np.int64)

    def increments(self, prints: Words, signs: Integers, ticks: IntArray, *, count: int) -> IntArray:
        """Return what events add to the rows by ticks 0..count-1, shape (count, rows)."""
        total = np.zeros((count, self.width), dtype=np.int64)
        for events, _, _ in _pieces(ticks):
            added = (
                self._signs.signs(prints[events, 0], rows=self.width) * signs[events].astype(np.int8)[:, None]
            )
            mine = ticks[events]
            starts = np.flatnonzero(np.concatenate([[True], mine[1:] != mine[:-1]]))
            total[mine[starts]] += np.add.reduceat(added, starts, axis=0, dtype=np.int64)
        return total

    def tables(self, ticks: IntArray) -> FloatArray:
        """Return E N'^2 of the rounded noise, v, and how far mean N'^2 may lie below and above v."""
        base, plan = self.base, self.plan
        v = base.variance(ticks)
        laplace = base.budget.law == "laplace"
        fourth = fourth_moment(base, ticks) if laplace else None
        share = math.exp(plan.ln_failure) / (6.0 * plan.rows)
        cut = base.upper(ticks, failure=share) if laplace else None
        down, up = square_tails(v, rows=plan.rows, ln_failure=plan.ln_failure, fourth=fourth, cut=cut)
        return np.stack([released_second_moment(base, ticks), v, down, up], axis=1)

    def unclamped(self, values: Integers, tables: FloatArray) -> FloatArray:
        """Return mean C^2 - E N'^2, an unbiased estimate, shape (k,)."""
        return np.asarray(sums_of_squares(values).astype(np.float64) / self.width - tables[:, 0])

    def read(self, values: Integers, tables: FloatArray, *, steps: IntArray) -> Readings:
        """Return the estimates and the intervals of F2."""
        estimate = self.unclamped(values, tables)
        low, high = mean_interval(estimate, tables[:, 1], tables[:, 2], tables[:, 3], plan=self.plan)
        return _readings(steps, estimate, low, high)

    def described(self, digest: DigestBuilder) -> DigestBuilder:
        """Add the rows and the independence."""
        return digest.add("sketch", "rows").add("rows", self.width).add("moment", self.plan.moment)


class TableSketch(Sketch):
    """A4s: s rows of w buckets; an event adds sigma_r(a_t) s_t to bucket h_r(a_t) of every row r.

    An event changes one bucket a row: s banks of w counters each. Needs no strictness. Sign and bucket of a
    row are disjoint bits of one cubic polynomial, 4-wise independent together.

    Args:
        base: the noise of one row, with 1/s of the budget.
        rows: s, odd.
        buckets: w, a power of two.
        words: uniform words of shape (rows, 4).
        reads: number of released values.
        failure: of all intervals together.
    """

    def __init__(
        self, base: Base, *, rows: int, buckets: int, words: Words, reads: int, failure: float
    ) -> None:
        self.width, self.banks, self.failure = rows * buckets, rows, failure
        self.rows, self.buckets = rows, buckets
        self.share = row_share(rows, reads=reads, failure=failure)
        self.base = base
        self._hashes = Polynomials.drawn(words)
        self._offsets = np.arange(rows, dtype=np.int64) * buckets
        self._mask = np.uint64(buckets - 1)

    @staticmethod
    def shape(rows: int) -> tuple[int, int]:
        """Return the shape of the words that its hashes need."""
        return rows, _INDEPENDENT

    def touched(self, prints: Words) -> tuple[IntArray, Integers]:
        """Return a bucket in every row, and the signs."""
        values = self._hashes.values(prints[:, 0])
        signs = 1 - 2 * (values & np.uint64(1)).astype(np.int64)
        return ((values >> np.uint64(1)) & self._mask).astype(np.int64) + self._offsets, signs

    def increments(self, prints: Words, signs: Integers, ticks: IntArray, *, count: int) -> IntArray:
        """Return what events add to the buckets by ticks 0..count-1, shape (count, width)."""
        total = np.zeros((count, self.width), dtype=np.int64)
        for events, first, last in _pieces(ticks):
            mine = ticks[events] - first
            total[first : last + 1] += super().increments(
                prints[events], signs[events], mine, count=last - first + 1
            )
        return total

    def tables(self, ticks: IntArray) -> FloatArray:
        """Return E N'^2 of the rounded noise, and Var(N'^2)."""
        moment = released_second_moment(self.base, ticks)
        return np.stack([moment, square_variance(self.base, ticks)], axis=1)

    def row_estimates(self, values: Integers, tables: FloatArray) -> FloatArray:
        """Return every row's unbiased estimate, shape (k, rows)."""
        squares = sums_of_squares(values.reshape(len(values), self.rows, self.buckets))
        return np.asarray(squares.astype(np.float64) - self.buckets * tables[:, :1])

    def unclamped(self, values: Integers, tables: FloatArray) -> FloatArray:
        """Return the medians of the rows, shape (k,)."""
        return np.asarray(np.sort(self.row_estimates(values, tables), axis=1)[:, self.rows // 2])

    def read(self, values: Integers, tables: FloatArray, *, steps: IntArray) -> Readings:
        """Return the estimates and the intervals of F2."""
        estimate = self.unclamped(values, tables)
        low, high = chebyshev_interval(
            estimate, tables[:, 0], tables[:, 1], buckets=self.buckets, share=self.share
        )
        return _readings(steps, estimate, low, high)

    def described(self, digest: DigestBuilder) -> DigestBuilder:
        """Add the shape."""
        return digest.add("sketch", "tables").add("rows", self.rows).add("buckets", self.buckets)
