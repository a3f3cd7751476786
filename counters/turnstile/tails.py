"""Upper tails of sums of Laplace variates at many steps at once, close to the truth for many terms (new).

A Laplace variate of scale 1 is sqrt(2 E) N with E exponential and N normal, so S = sum a_i X_i is, given the
E_i, normal of variance V = sum 2 a_i^2 E_i, and Pr[S >= x] = E Phi(-x / sqrt(V)), Phi being the normal
distribution function. For every h > 0 and v, Phi(-x / sqrt(v)) <= A(h x^2) e^(h v) with

    A(t) = max over u of Phi(-u^(-1/2)) e^(-t u),

and E e^(h V) = prod 1 / (1 - 2 h a_i^2). Hence Pr[S >= x] <= A(h x^2) prod 1 / (1 - 2 h a_i^2) for
0 < h < 1 / (2 max a_i^2). Where V hardly varies this is nearly exact, while Chernoff's bound, which has
e^(-x^2 / (2 v)) for the normal tail, is too large by x sqrt(2 pi / v) at least. Of a group of terms it is
enough to know sum a_i^2 and max |a_i|: -ln(1 - 2 h a^2) <= (a / A)^2 (-ln(1 - 2 h A^2)) for |a| <= A.

Discrete Laplace variates are within one lattice step of continuous ones (:mod:`trilift.counters.tails`), so
``lattice``, a bound on sum |a_i| times their steps, is added.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["ln_normal_tail", "mixture_quantiles"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_UP = 1.0 + 1e-7
_GRID = 160
_POINTS = 4000


def ln_normal_tail(x: float) -> float:
    """Return ln Phi(-x) for x >= 0, to a relative 1e-12, from below 1/2 to as far as floats go.

    >>> round(ln_normal_tail(2.0), 6), round(ln_normal_tail(60.0), 3)
    (-3.783184, -1805.014)
    """
    if x < 30.0:
        return math.log(0.5 * math.erfc(x / math.sqrt(2.0)))
    return -x * x / 2 - math.log(x * math.sqrt(2 * math.pi)) + math.log1p(-1 / (x * x) + 3 / x**4)


@lru_cache(maxsize=1)
def _table() -> tuple[FloatArray, FloatArray]:
    """Return points (t, ln A(t)), t increasing and ln A decreasing.

    The maximum over u is where d/du [ln Phi(-u^(-1/2)) - t u] = 0: with x = u^(-1/2) and m the hazard
    phi(x) / Phi(-x), t = m x^3 / 2. So points are made from x, and there is nothing to be solved.
    ln Phi(-u^(-1/2)) is concave in u, so that the stationary point is the maximum.
    """
    x = np.geomspace(1e-3, 60.0, _POINTS)
    tail = np.array([ln_normal_tail(float(value)) for value in x])
    hazard = np.exp(-x * x / 2 - 0.5 * math.log(2 * math.pi) - tail)
    t = hazard * x**3 / 2
    return t, tail - t / x**2


def mixture_quantiles(
    squares: FloatArray, largest: FloatArray, *, ln_failure: float, lattice: float = 0.0
) -> FloatArray:
    """Return x with Pr[sum a_i X_i >= x] <= e^ln_failure for many sums of Laplace variates of scale 1.

    Args:
        squares: sum of a_i^2 of each group of terms, shape (groups, n).
        largest: at least max |a_i| of each group, shape (groups,), > 0.
        ln_failure: below ln(1/2).
        lattice: what discrete variates may add.

    Returns:
        Shape (n,); infinite where no h of the grid gives a bound.

    >>> many = mixture_quantiles(np.full((1, 1), 1.0), np.array([1e-3]), ln_failure=math.log(0.025))
    >>> round(float(many[0]), 3), round(1.959964 * math.sqrt(2), 3)
    (2.772, 2.772)
    """
    t, ln_a = _table()
    tops = (np.asarray(largest) ** 2)[:, None]
    total = np.asarray(sum(squares))  # row by row, however many columns there are
    best = np.full(total.shape, np.inf)
    # the bound of a sum is a function of that sum alone, not of the others that are asked for with it
    used = squares > 0
    any_used = used.any(axis=0)
    limit = 0.999 / (2.0 * np.where(any_used, np.where(used, tops, 0.0).max(axis=0), 1.0))
    # the best h is about z^2 / 2 over the variance 2 sum a^2: the grid is relative to that, below the limit
    middle = 1.0 / (4.0 * np.where(any_used, total, 1.0))
    for factor in np.geomspace(0.05, 400.0, _GRID).tolist():
        h = np.minimum(middle * factor, limit)
        weights = -np.log1p(np.where(used, -2.0 * h * tops, 0.0)) / tops
        wanted = ln_failure - sum(weights * squares)
        reached = np.interp(-wanted, -ln_a, t, left=t[0], right=np.inf)
        best = np.minimum(best, np.sqrt(reached / h))
        if bool((h >= limit).all()):
            break
    return np.asarray(np.where(any_used, best * _UP + lattice, 0.0))
