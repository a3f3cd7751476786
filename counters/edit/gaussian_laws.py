"""How much independent Gaussian noise each running sum gets, and the proof that it suffices.

Every prefix sum of a stream over [0, high] and BOT changes by at most ``high`` between edit neighbours: up to
the insertion nothing changes; from there to the BOT that absorbs the shift s_t - s'_t is the inserted value
minus the value pushed past t, both within [0, high]; after it, it is the inserted value. So the vector of
sums 1..T, released as y_t = s_t + sd_t N_t, is a Gaussian mechanism with

    mu^2 = sum over t of (high / sd_t)^2.

* Paper's law: sd_t = (high / mu) 1.85 sqrt(t) ln(t + 1). The sum over all t of 1 / (1.85 sqrt(t) ln(t + 1))^2
  is 0.98984, so every t is served, without a horizon.
* Flat law: sd_t = (high / mu) sqrt(T) for T steps known in advance.

The law is made of floats, each taken as the exact rational that it is. They come from correctly rounded
operations (+, -, *, / and square root of IEEE 754) and from a table of logarithms that is computed in
balls, so they are the same on every machine; between the entries of the table the logarithm is interpolated
along chords, from below, by less than a relative 2^-25. :func:`weight_sum` bounds the sum for these very
numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from trilift.counters.edit.ledger import float_above
from trilift.lift.checks import choice, integer, rational, written
from trilift.lift.errors import StateError
from trilift.stream.gdp import ln_of, mu_for

__all__ = [
    "FlatLaw",
    "GrowingLaw",
    "calibrated_mu",
    "flat_law",
    "gaussian_rmse",
    "growing_law",
    "weight_sum",
    "weights",
]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

FACTOR = 1.85
_NODES = 1 << 10  # chords of the logarithm between neighbouring powers of two
_EXPLICIT = 1 << 11  # so many terms of the sum are added one by one; up to here t + 1 is a node
_CHORD_LOSS = Fraction(1, 1 << 20)
_SUM_BITS = 80
_ROUNDING = 1 - Fraction(1, 1 << 52)
_SLACK = Fraction(1, 1 << 40)
_CHUNK = 1 << 20


@lru_cache(maxsize=1)
def _table() -> tuple[float, FloatArray]:
    """Return ln 2 and ln(1 + i/1024), i = 0..1024, each the float at or next below the truth."""
    logs = [0.0] + [_float_below(ln_of(Fraction(_NODES + i, _NODES))[0]) for i in range(1, _NODES + 1)]
    return logs[-1], np.array(logs)


def _float_below(value: Fraction) -> float:
    return -float_above(-value)


def weights(steps: IntArray) -> FloatArray:
    """Return w_t = 1.85 sqrt(t) ln(t + 1) for t = step + 1 as floats, the same on every machine.

    Args:
        steps: 0-based steps below 2^52.

    >>> weights(np.array([0, 99])).round(6).tolist()
    [1.282322, 85.37973]
    """
    log_two, table = _table()
    t = steps.astype(np.float64) + 1.0
    mantissa, exponent = np.frexp(t + 1.0)  # 2 mantissa in [1, 2)
    place = (2.0 * mantissa - 1.0) * _NODES
    node = np.floor(place)
    index = node.astype(np.int64)
    chord = table[index] + (table[index + 1] - table[index]) * (place - node)
    log = (exponent - 1.0) * log_two + chord
    return np.asarray(FACTOR * log * np.sqrt(t))


@lru_cache(maxsize=1)
def weight_sum() -> Fraction:
    """Return an upper bound on the sum over all t >= 1 of 1 / w_t^2: a rational below 1.

    The terms t < N = 2048 are added one by one, rounded up, for the floats w_t themselves. For t >= N,
    w_t >= 1.85 sqrt(t) ln(t + 1) (1 - 2^-20), since a chord over 2^-10 stays within 2^-23 of the logarithm,
    which is at least 7.6, and the roundings are below 2^-48; and

        sum over t >= N of 1 / (t ln(t+1)^2) <= integral from N-1 of dt / (t ln(t+1)^2)
                                            <= N / (N-1) * integral from N-1 of dt / ((t+1) ln(t+1)^2),

    which is N / ((N-1) ln N).

    >>> round(float(weight_sum()), 4)
    0.9899
    """
    first = weights(np.arange(_EXPLICIT - 1)).tolist()
    squares = [Fraction(w) ** 2 for w in first]
    explicit = sum(-(-(square.denominator << _SUM_BITS) // square.numerator) for square in squares)
    tail = Fraction(_EXPLICIT, _EXPLICIT - 1) / ln_of(_EXPLICIT)[0] / Fraction(37, 20) ** 2
    return Fraction(explicit, 1 << _SUM_BITS) + tail / (1 - _CHORD_LOSS) ** 2


@dataclass(frozen=True)
class GrowingLaw:
    """sd_t = unit * w_t: the paper's noise without a horizon.

    Attributes:
        unit: at least high / mu, a float taken exactly.
        spent_mu_sq: an upper bound on the sum over all t of (high / sd_t)^2, at most mu^2.
    """

    unit: float
    spent_mu_sq: Fraction

    @property
    def label(self) -> str:
        """What fixes the numbers."""
        return f"gaussian sums, {FACTOR} sqrt(t) ln(t+1), chords of 1/{_NODES}, unit {self.unit.hex()}"

    def deviations(self, steps: IntArray) -> FloatArray:
        """Return the standard deviations at 0-based steps, in units of the count."""
        return np.asarray(self.unit * weights(steps))


@dataclass(frozen=True)
class FlatLaw:
    """sd_t = deviation at each of a known number of steps.

    Attributes:
        deviation: at least high sqrt(T) / mu, a float taken exactly.
        spent_mu_sq: T high^2 / deviation^2, at most mu^2.
    """

    deviation: float
    spent_mu_sq: Fraction

    @property
    def label(self) -> str:
        """What fixes the numbers."""
        return f"gaussian sums, {self.deviation.hex()} at every step"

    def deviations(self, steps: IntArray) -> FloatArray:
        """Return the standard deviations at 0-based steps, in units of the count."""
        return np.full(steps.shape, self.deviation)


def growing_law(mu: Fraction, *, high: Fraction) -> GrowingLaw:
    """Return the paper's law for mu and inputs in [0, high], proved in rationals.

    Raises:
        StateError: the proof fails, which it never does.
    """
    unit = float_above(high / mu)
    spent = weight_sum() * high**2 / (Fraction(unit) * _ROUNDING) ** 2
    return GrowingLaw(unit, _proved(spent, mu))


def flat_law(mu: Fraction, *, high: Fraction, horizon: int) -> FlatLaw:
    """Return the law for a known number of steps, proved in rationals.

    Raises:
        StateError: the proof fails, which it never does.
    """
    square = horizon * high**2 / mu**2
    deviation = math.sqrt(square)
    while Fraction(deviation) ** 2 < square:
        deviation = math.nextafter(deviation, math.inf)
    return FlatLaw(deviation, _proved(square * mu**2 / Fraction(deviation) ** 2, mu))


def _proved(spent: Fraction, mu: Fraction) -> Fraction:
    if spent > mu**2:
        raise StateError("the noise does not prove mu")
    return spent


def calibrated_mu(epsilon: Any, *, delta: Any) -> Fraction:
    """Return mu such that mu-GDP implies (epsilon, delta), rounded down: the largest up to a relative 2^-38.

    Args:
        epsilon: > 0.
        delta: in (0, 1), taken as the rational that it is.

    Raises:
        ParameterError: arguments out of range.

    >>> round(float(calibrated_mu(150, delta=Fraction(1, 10**5))), 4)
    13.6216
    """
    exact = written("delta", delta, above=0, maximum=1)
    return mu_for(epsilon, ln_delta=ln_of(exact)[0] - _SLACK)  # a little is left for sums that round up


def gaussian_rmse(
    epsilon: Any,
    *,
    delta: Any,
    horizon: int,
    mechanism: str = "growing",
    high: Any = 1,
    per_run: bool = False,
) -> float:
    """Predict the root mean squared error over the first ``horizon`` steps (rounding of values aside).

    Args:
        epsilon: > 0.
        delta: in (0, 1).
        horizon: number of steps T.
        mechanism: "growing" (GaussianCC) or "flat" (HorizonGaussian, which knows T).
        high: the largest input.
        per_run: predict the mean of what single runs show, E sqrt(M), M being a run's mean squared error,
            instead of sqrt(E M): smaller by the share Var M / (8 (E M)^2) = sum sd^4 / (4 (sum sd^2)^2), to
            leading order. This is what tables of simulations hold.

    Raises:
        ParameterError: arguments out of range.

    >>> grid = 0.1 * 1500 ** (8 / 11)
    >>> round(gaussian_rmse(grid, delta=1e-5, horizon=10**4), 2)
    325.98
    >>> round(gaussian_rmse(grid, delta=1e-5, horizon=10**4, per_run=True), 2)
    325.97
    >>> round(gaussian_rmse(10, delta=1e-5, horizon=10**4, mechanism="flat"), 1)
    50.0
    """
    steps = integer("horizon", horizon, minimum=1)
    unit = float(rational("high", high, above=0)) / float(calibrated_mu(epsilon, delta=delta))
    if choice("mechanism", mechanism, ("growing", "flat")) == "flat":
        second, fourth = float(steps), float(steps)  # sums of squares and of fourth powers of sd / scale
        unit *= math.sqrt(steps)
    else:
        starts = range(0, steps, _CHUNK)
        squares = [weights(np.arange(start, min(start + _CHUNK, steps))) ** 2 for start in starts]
        second = math.fsum(float(part.sum()) for part in squares)
        fourth = math.fsum(float((part**2).sum()) for part in squares)
    root = unit * math.sqrt(second / steps)
    return root * (1.0 - fourth / (4.0 * second**2)) if per_run else root
