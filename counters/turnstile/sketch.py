"""Linear sketches of a turnstile stream, and the mechanism that releases what is read off them.

A sketch says which counters an event touches and what noisy counters mean; it knows no noise. The mechanism
keeps the exact counters, adds noise at the steps that are released, and reads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from trilift.counters.turnstile.bases import Bank, Base
from trilift.counters.turnstile.reading import Readings
from trilift.stream.keys import DigestBuilder

__all__ = ["Linear", "Sketch"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]
Words = np.ndarray[Any, np.dtype[np.uint64]]

_CELLS = 1 << 18  # counters times ticks that are held at once
_PAGE_CELLS = 1 << 17


class Sketch(ABC):
    """What counters hold, and what is read off them.

    Attributes:
        width: number of counters, of all banks together.
        banks: number of banks: an event adds at most one +1 or -1 to each of them.
        failure: bound on the probability that some released interval is wrong.
    """

    width: int
    banks: int
    failure: float

    @abstractmethod
    def touched(self, prints: Words) -> tuple[IntArray, Integers]:
        """Return the counters that insertions of items touch and by how much, both of shape (k, banks).

        Args:
            prints: fingerprints, uint64 of shape (k, 2).
        """

    @abstractmethod
    def tables(self, ticks: IntArray) -> FloatArray:
        """Return what reading needs to know of the noise at 0-based ticks, shape (k, any); public."""

    @abstractmethod
    def read(self, values: Integers, tables: FloatArray, *, steps: IntArray) -> Readings:
        """Return the readings of noisy counters.

        Args:
            values: noisy counters, shape (k, width).
            tables: of their ticks.
            steps: numbers of events so far, from 1.
        """

    @abstractmethod
    def described(self, digest: DigestBuilder) -> DigestBuilder:
        """Add everything that the sketch depends on, but secret keys, to a digest."""

    def increments(self, prints: Words, signs: Integers, ticks: IntArray, *, count: int) -> IntArray:
        """Return what events add to the counters by ticks 0..count-1, shape (count, width).

        Sums of at most 2^53 events are exact in the floats that ``bincount`` adds up with.
        """
        where, change = self.touched(prints)
        cells = ticks[:, None] * self.width + where
        weights = np.broadcast_to(change * signs[:, None], where.shape).astype(np.float64)
        total = np.bincount(cells.ravel(), weights=weights.ravel(), minlength=count * self.width)
        return total.astype(np.int64).reshape(count, self.width)


class Linear:
    """A sketch under noise: exact counters in, readings out.

    Neighbours, guarantee, composition, theorem: every bank is a share of one
    :class:`trilift.stream.bank.NoiseBank`, with the base's budget for streams that differ in one event; banks
    compose (:mod:`trilift.counters.turnstile.budget`).
    Everything read is a function of the noisy counters and of public numbers.

    Args:
        sketch: what counters mean.
        base: the noise of one bank.
        every: events a tick.
        key, stream_id, purpose: of the noise.
    """

    def __init__(
        self, sketch: Sketch, base: Base, *, every: int, key: bytes, stream_id: bytes, purpose: str
    ) -> None:
        self.sketch, self.base, self.every = sketch, base, every
        self.bank: Bank = base.bank(sketch.width, key=key, stream_id=stream_id, purpose=purpose)
        digest = (
            DigestBuilder("trilift/turnstile sketch/1").add("noise", self.bank.digest).add("every", every)
        )
        self.digest = sketch.described(digest).digest()
        self._page = max(1, min(256, _PAGE_CELLS // sketch.width))
        self._held: tuple[int, Integers, FloatArray] | None = None

    def start(self) -> IntArray:
        """Return the counters of the empty stream."""
        return np.zeros(self.sketch.width, dtype=np.int64)

    def advanced(
        self, counts: IntArray, prints: Words, signs: Integers, *, step: int
    ) -> tuple[IntArray, Readings]:
        """Return the counters after k more events, and what is released meanwhile; changes nothing.

        Args:
            counts: the counters now.
            prints, signs: of the events, shapes (k, 2) and (k,).
            step: number of events before.
        """
        k, every = len(signs), self.every
        ticks = (step + np.arange(k, dtype=np.int64)) // every  # the tick whose end shows an event
        first, last = step // every, (step + k) // every
        size = max(1, _CELLS // self.sketch.width)
        parts: list[Readings] = []
        now = counts
        for begin in range(first, last, size):
            end = min(begin + size, last)
            a, b = np.searchsorted(ticks, [begin, end]).tolist()
            sums = self.sketch.increments(prints[a:b], signs[a:b], ticks[a:b] - begin, count=end - begin)
            sums[0] += now
            np.cumsum(sums, axis=0, out=sums)
            now = sums[-1].copy()
            noise, tables = self._noise(begin, end)
            steps = np.arange(begin + 1, end + 1, dtype=np.int64) * every
            parts.append(self.sketch.read(sums + noise, tables, steps=steps))
        rest = int(np.searchsorted(ticks, last))
        if rest < k:
            tail = self.sketch.increments(prints[rest:], signs[rest:], ticks[rest:] - last, count=1)
            now = now + tail[0]
        return now, Readings.joined(parts)

    def _noise(self, begin: int, end: int) -> tuple[Integers, FloatArray]:
        """Return noise and tables of ticks; few of them from a page, which the next ones will need too."""
        if end - begin >= self._page:
            ticks = np.arange(begin, end, dtype=np.int64)
            return self.bank.at(ticks), self.sketch.tables(ticks)
        noises, tables = [], []
        for number in range(begin // self._page, (end - 1) // self._page + 1):
            held = self._held
            if held is None or held[0] != number:
                start = number * self._page
                ticks = np.arange(start, min(start + self._page, self.base.ticks), dtype=np.int64)
                held = self._held = number, self.bank.at(ticks), self.sketch.tables(ticks)
            offset = number * self._page
            inside = slice(max(begin - offset, 0), end - offset)
            noises.append(held[1][inside])
            tables.append(held[2][inside])
        if len(noises) == 1:
            return noises[0], tables[0]
        return np.concatenate(noises), np.concatenate(tables)

    def record(self, counts: IntArray) -> Any:
        """Return the counters for JSON."""
        return counts.tolist()

    def restored(self, record: Any) -> IntArray:
        """Return the counters that a state holds.

        Raises:
            ValueError, TypeError, OverflowError: not counters of this sketch.
        """
        if not isinstance(record, list) or not all(type(value) is int for value in record):
            raise ValueError("not counters")
        counts = np.array(record, dtype=np.int64)
        if counts.shape != (self.sketch.width,):
            raise ValueError("not the counters of this sketch")
        return counts
