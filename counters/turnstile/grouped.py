"""Grouped MinHash: groups of one hash function in place of copies, so that an event meets one counter (new).

Every item has one group of g and one level; the median over the groups of g 2^l, l the largest detected level
of a group, estimates the number of distinct items of a strict stream. One bank: the noise is that of a single
copy, whatever g is. Group and level are disjoint bits of a keyed fingerprint.

Why the median is right (new): a group holds D / g items in expectation, so the analysis of a copy holds for
each with D / g for D. What a group answers too much, or too little, is a monotone function of the occupancies
of its own levels; occupancies of all (group, level) are negatively associated (items fall independently),
noises are independent, so Chernoff's bound holds for the number of groups that are off (Dubhashi and Ranjan
1998). That needs fully random hashes, for which fingerprints stand.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from trilift.counters.turnstile.bases import Base
from trilift.counters.turnstile.blueprint import Common
from trilift.counters.turnstile.closer import cell_estimate, moment_limits
from trilift.counters.turnstile.detection import FALSE_ALARM, group_failure, least_groups, threshold_of
from trilift.counters.turnstile.minhash import (
    detection_tables,
    largest_levels,
    level_count,
    levels_of,
    shown,
    tail_rates,
)
from trilift.counters.turnstile.reading import Readings
from trilift.counters.turnstile.sketch import Sketch
from trilift.lift.errors import ParameterError
from trilift.stream.keys import DigestBuilder

__all__ = ["Grouped", "default_groups", "group_of"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]
Words = np.ndarray[Any, np.dtype[np.uint64]]

_HALF_WORD = np.uint64(32)


def group_of(words: Words, *, groups: int) -> IntArray:
    """Return floor(g u) for u the upper 32 bits as a fraction: a group in 0..groups-1.

    >>> group_of(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64), groups=5).tolist()
    [0, 2, 4]
    """
    return (((words >> _HALF_WORD) * np.uint64(groups)) >> _HALF_WORD).astype(np.int64)


def default_groups(reads: int, *, failure: float, high: float, low: float) -> int:
    """Return the least odd number of groups whose median is right at all reads.

    Raises:
        ParameterError: no reasonable number is.

    >>> default_groups(100_000, failure=0.01, high=0.1125, low=0.1)
    35
    """
    groups = least_groups(reads, failure=failure, high=high, low=low)
    if reads * group_failure(groups, high=high, low=low) > failure:
        raise ParameterError("failure is too small for this many released values")
    return groups


class Grouped(Sketch):
    """Median over the groups of one hash.

    At all reads, but for ``failure``: D <= 4 mu_t D_hat, and D >= D_hat / 16 where D_hat > g, its least
    value. (For a group to answer 2^l >= max(2, 16 D / g), levels must be occupied that expect at most 1/16 of
    an item, or an empty one must pass.) The released estimate is D_hat, or sqrt(tau_t) D_hat if centred.

    With ``closer`` the estimate is then moved to where the moments of the counters allow it to be. With
    ``few_heavy``, where D_hat is at most 2 g, the estimate is the number of items that are expected to occupy
    as many (group, level) as pass a threshold that empty ones hardly ever pass: right for items that are
    frequent, too little for others. Neither moves the interval (:mod:`trilift.counters.turnstile.closer`).

    With ``narrow`` the rest of the failure is spent on the interval's ends: in a strict stream D is at most
    the sum F1 of all frequencies, which is the sum of all counters but for noise (:meth:`allowance`), and at
    least the number of counters that exceed what no empty one does at any read.

    Args:
        base: noise of the one bank.
        common: horizon and so on.
        groups: g, odd.
        centre: whether to centre the estimate within the interval.
        few_heavy, closer, narrow: see there.
        thresholds: "weak" or "strong".
    """

    name = "grouped"
    low_rate = 0.05

    def __init__(
        self,
        base: Base,
        *,
        common: Common,
        groups: int,
        centre: bool = True,
        few_heavy: bool = False,
        closer: bool = True,
        narrow: bool = False,
        thresholds: str = "weak",
    ) -> None:
        self.base, self.common, self.groups = base, common, groups
        self.levels = level_count(common)
        self.banks, self.width = 1, groups * self.levels
        self.centre, self.few_heavy, self.closer = centre, few_heavy, closer
        self.thresholds = thresholds
        counters = self.levels if thresholds == "weak" else self.width
        self._tail, self._hidden, rate = tail_rates(
            thresholds, counters=counters, reads=common.ticks, failure=float(common.failure)
        )
        spent = 0.0 if thresholds == "weak" else float(common.failure) / 2
        self.failure = spent + common.ticks * group_failure(
            groups, high=1 / 16 + rate, low=self.low_rate + rate
        )
        rest = float(common.failure) - self.failure
        self.narrow = narrow and rest > float(common.failure) / 1000
        self._rest = 0.999 * rest / common.ticks if self.narrow else 0.0
        self.failure += self._rest * common.ticks

    def touched(self, prints: Words) -> tuple[IntArray, Integers]:
        """Return the one counter of an event."""
        levels = levels_of(prints[:, 1], levels=self.levels)
        where = group_of(prints[:, 0], groups=self.groups) * self.levels + levels
        return where[:, None], np.ones((1, 1), dtype=np.int64)

    def tables(self, ticks: IntArray) -> FloatArray:
        """Return public numbers of ticks, shape (k, 7).

        tau, tau', mu, the threshold that hardly any empty counter passes, E N^2, the allowance of the sum,
        the threshold that no empty counter passes at any tick.
        """
        table = detection_tables(self.base, ticks, tail=self._tail, hidden=self._hidden)
        strong = threshold_of(self.base.upper(ticks, failure=FALSE_ALARM / self.width)).astype(np.float64)
        sure = np.full(len(ticks), np.inf)
        if self.narrow:
            sure = self.base.upper(ticks, failure=self._rest / (2 * self.width))
            sure = threshold_of(sure).astype(np.float64)
        return np.column_stack([table, strong, self.base.variance(ticks), self.allowance(ticks), sure])

    def allowance(self, ticks: IntArray) -> FloatArray:
        """Return x so that the sum of all counters is below F1 - x with half of the rest of the failure.

        Half of that is for the sum of the noises before their rounding, half for what the roundings add: they
        are independent between counters, within 1/2, and of mean at least 0, since the noises are symmetric
        and ties go up, so that Hoeffding's inequality holds: sqrt(counters ln(1/failure) / 2).
        """
        if not self.narrow:
            return np.full(len(ticks), np.inf)
        half = self._rest / 4
        noise = self.base.upper(ticks, failure=half, terms=self.width)
        return np.asarray(noise + math.sqrt(self.width * -math.log(half) / 2))

    def detected(self, values: Integers, tables: FloatArray) -> Any:
        """Return which counters are taken for occupied, shape (k, groups, levels)."""
        return values.reshape(len(values), self.groups, self.levels) > tables[:, 1, None, None]

    def centring(self, tables: FloatArray) -> FloatArray:
        """Return what a centred estimate is multiplied by."""
        return np.sqrt(np.maximum(tables[:, 0], 1.0))

    def read(self, values: Integers, tables: FloatArray, *, steps: IntArray) -> Readings:
        """Return the readings of noisy counters."""
        largest, _ = largest_levels(self.detected(values, tables))
        middle = np.median(largest, axis=1)
        raw = self.groups * np.exp2(middle)
        low = np.where(middle > 0, raw / 16.0, 0.0)
        low = np.maximum(low, (values > tables[:, 6, None]).sum(axis=1))
        estimate = self.adjusted(raw, middle, values, tables)
        high = np.minimum(4.0 * tables[:, 2] * raw, values.sum(axis=1) + tables[:, 5])
        return shown(estimate, low, high, steps=steps, most=self.common.most)

    def adjusted(
        self, raw: FloatArray, middle: FloatArray, values: Integers, tables: FloatArray
    ) -> FloatArray:
        """Return the point estimates that belong to raw ones, g 2^middle."""
        estimate = raw * self.centring(tables) if self.centre else raw
        if self.few_heavy:
            cells = (values > tables[:, 3, None]).sum(axis=1)
            few = cell_estimate(cells, groups=self.groups, levels=self.levels, most=self.common.most)
            estimate = np.where(middle <= 1, np.maximum(few, 1.0), estimate)
        if self.closer:
            counters = values.reshape(len(values), self.groups, self.levels)
            kurtosis = 2.0 if self.base.budget.law == "gaussian" else 5.0
            least, most = moment_limits(counters, tables[:, 4], kurtosis=kurtosis)
            estimate = np.clip(estimate, least, most)
        return estimate

    def described(self, digest: DigestBuilder) -> DigestBuilder:
        """Add groups and levels."""
        return digest.add("sketch", self.name).add("groups", self.groups).add("levels", self.levels)
