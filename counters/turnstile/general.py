"""Distinct items of general turnstile streams, where counts of items may be negative.

Sums of occupied counters may cancel. Random signs of the items prevent that mostly: N signed nonzero
integers add up to something within lambda with probability at most (lambda + 1) sqrt(2 / (pi N)) (Littlewood,
Offord; Erdos 1945), which is 0.05 for N = 255 (lambda + 1)^2. What is detected is hence a counter away from 0
on either side, and general streams pay with the square of the noise.

:class:`SignedGroups` (new) is grouped MinHash with signs: one bank, few counters. :class:`Maps` is domain
reduction: J signed maps of the universe into [2^i] for every i, I J banks and about J 2^(I+1) counters.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from trilift.counters.turnstile.bases import Base
from trilift.counters.turnstile.blueprint import Common, hash_words
from trilift.counters.turnstile.detection import detected_mean, threshold_of
from trilift.counters.turnstile.grouped import Grouped
from trilift.counters.turnstile.minhash import level_count, shown
from trilift.counters.turnstile.polynomials import Polynomials
from trilift.counters.turnstile.reading import Readings
from trilift.counters.turnstile.sketch import Sketch
from trilift.lift.errors import ParameterError
from trilift.stream.keys import DigestBuilder

__all__ = ["Maps", "SignedGroups", "default_maps", "map_tail", "maps_banks", "signed_rates"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]
Words = np.ndarray[Any, np.dtype[np.uint64]]

SCATTER = 2.0 / (math.pi * 0.05**2)
"""N over (lambda + 1)^2 of signed items that stay within lambda with probability at most 0.05: 254.6."""

COLLISION = 0.05
_MOST_MAPS = 1023
_MOST_COUNTERS = 1 << 24


def signed_rates(rate: float) -> dict[str, float]:
    """Return the rates of failure of a signed copy, ``rate`` of each being the noise's share."""
    return {"high": 1 / 16 + rate, "low": 0.1 + rate}


def signed_mean(level: FloatArray) -> FloatArray:
    """Return the expected number of items that make a signed sum exceed ``level`` but for 0.1.

    0.05 for too few items (Cantelli), 0.05 for a sum that stays within ``level``.
    """
    return detected_mean(SCATTER * (level + 1.0) ** 2)


class SignedGroups(Grouped):
    """Grouped MinHash with random signs, for any turnstile stream.

    At all reads, but for ``failure``: D <= 4 M_t D_hat with M - sqrt(19 M) = 255 (tau' + 1/2 + q + 1)^2,
    which says little at usual horizons, and D >= D_hat / 16 where D_hat > g. The centred estimate is
    sqrt(2) tau_t D_hat. Moments of signed sums say nothing of the number of items: ``closer``,
    ``few_heavy`` and ``narrow`` must be off.
    """

    name = "signed"
    low_rate = 0.1

    def touched(self, prints: Words) -> tuple[IntArray, Integers]:
        """Return the one counter of an event, and the item's sign: the lowest bit, which no group uses."""
        where, _ = super().touched(prints)
        bits = (prints[:, 0] & np.uint64(1)).astype(np.int64)
        return where, (1 - 2 * bits)[:, None]

    def tables(self, ticks: IntArray) -> FloatArray:
        """Return tau, tau' and M of ticks, and what :class:`Grouped` has besides, shape (k, 7)."""
        tail = self._tail / 2 if self.thresholds == "weak" else self._tail  # either side
        tau = self.base.upper(ticks, failure=tail)
        limit = threshold_of(tau).astype(np.float64)
        hidden = self.base.upper(ticks, failure=self._hidden)
        none = np.full(len(tau), np.inf)  # sums of signed counters bound nothing
        return np.stack([tau, limit, signed_mean(limit + 0.5 + hidden), none, none, none, none], axis=1)

    def detected(self, values: Integers, tables: FloatArray) -> Any:
        """Return which counters are taken for occupied, shape (k, groups, levels)."""
        return super().detected(np.abs(values), tables)

    def centring(self, tables: FloatArray) -> FloatArray:
        """Return what a centred estimate is multiplied by."""
        return math.sqrt(2.0) * np.maximum(tables[:, 0], 1.0)


def binomial_upper(maps: int, probability: float) -> float:
    """Return Pr[Bin(maps, p) > maps / 2], maps odd."""
    return sum(
        math.comb(maps, k) * probability**k * (1.0 - probability) ** (maps - k)
        for k in range((maps + 1) // 2, maps + 1)
    )


def map_tail(maps: int, *, reads: int, depth: int, failure: float) -> float:
    """Return how often |noise| may exceed the threshold: the most that keeps all medians right.

    It is p - 0.05 for the largest p with Pr[Bin(J, p) > J/2] <= failure / (reads 2^(I+1)), 0.05 being what
    collisions take; negative if J is too small.

    >>> from statistics import NormalDist
    >>> round(-NormalDist().inv_cdf(map_tail(29, reads=10**4, depth=14, failure=0.01) / 2), 2)
    2.49
    """
    target = failure / reads * 2.0 ** -(depth + 1)
    low, high = 0.0, 0.5
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if binomial_upper(maps, middle) <= target else (low, middle)
    return low - COLLISION


def maps_banks(common: Common, maps: int) -> int:
    """Return I J, the number of banks.

    Raises:
        ParameterError: more counters than 2^24.
    """
    depth = level_count(common) - 1
    if maps * ((2 << depth) - 2) > _MOST_COUNTERS:
        raise ParameterError("method='general-maps' needs too many counters at this horizon: give a universe")
    return depth * maps


def default_maps(common: Common) -> int:
    """Return J = 2 ceil(log2 reads) + 1, or more where that leaves too much failure."""
    depth = level_count(common) - 1
    maps = 2 * max(common.ticks - 1, 1).bit_length() + 1
    while not _suffices(maps, common, depth):
        maps += 2
        if maps > _MOST_MAPS:
            raise ParameterError("failure is too small for this many released values")
    return maps


def _suffices(maps: int, common: Common, depth: int) -> bool:
    beta = float(common.failure)
    tail = map_tail(maps, reads=common.ticks, depth=depth, failure=beta / 2)
    return tail > 0.005 and common.ticks * binomial_upper(maps, 0.15) <= beta / 2


class Maps(Sketch):
    """Domain reduction: signed maps h_ij into [2^i], i = 1..I, j = 1..J.

    The answer is 2^i for the largest i at which, for some bucket, the median over j of |estimate| reaches the
    threshold; 1 if there is none. The absolute value stands inside of the median: signed values are
    symmetric, and their median is smaller by about sqrt(J). At all reads, but for ``failure``:
    answer < 20 D if D >= 1, and D < 2 M_t answer with M - sqrt(19 M) = 255 (theta' + 1/2 + q + 1)^2.

    Hash functions are polynomials over Z_(2^61 - 1) with ceil(log2 T) coefficients.

    Args:
        base: noise of one bank.
        common: horizon and so on.
        maps: J, odd.
        keyed: arguments of :func:`trilift.counters.turnstile.blueprint.hash_words`.
    """

    def __init__(self, base: Base, *, common: Common, maps: int, keyed: dict[str, Any]) -> None:
        self.base, self.common, self.maps = base, common, maps
        self.depth = level_count(common) - 1
        self.banks = maps_banks(common, maps)
        self.width = maps * ((2 << self.depth) - 2)
        degree = max(common.horizon - 1, 1).bit_length()
        self._hashes = Polynomials.drawn(hash_words(shape=(self.banks, max(degree, 2)), **keyed))
        beta = float(common.failure)
        self._tail = map_tail(maps, reads=common.ticks, depth=self.depth, failure=beta / 2)
        if self._tail <= 0.0:
            raise ParameterError("copies must be more: no threshold keeps the failure")
        self.failure = beta / 2 + common.ticks * binomial_upper(maps, 0.15)
        sizes = np.repeat(1 << np.arange(1, self.depth + 1, dtype=np.int64), maps)
        self._offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self._masks = (sizes - 1).astype(np.uint64)

    def touched(self, prints: Words) -> tuple[IntArray, Integers]:
        """Return a bucket of every map and the item's sign there (a bit that no bucket uses)."""
        values = self._hashes.values(prints[:, 0])
        where = (values & self._masks).astype(np.int64) + self._offsets
        bits = ((values >> np.uint64(60)) & np.uint64(1)).astype(np.int64)
        return where, 1 - 2 * bits

    def tables(self, ticks: IntArray) -> FloatArray:
        """Return theta, theta' and M of ticks, shape (k, 3)."""
        theta = self.base.upper(ticks, failure=self._tail / 2)
        limit = np.ceil(theta + 0.5)
        hidden = self.base.upper(ticks, failure=0.05)
        return np.stack([theta, limit, signed_mean(limit + 0.5 + hidden)], axis=1)

    def medians(self, values: Integers) -> list[FloatArray]:
        """Return the medians over maps of |values|, one array of shape (k, 2^i) for each i from 1."""
        result = []
        for i in range(1, self.depth + 1):
            first = self.maps * ((1 << i) - 2)
            block = np.abs(values[:, first : first + (self.maps << i)])
            result.append(np.median(block.reshape(len(values), self.maps, 1 << i), axis=1))
        return result

    def read(self, values: Integers, tables: FloatArray, *, steps: IntArray) -> Readings:
        """Return the readings of noisy counters."""
        largest = np.zeros(len(values))
        for i, middle in enumerate(self.medians(values), 1):
            largest[middle.max(axis=1) >= tables[:, 1]] = i
        answer = np.exp2(largest)
        low = np.where(largest > 0, answer / 20.0, 0.0)
        return shown(answer, low, 2.0 * tables[:, 2] * answer, steps=steps, most=self.common.most)

    def described(self, digest: DigestBuilder) -> DigestBuilder:
        """Add the maps."""
        return digest.add("sketch", "maps").add("maps", self.maps).add("depth", self.depth)
