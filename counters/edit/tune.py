"""Free parameters of the sharp accounting, chosen for the least predicted error (floats, for plans alone)."""

from __future__ import annotations

import math
from collections.abc import Callable
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

__all__ = ["NOMINAL_HORIZON", "Split", "Task", "best_split", "buckets_needed", "capacity_of"]

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
    """Return a number of buckets that is next to never exceeded (7 standard deviations more)."""
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


def _few(kind: str, capacity: int) -> int:
    """A few capacities are enough for tuning: costs grow with the logarithm. Chains take time to look at."""
    bits = (capacity - 1).bit_length()
    return min(1 << (bits if kind == "toeplitz" else 2 * -(-bits // 2)), _TUNED_FOR)


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


@dataclass(frozen=True)
class Task:
    """What a design is tuned for.

    Attributes:
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

    mechanism: str
    epsilon: float
    ln_noise: float | None
    ln_delays: float
    ln_partition: float
    kind: str
    horizon: int | None
    rate: float
    display: str


def best_split(task: Task) -> Split:
    """Return the best division of epsilon found."""
    fractions = np.geomspace(0.02, 0.8, 9).tolist()
    while fractions[0] > 1e-9 and _ends_early(task, fractions[0]):
        fractions.insert(0, fractions[0] / 2.0)  # a smaller cost makes longer buckets
    found = [_best_share(task, fraction, _SHARES) for fraction in fractions]
    best = min(found, key=lambda split: split.rmse)
    for width in (1.35, 1.1):
        centre = best.partition / task.epsilon
        near = best.counts + (width - 1.0) * np.array([-0.5, -0.25, 0.0, 0.25, 0.5])
        shares = tuple(np.clip(near, 0.02, 0.98).tolist())
        for power in (-1.0, -0.5, 0.0, 0.5, 1.0):
            one = _best_share(task, min(centre * width**power, 0.95), shares)
            best = min(best, one, key=lambda split: split.rmse)
    return best


def _ends_early(task: Task, fraction: float) -> bool:
    """Tell whether there are too few buckets for the horizon."""
    if task.horizon is None:
        return False
    part = float_part(task.mechanism, fraction * task.epsilon, task.ln_partition, task.horizon)
    lengths = lengths_of(part, horizon=task.horizon, rate=task.rate)
    return buckets_needed(lengths, task.horizon) > _MOST_BUCKETS


def _best_share(task: Task, fraction: float, shares: tuple[float, ...]) -> Split:
    cost = fraction * task.epsilon
    part = float_part(task.mechanism, cost, task.ln_partition, task.horizon)
    T = NOMINAL_HORIZON if task.horizon is None else task.horizon
    lengths = lengths_of(part, horizon=T, rate=task.rate)
    capacity = None if task.horizon is None else _few(task.kind, capacity_of(part, task.horizon))
    unit = unit_of(task.kind, capacity)
    last = (capacity or 1 << 62) - 1
    sd = unit.sd(np.minimum(lengths.index.astype(np.int64), last))
    if capacity is None:
        ln_each = task.ln_delays - np.log(lengths.index + 1.0) - np.log(lengths.index + 2.0)
    else:
        ln_each = np.full(len(sd), task.ln_delays - math.log(capacity))
    rest = task.epsilon - cost
    if unit.gaussian:
        total = _mu(rest, task.ln_noise or 0.0) ** 2
        ratio = gaussian_quantile(ln_each)
    else:
        total = rest
        ratio = np.full(len(sd), _tail_ratio(unit, round(float(ln_each[len(sd) // 2]), 1)))
    best = Split(cost, 0.5, math.inf)
    for share in shares:
        first = share * total / float(unit.factors.counts)
        second = (1 - share) * total / float(unit.factors.times)
        if unit.gaussian:
            first, second = math.sqrt(first), math.sqrt(second)
        made = predict(
            lengths,
            values_sd=_looking_up(lengths, sd / first),
            times_sd=_looking_up(lengths, sd / second),
            alphas=_looking_up(lengths, ratio * sd / second + 1.0),
            horizon=T,
            rate=task.rate,
            display=task.display,
            capacity=None if task.horizon is None else _MOST_BUCKETS,
        )
        if made.rmse < best.rmse:
            best = Split(cost, share, made.rmse)
    return best


def _looking_up(lengths: Lengths, values: FloatArray) -> Callable[[Any], FloatArray]:
    return lambda index: np.asarray(np.interp(index, lengths.index, values))
