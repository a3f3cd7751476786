"""MinHash under noise: how many distinct items are present, from counters of levels (strict streams).

One copy hashes items to levels, level k with probability 2^-(k+1) and the last one, K, with what is left; it
keeps one counter a level and answers 2^l for the largest level l whose noisy counter exceeds a threshold
(1 if none does). :class:`MinHash` takes the median of m copies with hash functions of their own, of which
every event meets each: m banks. What a copy can be wrong by: :mod:`trilift.counters.turnstile.detection`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.counters.turnstile.bases import Base
from trilift.counters.turnstile.blueprint import Common
from trilift.counters.turnstile.detection import (
    FALSE_ALARM,
    copies_failure,
    detected_mean,
    threshold_of,
)
from trilift.counters.turnstile.polynomials import Polynomials
from trilift.counters.turnstile.reading import Readings
from trilift.counters.turnstile.sketch import Sketch
from trilift.lift.errors import ParameterError
from trilift.stream.keys import DigestBuilder

__all__ = ["MinHash", "default_copies", "largest_levels", "level_count", "levels_of", "shown", "tail_rates"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]
Words = np.ndarray[Any, np.dtype[np.uint64]]

_MOST_COPIES = 1023


def level_count(common: Common) -> int:
    """Return K + 1, K = ceil(log2 of the most distinct items that there can be).

    >>> from fractions import Fraction
    >>> level_count(Common(10**5, 1, None, Fraction(1, 100)))
    18
    """
    return max(common.most - 1, 1).bit_length() + 1


def levels_of(values: Words, *, levels: int) -> IntArray:
    """Return the number of trailing zeros of hash values, at most levels - 1 (zero has all of them).

    >>> levels_of(np.array([1, 2, 12, 0], dtype=np.uint64), levels=5).tolist()
    [0, 1, 2, 4]
    """
    lowest = values & (~values + np.uint64(1))
    exponent = np.frexp(lowest.astype(np.float64))[1] - 1  # powers of two are exact; 0 gives -1
    return np.asarray(np.where(values == 0, levels - 1, np.minimum(exponent, levels - 1)).astype(np.int64))


def largest_levels(detected: Any) -> tuple[IntArray, Any]:
    """Return for every group the largest detected level (0 if none), and whether there is one.

    Args:
        detected: booleans of shape (..., levels).
    """
    levels = detected.shape[-1]
    found = detected.any(axis=-1)
    largest = levels - 1 - np.argmax(detected[..., ::-1], axis=-1)
    return np.where(found, largest, 0).astype(np.int64), found


def tail_rates(thresholds: str, *, counters: int, reads: int, failure: float) -> tuple[float, float, float]:
    """Return (tail, quantile, rate): how often an empty counter may pass, how far noise is allowed for.

    "weak": all empty levels of a copy together pass with probability 0.05, and a full one is missed with
    0.05: the median bears that. "strong": no noise of any counter at any read exceeds its threshold either
    way, but for half of the failure.

    Args:
        thresholds: "weak" or "strong".
        counters: levels of a copy if weak, all counters if strong.
        reads: number of released values.
        failure: that is left for all of it.

    Returns:
        upper tail of a threshold; upper tail of the noise that may hide items; what each adds to a copy's
        rates of failure.
    """
    if thresholds == "weak":
        return FALSE_ALARM / counters, FALSE_ALARM, FALSE_ALARM
    tail = failure / (4.0 * counters * reads)
    return tail, tail, 0.0


def default_copies(reads: int, *, failure: float, high: float, low: float) -> int:
    """Return an odd number of independent copies whose median is right at all reads: 2 ceil(log2 reads) + 1.

    More where that leaves more failure than asked for.

    >>> default_copies(10_000, failure=0.01, high=0.1125, low=0.1)
    29
    """
    copies = 2 * max(reads - 1, 1).bit_length() + 1
    while reads * copies_failure(copies, high=high, low=low) > failure:
        copies += 2
        if copies > _MOST_COPIES:
            raise ParameterError("failure is too small for this many released values")
    return copies


def shown(estimate: FloatArray, low: FloatArray, high: FloatArray, *, steps: IntArray, most: int) -> Readings:
    """Return readings within what is possible anyway: 0..min(steps, most) distinct items."""
    cap = np.minimum(steps, most).astype(np.float64)
    top = np.clip(high, 0.0, cap)
    bottom = np.minimum(np.maximum(low, 0.0), top)
    return Readings(steps, np.clip(estimate, bottom, top), bottom, top)


class MinHash(Sketch):
    """Median of m copies.

    For D >= 1: D_hat / 16 <= D <= 4 mu_t D_hat at all reads, but for ``failure`` (exact binomials over
    copies, a union over reads). The released estimate is D_hat, or sqrt(tau_t) D_hat if centred.

    Args:
        base: noise of one bank.
        common: horizon and so on.
        copies: m, odd.
        words: hash words, uint64 of shape (copies, 2).
        centre: whether to centre the estimate within the interval.
        thresholds: "weak" or "strong".
    """

    def __init__(
        self,
        base: Base,
        *,
        common: Common,
        copies: int,
        words: Words,
        centre: bool = True,
        thresholds: str = "weak",
    ) -> None:
        self.base, self.common, self.copies = base, common, copies
        self.levels = level_count(common)
        self.banks, self.width = copies, copies * self.levels
        self.centre, self.thresholds = centre, thresholds
        self._hashes = Polynomials.drawn(words)
        counters = self.levels if thresholds == "weak" else self.width
        self._tail, self._hidden, rate = tail_rates(
            thresholds, counters=counters, reads=common.ticks, failure=float(common.failure)
        )
        spent = 0.0 if thresholds == "weak" else float(common.failure) / 2
        self.failure = spent + common.ticks * copies_failure(copies, high=1 / 16 + rate, low=0.05 + rate)

    def touched(self, prints: Words) -> tuple[IntArray, Integers]:
        """Return one counter a copy."""
        levels = levels_of(self._hashes.values(prints[:, 0]), levels=self.levels)
        return levels + np.arange(self.copies) * self.levels, np.ones((1, 1), dtype=np.int64)

    def tables(self, ticks: IntArray) -> FloatArray:
        """Return tau, tau' and mu of ticks, shape (k, 3)."""
        return detection_tables(self.base, ticks, tail=self._tail, hidden=self._hidden)

    def largest(self, values: Integers, tables: FloatArray) -> IntArray:
        """Return every copy's answer as a level, shape (k, copies)."""
        grouped = values.reshape(len(values), self.copies, self.levels)
        return largest_levels(grouped > tables[:, 1, None, None])[0]

    def read(self, values: Integers, tables: FloatArray, *, steps: IntArray) -> Readings:
        """Return the readings of noisy counters."""
        middle = np.median(self.largest(values, tables), axis=1)
        raw = np.exp2(middle)
        estimate = raw * np.sqrt(np.maximum(tables[:, 0], 1.0)) if self.centre else raw
        low = np.where(middle > 0, raw / 16.0, 0.0)
        return shown(estimate, low, 4.0 * tables[:, 2] * raw, steps=steps, most=self.common.most)

    def described(self, digest: DigestBuilder) -> DigestBuilder:
        """Add copies and levels."""
        return digest.add("sketch", "minhash").add("copies", self.copies).add("levels", self.levels)


def detection_tables(base: Base, ticks: IntArray, *, tail: float, hidden: float) -> FloatArray:
    """Return tau, tau' and mu of 0-based ticks, shape (k, 3), for counters of unsigned items."""
    tau = base.upper(ticks, failure=tail)
    limit = threshold_of(tau).astype(np.float64)
    mu = detected_mean(limit + 0.5 + base.upper(ticks, failure=hidden))
    return np.stack([tau, limit, mu], axis=1)
