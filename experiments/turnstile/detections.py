"""Detection by levels of many counters at once: what MinHash's decoding needs, for simulated or exact noise.

The counters of a copy (or of a group) are read at all steps, one counter after the other. From the highest
level down, a step's flag is set once a level is detected, and every level counts the flags: the median over
copies of the largest detected level is then the number of levels >= 1 that a majority of copies has at or
above. That is :meth:`trilift.counters.turnstile.grouped.Grouped.read` without its arrays of all counters; a
test compares both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Detector", "Placed", "median_levels"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
Floats = np.ndarray[Any, np.dtype[np.float32]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Placed:
    """The events of a stream, sorted by the counters that they touch.

    Args:
        where: counter of every event, shape (T,).
        change: what it adds.
        width: number of counters.
    """

    def __init__(self, where: IntArray, change: IntArray, *, width: int) -> None:
        order = np.argsort(where, kind="stable")
        self._times, self._change = order, change[order].astype(np.float32)
        self._edges = np.searchsorted(where[order], np.arange(width + 1))
        self._steps = len(where)

    def sums(self, counter: int) -> Floats | None:
        """Return the counter after every event (whole numbers in float32), or None if nothing touches it."""
        a, b = self._edges[counter], self._edges[counter + 1]
        if a == b:
            return None
        steps = np.zeros(self._steps, dtype=np.float32)
        steps[self._times[a:b]] = self._change[a:b]
        return np.cumsum(steps, out=steps)


@dataclass
class Detector:
    """Counts the copies that detect something at a level or above, at all steps.

    A counter is detected where noise + sum exceeds tau', in integers; with noise N = sigma U that is
    U >= (tau' + 1/2 - sum) / sigma, which needs no rounding.

    Args:
        limit: tau' + 1/2 at all steps.
        sigma: what the noise is given in units of: 1 for integers.
        levels: number of levels.
        signed: whether counters are detected on either side of 0.
    """

    limit: FloatArray
    sigma: float
    levels: int
    signed: bool = False
    counts: Bytes = field(init=False)
    copies: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._limit = (self.limit / self.sigma).astype(np.float32)
        self.counts = np.zeros((self.levels, len(self.limit)), dtype=np.uint8)

    def add(self, noise: Floats, sums: list[Floats | None]) -> None:
        """Add a copy.

        Args:
            noise: in units of sigma, shape (levels, T).
            sums: exact counters of the levels.
        """
        flag = np.zeros(noise.shape[1], dtype=bool)
        scale = np.float32(1.0 / self.sigma)
        for level in range(self.levels - 1, -1, -1):
            exact = sums[level]
            value = noise[level] if exact is None else noise[level] + exact * scale
            flag |= (np.abs(value) if self.signed else value) >= self._limit
            self.counts[level] += flag
        self.copies += 1


def median_levels(detector: Detector) -> IntArray:
    """Return the median over copies of the largest detected level (0 if none is), at all steps."""
    need = (detector.copies + 1) // 2
    return (detector.counts[1:] >= need).sum(axis=0, dtype=np.int64)
