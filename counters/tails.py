"""Tails of a weighted sum of Laplace variates: what an interval for a released step needs.

The noise of a step is sum_i a_i X_i / sigma_i with known a_i and discrete Laplace X_i of integer scales
sigma_i; Lap(1) in place of X_i / sigma_i is its continuous relative. Two answers are combined.

* A Chernoff bound for the continuous law, which is one for the discrete law too: the moment generating
  function (cosh x - 1) / (cosh x - cosh y) of the latter, x = 1 / sigma, lies below the former's
  x^2 / (x^2 - y^2), because (cosh x - 1) / x^2 increases.
* The numerical inversion of the continuous characteristic function prod 1 / (1 + a_i^2 x^2), much tighter at
  everyday confidences. Its own error in probability is below 1e-9, for which the failure that is aimed at is
  lowered. What carries it over to the discrete law is a coupling: with u = exp(-1 / sigma),

      Pr[|X| >= k] = 2 u^k / (1 + u) = u^(k - c),   c = sigma log(2 / (1 + u)) in (0, 1/2],   k >= 1,

  so |X| = floor(|Y| + c) for the continuous |Y|, Pr[|Y| >= y] = u^y, and X differs from Y, of the same
  sign, by less than 1. The discrete sum is hence within ``lattice`` = sum |a_i| / sigma_i of the continuous
  one, and that is added to the width. It is small: no sigma of a ledger is below 2^10, most are far larger.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["chernoff_half_width", "half_width"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_NUMERIC_LIMIT = 1e-7  # below this the inversion's own error would matter
_INVERSION_ERROR = 1e-9
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
    and since phi falls nearly as u^-2 or faster from there on, what is cut is below 1e-10.
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


def half_width(coefficients: FloatArray, failure: float, *, lattice: float = 0.0) -> float:
    """Return x with Pr[|sum a_i X_i / sigma_i| > x] <= failure (tight where that is safe).

    Args:
        coefficients: a, shape (r,); zeros are ignored.
        failure: in (0, 1).
        lattice: sum of |a_i| / sigma_i; 0 for continuous variates.
    """
    used = coefficients[coefficients != 0.0]
    if used.size == 0:
        return 0.0
    scale = float(np.abs(used).max())
    lattice *= 1.0 + 1e-9  # it was added up in floats
    if used.size == 1:  # one Laplace variate: Pr[|Y| > x] = exp(-x)
        return -scale * math.log(failure) * (1.0 + 1e-12) + lattice
    unit = used / scale
    bound = chernoff_half_width(unit, failure)
    inversion = _Inversion(unit**2, bound)
    if failure < _NUMERIC_LIMIT or inversion.points * used.size > _WORK_LIMIT:
        return scale * bound
    inversion.tabulate()
    low, high = 0.0, bound
    while high - low > 1e-7 * high:
        middle = (low + high) / 2.0
        if inversion.tail(middle) > failure - _INVERSION_ERROR:
            low = middle
        else:
            high = middle
    return min(scale * high * (1.0 + 1e-9) + lattice, scale * bound)
