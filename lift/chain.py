"""The chain: stages on top of one another (finest first) and a plain factorisation of T_k as the top."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.lift.checks import choice, integer, show
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import HorizonError, ParameterError
from trilift.lift.interior import extreme_weights, interior_sensitivity, interior_sensitivity_sq
from trilift.lift.remembered import remembered
from trilift.lift.stage import Stage

__all__ = ["NORMS", "Chain"]

NORMS = ("l1", "l2")
"""The norm of a column that noise is calibrated to: l1 for Laplace, l2 for Gaussian noise."""


@dataclass(frozen=True, eq=False)
class Chain:
    """A factorisation of T_n for every n up to ``capacity``, held as its levels (new: the bridge lift).

    Attributes:
        top: plain factorisation of T_k (w = 0, g = 0).
        stages: the levels beneath it, finest first; each of size >= 2. May be empty.

    The chain is exact when every level is; levels must be all exact or all float.

    Raises:
        ParameterError: a top that is not plain, a stage of size 1, mixed kinds.
    """

    top: Stage
    stages: tuple[Stage, ...] = ()

    def __init__(self, top: Stage, stages: Iterable[Stage] = ()) -> None:
        object.__setattr__(self, "top", top)
        object.__setattr__(self, "stages", tuple(stages))
        levels = self.levels
        if not all(isinstance(level, Stage) for level in levels):
            raise ParameterError("a chain is made of Stage objects")
        if not top.is_plain:
            raise ParameterError("the top of a chain must be a plain factorisation (w = 0 and g = 0)")
        if any(stage.size < 2 for stage in self.stages):
            raise ParameterError("a stage of a chain must have size at least 2")
        if any(level.is_exact != top.is_exact for level in levels):
            raise ParameterError("the levels of a chain must be all exact or all float")

    @property
    def levels(self) -> tuple[Stage, ...]:
        """All levels, finest first, the top last."""
        return (*self.stages, self.top)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the levels, finest first."""
        return tuple(level.size for level in self.levels)

    @property
    def is_exact(self) -> bool:
        """Whether all entries are exact dyadic numbers."""
        return self.top.is_exact

    @property
    def capacities(self) -> tuple[int, ...]:
        """Number of positions each level can hold, finest first; the first entry is the chain's capacity.

        A stage whose w starts with h zeros reaches h steps past its last whole block, because those
        steps only look at the block before (the tail of the paper's diamond is the case h = n).
        """
        counts = [self.top.size]
        for stage in reversed(self.stages):
            counts.append(counts[-1] * stage.size + stage.tail)
        return tuple(reversed(counts))

    @property
    def capacity(self) -> int:
        """Largest horizon n that the chain serves."""
        return self.capacities[0]

    def check_horizon(self, horizon: int) -> int:
        """Return the horizon as an integer in 1..capacity.

        Raises:
            ParameterError: not a positive integer.
            HorizonError: larger than the capacity.
        """
        steps = integer("horizon", horizon, minimum=1)
        if steps > self.capacity:
            raise HorizonError(f"horizon {show(steps)} is past the capacity {self.capacity} of the chain")
        return steps

    def to_float(self) -> Chain:
        """Return the chain with float64 entries."""
        return self if not self.is_exact else Chain(self.top.to_float(), [s.to_float() for s in self.stages])

    def level_sensitivities(self) -> list[Any]:
        """Return for each level a bound on the l1 norm of every column as the level meets it, finest first.

        The finest level meets whole inputs: b = ||B||. A level above is met through the weights v of the
        level beneath it, and deeper blending only lowers norms: b-bar of :mod:`trilift.lift.interior`.
        The sum over levels of these over the scales is what one input of size 1 costs, at every horizon.
        Fractions for an exact chain, floats otherwise.
        """
        result: list[float | Fraction] = [self.levels[0].sensitivity()]
        for index, (below, level) in enumerate(zip(self.levels, self.levels[1:], strict=False)):
            if below.one_sided:  # v = 0: the level above meets whole columns
                result.append(level.sensitivity())
            elif index == len(self.stages) - 1:  # by place: the same factors may also be a stage below
                result.append(_top_sensitivity(level, below))
            else:
                result.append(interior_sensitivity(level, below=below))
        return result

    def level_sensitivities_sq(self) -> list[Any]:
        """Return for each level a bound on the squared l2 norm of every column as the level meets it.

        The l2 twin of :meth:`level_sensitivities`, in squares: the sum over levels of these over the squares
        of the scales is what one input of size 1 costs under Gaussian noise (twice rho of zCDP), at every
        horizon, because the coordinates of different levels are orthogonal.
        """
        result: list[float | Fraction] = [self.levels[0].sensitivity_sq()]
        for index, (below, level) in enumerate(zip(self.levels, self.levels[1:], strict=False)):
            if below.one_sided:
                result.append(level.sensitivity_sq())
            elif index == len(self.stages) - 1:
                result.append(_top_sensitivity_sq(level, below))
            else:
                result.append(interior_sensitivity_sq(level, below=below))
        return result

    def level_charges(self, *, norm: str) -> list[Any]:
        """Return what each level charges over its scale (norm "l1"), or its squared scale ("l2").

        These are the :meth:`level_sensitivities` or the :meth:`level_sensitivities_sq`.

        Raises:
            ParameterError: another norm.
        """
        choice("norm", norm, NORMS)
        return self.level_sensitivities() if norm == "l1" else self.level_sensitivities_sq()


@remembered
def _top_sensitivity_sq(top: Stage, below: Stage) -> Any:
    """As :func:`_top_sensitivity`, for squared l2 norms."""
    D = top.B
    if not isinstance(D, Dyadic):
        following = np.concatenate([D[:, 1:], np.zeros((len(D), 1))], axis=1)
        return max(
            float((((1.0 - x) * D + x * following) ** 2).sum(axis=0).max()) for x in extreme_weights(below.v)
        )
    shifted = Dyadic.concatenate([D[:, 1:], Dyadic.zeros((D.shape[0], 1))], axis=1)
    v = extreme_weights(below.v.normalized())
    blends = (D * (Dyadic([1]) - x) + shifted * x for x in (v[:1], v[1:]))
    return max((blend * blend).sum(axis=0).max() for blend in blends)


@remembered
def _top_sensitivity(top: Stage, below: Stage) -> Any:
    """Blended columns of the top: the column after the last is zero, and only extreme weights matter."""
    D = top.B
    if not isinstance(D, Dyadic):
        following = np.concatenate([D[:, 1:], np.zeros((len(D), 1))], axis=1)
        return max(
            float(np.abs((1.0 - x) * D + x * following).sum(axis=0).max()) for x in extreme_weights(below.v)
        )
    shifted = Dyadic.concatenate([D[:, 1:], Dyadic.zeros((D.shape[0], 1))], axis=1)
    v = extreme_weights(below.v.normalized())
    return max((D * (Dyadic([1]) - x) + shifted * x).abs_sum(axis=0).max() for x in (v[:1], v[1:]))
