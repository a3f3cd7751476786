"""One-sided tails of the noise of release times, as bounds, down to failures that no float can hold.

Failures are given as natural logarithms. Gaussian: the quantile in log space. Sums of Laplace variates,
S = sum a_i X_i with X_i = Lap(1): two bounds, both of which hold for the drawn discrete variates too.

* Chernoff: Pr[S >= x] <= M(h) e^(-h x), M(h) = prod 1/(1 - a_i^2 h^2), for every 0 < h < 1/max|a|. The
  moment generating function of a discrete Laplace variate lies below the continuous one's
  (:mod:`trilift.counters.tails`).
* Its refinement for a fixed h: Pr[S >= x] = M(h) e^(-h x) (1/pi) int_0^inf Re[phi(u) e^(-iux) / (h + iu)]
  du with phi(u) = M(h + iu)/M(h). The midpoint rule of step d changes this to an alternating sum over k of
  (-1)^k e^(h k P) Pr[S >= x + k P], P = 2 pi / d; P is so large that all terms but the true one are below a
  relative 2^-30, by Chernoff's bound again, and the integral is cut where |phi| is as small. The result is
  raised by a relative 2^-20, and the discrete variates are within ``lattice`` of continuous ones (same
  module), which is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["gaussian_quantile", "grouped_quantiles", "laplace_quantile"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_UP = 1.0 + 1e-9
_STEPS = 60


def gaussian_quantile(ln_failure: Any) -> FloatArray:
    """Return z with Pr[N(0, 1) >= z] <= e^ln_failure, rounded up by a relative 1e-9.

    >>> round(float(gaussian_quantile(math.log(0.025))), 6)
    1.959964
    """
    from scipy.special import ndtri_exp

    values = -np.asarray(ndtri_exp(np.asarray(ln_failure, dtype=np.float64)))
    return np.asarray(values + 1e-9 * np.abs(values) + 1e-12)


def _chernoff(squares: FloatArray, ln_failure: float) -> tuple[float, float]:
    """Return (x, h): the least Chernoff bound and its h."""
    limit = 1.0 / math.sqrt(float(squares.max()))

    def width(fraction: float) -> float:
        h = fraction * limit
        return (float(-np.log1p(-squares * h * h).sum()) - ln_failure) / h

    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    low, high = 1e-9, 1.0 - 1e-12
    first, second = high - ratio * (high - low), low + ratio * (high - low)
    at_first, at_second = width(first), width(second)
    for _ in range(_STEPS):
        if at_first <= at_second:
            high, second, at_second = second, first, at_first
            first = high - ratio * (high - low)
            at_first = width(first)
        else:
            low, first, at_first = first, second, at_second
            second = low + ratio * (high - low)
            at_second = width(second)
    best = first if at_first <= at_second else second
    return width(best) * _UP, best * limit


def laplace_quantile(coefficients: FloatArray, ln_failure: float, *, lattice: float = 0.0) -> float:
    """Return x with Pr[sum a_i X_i >= x] <= e^ln_failure for Laplace X_i of scale 1.

    Args:
        coefficients: a, shape (r,), zeros are ignored.
        ln_failure: logarithm of the failure, < ln(1/2).
        lattice: sum of |a_i| times the lattice step of X_i: what discrete variates may add.

    >>> round(laplace_quantile(np.array([1.0]), math.log(0.5e-9)), 3)
    20.723
    """
    used = np.abs(coefficients[coefficients != 0.0])
    if used.size == 0:
        return 0.0
    if used.size == 1:  # Pr[X >= x] = e^-x / 2
        return float(used[0]) * max(-ln_failure - math.log(2.0), 0.0) * _UP + lattice * _UP
    scale = float(used.max())
    squares = (used / scale) ** 2
    bound, h = _chernoff(squares, ln_failure)
    refined = _refined(squares, ln_failure, bound, h)
    return scale * min(bound, refined + lattice / scale * _UP)


def _refined(squares: FloatArray, ln_failure: float, bound: float, h: float) -> float:
    """Return a bound on the quantile from the tilted integral, or ``bound`` where that is not settled."""
    ln_m = float(-np.log1p(-squares * h * h).sum())
    sd = math.sqrt(float((2 * squares * (1 + squares * h * h) / (1 - squares * h * h) ** 2).sum()))
    # k < 0: e^(-h |k| P) over the failure; k > 0: the law beyond x falls faster than e^(-h x)
    period = max((-ln_failure + 25.0) / h, 24.0 * sd, 2.5 * bound)
    step = 2.0 * math.pi / period
    top = 4.0 / sd
    while _ln_phi(squares, h, top) > -26.0 and top < 1e4 * h:
        top *= 1.25
    points = int(top / step) + 1
    if points * squares.size > 400_000 or top >= 1e4 * h:
        return bound
    u = (np.arange(points) + 0.5) * step
    z = h + 1j * u
    ln_values = -np.log1p(-np.outer(z * z, squares)).sum(axis=1) - ln_m
    values = np.exp(ln_values) / z * (step / math.pi)

    def ln_tail(x: float) -> float:
        total = float((values * np.exp(-1j * u * x)).real.sum()) + 1e-9
        return ln_m - h * x + math.log(max(total, 1e-9)) + 1e-6

    low, high = 0.5 * bound, bound
    if ln_tail(high) > ln_failure:
        return bound
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if ln_tail(middle) > ln_failure else (low, middle)
    return high * _UP


def _ln_phi(squares: FloatArray, h: float, u: float) -> float:
    """ln |phi(u) / (h + iu)| + ln h: how much of the integrand is left at u."""
    z2 = (h + 1j * u) ** 2
    value = float((-np.log(np.abs(1.0 - squares * z2)) + np.log1p(-squares * h * h)).sum())
    return value - 0.5 * math.log1p((u / h) ** 2) + math.log(max(u / h, 1.0))


def grouped_quantiles(variances: FloatArray, largest: FloatArray, ln_failures: FloatArray) -> FloatArray:
    """Return Chernoff bounds for many sums at once, knowing of each group of terms only two numbers.

    -ln(1 - a^2 h^2) <= (a/A)^2 (-ln(1 - A^2 h^2)) for |a| <= A, so sum a^2 and max |a| of a group bound its
    part.

    Args:
        variances: sum of a_i^2 of each group, shape (groups, n).
        largest: A of each group, shape (groups,).
        ln_failures: shape (n,).
    """
    limit = 1.0 / float(largest.max())
    best = np.full(ln_failures.shape, np.inf)
    grid: Sequence[float] = (1.0 - np.geomspace(0.999, 1e-3, 200)).tolist()
    for fraction in grid:
        h = fraction * limit
        weights = -np.log1p(-((largest * h) ** 2)) / largest**2
        best = np.minimum(best, (weights @ variances - ln_failures) / h)
    return np.asarray(best * _UP)
