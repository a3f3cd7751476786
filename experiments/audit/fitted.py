"""Linear statistics fitted to a few runs: Fisher's discriminant, and every released number by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Fit", "fitted"]

Array = np.ndarray[Any, np.dtype[Any]]

_RIDGE = 1e-3
_ALONE = 6  # numbers that are looked at by themselves: those whose means differ most


@dataclass(frozen=True)
class Fit:
    """What was fitted for a pair.

    Attributes:
        weights: of the discriminant, shape (k,).
        alone: the indices that are looked at by themselves.
        signs: +1 or -1 for each of them, so that the second stream gives more.
    """

    weights: Array
    alone: Array
    signs: Array

    def statistics(self, values: Array) -> dict[str, Array]:
        """Return the statistics of outputs (runs, k)."""
        found = {"fitted": values @ self.weights}
        for index, sign in zip(self.alone.tolist(), self.signs.tolist(), strict=True):
            found[f"value {index + 1}"] = sign * values[:, index]
        return found


def fitted(first: Array, second: Array) -> Fit:
    """Fit to outputs of the first and of the second stream, each of shape (runs, k).

    The discriminant is C^-1 (mean of second - mean of first), C the pooled covariance with a small ridge.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    gap = b.mean(axis=0) - a.mean(axis=0)
    pooled = (np.atleast_2d(np.cov(a.T)) + np.atleast_2d(np.cov(b.T))) / 2
    sizes = np.diag(pooled)
    ridge = _RIDGE * (sizes + max(float(sizes.max()), 1e-12) * 1e-3)
    weights = np.linalg.solve(pooled + np.diag(ridge), gap)
    deviations = np.sqrt(sizes + ridge)
    alone = np.argsort(-np.abs(gap) / deviations, kind="stable")[:_ALONE]
    return Fit(weights, alone, np.where(gap[alone] >= 0, 1.0, -1.0))
