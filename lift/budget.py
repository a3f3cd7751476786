"""Splitting the budget over the levels of a chain, and what the split costs at a horizon (new)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from trilift.lift.chain import NORMS, Chain
from trilift.lift.checks import choice, finite, numeric_array
from trilift.lift.costs import mean_row_norms_sq, scales_array
from trilift.lift.errors import ParameterError
from trilift.lift.extremes import level_max_row_norms_sq, max_row_norm_sq
from trilift.lift.interior import interior_row_norms_sq
from trilift.lift.laplace_errors import laplace_se
from trilift.lift.remembered import remembered
from trilift.lift.stage import Stage
from trilift.lift.windows import top_grams

__all__ = ["OBJECTIVES", "ChainCost", "best_scales", "chain_cost", "horizon_scales"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

OBJECTIVES = ("max", "mean")


def best_scales(charges: Any, row_norms_sq: Any, *, norm: str = "l1") -> FloatArray:
    """Return the level scales s minimising sum q_l s_l^2 under a total charge of 1.

    Norm "l1" (Laplace noise): the charge is sum b_l / s_l; s_l = (b_l / q_l)^(1/3) sum_j (b_j^2 q_j)^(1/3),
    and the minimum is (sum_l (b_l^2 q_l)^(1/3))^3. Norm "l2" (Gaussian noise): the charge is
    sum b_l^2 / s_l^2; s_l^2 = b_l / sqrt(q_l) sum_j sqrt(q_j) b_j, and the minimum is
    (sum_l sqrt(q_l) b_l)^2.

    Args:
        charges: b, or for "l2" the squares b^2, shape (levels,), > 0.
        row_norms_sq: q, shape (levels,); a level with q = 0 is given a share too small to matter.
        norm: "l1" or "l2".

    Raises:
        ParameterError: another norm; arrays of other shapes, or of numbers that are negative or not finite.

    >>> best_scales([1.0, 1.0], [1.0, 1.0]).tolist()
    [2.0, 2.0]
    """
    b = numeric_array("charges", charges, ndim=1).astype(np.float64)
    q = numeric_array("row_norms_sq", row_norms_sq, ndim=1).astype(np.float64)
    if b.shape != q.shape or not b.size or b.min() <= 0 or q.min() < 0:
        raise ParameterError("charges (> 0) and row_norms_sq (>= 0) must be as many")
    q = _floored(q)
    if choice("norm", norm, NORMS) == "l2":
        return np.asarray(np.sqrt(np.sqrt(b / q) * np.sum(np.sqrt(b * q))))
    return np.asarray((b / q) ** (1 / 3) * np.sum((b * b * q) ** (1 / 3)))


def _floored(q: FloatArray) -> FloatArray:
    """A level that a short horizon hardly meets keeps a finite scale."""
    return np.asarray(np.maximum(q, 1e-9 * q.max()))


@dataclass(frozen=True)
class ChainCost:
    """What a chain costs at a horizon, for a charge of 1 by inputs that change by at most 1.

    Under the l1 norm a charge of 1 is epsilon = 1 of pure differential privacy by Laplace noise; under the
    l2 norm it is rho = 1/2 of zCDP by Gaussian noise (standard deviations for scales).

    Attributes:
        horizon: number of steps n.
        objective: "max" or "mean": what the scales were chosen for.
        scales: one a level, finest first; the charges over the scales (l2: their squares) sum to 1.
        sensitivities: what each level charges for an input of size 1: b, or b^2 under l2.
        max_row_sq: exact largest squared row norm of L S; MaxSE = 2 max_row_sq / epsilon^2 under l1.
        mean_row_sq: exact mean squared row norm of L S.
        bound_max_row_sq: the additive bound on max_row_sq (the theorem of the bridge lift).
        bound_mean_row_sq: the additive bound on mean_row_sq.
        interior_max_row_sq: the interior cost at the scales in use, from the largest interior row norms: what
            whole blocks far from the stream's start cost at most. No bound for the first few blocks.
        interior_mean_row_sq: the same from mean interior row norms: what whole blocks cost on average.
        norm: "l1" or "l2".
    """

    horizon: int
    objective: str
    scales: FloatArray
    sensitivities: FloatArray
    max_row_sq: float
    mean_row_sq: float
    bound_max_row_sq: float
    bound_mean_row_sq: float
    interior_max_row_sq: float
    interior_mean_row_sq: float
    norm: str = "l1"

    @property
    def objective_row_sq(self) -> float:
        """The squared row norm that the objective is about."""
        return self.max_row_sq if self.objective == "max" else self.mean_row_sq

    def max_se(self, epsilon: float = 1.0) -> float:
        """Largest squared error of a released step, at this epsilon."""
        return self._laplace(self.max_row_sq, epsilon)

    def mean_se(self, epsilon: float = 1.0) -> float:
        """Squared error averaged over the steps, at this epsilon."""
        return self._laplace(self.mean_row_sq, epsilon)

    def bound_max_se(self, epsilon: float = 1.0) -> float:
        """Additive bound on :meth:`max_se`."""
        return self._laplace(self.bound_max_row_sq, epsilon)

    def bound_mean_se(self, epsilon: float = 1.0) -> float:
        """Additive bound on :meth:`mean_se`."""
        return self._laplace(self.bound_mean_row_sq, epsilon)

    def kappa(self, objective: str) -> float:
        """Return SE epsilon^2 / log2(n)^3 at this finite horizon (NaN-free: refused for n = 1)."""
        if self.horizon < 2:
            raise ParameterError("kappa needs a horizon of at least 2: log2(1) = 0")
        se = self.max_se() if choice("objective", objective, OBJECTIVES) == "max" else self.mean_se()
        return float(se / np.log2(self.horizon) ** 3)

    def gamma(self, objective: str) -> float:
        """Return the largest or root mean square standard deviation of a step, per unit of Gaussian noise.

        It is |L|_(2->inf) or |L|_F / sqrt(n) for factors with |R|_(1->2) <= 1 (l2 norm only).
        """
        return float(np.sqrt(self.gaussian_se(objective, rho=0.5)))

    def gaussian_se(self, objective: str, *, rho: float) -> float:
        """Return the largest or mean squared error under Gaussian noise that is rho-zCDP (l2 norm only).

        Raises:
            ParameterError: a cost under the l1 norm, or a bad rho.
        """
        if self.norm != "l2":
            raise ParameterError('Gaussian noise needs a cost under norm "l2", this one is under "l1"')
        value = finite("rho", rho, above=0)
        row = self.max_row_sq if choice("objective", objective, OBJECTIVES) == "max" else self.mean_row_sq
        return row / value / 2.0

    def _laplace(self, row_sq: float, epsilon: float) -> float:
        if self.norm != "l1":
            raise ParameterError('Laplace noise needs a cost under norm "l1", this one is under "l2"')
        return laplace_se(row_sq, epsilon=epsilon)


def horizon_scales(chain: Chain, horizon: int, *, objective: str, norm: str = "l1") -> FloatArray:
    """Return the level scales best for the objective at a horizon, for a total charge of 1, finest first.

    They come from what each level charges (:meth:`Chain.level_charges`) and its exact largest or mean
    squared row norm over the horizon. The unit is 1 / epsilon under l1, 1 / sqrt(2 rho) under l2.
    """
    chain = chain.to_float()
    choice("objective", objective, OBJECTIVES)
    norms = level_max_row_norms_sq if objective == "max" else mean_row_norms_sq
    return best_scales(chain.level_charges(norm=norm), norms(chain, horizon), norm=norm)


def chain_cost(
    chain: Chain, horizon: int, *, objective: str, scales: Any = None, norm: str = "l1"
) -> ChainCost:
    """Return the exact cost of a chain at a horizon, with the scales best for the objective.

    Args:
        chain: the chain, exact or float.
        horizon: 1..capacity.
        objective: "max" (MaxSE) or "mean" (MeanSE).
        scales: level scales to use instead; they are stretched so that the charges sum to exactly 1.
        norm: "l1" (Laplace noise) or "l2" (Gaussian noise).

    With the best scales the bound for the objective is (sum_l (b_l^2 q_l)^(1/3))^3, or under l2
    (sum_l sqrt(q_l) b_l)^2, with the plain norms b_l = ||B_l|| and q_l (largest row norm; for the mean, the
    prefix average of row norms, because a bound by the stage's mean holds for whole blocks only). For the
    other quantity, and for given scales, it is sum_l s_l^2 q_l at the scales in use, over the levels that
    the horizon meets at all.

    Raises:
        HorizonError, ParameterError: as :meth:`Chain.check_horizon` and for scales that are not > 0.
    """
    n = chain.check_horizon(horizon)
    choice("objective", objective, OBJECTIVES)
    chain = chain.to_float()
    charges = np.array(chain.level_charges(norm=norm), dtype=np.float64)
    means = mean_row_norms_sq(chain, n)
    if scales is None:
        used = horizon_scales(chain, n, objective=objective, norm=norm)
    else:
        used = scales_array(chain, scales)
        used = used * (np.sum(charges / used) if norm == "l1" else np.sqrt(np.sum(charges / used**2)))
    plain = {
        "max": np.array([level.row_norms_sq().max() for level in chain.levels]),
        "mean": mean_row_norms_sq(chain, n, blended=False),
    }
    bounds = {name: float(np.sum((used**2 * q)[means > 0])) for name, q in plain.items()}
    if scales is None:
        # the same floor as in the scales: an upper bound on the cost at these scales, level by level
        bounds[objective] = _additive(chain, _floored(plain[objective]), norm)
    interior = _interior(chain)
    return ChainCost(
        horizon=n,
        objective=objective,
        scales=used,
        sensitivities=charges,
        max_row_sq=max_row_norm_sq(chain, n, scales=used),
        mean_row_sq=float(np.sum(used**2 * means)),
        bound_max_row_sq=bounds["max"],
        bound_mean_row_sq=bounds["mean"],
        interior_max_row_sq=float(used**2 @ interior[0]),
        interior_mean_row_sq=float(used**2 @ interior[1]),
        norm=norm,
    )


def _interior(chain: Chain) -> tuple[FloatArray, FloatArray]:
    """Return each level's largest and mean squared row norm, seen through the weights of the level below."""
    norms = [_two(chain.levels[0].row_norms_sq())]
    norms += [_stage_rows(stage, below) for below, stage in pairwise(chain.stages)]
    if chain.stages:
        norms.append(_top_rows(chain.top, chain.stages[-1]))
    return np.array([worst for worst, _ in norms]), np.array([mean for _, mean in norms])


def _two(norms: FloatArray) -> tuple[float, float]:
    return float(norms.max()), float(norms.mean())


@remembered
def _stage_rows(stage: Stage, below: Stage) -> tuple[float, float]:
    return _two(interior_row_norms_sq(stage, below=below))


@remembered
def _top_rows(top: Stage, below: Stage) -> tuple[float, float]:
    w, grams = below.w[:, None], top_grams(top, top.size)  # nothing lies before the top's first row
    before, cross, own = grams[:, 1, 1], grams[:, 1, 2], grams[:, 2, 2]
    return _two((1.0 - w) ** 2 * before + 2.0 * w * (1.0 - w) * cross + w**2 * own)


def _additive(chain: Chain, q: FloatArray, norm: str) -> float:
    """Return the least cost of levels with plain norms b and row norms q: the sum of their costs, powered."""
    if norm == "l1":
        b = np.array([level.sensitivity() for level in chain.levels])
        return float(np.sum((b**2 * q) ** (1 / 3)) ** 3)
    b_sq = np.array([level.sensitivity_sq() for level in chain.levels])
    return float(np.sum(np.sqrt(b_sq * q)) ** 2)
