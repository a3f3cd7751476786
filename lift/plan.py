"""Planning: a chain of given stages and tops with a small exact error for a horizon (new)."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.lift.budget import OBJECTIVES, ChainCost, chain_cost
from trilift.lift.chain import NORMS, Chain
from trilift.lift.checks import choice, integer, show
from trilift.lift.errors import HorizonError, ParameterError
from trilift.lift.interior import (
    interior_row_norms_sq,
    interior_sensitivity,
    interior_sensitivity_sq,
)
from trilift.lift.stage import Stage

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

__all__ = ["MAX_HORIZON", "Plan", "Shape", "plan", "screen", "shape_of"]


MAX_HORIZON = 10**15
"""The walk through all chains of some artifacts takes too long beyond this."""


@dataclass(frozen=True)
class Shape:
    """The scalars of a candidate that screening needs: what each role adds to a chain's cost, by objective.

    Attributes:
        name: the candidate's name.
        size: m or k.
        tail: leading zeros of w.
        is_top: whether it is a plain factorisation (then it can only be the top).
        finest: (b^2 q)^(1/3), or under l2 sqrt(q) b, as the finest level (for a top: alone), per objective.
        interior: the same by the interior cost, as a level above another (for a top: as the finest).
        prefix: for a top, the same of its first 1, 2, ..., k steps (truncated tops), per objective.

    All shapes that are screened together must be of one norm.
    """

    name: str
    size: int
    tail: int
    is_top: bool
    finest: Mapping[str, float]
    interior: Mapping[str, float]
    prefix: Mapping[str, FloatArray]


def _prefix_costs(top: Stage, norm: str) -> dict[str, FloatArray]:
    q = top.row_norms_sq()
    rows = {"max": np.maximum.accumulate(q), "mean": np.cumsum(q) / np.arange(1, top.size + 1)}
    if norm == "l2":
        b_sq = np.maximum.accumulate(top.column_norms_sq())
        return {objective: np.sqrt(b_sq * r) for objective, r in rows.items()}
    b = np.maximum.accumulate(top.column_norms())
    return {objective: (b * b * r) ** (1 / 3) for objective, r in rows.items()}


def shape_of(stage: Stage, *, name: str, norm: str = "l1") -> Shape:
    """Return the screening scalars of a stage or top.

    Args:
        stage: of any kind, exact or float.
        name: the candidate's name.
        norm: "l1" or "l2".

    Raises:
        ParameterError: another norm.
    """
    stage = stage.to_float()
    l1 = choice("norm", norm, NORMS) == "l1"
    finest = {o: stage.cost_third(o) if l1 else stage.gamma(o) for o in OBJECTIVES}
    if stage.is_plain:
        return Shape(name, stage.size, 0, True, finest, finest, _prefix_costs(stage, norm))
    rows = interior_row_norms_sq(stage)
    q = {"max": float(rows.max()), "mean": float(rows.mean())}
    if l1:
        b = float(interior_sensitivity(stage))
        interior = {objective: (b * b * q[objective]) ** (1 / 3) for objective in OBJECTIVES}
    else:
        b_sq = float(interior_sensitivity_sq(stage))
        interior = {objective: math.sqrt(b_sq * q[objective]) for objective in OBJECTIVES}
    return Shape(name, stage.size, stage.tail, False, finest, interior, {})


def screen(shapes: list[Shape], horizon: int, *, objective: str, keep: int = 1) -> list[tuple[str, ...]]:
    """Return the ``keep`` most promising chains as names (finest first, the top last), best first.

    Their order is by the sum of the levels' costs, with tops truncated to what the horizon needs; the order
    of the stages above the finest does not matter to it.

    Raises:
        ParameterError: a horizon above 10^15, no top among the shapes, or a stage of size 1.
        HorizonError: no chain of the given shapes reaches the horizon.
    """
    horizon = integer("horizon", horizon, minimum=1, maximum=MAX_HORIZON)
    choice("objective", objective, OBJECTIVES)
    keep = integer("keep", keep, minimum=1)
    tops = [shape for shape in shapes if shape.is_top]
    stages = sorted((s for s in shapes if not s.is_top), key=lambda s: s.size)
    if not tops:
        raise ParameterError("at least one candidate must be a plain factorisation, to serve as the top")
    if any(shape.size < 2 for shape in stages):
        raise ParameterError("a stage of a chain must have size at least 2")
    search = _Search(stages, tops, objective, keep)
    search.walk(horizon, 0.0, (), 0)
    if not search.found:
        raise HorizonError(f"no chain of the given candidates reaches horizon {show(horizon)}")
    return [names for _, names in search.found]


class _Search:
    """A depth-first walk through chains that keeps the best and cuts branches that cannot join them."""

    def __init__(self, stages: list[Shape], tops: list[Shape], objective: str, keep: int) -> None:
        self.stages, self.tops, self.objective, self.keep = stages, tops, objective, keep
        self.found: list[tuple[float, tuple[str, ...]]] = []
        self.largest = max(top.size for top in tops)
        # the least cost of a doubling of the horizon; 0.9 leaves room for tops, whose cost grows more slowly
        rates = [s.interior[objective] / math.log2(s.size) for s in stages]
        rates += [top.finest[objective] / max(math.log2(top.size), 1.0) for top in tops]
        self.rate = 0.9 * min(rates)

    def _offer(self, cost: float, names: tuple[str, ...]) -> None:
        if len(self.found) < self.keep or (cost, names) < self.found[-1]:
            insort(self.found, (cost, names))
            del self.found[self.keep :]

    def walk(self, need: int, cost: float, names: tuple[str, ...], start: int) -> None:
        """Try all ways to serve ``need`` positions above the stages ``names``, which cost ``cost``."""
        floor = cost + self.rate * math.log2(need)
        if len(self.found) == self.keep and floor >= self.found[-1][0]:
            return
        for top in self.tops:
            if top.size >= need:
                self._offer(cost + float(top.prefix[self.objective][need - 1]), (*names, top.name))
        if need == 1 or (need <= self.largest and len(names) > 2):
            return
        for index, stage in enumerate(self.stages):
            if names and index < start:
                continue  # stages above the finest in one order only
            role = stage.interior if names else stage.finest
            above = max(-(-(need - stage.tail) // stage.size), 1)
            self.walk(above, cost + role[self.objective], (*names, stage.name), index if names else 0)


@dataclass(frozen=True)
class Plan:
    """A chain chosen for a horizon.

    Attributes:
        names: the candidates used, finest first, the top last.
        chain: the chain itself, of the given stages.
        cost: its exact cost at the horizon.
    """

    names: tuple[str, ...]
    chain: Chain
    cost: ChainCost


def plan(
    candidates: Mapping[str, Stage],
    horizon: int,
    *,
    objective: str = "max",
    keep: int = 24,
    norm: str = "l1",
) -> Plan:
    """Return the chain with the least exact MaxSE or MeanSE at a horizon among the most promising ones.

    All chains are ranked by the sum of their levels' costs (:func:`screen`), and the first ``keep`` of them
    are compared by exact cost: no optimum over all chains is promised.

    Args:
        candidates: stages and plain factorisations (tops) by name; at least one top.
        horizon: number of steps n >= 1.
        objective: "max" or "mean".
        keep: how many chains, best by the sum of their levels' costs, are evaluated exactly.
        norm: "l1" (Laplace noise) or "l2" (Gaussian noise): what the candidates are judged by.

    Tops larger than needed are included: their first rows and columns are used.

    Raises:
        ParameterError: bad arguments, or no top among the candidates.
        HorizonError: no chain of these candidates reaches the horizon.

    >>> ones = Stage.plain(np.tril(np.ones((4, 4))), np.eye(4))
    >>> identity = Stage.plain(np.eye(4), np.tril(np.ones((4, 4))))
    >>> plan({"late": ones, "early": identity}, 4, objective="mean").names
    ('late',)
    """
    n = integer("horizon", horizon, minimum=1, maximum=MAX_HORIZON)
    choice("objective", objective, OBJECTIVES)
    count = integer("keep", keep, minimum=1)
    shapes = [shape_of(stage, name=name, norm=norm) for name, stage in candidates.items()]
    floats = {name: stage.to_float() for name, stage in candidates.items()}  # which the stages remember
    best: tuple[float, tuple[str, ...], ChainCost] | None = None
    for names in screen(shapes, n, objective=objective, keep=count):
        trial = Chain(floats[names[-1]], [floats[name] for name in names[:-1]])
        cost = chain_cost(trial, n, objective=objective, norm=norm)
        if best is None or cost.objective_row_sq < best[0]:
            best = (cost.objective_row_sq, names, cost)
    if best is None or not np.isfinite(best[0]):
        raise ParameterError("the candidates give no chain of finite cost")
    _, names, cost = best
    return Plan(names, Chain(candidates[names[-1]], [candidates[name] for name in names[:-1]]), cost)
