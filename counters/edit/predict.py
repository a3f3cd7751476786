"""Predicted errors of edit mechanisms at a constant rate of events, without running them (floats, new).

Events of size 1 come independently with probability r a step. At time t the value displayed is that of the
last bucket whose release time t_l + D_l, D_l = alpha_l + N2_l, has come. With a renewal process of bucket
ends the age t - t_l is D_l plus the time since the last bucket end at t - D_l, whose first two moments are
E[L (L-1)] / 2E[L] and E[L (L-1) (2L-1)] / 6E[L]; or, where buckets end by their events, the number of
events in the open bucket. What the delay misses has mean r D_l and variance r(1-r) D_l; the noise of the
count is added. Display "extrapolated" adds r^ (t - t_l - N2_l) with the rate r^ from the released pairs:
what is left is the variance of the events that are missing, r^2 var N2, the noise of the count, and the
error of r^ times the age. Before the first release 0 is displayed. Predictions are within a few percent
of simulations where buckets are released in order, which is the rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from trilift.counters.edit.rules import PartRule, SimPartRule
from trilift.lift.checks import fail, finite, integer

__all__ = ["Lengths", "Prediction", "checked_rate", "lengths_of", "predict"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_TIMES = 512
_QUANTILES = 12
_PIECES = 4.0  # about as many independent stretches has the noise of a run
_LUMPS = 120
_EULER = 0.5772156649015329
_MOST_STEPS = 1 << 62
_LEAST_RATE = 1e-12  # rarer events are none in any stream, and their reciprocals overflow


def checked_rate(rate: Any) -> float:
    """Return a rate of events a step as a float.

    Raises:
        ParameterError: not a number between 1e-12 and 1.

    >>> checked_rate(1)
    1.0
    """
    value = finite("rate", rate, above=0, maximum=1)
    if value < _LEAST_RATE:
        raise fail("rate", f"at least {_LEAST_RATE:g}", rate)
    return value


def checked_horizon(horizon: Any) -> int:
    """Return a number of steps that errors can be predicted for.

    Raises:
        ParameterError: not an integer from 1 to 2^62.
    """
    return integer("horizon", horizon, minimum=1, maximum=_MOST_STEPS)


@dataclass(frozen=True)
class Lengths:
    """Moments of bucket lengths in steps, as the number of buckets before grows.

    Attributes:
        first: E[L], shape (n,), at bucket indices ``index``.
        second: E[L^2].
        third: E[L^3].
        starts: expected start of each of these buckets.
        index: 0-based bucket indices, increasing, beginning with 0.
        open_events: mean number of events in the bucket that is open at a random time, shape (n,).
        open_events_sq: mean of its square.
    """

    first: FloatArray
    second: FloatArray
    third: FloatArray
    starts: FloatArray
    index: FloatArray
    open_events: FloatArray
    open_events_sq: FloatArray


@dataclass(frozen=True)
class Prediction:
    """What a mechanism will do at (horizon, rate).

    Attributes:
        rmse: root mean squared error of a run over the steps 1..T, on average.
        first_update_steps: expected step of the first release.
        buckets: expected number of buckets that end, up to the capacity.
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
        m1 = part.moments()[0]
        index = _grid(horizon / m1 + 1)
        shift = float(part.drift) * np.log(index + 1.0)  # ceil adds up to 1
        shift = shift + (0.5 if part.drift else 0.0) * (index > 0)
        return _collect(index, part.moments(), shift=shift, rate=rate)
    pace = min(1.0, max(rate, 1e-9))
    if not part.clock_drift:
        # many events to a bucket are looked at in lumps, which changes next to nothing
        lump = max(1.0, float(part.tau) / _LUMPS)
        scaled = (float(x) / lump for x in (part.tau, part.scale0, part.scale_t, pace))
        m1, m2, m3, n1, n2 = _part_moments(*scaled)
        n1, n2 = n1 * lump, n2 * lump**2
        index = _grid(horizon / m1 + 1)
        one = np.ones(len(index))
        return Lengths(m1 * one, m2 * one, m3 * one, index * m1, index, n1 * one, n2 * one)
    b0, b1 = float(part.scale0), float(part.scale_t)
    gap = b1 * max(math.log(b1 / (2.0 * pace)) + _EULER, -1.0)
    variance = (math.pi**2 / 6.0) * b1**2 + 2.0 * b0**2
    index = _grid(horizon * pace / max(float(part.tau) - gap, 1.0) + 1)
    events = np.maximum(part.threshold(index, 1.0) - gap, 1.0)
    for _ in range(3):  # the clock's drift depends on the length
        events = np.maximum(part.threshold(index, np.maximum(events / pace, 1.0)) - gap, 1.0)
    mean = events / pace + 0.5
    spread = np.minimum((variance + events * (1.0 - pace)) / pace**2, mean**2)
    second, third = mean**2 + spread, mean**3 + 3 * mean * spread
    wide = np.minimum(variance, events**2)
    return Lengths(
        mean,
        second,
        third,
        _starts(index, mean),
        index,
        (events**2 + wide) / (2 * events),
        (events**2 + 3 * wide) / 3,
    )


@lru_cache(maxsize=256)
def _part_moments(tau: float, b0: float, b1: float, r: float) -> tuple[float, float, float, float, float]:
    """Return E[L], E[L^2], E[L^3] of a bucket under a constant threshold, exactly but for a grid of Z_0.

    And the first two moments of the number of events so far in the bucket that is open at a random time.

    A step brings an event with probability r and then ends the bucket with probability p_n at n events, p_n
    = Pr[Z_t >= tau + Z_0 - n]. The step stays at n with (1-r)(1-p_n) and goes on to n+1 with r (1 -
    p_(n+1)).
    """
    quantiles = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    z = -np.sign(quantiles - 0.5) * b0 * np.log1p(-2.0 * np.abs(quantiles - 0.5))
    top = math.ceil(tau + float(z.max()) + 12.0 * b1) + 2
    gap = tau + z[None, :] - np.arange(top + 2)[:, None]
    p = np.where(gap >= 0.0, 0.5 * np.exp(-np.abs(gap) / b1), 1.0 - 0.5 * np.exp(-np.abs(gap) / b1))
    stop = 1.0 - (1.0 - r) * (1.0 - p[:-1])
    onward = r * (1.0 - p[1:]) / stop
    reached = np.concatenate([np.ones((1, _QUANTILES)), np.cumprod(onward, axis=0)[:-1]])
    spent = reached / stop  # steps at n events
    events = np.arange(top + 1)[:, None]
    n1, n2 = (float((events**k * spent).sum() / spent.sum()) for k in (1, 2))
    m1, m2, m3 = (np.zeros(_QUANTILES) for _ in range(3))
    for n in range(top, -1, -1):
        rho, s = stop[n], onward[n]
        g1, g2, g3 = 1.0 / rho, (2.0 - rho) / rho**2, (rho**2 - 6.0 * rho + 6.0) / rho**3
        m1, m2, m3 = (
            g1 + s * m1,
            g2 + 2.0 * g1 * s * m1 + s * m2,
            g3 + 3.0 * g2 * s * m1 + 3.0 * g1 * s * m2 + s * m3,
        )
    return float(m1.mean()), float(m2.mean()), float(m3.mean()), n1, n2


def _collect(
    index: FloatArray, moments: tuple[float, float, float], *, shift: FloatArray, rate: float
) -> Lengths:
    m1, variance, m3 = moments[0], moments[1] - moments[0] ** 2, moments[2]
    mean = m1 + shift
    second = variance + mean**2
    third = m3 + 3 * (variance + m1 * m1) * shift + 3 * m1 * shift**2 + shift**3
    open_steps, open_sq = _residual(mean, second, third)
    r = min(1.0, max(rate, 0.0))
    return Lengths(
        mean,
        second,
        third,
        _starts(index, mean),
        index,
        r * open_steps,
        r * r * open_sq + r * (1 - r) * open_steps,
    )


def _residual(m1: FloatArray, m2: FloatArray, m3: FloatArray) -> tuple[FloatArray, FloatArray]:
    """First two moments of the steps since the last bucket end: one of 0 .. L-1 of a size-biased bucket."""
    return np.maximum(m2 - m1, 0.0) / (2 * m1), np.maximum(2 * m3 - 3 * m2 + m1, 0.0) / (6 * m1)


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
    capacity: int | None = None,
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
        capacity: number of buckets that can be shown; the last one's count then stays, or is carried on.
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
    over, most = np.zeros_like(t), math.inf  # steps since the last count that there is was due
    if capacity is not None and capacity - 1 < lengths.index[-1]:
        most = float(capacity)
        over = np.maximum(t - np.interp(capacity - 1, lengths.index, np.maximum.accumulate(release)), 0.0)
        at = np.minimum(at, capacity - 1)
    a, s1, s2 = (np.interp(at, lengths.index, x) for x in (alpha, sd1, sd2))
    open_steps, open_sq = _residual(lengths.first, lengths.second, lengths.third)
    columns = (open_steps, open_sq, lengths.open_events, lengths.open_events_sq)
    residual, residual_sq, n1, n2 = (np.interp(at, lengths.index, x) for x in columns)
    noise = s1**2 + r * r * s2**2  # of the count at the time shown: N1 - r N2
    if display == "latest":  # missing: the events of the delay, then those of the open bucket
        delay = np.minimum(a, t) + over
        bias = r * delay + n1
        rest = bias**2 + (n2 - n1**2) + r * (1 - r) * delay
        cross = 4.0 * bias**2 * noise
    else:
        age = np.minimum(a + residual, t) + over
        age_sq = age**2 + s2**2 + residual_sq - residual**2
        base = np.maximum(t - age, 1.0)
        inside, rate_sq = _clipped(r, np.sqrt(noise + r * (1 - r) * base) / base)
        # the rate is (count + noise) / base: noise makes it larger together with the value that it carries on
        rest = r * (1 - r) * age + 2.0 * age * noise / base * inside + age_sq * rate_sq
        cross = np.zeros_like(t)
    error = np.where(t < first, silent, noise + rest)
    spread = np.where(t < first, 0.0, 2.0 * noise**2 + cross)
    total, varying = (float((x * weight).sum() / horizon) for x in (error, spread))
    # the mean of runs' errors is a little below the root of their mean square: noise is alike for long
    alike = min(varying / (8.0 * _PIECES * max(total, 1e-300) ** 2), 0.5)
    buckets = min(float(np.interp(horizon, ends, lengths.index)), most)
    return Prediction(math.sqrt(total) * (1.0 - alike), first, buckets)


def _clipped(rate: float, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Pr[0 < X < 1] and E[(min(max(X, 0), 1) - rate)^2] for X normal with mean ``rate``."""
    from scipy.special import ndtr

    low, high = -rate / sd, (1.0 - rate) / sd
    below, above = ndtr(low), ndtr(-high)
    inside = 1.0 - below - above
    density = math.sqrt(0.5 / math.pi)
    edges = high * np.exp(-(high**2) / 2.0) - low * np.exp(-(low**2) / 2.0)
    square = sd**2 * (inside - density * edges) + below * rate**2 + above * (1.0 - rate) ** 2
    return np.asarray(inside), np.asarray(square)
