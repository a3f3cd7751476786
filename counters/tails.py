"""Tails of a weighted sum of Laplace variates: what an interval for a released step needs.

The noise of a step is sum_i a_i Lap(1) with known a_i. Two answers are combined: a Chernoff bound, which is
rigorous also for the discrete Laplace noise that is really drawn (its moment generating function lies below
the continuous one's, because (cosh x - 1) / x^2 increases), and the numerical inversion of the characteristic
function prod 1 / (1 + a_i^2 x^2), accurate to about 1e-9 and much tighter at everyday confidences.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["chernoff_half_width", "half_width"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_NUMERIC_LIMIT = 1e-7  # below this the inversion's own error would matter
_WORK_LIMIT = 2e8  # points times terms


def _log_mgf(theta: float, squares: FloatArray) -> float:
    return float(-np.log1p(-squares * theta * theta).sum())


def chernoff_half_width(coefficients: FloatArray, failure: float) -> float:
    """Return x with Pr[|sum a_i Lap(1)| > x] <= failure, by the best Chernoff bound.

    Args:
        coefficients: a, shape (r,), not all zero.
        failure: in (0, 1); may be as small as floats go.
    """
    squares = coefficients**2
    limit = 1.0 / math.sqrt(float(squares.max()))
    log_tail = math.log(2.0 / failure)

    def width(fraction: float) -> float:
        theta = fraction * limit
        return (_log_mgf(theta, squares) + log_tail) / theta

    # width is unimodal in theta: golden-section search; every theta gives a valid bound
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    low, high = 1e-6, 1.0 - 1e-9
    for _ in range(80):
        first, second = high - ratio * (high - low), low + ratio * (high - low)
        if width(first) <= width(second):
            high = second
        else:
            low = first
    return width((low + high) / 2.0) * (1.0 + 1e-12)


class _Inversion:
    """Tails Pr[|sum a_i Lap(1)| > x] for x up to a limit, from one table of the characteristic function.

    Pr = 1 - (2/pi) int_0^inf phi(u) sin(u x) / u du with phi real, positive and decreasing. The midpoint rule
    of step d is exact up to tail probabilities beyond 2 pi / d - x; the integral is cut where phi < 1e-10,
    and since phi falls at least as u^-2 from there on, what is cut is below 1e-10.
    """

    def __init__(self, squares: FloatArray, limit: float) -> None:
        beyond = limit + 40.0 * math.sqrt(2.0 * float(squares.sum()))  # the tail out there is below 1e-15
        step = 2.0 * math.pi / (limit + beyond)
        self.points = int(self._cut_off(squares) / step) + 16
        self._squares, self._step = squares, step

    @staticmethod
    def _cut_off(squares: FloatArray) -> float:
        top = 1.0 / math.sqrt(float(squares.sum()))
        while float(np.log1p(squares * (top * top)).sum()) < 23.1:
            top *= 1.25
        return top

    def tabulate(self) -> None:
        """Fill the table: ``points`` values."""
        self._u = (np.arange(self.points) + 0.5) * self._step
        logs = np.zeros(self.points)
        for square in self._squares:
            logs -= np.log1p(square * self._u**2)
        self._weights = (2.0 / math.pi) * self._step * np.exp(logs) / self._u

    def tail(self, x: float) -> float:
        """Return Pr[|sum| > x]."""
        return float(1.0 - np.sum(self._weights * np.sin(self._u * x)))


def half_width(coefficients: FloatArray, failure: float) -> float:
    """Return x with Pr[|sum a_i Lap(1)| > x] <= failure (numerically tight where that is safe).

    Args:
        coefficients: a, shape (r,); zeros are ignored.
        failure: in (0, 1).
    """
    used = coefficients[coefficients != 0.0]
    if used.size == 0:
        return 0.0
    scale = float(np.abs(used).max())
    if used.size == 1:  # one Laplace variate: Pr[|X| > x] = exp(-x)
        return -scale * math.log(failure) * (1.0 + 1e-12)
    unit = used / scale
    bound = chernoff_half_width(unit, failure)
    inversion = _Inversion(unit**2, bound)
    if failure < _NUMERIC_LIMIT or inversion.points * used.size > _WORK_LIMIT:
        return scale * bound
    inversion.tabulate()
    low, high = 0.0, bound
    while high - low > 1e-7 * high:
        middle = (low + high) / 2.0
        if inversion.tail(middle) > failure:
            low = middle
        else:
            high = middle
    return scale * min(high * (1.0 + 1e-6), bound)
