"""The squared error that Laplace noise gives a released step, for every record of costs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from trilift.lift.checks import fail, rational

__all__ = ["laplace_se"]


def laplace_se(row_norm_sq: Any, *, sensitivity: Any = 1, epsilon: Any) -> float:
    """Return 2 |L_t|^2 |R|^2 / epsilon^2, the nearest float: Laplace noise of scale s has variance 2 s^2.

    Args:
        row_norm_sq: |L_t|^2, or its maximum or mean over the steps, > 0; in units of the count, squared.
        sensitivity: |R|, the largest l1 norm of a column, > 0.
        epsilon: the privacy budget, > 0.

    Raises:
        ParameterError: a bad epsilon, or one at which the squared error is no float > 0.

    >>> laplace_se(3, sensitivity=2, epsilon=0.5)
    96.0
    """
    exact = rational("epsilon", epsilon, above=0)
    try:
        nearest = float(2 * Fraction(row_norm_sq) * Fraction(sensitivity) ** 2 / exact**2)
    except OverflowError:
        nearest = math.inf
    if not 0 < nearest < math.inf:
        size = "larger" if nearest else "smaller"
        raise fail("epsilon", f"{size}, so that squared errors fit floats", epsilon)
    return nearest
