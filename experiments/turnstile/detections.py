"""Detection by levels, at all steps, one copy after the other: what MinHash's decoding needs.

The counters of a copy (or of a group) are given at all steps. From the highest level down, a step's flag is
set once a level is detected, and every level counts the flags: the median over copies of the largest
detected level is then the number of levels >= 1 that a majority of copies has at or above. That is what
:meth:`trilift.counters.turnstile.grouped.Grouped.read` makes of all counters at once; a test compares both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.counters.turnstile.closer import LOW_LEVELS, limits_of_sums

__all__ = ["Detector", "Moments", "Placed"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
Floats = np.ndarray[Any, np.dtype[np.float32]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Sums = list["Floats | None"]


class Placed:
    """The events of a stream, sorted by the counters of one copy that they touch.

    Args:
        where: counter of every event, less than 2^16, shape (T,); those of ``width`` and more are left out.
        change: what the event adds, shape (T,).
        width: number of counters.
    """

    def __init__(self, where: IntArray, change: IntArray, *, width: int) -> None:
        small = where.astype(np.uint16)
        order = np.argsort(small, kind="stable")
        self._times, self._change = order, change[order].astype(np.float32)
        self._edges = np.searchsorted(small[order], np.arange(width + 1))
        self._steps = len(where)

    def sums(self, counter: int) -> Floats | None:
        """Return the counter after every event (whole numbers in float32), or None if nothing touches it."""
        a, b = self._edges[counter], self._edges[counter + 1]
        if a == b:
            return None
        steps = np.zeros(self._steps, dtype=np.float32)
        steps[self._times[a:b]] = self._change[a:b]
        return np.cumsum(steps, out=steps)


class Detector:
    """Counts the copies that detect something at a level or above, and detected cells, at all steps.

    A counter is detected where its estimate exceeds tau', in integers. Noise comes in units of sigma (1 for
    integers); rounding it would change nothing: floor(N + 1/2) + S > tau' is N >= tau' + 1/2 - S.

    Args:
        limit: tau' at all steps.
        sigma: unit of the noise.
        levels: number of levels.
        signed: whether counters are detected on either side of 0.
        strong: a higher tau' for the cells, or None not to count them.
    """

    def __init__(
        self,
        limit: FloatArray,
        *,
        sigma: float,
        levels: int,
        signed: bool = False,
        strong: FloatArray | None = None,
    ) -> None:
        self._scale, self.signed, self.levels = np.float32(1.0 / sigma), signed, levels
        self._limit = ((limit + 0.5) / sigma).astype(np.float32)
        self._strong = None if strong is None else ((strong + 0.5) / sigma).astype(np.float32)
        self.counts: Bytes = np.zeros((levels, len(limit)), dtype=np.uint8)
        self.cells = np.zeros(len(limit), dtype=np.uint16)
        self.copies = 0

    def add(self, noise: Floats, sums: Sums) -> None:
        """Add a copy.

        Args:
            noise: in units of sigma, shape (levels, T).
            sums: exact counters of the levels.
        """
        flag = np.zeros(noise.shape[1], dtype=bool)
        for level in range(self.levels - 1, -1, -1):
            exact = sums[level]
            value = noise[level] if exact is None else noise[level] + exact * self._scale
            flag |= (np.abs(value) if self.signed else value) >= self._limit
            self.counts[level] += flag
            if self._strong is not None:
                self.cells += value >= self._strong
        self.copies += 1

    def medians(self) -> IntArray:
        """Return the median over copies of the largest detected level (0 if none is), at all steps."""
        need = (self.copies + 1) // 2
        return np.asarray((self.counts[1:] >= need).sum(axis=0, dtype=np.int64))


class Moments:
    """Sums over the groups of noisy counters, and of the lowest levels' squares, for a noise of any sigma.

    With C = S + sigma U, the sums of S, U, S^2, S U and U^2 give those of C and C^2 for every sigma.

    Args:
        levels, steps: shape of a copy's counters.
    """

    def __init__(self, *, levels: int, steps: int) -> None:
        used = min(LOW_LEVELS, levels)
        self._used, self.copies = used, 0
        self._s, self._u = np.zeros((levels, steps)), np.zeros((levels, steps))
        self._ss, self._su, self._uu = (np.zeros((used, steps)) for _ in range(3))

    def add(self, noise: Floats, sums: Sums) -> None:
        """Add a copy: arguments of :meth:`Detector.add`."""
        self.copies += 1
        self._u += noise
        for level, exact in enumerate(sums):
            if level < self._used:
                self._uu[level] += noise[level] * noise[level]
            if exact is None:
                continue
            self._s[level] += exact
            if level < self._used:
                self._ss[level] += exact.astype(np.float64) ** 2
                self._su[level] += noise[level] * exact

    def limits(self, sigma: float, variance: FloatArray, *, kurtosis: float) -> tuple[FloatArray, FloatArray]:
        """Return :func:`trilift.counters.turnstile.closer.moment_limits` at all steps."""
        squares = self._ss + 2.0 * sigma * self._su + sigma**2 * self._uu
        return limits_of_sums(
            (self._s + sigma * self._u).T, squares.T, variance, groups=self.copies, kurtosis=kurtosis
        )
