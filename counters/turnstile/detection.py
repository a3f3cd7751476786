"""When a noisy counter says that its level is occupied, and what follows for the number of distinct items.

A MinHash copy keeps one counter a level; level k of h(x) has probability 2^-(k+1) (the last one takes what is
left). It answers with the largest level whose estimate exceeds a threshold. Estimates are integers,
floor(N + 1/2) + S, so thresholds are: tau' = ceil(tau - 1/2), and an estimate above tau' is the noise being
at least tau' + 1/2 - S.

The thresholds are *weak*: a single copy may fail with a constant probability, because the median of many
copies does not. With tau = z sd, z the normal quantile (for Laplace noise the exact tail) of
0.05 / (levels), all empty levels of a copy together fire with probability at most 0.05.

Let mu solve mu - sqrt(19 mu) = tau' + 1/2 + q, q the upper 5 % point of the noise. A level that is met by mu
items in expectation holds at least mu - sqrt(19 mu) of them except with probability 0.05 (Cantelli, the
variance being at most mu), and then is detected except with probability 0.05. From there:

* one copy, D >= 1: its answer is at least 16 D with probability at most 1/16 + 0.05 = 0.1125, and below
  D / (4 mu) with probability at most 0.1;
* the median of copies with independent hashes fails with the probability of a binomial tail; the groups of
  *one* hash are negatively associated, for which the Chernoff bound holds (exp(-g KL), not the exact tail).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = [
    "HIGH_RATE",
    "LOW_RATE",
    "copies_failure",
    "detected_mean",
    "divergence",
    "group_failure",
    "least_groups",
    "threshold_of",
]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

FALSE_ALARM = 0.05
"""Probability that some empty level of a copy is taken for occupied; each other failure of a copy as well."""

HIGH_RATE = 1 / 16 + FALSE_ALARM
"""Bound on the probability that a copy answers at least 16 times too much."""

LOW_RATE = 2 * FALSE_ALARM
"""Bound on the probability that a copy answers less than one 4 mu-th."""

_MOST_GROUPS = 4095


def threshold_of(tau: FloatArray) -> IntArray:
    """Return tau' = ceil(tau - 1/2): integer estimates above it are noise of at least tau' + 1/2 and more."""
    return np.ceil(np.asarray(tau) - 0.5).astype(np.int64)


def detected_mean(level: FloatArray, *, factor: float = 19.0) -> FloatArray:
    """Solve mu - sqrt(factor mu) = level for mu.

    Args:
        level: what the items must exceed, tau' + 1/2 + q, not negative.
        factor: 19 leaves 0.05 by Cantelli's inequality: 1 / (1 + 19).

    >>> round(float(detected_mean(np.array([0.0]))[0]), 9)
    19.0
    """
    root = (math.sqrt(factor) + np.sqrt(factor + 4.0 * np.asarray(level, dtype=np.float64))) / 2.0
    return np.asarray(root * root)


def divergence(a: float, p: float) -> float:
    """Return KL(a || p) of two Bernoulli variates, a in (0, 1], p in (0, 1)."""
    rest = 0.0 if a == 1.0 else (1.0 - a) * math.log((1.0 - a) / (1.0 - p))
    return a * math.log(a / p) + rest


def group_failure(groups: int, *, high: float = HIGH_RATE, low: float = LOW_RATE) -> float:
    """Bound the probability that the median over an odd number of groups of one hash is off, at one time.

    For that at least (groups + 1) / 2 of them must be off on the same side (Chernoff, Hoeffding 1963; groups
    being negatively associated: Dubhashi, Ranjan 1998).
    """
    a = (groups + 1) / (2 * groups)
    return math.exp(-groups * divergence(a, high)) + math.exp(-groups * divergence(a, low))


def least_groups(reads: int, *, failure: float, high: float = HIGH_RATE, low: float = LOW_RATE) -> int:
    """Return the least odd number of groups whose median is right at all reads, but for ``failure``.

    Args:
        reads: number of released values.
        failure: probability in (0, 1).
        high, low: bounds on the probability that one group is off.

    >>> least_groups(10_000, failure=0.01), least_groups(100_000, failure=0.01)
    (29, 35)
    """
    groups = 3
    while reads * group_failure(groups, high=high, low=low) > failure and groups < _MOST_GROUPS:
        groups += 2
    return groups


def copies_failure(copies: int, *, high: float = HIGH_RATE, low: float = LOW_RATE) -> float:
    """Return the probability that the median of an odd number of independent copies is off, at one time."""
    need = (copies + 1) // 2
    return sum(
        math.comb(copies, k) * p**k * (1.0 - p) ** (copies - k)
        for p in (high, low)
        for k in range(need, copies + 1)
    )
