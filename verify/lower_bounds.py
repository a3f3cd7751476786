"""Lower bounds for every factorisation of T_n: how far a found one can be from the best.

The returned floats lie below the true bounds: everything is a sum or product of positive terms, each with a
relative error of at most 10 units of 2**-53 (sine and logarithm of the C library within 4 units), and the
result is multiplied by 1 - 2**-46.
"""

from __future__ import annotations

import math
from functools import lru_cache

from trilift.lift.checks import choice, integer

__all__ = ["binary_lower_bound", "factorisation_lower_bound", "kappa_lower_bound"]

_DOWN = 1.0 - 2.0**-46


_LARGEST = 1 << 27  # as many sines are added up, within seconds and 1 GiB


def factorisation_lower_bound(size: int) -> float:
    """Return (1/n) sum_j 1/(2 sin((2j-1) pi/(4n+2))), a lower bound of c_2(T_n) and c_F(T_n).

    The terms are the singular values of T_n; their mean bounds |L|_F |R|_(1->1) / sqrt(n) from below, since
    a column's l1 norm is at least its l2 norm. It grows as ln(n)/pi + 0.7019. New.

    Args:
        size: n >= 1.

    Raises:
        ParameterError: not an integer >= 1.

    >>> round(factorisation_lower_bound(2), 6)  # the best possible costs are sqrt(2) and sqrt(3/2)
    1.118034
    """
    return _mean_singular_value(integer("size", size, minimum=1, maximum=_LARGEST))


@lru_cache(maxsize=64)  # n sines
def _mean_singular_value(n: int) -> float:
    terms = (1.0 / (2.0 * math.sin((2 * j - 1) * math.pi / (4 * n + 2))) for j in range(1, n + 1))
    return math.fsum(terms) / n * _DOWN


def kappa_lower_bound(size: int) -> float:
    """Return a lower bound of 2 c^2 / log2(n)^3 for every factorisation of T_n, n >= 2 (max and mean).

    Raises:
        ParameterError: not an integer >= 2.

    >>> round(kappa_lower_bound(2), 6)
    2.5
    """
    n = integer("size", size, minimum=2, maximum=_LARGEST)
    return 2.0 * factorisation_lower_bound(n) ** 2 / math.log2(n) ** 3 * _DOWN


def binary_lower_bound(size: int, *, objective: str) -> float:
    """Return a lower bound of the cost of every factorisation of T_n into 0/1 matrices.

    0.290 log2(n-1)^(3/2) for |L|_(2->inf) |R|_(1->1), and (ln 2 / 6)^(3/2) sqrt(1 - 1/n) log2(n-1)^(3/2) for
    |L|_F |R|_(1->1) / sqrt(n). Source: the paper on pure-DP continual counting, section on 0/1 matrices.

    Args:
        size: n >= 2.
        objective: "max" or "mean".

    Raises:
        ParameterError: n < 2, or another objective.

    >>> round(binary_lower_bound(1025, objective="max"), 4)
    9.1706
    """
    n = integer("size", size, minimum=2, maximum=2**60)
    growth = math.log2(n - 1) ** 1.5
    if choice("objective", objective, ("max", "mean")) == "max":
        return float(0.290 * growth * _DOWN)
    return float((math.log(2.0) / 6.0) ** 1.5 * math.sqrt(1.0 - 1.0 / n) * growth * _DOWN)
