"""Moments of a counter's noise as it is released: rounded, and with the exact variances of discrete variates.

v = E N^2 is what an estimate of the second moment subtracts, so it should be right to a fraction of a
percent:

* Laplace: a draw of integer scale sigma on the lattice 2^-places has variance 4^-places / (cosh(1/sigma) -
  1), a relative 1 / (12 sigma^2) below the continuous one's (the ledger keeps sigma >= 2^10: invisible).
* Gaussian: the draws are real, N is rounded once, to an integer, which adds 1/12.
* Laplace noise lies on a lattice h itself. For h <= 1/2 the rounding floor(N + 1/2) errs uniformly over
  -1/2 + h, ..., 1/2 (noise far wider than 1): E N'^2 gains 1/12 + h^2/6 and the mean is h/2, not 0. For h = 1
  nothing is rounded.

The fourth moment serves bounds: kappa = Var(N^2) / v^2 is 2 for Gaussian noise, and 2 + the excess kurtosis
for Laplace noise, 3 sum L^4 s^4 / (sum L^2 s^2)^2, which is bounded by the largest share that a single draw
can have.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from trilift.counters.turnstile.bases import Base, ChainBase
from trilift.lift.costs import row_norms_sq
from trilift.lift.dyadic import binary_places

__all__ = ["fourth_moment", "released_second_moment", "square_variance"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


def _rounding(base: Base) -> float:
    """Return what the rounding adds to E N^2."""
    if not isinstance(base, ChainBase) or base.budget.law == "gaussian":
        return 1.0 / 12.0
    places = _lattice_places(base)
    return 0.0 if places == 0 else 1.0 / 12.0 + 4.0**-places / 6.0


def _lattice_places(base: ChainBase) -> int:
    """Return the places of the finest lattice that some product L_tj z_j can lie on."""
    most, above = 0, 0
    for stage, entry in zip(base.chain.levels, base.ledger.levels, strict=True):
        rows = entry.coarsest + max(entry.places) - min(entry.places[i] for i in entry.measured)
        used = max(int(binary_places(stage.A).max(initial=0)), int(binary_places(stage.g).max(initial=0)))
        most = max(most, rows + used + above)
        above += int(binary_places(stage.w).max(initial=0))
    return min(most, 500)


def _discrete(base: Base) -> FloatArray | float:
    """Return each level's exact variance over that of continuous draws, shape (levels, 1)."""
    if base.budget.law == "gaussian" or not isinstance(base, ChainBase):
        return 1.0
    sigmas = [float(entry.scale_int) for entry in base.ledger.levels]
    # cosh(x) - 1 = 2 sinh(x/2)^2, without cancellation
    ratios = [1.0 / (4.0 * (sigma * math.sinh(0.5 / sigma)) ** 2) for sigma in sigmas]
    return np.array(ratios)[:, None]


def _level_variances(base: ChainBase, ticks: Any) -> FloatArray:
    """Return each level's part of E N^2 before the rounding, shape (levels, k)."""
    scales = np.array([float(scale) for scale in base.ledger.scales])
    factor = 2.0 if base.budget.law == "laplace" else 1.0
    chain = base.chain.to_float()
    return np.asarray(factor * scales[:, None] ** 2 * row_norms_sq(chain, ticks) * _discrete(base))


def released_second_moment(base: Base, ticks: Any) -> FloatArray:
    """Return E N'^2 of the rounded noise N' = floor(N + 1/2) at 0-based ticks, shape (k,)."""
    if isinstance(base, ChainBase):
        return np.asarray(sum(_level_variances(base, ticks)) + _rounding(base))
    v = base.variance(ticks)
    return np.asarray(np.where(v > 0.0, v + _rounding(base), 0.0))  # no noise, no rounding


def _largest_share(base: ChainBase, ticks: Any) -> FloatArray:
    """Bound sum L^4 s^4 / (sum L^2 s^2)^2: a draw's part of E N^2 is at most its level's largest, and one."""
    parts = _level_variances(base, ticks)
    tops = np.array(
        [
            2.0 * float(scale) ** 2 * max(_largest(stage.A), _largest(stage.g)) ** 2
            for scale, stage in zip(base.ledger.scales, base.chain.to_float().levels, strict=True)
        ]
    )
    total = np.asarray(sum(parts))
    most = np.minimum(tops[:, None], parts)
    return np.asarray(np.minimum(sum((parts / total) * (most / total)), 1.0))  # squares could underflow


def _largest(values: Any) -> float:
    return float(np.abs(values).max(initial=0.0))


def fourth_moment(base: Base, ticks: Any) -> FloatArray:
    """Bound E N^4 from above, before the rounding: 3 v^2 for Gaussian, at most 6 v^2 for Laplace noise.

    The excess kurtosis of a discrete Laplace draw is 3 + 1/variance, in units of its lattice: below 3 (1 +
    2^-20).
    """
    v = base.variance(ticks)
    if base.budget.law == "gaussian":
        return np.asarray(3.0 * v * v)
    share = _largest_share(base, ticks) if isinstance(base, ChainBase) else 1.0
    return np.asarray((3.0 + 3.0 * (1.0 + 2.0**-20) * share) * v * v)


def square_variance(base: Base, ticks: Any) -> FloatArray:
    """Bound Var(N'^2) of the rounded noise from above.

    N' = N + U with |U| <= 1/2: the standard deviation of N'^2 is at most that of N^2 plus that of 2 N U +
    U^2, which is at most the root mean square of |N| + 1/4 (Minkowski).
    """
    v = base.variance(ticks)
    sd = np.sqrt(np.maximum(fourth_moment(base, ticks) - v * v, 0.0)) + np.sqrt(v) + 0.25
    return np.asarray(sd * sd)
