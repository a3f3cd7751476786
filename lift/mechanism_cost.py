"""One record for what any mechanism costs at a horizon, whatever it is made of (new)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trilift.lift.checks import choice, finite
from trilift.lift.errors import ParameterError
from trilift.lift.laplace_errors import laplace_se

__all__ = ["Level", "MechanismCost"]

Number = Fraction | float | int


@dataclass(frozen=True)
class Level:
    """One level of a mechanism: its name, the steps of a block, its noise scale at epsilon = 1."""

    name: str
    size: int
    scale: float


@dataclass(frozen=True)
class MechanismCost:
    """What a mechanism costs at a horizon, for inputs that change by at most 1.

    Attributes:
        name: the mechanism's name in :data:`trilift.lift.mechanisms.NAMES`.
        title: what it is, in words.
        horizon: number of steps n.
        objective: "max" or "mean": what its free parameters were chosen for.
        levels: its levels, finest first.
        sensitivity: largest column l1 norm of R.
        l2_sensitivity_sq: largest squared column l2 norm of R (for Gaussian noise), or None if not known.
        max_row_norm_sq: largest squared row norm of L, or None if only bounds are known.
        mean_row_norm_sq: mean squared row norm of L, likewise.
        bound_max_row_norm_sq: an upper bound of the largest one, or None.
        bound_mean_row_norm_sq: an upper bound of the mean, or None.

    Trees are exact (integers and Fractions); floats are those of :mod:`trilift.lift.toeplitz` (within 1e-14)
    and of published figures.
    """

    name: str
    title: str
    horizon: int
    objective: str
    levels: tuple[Level, ...]
    sensitivity: Number
    l2_sensitivity_sq: Number | None
    max_row_norm_sq: Number | None
    mean_row_norm_sq: Number | None
    bound_max_row_norm_sq: Number | None
    bound_mean_row_norm_sq: Number | None

    def max_se(self, epsilon: float = 1.0) -> float | None:
        """Largest squared error of a step, 2 max|L_t|^2 |R|^2 / epsilon^2; None where it is not known."""
        return self._se(self.max_row_norm_sq, epsilon)

    def mean_se(self, epsilon: float = 1.0) -> float | None:
        """Squared error averaged over the steps; None where it is not known."""
        return self._se(self.mean_row_norm_sq, epsilon)

    def bound_max_se(self, epsilon: float = 1.0) -> float | None:
        """Upper bound of the largest squared error of a step."""
        return self._se(self.bound_max_row_norm_sq, epsilon)

    def bound_mean_se(self, epsilon: float = 1.0) -> float | None:
        """Upper bound of the squared error averaged over the steps."""
        return self._se(self.bound_mean_row_norm_sq, epsilon)

    def kappa(self, objective: str, *, bound: bool = False) -> float | None:
        """Return SE epsilon^2 / log2(n)^3 at this horizon, or of the bound; None where it is not known.

        Raises:
            ParameterError: a horizon of 1.
        """
        if self.horizon < 2:
            raise ParameterError("kappa needs a horizon of at least 2: log2(1) = 0")
        worst = choice("objective", objective, ("max", "mean")) == "max"
        if bound:
            error = self.bound_max_se() if worst else self.bound_mean_se()
        else:
            error = self.max_se() if worst else self.mean_se()
        return None if error is None else error / math.log2(self.horizon) ** 3

    def gamma(self, objective: str) -> float | None:
        """Return sqrt(largest or mean |L_t|^2) |R|_(1->2): the error per unit of Gaussian noise (l2 norm)."""
        worst = choice("objective", objective, ("max", "mean")) == "max"
        row = self.max_row_norm_sq if worst else self.mean_row_norm_sq
        if row is None or self.l2_sensitivity_sq is None:
            return None
        return math.sqrt(float(row) * float(self.l2_sensitivity_sq))

    def record(self, epsilon: float = 1.0) -> dict[str, Any]:
        """Return what ``trilift plan --json`` prints: errors and scales at this epsilon, and kappas."""
        value = finite("epsilon", epsilon, above=0)
        several = self.horizon > 1
        return {
            "horizon": self.horizon,
            "epsilon": value,
            "objective": self.objective,
            "levels": [{"name": x.name, "size": x.size, "scale": x.scale / value} for x in self.levels],
            "max_se": self.max_se(value),
            "mean_se": self.mean_se(value),
            "kappa_max": self.kappa("max") if several else None,
            "kappa_mean": self.kappa("mean") if several else None,
            "bound_max_se": self.bound_max_se(value),
            "bound_mean_se": self.bound_mean_se(value),
        }

    def _se(self, row: Number | None, epsilon: float) -> float | None:
        if row is None:
            return None
        return laplace_se(row, sensitivity=self.sensitivity, epsilon=epsilon)
