"""Likelihood ratios of what a matrix mechanism releases, and the same on parts of the output lattice.

A release y = T x + L z, up to rounding to the output lattice, is scored by the law of R x + z. Where L is
square (as good as square: shipped factors have columns of the size of rounding errors) it gives z back, and
the score is the log-likelihood ratio itself: sum_i (|z_i| - |z_i - D_i|) / s_i for Laplace noise, D = R (x' -
x). Where L is wide, because levels overlap, z is replaced by its best linear estimate from y. Gaussian noise:
(x' - x)^T T^T C^-1 (y - middle), C the covariance of L z, which is the exact ratio.

On the lattice: rounding, or noise that does not fill its lattice, shows in the lowest bits of released
numbers. The ratio is looked at only where a number has few, or many, trailing zeros, and is 0 elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from trilift.experiments.audit.noise_matrices import Matrices

__all__ = ["Ratios", "masked", "trailing_zeros"]

Array = np.ndarray[Any, np.dtype[Any]]

_BITS = (0, 1, 2)
_SMALL = 1e-9


class Ratios:
    """Scores for one mechanism.

    Args:
        known: its public matrices for n steps.
        step: the output lattice h, in units of the count.
    """

    def __init__(self, known: Matrices, *, step: float) -> None:
        self._known = known
        variances = known.scales**2 * (1.0 if known.gaussian else 2.0)
        own = (known.L * variances) @ known.L.T
        self._covariance = own + np.eye(len(own)) * step**2 / 12
        self._estimate = np.linalg.solve(self._covariance, known.L * variances).T  # z from y - T x

    def loss(self, change: Array) -> float:
        """Return the largest log-likelihood ratio (Laplace), or its standard deviation (Gaussian).

        Args:
            change: x' - x, shape (n,).
        """
        moved = self._known.R @ change / self._known.scales
        return float(np.sqrt(moved @ moved) if self._known.gaussian else np.abs(moved).sum())

    def statistics(self, first: Array, second: Array, values: Array) -> dict[str, Array]:
        """Return scores of outputs (runs, n) for streams x (``first``) and x' (``second``), shape (n,)."""
        gap = np.cumsum(second - first)
        weights = np.linalg.solve(self._covariance, gap)
        linear = (values - np.cumsum(first + second) / 2) @ weights
        if self._known.gaussian:
            return {"likelihood ratio": linear}
        moved = self._known.R @ (second - first)
        seen = self._estimate @ gap
        rows = np.abs(moved) > _SMALL * self._known.scales
        z = (values - np.cumsum(first)) @ self._estimate[rows].T
        scales, found = self._known.scales[rows], {"linear": linear}
        for name, shift in (("likelihood ratio", moved[rows]), ("projected ratio", seen[rows])):
            found[name] = ((np.abs(z) - np.abs(z - shift)) / scales).sum(axis=1)
        if np.allclose(moved[rows], seen[rows], rtol=1e-3, atol=0):
            del found["projected ratio"]
        return found


def trailing_zeros(numbers: Array) -> Array:
    """Return the number of trailing zero bits of integers, 63 for 0.

    >>> trailing_zeros(np.array([1, 2, 12, -8, 0])).tolist()
    [0, 1, 2, 3, 63]
    """
    lowest = (numbers & -numbers).astype(np.uint64)
    zeros = np.log2(np.maximum(lowest, 1).astype(np.float64)).astype(np.int64)
    return np.where(numbers == 0, 63, zeros)


def masked(ratio: Array, numbers: Array, *, steps: Sequence[int], unit: int) -> dict[str, Array]:
    """Return the ratio where a released number's lowest bits are of a kind, 0 elsewhere.

    Args:
        ratio: shape (runs,).
        numbers: released values in units of the output lattice, int64 (runs, n).
        steps: columns that are looked at.
        unit: binary places of the output lattice below that of the inputs: their parities are looked at too.
    """
    found = {}
    for step in steps:
        zeros = trailing_zeros(numbers[:, step])
        for bits in sorted({*_BITS, unit, unit + 1}):
            few = zeros <= bits
            found[f"ratio where value {step + 1} has at most {bits} trailing zeros"] = ratio * few
            found[f"ratio where value {step + 1} has more than {bits} trailing zeros"] = ratio * ~few
    return found
