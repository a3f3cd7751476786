"""Free parameters of the sharp accounting, chosen for the least predicted error (floats; nothing private rests on them)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from trilift.counters.edit.predict import Lengths, lengths_of, predict
from trilift.counters.edit.rules import SCALE_RATIO, PartRule, SimPartRule, constant_tau
from trilift.counters.edit.tails import gaussian_quantile, laplace_quantile
from trilift.counters.edit.units import Unit, round_capacity, unit_of
from trilift.lift.rows import row_entries
from trilift.stream.gdp import ln_delta_float

__all__ = ["Split", "best_split", "buckets_needed"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

NOMINAL_HORIZON = 10**5
"""What an unbounded mechanism is tuned for."""

_SHARES = (0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85)
_MOST_BUCKETS = 1 << 20
_TUNED_FOR = 1 << 13


@dataclass(frozen=True)
class Split:
    """How a design divides its budget.

    Attributes:
        partition: part of epsilon that the partition costs. counts: the counts' share of what is left: of
        mu^2 under Gaussian noise, of epsilon under Laplace noise. rmse: predicted.
    """

    partition: float
    counts: float
    rmse: float


def buckets_needed(lengths: Lengths, horizon: int) -> float:
    """Return a number of buckets that is next to never exceeded within the horizon (7 standard deviations)."""
    ends = lengths.starts + lengths.first
    mean = float(np.interp(horizon, ends, lengths.index)) + 1.0
    if mean >= lengths.index[-1]:
        mean = float(lengths.index[-1]) + 1.0
    ratio = float((lengths.second[0] - lengths.first[0] ** 2) / lengths.first[0] ** 2)
    return min(mean + 7.0 * math.sqrt(max(ratio, 0.0) * mean) + 3.0, float(horizon) + 1.0)


def float_part(mechanism: str, cost: float, ln_failure: float, horizon: int | None) -> SimPartRule | PartRule:
    """Return a partition of about this cost and failure, without proof."""
    if mechanism == "simecc":
        ln_first = math.log(-math.expm1(-cost / 2.0))
        base = max(1, 1 + math.ceil((ln_first - ln_failure) * 2.0 / cost))
        return SimPartRule(Fraction(cost), base, folded=True)
    b1 = (3 / SCALE_RATIO + 4) / Fraction(cost)
    tau = constant_tau(SCALE_RATIO * b1, b1, ln_failure=ln_failure, horizon=horizon)
    return PartRule(max(Fraction(tau), Fraction(1025, 1024)), SCALE_RATIO * b1, b1)


def capacity_of(part: SimPartRule | PartRule, horizon: int) -> int:
    """Return the capacity for a horizon, whatever the rate of events."""
    lengths = lengths_of(part, horizon=horizon, rate=1.0)
    return min(round_capacity(buckets_needed(lengths, horizon)), _MOST_BUCKETS)


def _few(capacity: int) -> int:
    """One capacity an octave is enough for tuning, and none above 8192: costs grow with the logarithm."""
    return min(1 << (capacity - 1).bit_length(), _TUNED_FOR)


@lru_cache(maxsize=512)
def _mu(epsilon: float, ln_delta: float) -> float:
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2.0
        if ln_delta_float(epsilon, math.exp(middle)) <= ln_delta:
            low = middle
        else:
            high = middle
    return math.exp(low)


@lru_cache(maxsize=128)
def _tail_ratio(unit: Unit, ln_failure: float) -> float:
    """Return about (quantile of a Laplace step's noise) / (its standard deviation)."""
    if unit.capacity is None:
        index = 1000
        return unit.spec(Fraction(1)).tail_quantile(index, ln_failure) / float(unit.sd([index])[0])
    from trilift.counters.edit.base import spec_chain

    chain = spec_chain(unit.kind, unit.names).to_float()
    scales = np.array(unit.scales)
    rows = row_entries(chain, max(0, (2 * unit.capacity) // 3))
    parts = [scale * block for scale, row in zip(scales, rows, strict=True) for block in row.values()]
    coefficients = np.concatenate(parts)
    return laplace_quantile(coefficients, ln_failure) / math.sqrt(2.0 * float((coefficients**2).sum()))


def best_split(
    mechanism: str,
    *,
    epsilon: float,
    ln_noise: float | None,
    ln_delays: float,
    ln_partition: float,
    kind: str,
    horizon: int | None,
    rate: float,
    display: str,
) -> Split:
    """Return the best split of epsilon found.

    Args:
        mechanism: "simecc" or "ecc".
        epsilon: all of it.
        ln_noise: ln of delta_G, None for Laplace noise.
        ln_delays: ln of eta.
        ln_partition: ln of delta_E.
        kind: of base.
        horizon: T, or None.
        rate: r.
        display: "latest" or "extrapolated".
    """

    def at(fraction: float, shares: tuple[float, ...]) -> Split:
        return _best_share(
            mechanism,
            epsilon,
            fraction,
            shares,
            ln_noise,
            ln_delays,
            ln_partition,
            kind,
            horizon,
            rate,
            display,
        )

    found = [at(fraction, _SHARES) for fraction in np.geomspace(0.02, 0.8, 9)]
    best = min(found, key=lambda split: split.rmse)
    for width in (1.35, 1.1):
        centre = best.partition / epsilon
        shares = tuple(
            np.clip(best.counts + (width - 1.0) * np.array([-0.5, -0.25, 0.0, 0.25, 0.5]), 0.02, 0.98)
        )
        fractions = [
            min(centre * factor, 0.95) for factor in (1 / width, 1 / math.sqrt(width), 1.0, width**0.5, width)
        ]
        best = min([best, *(at(fraction, shares) for fraction in fractions)], key=lambda split: split.rmse)
    return best


def _best_share(
    mechanism: str,
    epsilon: float,
    fraction: float,
    shares: tuple[float, ...],
    ln_noise: float | None,
    ln_delays: float,
    ln_partition: float,
    kind: str,
    horizon: int | None,
    rate: float,
    display: str,
) -> Split:
    cost = fraction * epsilon
    part = float_part(mechanism, cost, ln_partition, horizon)
    T = NOMINAL_HORIZON if horizon is None else horizon
    lengths = lengths_of(part, horizon=T, rate=rate)
    unit = unit_of(kind, None if horizon is None else _few(capacity_of(part, horizon)))
    last = (unit.capacity or 1 << 62) - 1
    sd = unit.sd(np.minimum(lengths.index.astype(np.int64), last))
    rest = epsilon - cost
    if unit.capacity is None:
        ln_each = ln_delays - np.log(lengths.index + 1.0) - np.log(lengths.index + 2.0)
    else:
        ln_each = np.full(len(sd), ln_delays - math.log(unit.capacity))
    if unit.gaussian:
        total = _mu(rest, ln_noise or 0.0) ** 2
        ratio = gaussian_quantile(ln_each)
    else:
        total = rest
        ratio = np.full(len(sd), _tail_ratio(unit, round(float(ln_each[len(sd) // 2]), 1)))
    counts, times = float(unit.factors.counts), float(unit.factors.times)
    best = Split(cost, 0.5, math.inf)
    for share in shares:
        first, second = share * total / counts, (1 - share) * total / times
        if unit.gaussian:
            first, second = math.sqrt(first), math.sqrt(second)
        alpha = ratio * sd / second + 1.0

        def look(values: FloatArray) -> Any:
            return lambda index: np.interp(index, lengths.index, values)

        made = predict(
            lengths,
            values_sd=look(sd / first),
            times_sd=look(sd / second),
            alphas=look(alpha),
            horizon=T,
            rate=rate,
            display=display,
        )
        if made.rmse < best.rmse:
            best = Split(cost, share, made.rmse)
    return best
