"""Splitting the budget over the levels of a chain, and what the split costs at a horizon (new)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.checks import choice, finite
from trilift.lift.costs import mean_row_norms_sq, scales_array
from trilift.lift.errors import ParameterError
from trilift.lift.extremes import level_max_row_norms_sq, max_row_norm_sq

__all__ = ["OBJECTIVES", "ChainCost", "best_scales", "chain_cost", "horizon_scales"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

OBJECTIVES = ("max", "mean")


def best_scales(sensitivities: Any, row_norms_sq: Any) -> FloatArray:
    """Return the level scales s minimising sum q_l s_l^2 under sum b_l / s_l = 1.

    s_l = (b_l / q_l)^(1/3) sum_j (b_j^2 q_j)^(1/3); the minimum is (sum_l (b_l^2 q_l)^(1/3))^3.

    Args:
        sensitivities: b, shape (levels,), > 0.
        row_norms_sq: q, shape (levels,); a level with q = 0 is given a share too small to matter.

    >>> best_scales([1.0, 1.0], [1.0, 1.0]).tolist()
    [2.0, 2.0]
    """
    b = np.asarray(sensitivities, dtype=np.float64)
    q = _floored(np.asarray(row_norms_sq, dtype=np.float64))
    return np.asarray((b / q) ** (1 / 3) * np.sum((b * b * q) ** (1 / 3)))


def _floored(q: FloatArray) -> FloatArray:
    """A level that a short horizon hardly meets keeps a finite scale."""
    return np.asarray(np.maximum(q, 1e-9 * q.max()))


@dataclass(frozen=True)
class ChainCost:
    """What a chain costs at a horizon, for unit epsilon and inputs that change by at most 1.

    Attributes:
        horizon: number of steps n.
        objective: "max" or "mean": what the scales were chosen for.
        scales: one a level, finest first; the sensitivities over the scales sum to 1.
        sensitivities: what each level charges for an input of size 1.
        max_row_sq: exact largest squared row norm of L S; MaxSE = 2 max_row_sq / epsilon^2.
        mean_row_sq: exact mean squared row norm of L S.
        bound_max_row_sq: the additive bound on max_row_sq (the theorem of the bridge lift).
        bound_mean_row_sq: the additive bound on mean_row_sq.
    """

    horizon: int
    objective: str
    scales: FloatArray
    sensitivities: FloatArray
    max_row_sq: float
    mean_row_sq: float
    bound_max_row_sq: float
    bound_mean_row_sq: float

    @property
    def objective_row_sq(self) -> float:
        """The squared row norm that the objective is about."""
        return self.max_row_sq if self.objective == "max" else self.mean_row_sq

    def max_se(self, epsilon: float = 1.0) -> float:
        """Largest squared error of a released step, at this epsilon."""
        return _squared_error(self.max_row_sq, epsilon)

    def mean_se(self, epsilon: float = 1.0) -> float:
        """Squared error averaged over the steps, at this epsilon."""
        return _squared_error(self.mean_row_sq, epsilon)

    def bound_max_se(self, epsilon: float = 1.0) -> float:
        """Additive bound on :meth:`max_se`."""
        return _squared_error(self.bound_max_row_sq, epsilon)

    def bound_mean_se(self, epsilon: float = 1.0) -> float:
        """Additive bound on :meth:`mean_se`."""
        return _squared_error(self.bound_mean_row_sq, epsilon)

    def kappa(self, objective: str) -> float:
        """Return SE epsilon^2 / log2(n)^3 at this finite horizon (NaN-free: refused for n = 1)."""
        if self.horizon < 2:
            raise ParameterError("kappa needs a horizon of at least 2: log2(1) = 0")
        se = self.max_se() if choice("objective", objective, OBJECTIVES) == "max" else self.mean_se()
        return float(se / np.log2(self.horizon) ** 3)


def _squared_error(row_sq: float, epsilon: float) -> float:
    value = finite("epsilon", epsilon, above=0)
    return 2.0 * row_sq / value / value  # the square of a tiny epsilon would underflow to zero


def horizon_scales(chain: Chain, horizon: int, *, objective: str) -> FloatArray:
    """Return the level scales best for the objective at a horizon, in units of 1 / epsilon, finest first.

    They come from what each level charges (:meth:`Chain.level_sensitivities`) and its exact largest or mean
    squared row norm over the horizon.
    """
    chain = chain.to_float()
    choice("objective", objective, OBJECTIVES)
    norms = level_max_row_norms_sq if objective == "max" else mean_row_norms_sq
    return best_scales(chain.level_sensitivities(), norms(chain, horizon))


def chain_cost(chain: Chain, horizon: int, *, objective: str, scales: Any = None) -> ChainCost:
    """Return the exact cost of a chain at a horizon, with the scales best for the objective.

    Args:
        chain: the chain, exact or float.
        horizon: 1..capacity.
        objective: "max" (MaxSE) or "mean" (MeanSE).
        scales: level scales to use instead; they are stretched so that the charges sum to exactly 1.

    With the best scales the bound for the objective is (sum_l (b_l^2 q_l)^(1/3))^3 with the plain norms
    b_l = ||B_l|| and q_l (largest row norm; for the mean, the prefix average of row norms, because a bound by
    the stage's mean holds for whole blocks only). For the other quantity, and for given scales, it is
    sum_l s_l^2 q_l at the scales in use, over the levels that the horizon meets at all.

    Raises:
        HorizonError, ParameterError: as :meth:`Chain.check_horizon` and for scales that are not > 0.
    """
    n = chain.check_horizon(horizon)
    choice("objective", objective, OBJECTIVES)
    chain = chain.to_float()
    charges = np.array(chain.level_sensitivities(), dtype=np.float64)
    means = mean_row_norms_sq(chain, n)
    if scales is None:
        used = horizon_scales(chain, n, objective=objective)
    else:
        used = scales_array(chain, scales)
        used = used * np.sum(charges / used)
    plain_b = np.array([level.sensitivity() for level in chain.levels])
    plain = {
        "max": np.array([level.row_norms_sq().max() for level in chain.levels]),
        "mean": mean_row_norms_sq(chain, n, blended=False),
    }
    bounds = {name: float(np.sum((used**2 * q)[means > 0])) for name, q in plain.items()}
    if scales is None:
        # the same floor as in the scales: an upper bound on the cost at these scales, level by level
        bounds[objective] = float(np.sum((plain_b**2 * _floored(plain[objective])) ** (1 / 3)) ** 3)
    return ChainCost(
        horizon=n,
        objective=objective,
        scales=used,
        sensitivities=charges,
        max_row_sq=max_row_norm_sq(chain, n, scales=used),
        mean_row_sq=float(np.sum(used**2 * means)),
        bound_max_row_sq=bounds["max"],
        bound_mean_row_sq=bounds["mean"],
    )
