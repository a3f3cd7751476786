"""Checkpoints of the mechanisms, in floating point, many runs at once. FOR SIMULATION ONLY.

A partition is a (runs, K) int64 array of checkpoints, increasing in each row; T + 1 stands where a run has
no further checkpoint.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Lengths", "RandomLengths", "SparseThreshold", "random_checkpoints", "threshold_checkpoints"]

Steps = NDArray[np.int64]
_LARGEST = 2_000_000  # entries of a window


@dataclass(frozen=True)
class RandomLengths:
    """SimPart: bucket l has length max(1, mu + ceil(drift ln l) + Z), Z discrete Laplace.

    Attributes:
        nominal: mu.
        drift: 4 / eps_p in the paper; 0 without the drift.
        scale: b = 2 / eps_p, P(Z = z) proportional to exp(-|z| / b).
    """

    nominal: int
    drift: float
    scale: float

    def lengths(self, rng: np.random.Generator, *, runs: int, first: int, count: int) -> Steps:
        """Draw the lengths of buckets first, ..., first + count - 1; (runs, count)."""
        chance = -math.expm1(-1 / self.scale)
        shape = (runs, count)
        Z = rng.geometric(chance, shape) - rng.geometric(chance, shape)
        middle = self.nominal + np.ceil(self.drift * np.log(np.arange(first, first + count))).astype(np.int64)
        return np.asarray(np.maximum(1, middle + Z), dtype=np.int64)

    def typical(self, first: int) -> float:
        """Return about how long bucket ``first`` is."""
        return max(self.nominal + self.drift * math.log(first), 1.0)


@dataclass(frozen=True)
class SparseThreshold:
    """Part: bucket l ends when its sum + query noise >= tau + l_drift ln l + clock_drift ln(r + shift) + Z0.

    Attributes:
        threshold: tau.
        bucket_drift: 16 / eps_p in the paper.
        clock_drift: 8 / eps_p, with r = 1, 2, ... counted anew in every bucket.
        shift: c.
        centre: Laplace scale of Z0, drawn once a bucket.
        query: Laplace scale of the noise of every step.
    """

    threshold: float
    bucket_drift: float
    clock_drift: float
    shift: int
    centre: float
    query: float


class Lengths(Protocol):
    """Bucket lengths that read no input."""

    def lengths(self, rng: np.random.Generator, *, runs: int, first: int, count: int) -> Steps:
        """Draw the lengths of buckets first, ..., first + count - 1, numbered from 1; (runs, count)."""

    def typical(self, first: int) -> float:
        """Return about how long bucket ``first`` is, at least 1."""


def random_checkpoints(rule: Lengths, *, rng: np.random.Generator, runs: int, steps: int) -> Steps:
    """Draw the checkpoints of runs that do not depend on the data."""
    pieces: list[Steps] = []
    reached = np.zeros(runs, dtype=np.int64)
    first = 1
    while int(reached.min()) < steps:
        expected = 1.1 * (steps - int(reached.min())) / rule.typical(first)
        count = int(expected) + 8
        ends = np.cumsum(rule.lengths(rng, runs=runs, first=first, count=count), axis=1) + reached[:, None]
        pieces.append(ends)
        reached, first = ends[:, -1], first + count
    checkpoints = np.concatenate(pieces, axis=1)
    return _trimmed(checkpoints, steps)


def _trimmed(checkpoints: Steps, steps: int) -> Steps:
    np.minimum(checkpoints, steps + 1, out=checkpoints)
    used = int((checkpoints <= steps).sum(axis=1).max(initial=0))
    return checkpoints[:, :used]


def threshold_checkpoints(
    rule: SparseThreshold, *, prefix: NDArray[np.int32], rng: np.random.Generator
) -> Steps:
    """Run the sparse vector technique, restarted in every bucket, on all runs in windows of many steps.

    Noise that was drawn for the rest of a window in which a bucket ended is thrown away, which changes no
    distribution.
    """
    runs, steps = prefix.shape[0], prefix.shape[1] - 1
    clock = rule.clock_drift * np.log(np.arange(1, steps + 1) + float(rule.shift))
    begin = np.zeros(runs, dtype=np.int64)
    looked = np.zeros(runs, dtype=np.int64)  # steps of the bucket that are done
    bucket = np.ones(runs, dtype=np.int64)
    centre = np.asarray(rng.laplace(0.0, rule.centre, runs))
    found: list[tuple[Steps, Steps, Steps]] = []
    active = np.arange(runs)
    window = 64
    while active.size:
        width = max(1, min(window, _LARGEST // active.size, steps))
        local = looked[active, None] + np.arange(width)
        index = begin[active, None] + local + 1
        inside = index <= steps
        np.minimum(index, steps, out=index)
        sums = prefix[active[:, None], index] - prefix[active, begin[active]][:, None]
        barrier = rule.threshold + rule.bucket_drift * np.log(bucket[active]) + centre[active]
        noisy = sums + rng.laplace(0.0, rule.query, sums.shape) - clock[np.minimum(local, steps - 1)]
        fires = (noisy >= barrier[:, None]) & inside
        first = fires.argmax(axis=1)
        hit = fires[np.arange(active.size), first]
        ended = active[hit]
        times = begin[ended] + looked[ended] + first[hit] + 1
        found.append((ended, bucket[ended] - 1, times))
        begin[ended], looked[ended] = times, 0
        bucket[ended] += 1
        centre[ended] = rng.laplace(0.0, rule.centre, ended.size)
        looked[active[~hit]] += width
        window = _next_window(window, hit=float(hit.mean()), first=first[hit])
        active = active[begin[active] + looked[active] < steps]
    rows, columns, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    checkpoints = np.full((runs, int(columns.max(initial=-1)) + 1), steps + 1, dtype=np.int64)
    checkpoints[rows, columns] = values
    return checkpoints


def _next_window(window: int, *, hit: float, first: Steps) -> int:
    """Double a window in which little happens, halve one that is mostly thrown away."""
    if hit < 0.5:
        return min(2 * window, 1 << 16)
    if float(first.mean()) < window / 4:
        return max(window // 2, 4)
    return window
