"""How good estimates are: the least factor that is valid at all steps, and what is left beside a factor."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["beyond", "least_factor", "ratio_quantile"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


def least_factor(truth: Any, estimate: Any, *, additive: Any) -> float:
    """Return the least alpha >= 1 with estimate <= alpha truth + beta and truth <= alpha estimate + beta.

    That is how the figures of the literature here are meant: in the other form, truth / alpha - beta <=
    estimate, beta would count alpha-fold on one side.

    Args:
        truth, estimate: not negative, shape (k,).
        additive: beta, a number or of shape (k,).

    Returns:
        alpha, infinite where no factor helps.

    >>> least_factor(np.array([10.0, 40.0]), np.array([21.0, 13.0]), additive=1.0)
    3.0
    """
    y, e = np.asarray(truth, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    beta = np.broadcast_to(np.asarray(additive, dtype=np.float64), y.shape)
    worst = 1.0
    for above, below in ((e, y), (y, e)):
        rest = above - beta
        need = rest > 0
        if np.any(need & (below <= 0)):
            return float("inf")
        if np.any(need):
            worst = max(worst, float((rest[need] / below[need]).max()))
    return worst


def ratio_quantile(truth: Any, estimate: Any, *, share: float) -> float:
    """Return a quantile over the steps with truth > 0 of max(estimate / truth, truth / estimate).

    >>> ratio_quantile(np.array([0, 1, 2, 4]), np.array([5.0, 1.0, 1.0, 4.0]), share=1.0)
    2.0
    """
    y, e = np.asarray(truth, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    y, e = y[y > 0], e[y > 0]
    if y.size == 0:
        return 1.0
    with np.errstate(divide="ignore"):
        return float(np.quantile(np.maximum(e / y, y / e), share, method="higher"))


def beyond(truth: Any, estimate: Any, *, relative: float = 0.0) -> float:
    """Return the least beta >= 0 with |estimate - truth| <= relative truth + beta at all steps.

    >>> beyond(np.array([10.0, 100.0]), np.array([14.0, 150.0]), relative=0.5)
    0.0
    >>> beyond(np.array([10.0, 100.0]), np.array([14.0, 150.0]))
    50.0
    """
    y, e = np.asarray(truth, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    return max(0.0, float((np.abs(e - y) - relative * y).max()))
