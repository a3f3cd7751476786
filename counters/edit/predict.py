"""Predicted errors of edit mechanisms at a constant rate of events, without running them (floats, new).

Events of size 1 come independently with probability r a step. At time t the value displayed is that of the
last bucket whose release time t_l + D_l, D_l = alpha_l + N2_l, has come. With a renewal process of bucket
ends the age t - t_l is D_l plus the time since the last bucket end at t - D_l, whose first two moments are
E[L^2] / 2E[L] and E[L^3] / 3E[L]. What is missing has mean r * age and variance r(1-r) * age; the noise of
the count is added. Display "extrapolated" adds r^ (t - t_l - N2_l) with the rate r^ from the released
pairs: what is left is the variance of the events that are missing, r^2 var N2, the noise of the count, and
the error of r^ times the age. Before the first release 0 is displayed. Predictions are within a few percent
of simulations where buckets are released in order, which is the rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.counters.edit.rules import PartRule, SimPartRule

__all__ = ["Lengths", "Prediction", "lengths_of", "predict"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_TIMES = 512
_EULER = 0.5772156649015329


@dataclass(frozen=True)
class Lengths:
    """Moments of bucket lengths in steps, as the number of buckets before grows.

    Attributes:
        first: E[L], shape (n,), at bucket indices ``index``.
        second: E[L^2].
        third: E[L^3].
        starts: expected start of each of these buckets.
        index: 0-based bucket indices, increasing, beginning with 0.
    """

    first: FloatArray
    second: FloatArray
    third: FloatArray
    starts: FloatArray
    index: FloatArray


@dataclass(frozen=True)
class Prediction:
    """What a mechanism will do at (horizon, rate).

    Attributes:
        rmse: root mean squared error over the steps 1..T.
        first_update_steps: expected step of the first release.
        buckets: expected number of buckets that end.
    """

    rmse: float
    first_update_steps: float
    buckets: float


def _grid(limit: float) -> FloatArray:
    """Bucket indices 0..limit: all the first ones, then a geometric selection."""
    top = max(1, math.ceil(limit))
    few = np.arange(min(top, 64) + 1, dtype=np.float64)
    if top <= 64:
        return few
    return np.unique(np.concatenate([few, np.round(np.geomspace(64, top, 192))]))


def lengths_of(part: SimPartRule | PartRule, *, horizon: int, rate: float) -> Lengths:
    """Return the moments of bucket lengths of a partition on a stream of constant rate.

    Part: the bucket ends about where the chance that some step's noise passes the gap d between threshold
    and sum, e^(-d/b1) / 2 each while the sum grows by r a step, adds up to an exponential variate E: d = b1
    (ln(b1 / (2 r)) - ln E), if that is positive, and Z0 moves the threshold.
    """
    if isinstance(part, SimPartRule):
        m1, m2, m3 = part.moments()
        index = _grid(horizon / m1 + 1)
        shift = float(part.drift) * np.log(index + 1.0)  # ceil adds up to 1
        shift = shift + (0.5 if part.drift else 0.0) * (index > 0)
        return _collect(index, m1, m2 - m1 * m1, m3, shift)
    b0, b1 = float(part.scale0), float(part.scale_t)
    pace = min(1.0, max(rate, 1e-9))
    gap = b1 * max(math.log(b1 / (2.0 * pace)) + _EULER, -1.0)
    variance = (math.pi**2 / 6.0) * b1**2 + 2.0 * b0**2
    index = _grid(horizon * pace / max(float(part.tau) - gap, 1.0) + 1)
    events = np.maximum(part.threshold(index, 1.0) - gap, 1.0)
    for _ in range(3):  # the clock's drift depends on the length
        events = np.maximum(part.threshold(index, np.maximum(events / pace, 1.0)) - gap, 1.0)
    mean = events / pace + 0.5
    spread = (variance + events * (1.0 - pace)) / pace**2
    spread = np.minimum(spread, mean**2)
    starts = _starts(index, mean)
    return Lengths(mean, mean**2 + spread, mean**3 + 3 * mean * spread, starts, index)


def _collect(index: FloatArray, m1: float, variance: float, m3: float, shift: FloatArray) -> Lengths:
    mean = m1 + shift
    third = m3 + 3 * (variance + m1 * m1) * shift + 3 * m1 * shift**2 + shift**3
    return Lengths(mean, variance + mean**2, third, _starts(index, mean), index)


def _starts(index: FloatArray, mean: FloatArray) -> FloatArray:
    steps = np.diff(index) * (mean[1:] + mean[:-1]) / 2.0
    return np.concatenate([[0.0], np.cumsum(steps)])


def predict(
    lengths: Lengths,
    *,
    values_sd: Callable[[Any], FloatArray],
    times_sd: Callable[[Any], FloatArray],
    alphas: Callable[[Any], FloatArray],
    horizon: int,
    rate: float,
    display: str = "latest",
) -> Prediction:
    """Return the prediction of a mechanism.

    Args:
        lengths: of its partition.
        values_sd: standard deviation of the count's noise at 0-based bucket indices.
        times_sd: that of the release times' noise.
        alphas: delays at bucket indices.
        horizon: T.
        rate: r in (0, 1].
        display: "latest" or "extrapolated".
    """
    index = lengths.index.astype(np.int64)
    sd1, sd2, alpha = values_sd(index), times_sd(index), alphas(index)
    ends = lengths.starts + lengths.first  # expected end of bucket l
    release = ends + alpha
    t = (np.arange(_TIMES) + 0.5) * horizon / _TIMES
    first = float(release[0])
    if first < horizon:  # more of the grid where little has happened yet
        early = (np.arange(64) + 0.5) * min(first, horizon) / 64
        late = first + (np.arange(_TIMES) + 0.5) * (horizon - first) / _TIMES
        t = np.concatenate([early, late])
        weight = np.concatenate([np.full(64, first / 64), np.full(_TIMES, (horizon - first) / _TIMES)])
    else:
        weight = np.full(_TIMES, horizon / _TIMES)
    r = min(max(rate, 0.0), 1.0)
    silent = (r * t) ** 2 + r * (1 - r) * t
    # the bucket displayed at t: the last whose expected release has come
    at = np.interp(t, np.maximum.accumulate(release), lengths.index)
    a, s1, s2 = (np.interp(at, lengths.index, x) for x in (alpha, sd1, sd2))
    m1, m2, m3 = (np.interp(at, lengths.index, x) for x in (lengths.first, lengths.second, lengths.third))
    residual, residual_sq = m2 / (2 * m1), m3 / (3 * m1)
    age = np.minimum(a + residual, t)
    age_variance = s2**2 + residual_sq - residual**2
    counted = s1**2 + r * (1 - r) * age
    if display == "latest":
        shown = (r * age) ** 2 + r * r * age_variance + counted
    else:
        base = np.maximum(t - age, 1.0)
        rate_variance = (s1**2 + r * r * s2**2 + r * (1 - r) * base) / base**2
        shown = counted + r * r * s2**2 + rate_variance * (age**2 + age_variance)
        shown = np.minimum(shown, counted + (r * age) ** 2 + r * r * age_variance + age**2)
    error = np.where(t < first, silent, shown)
    total = float((error * weight).sum() / horizon)
    buckets = float(np.interp(horizon, ends, lengths.index))
    return Prediction(math.sqrt(total), first, buckets)
