"""The joint search of a whole chain: all levels move together, towards a smaller error at one horizon (new).

A planner takes levels that were searched one by one, each against an idea of what lies beneath it. Here
every entry of every level's B on its support, and the weights v and w of the stages, follow the gradient of
the chain's own cost at a horizon: the top learns which blends of its rows are asked for, the finest level
what the levels above charge. The left factors come from pseudo-inverses, so every point on the way is a valid
chain.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from trilift.factorize.interrupt import Interrupt
from trilift.factorize.joint_chain_objective import (
    Annealing,
    LevelPoint,
    log_max_cost,
    log_mean_cost,
    pairs_of,
)
from trilift.factorize.joint_objective import has_full_column_rank, stage_at
from trilift.factorize.joint_settings import gentle
from trilift.factorize.precision import check_double, double_precision
from trilift.factorize.progress import Report, reporter
from trilift.factorize.result import SearchStatus
from trilift.factorize.schedule import Schedule
from trilift.factorize.support import THRESHOLD, Support, support_of, used_rows
from trilift.lift.budget import OBJECTIVES, best_scales, chain_cost
from trilift.lift.chain import Chain
from trilift.lift.checks import choice, fail, finite, integer
from trilift.lift.costs import mean_row_norms_sq, row_norms_sq
from trilift.lift.errors import ParameterError
from trilift.lift.stage import FloatArray, Stage

__all__ = ["ChainSearchResult", "search_chain"]

_CHUNKS = 20  # looks at the exact cost
_DECAY_1, _DECAY_2, _TINY = 0.9, 0.999, 1e-8  # Adam's usual numbers
_WATCHED = 8192  # steps in the power mean of the max objective
_LOOKED_AT = 2**17  # steps among which these are chosen

_MEAN = jax.jit(jax.value_and_grad(log_mean_cost), static_argnames=("shapes", "horizon"))
_MAX = jax.jit(jax.value_and_grad(log_max_cost), static_argnames=("shapes",))

Places = tuple[LevelPoint, ...]


@dataclass(frozen=True)
class ChainSearchResult:
    """The best chain a joint search has seen, and how it was found.

    Attributes:
        status: how the search ended.
        chain: the best chain seen, in floats; the start itself if nothing was better.
        horizon: number of steps n.
        objective: "max" or "mean".
        cost: its exact squared error at epsilon = 1 (twice the largest or mean squared row norm).
        start_cost: the same of the start.
        steps: Adam steps done.
        history: (step, best cost so far) after every chunk.
        seed, spread, dilation: of the start on its support.
        schedule: annealing.
        versions: of the packages that did the arithmetic.
        seconds: time spent.
    """

    status: SearchStatus
    chain: Chain
    horizon: int
    objective: str
    cost: float
    start_cost: float
    steps: int
    history: list[tuple[int, float]]
    seed: int
    spread: float
    dilation: int
    schedule: Schedule
    versions: dict[str, str]
    seconds: float

    def summary(self) -> str:
        """One line for people."""
        sizes = " x ".join(str(size) for size in self.chain.sizes)
        change = 100.0 * (1.0 - self.cost / self.start_cost)
        return (
            f"chain {sizes}, {self.objective} at {self.horizon} steps: squared error "
            f"{self.start_cost:.6g} -> {self.cost:.6g} ({change:.2f} % less), "
            f"{self.status.value} at step {self.steps}"
        )


def search_chain(
    chain: Chain,
    *,
    horizon: int,
    objective: str,
    steps: int = 200,
    seed: int = 0,
    spread: float = 0.0,
    dilation: int = 0,
    threshold: float = THRESHOLD,
    seconds: float | None = None,
    schedule: Schedule | None = None,
    progress: bool | Report | None = None,
) -> ChainSearchResult:
    """Move every level of a chain together, towards a smaller exact error at a horizon.

    Source: new. What is best is judged by :func:`trilift.lift.chain_cost`, and the start counts as seen, so
    the result is never worse than it. The same arguments on the same machine and versions give the same
    result, unless ``seconds`` cuts it short. There are no checkpoints: a search takes minutes.

    Args:
        chain: where to begin, exact or float; only B, v and w of its levels are used. Every B must have full
            column rank.
        horizon: number of steps n, at least 2.
        objective: "max" or "mean" squared error.
        steps: Adam steps.
        seed: of the perturbation.
        spread: Gaussian added to the entries, in units of their mean size; 0 begins at the start itself.
        dilation: by how many neighbours on either side the supports are widened.
        threshold: entries below this fraction of the largest of their row are dropped.
        seconds: time limit; past it the search ends, "out of time", at the next of twenty looks at the cost.
        schedule: annealing; default :func:`trilift.factorize.joint_settings.gentle`.
        progress: see :func:`trilift.factorize.progress.reporter`; it shows the squared error.

    Raises:
        ParameterError: a bad argument, or a level without full column rank.
        HorizonError: a horizon past the chain's capacity.
    """
    if not isinstance(chain, Chain):
        raise fail("chain", "a Chain", chain)
    n = chain.check_horizon(integer("horizon", horizon, minimum=2))
    choice("objective", objective, OBJECTIVES)
    total = integer("steps", steps, minimum=1)
    limit = np.inf if seconds is None else finite("seconds", seconds, above=0)
    wide = finite("spread", spread, minimum=0)
    rng = np.random.default_rng(integer("seed", seed, minimum=0))
    plan = gentle(largest=objective == "max") if schedule is None else schedule
    floats = chain.to_float()
    matrices = [used_rows(level.B) for level in floats.levels]
    supports = [support_of(B, dilation=dilation, threshold=threshold) for B in matrices]
    search = _Search(n, objective, total, plan, supports)
    if not all(map(has_full_column_rank, matrices)):
        raise ParameterError("every level of the chain must have a B of full column rank")
    state = _State(floats, chain_cost(floats, n, objective=objective).objective_row_sq)
    start_cost = state.cost
    first = search.first_places(matrices, floats)
    search.judge(first, state)  # the start with the shortest rows that its B allows
    if not np.isfinite(state.last):
        raise ParameterError("every level of the chain must have a B of full column rank")
    noisy = tuple(
        p._replace(x=p.x + wide * np.abs(p.x).mean() * rng.standard_normal(p.x.shape)) for p in first
    )
    began = time.monotonic()
    status = search.run(noisy, state, limit, progress)
    return ChainSearchResult(
        status=status,
        chain=state.chain,
        horizon=n,
        objective=objective,
        cost=2.0 * state.cost,
        start_cost=2.0 * start_cost,
        steps=state.step,
        history=[(step, 2.0 * cost) for step, cost in state.history],
        seed=seed,
        spread=wide,
        dilation=dilation,
        schedule=plan,
        versions={name: version(name) for name in ("trilift", "jax", "numpy")},
        seconds=time.monotonic() - began,
    )


class _State:
    """The best chain so far with its exact squared row norm, and how far the search is."""

    def __init__(self, chain: Chain, cost: float) -> None:
        self.chain, self.cost, self.last, self.step = chain, cost, cost, 0
        self.history: list[tuple[int, float]] = []


class _Search:
    """The search's fixed parts: supports, objective, annealing."""

    def __init__(
        self, horizon: int, objective: str, steps: int, schedule: Schedule, supports: list[Support]
    ) -> None:
        self.horizon, self.objective, self.steps, self.schedule = horizon, objective, steps, schedule
        self.supports = supports
        self.pairs = tuple(pairs_of(support) for support in supports)
        self.shapes = tuple(support.shape for support in supports)

    def gradient(self, places: Places, step: int, watched: tuple[Any, ...]) -> Places:
        """Return the gradient of the annealed objective; ``watched`` is for the max alone."""
        fixed: dict[str, Any] = {"shapes": self.shapes}
        if self.objective == "mean":
            _, by = _MEAN(places, self.pairs, self._annealing(step), horizon=self.horizon, **fixed)
        else:
            _, by = _MAX(places, self.pairs, self._annealing(step), *watched, **fixed)
        result: Places = jax.tree.map(np.asarray, by)
        return result

    def first_places(self, matrices: list[FloatArray], chain: Chain) -> Places:
        """Return the start, columns scaled to l1 norm 1."""
        places = []
        for B, support, level in zip(matrices, self.supports, chain.levels, strict=True):
            x = support.values_of(B)
            x = x / support.column_sums(np.abs(x))[support.columns]
            places.append(LevelPoint(x, np.clip(level.v, 0.0, 1.0), np.clip(level.w, 0.0, 1.0)))
        return tuple(places)

    def chain_at(self, places: Places) -> Chain:
        """Return the chain with the shortest rows at a place.

        Raises:
            numpy.linalg.LinAlgError, ParameterError: a B without full column rank, or not finite.
        """
        levels: list[Stage] = []
        for place, support in zip(places, self.supports, strict=True):
            x = place.x / support.column_sums(np.abs(place.x))[support.columns]
            plain = len(levels) == len(places) - 1
            levels.append(stage_at(support.dense(x), place.v, place.w, plain=plain))
        return Chain(levels[-1], levels[:-1])

    def judge(self, places: Places, state: _State) -> Chain | None:
        """Compare a place with the best so far, by exact cost."""
        state.last = np.inf
        try:
            chain = self.chain_at(places)
            state.last = self._cost(chain)
        except (np.linalg.LinAlgError, ParameterError):
            return None
        if state.last < state.cost:  # false for NaN
            state.cost, state.chain = state.last, chain
        return chain

    def _cost(self, chain: Chain) -> float:
        if self.objective == "max":
            return chain_cost(chain, self.horizon, objective="max").max_row_sq
        q = mean_row_norms_sq(chain, self.horizon)  # chain_cost without what the mean does not need
        scales = best_scales(chain.level_charges(norm="l1"), q)
        return float(np.sum(scales**2 * q))

    def run(
        self, places: Places, state: _State, limit: float, progress: bool | Report | None
    ) -> SearchStatus:
        """Do the steps in chunks; look at the exact cost after each."""
        length = -(-self.steps // _CHUNKS)
        zero = jax.tree.map(np.zeros_like, places)
        moments = (zero, zero)
        began = time.monotonic()
        title = f"chain {self.objective} {self.horizon}"
        with (
            Interrupt() as interrupt,
            reporter(progress, title=title, start=0, steps=self.steps) as report,
        ):
            while state.step < self.steps:
                if interrupt.requested:
                    return SearchStatus.INTERRUPTED
                if time.monotonic() - began > limit:
                    return SearchStatus.OUT_OF_TIME
                end = min(state.step + length, self.steps)
                places, moments = self._advance(places, moments, state, end)
                chain = self.judge(places, state)
                state.history.append((state.step, state.cost))
                report(state.step, self.steps, 2.0 * state.cost)
                if chain is None:
                    return SearchStatus.DIVERGED
        return SearchStatus.FINISHED

    def _advance(
        self, places: Places, moments: tuple[Places, Places], state: _State, end: int
    ) -> tuple[Places, tuple[Places, Places]]:
        watched = () if self.objective == "mean" else self._watched(places)
        first, second = moments
        with double_precision():
            if state.step == 0:
                check_double()
            while state.step < end:
                by = self.gradient(places, state.step, watched)
                first = jax.tree.map(lambda a, b: _DECAY_1 * a + (1 - _DECAY_1) * b, first, by)
                second = jax.tree.map(lambda a, b: _DECAY_2 * a + (1 - _DECAY_2) * b * b, second, by)
                places = self._moved(places, first, second, state.step)
                state.step += 1
        return places, (first, second)

    def _moved(self, places: Places, first: Places, second: Places, step: int) -> Places:
        rate = self.schedule.rate * 0.5 * (1 + np.cos(np.pi * step / self.steps))
        fix_1, fix_2 = 1 - _DECAY_1 ** (step + 1), 1 - _DECAY_2 ** (step + 1)

        def moved(place: FloatArray, mean: FloatArray, square: FloatArray) -> FloatArray:
            return np.asarray(place - rate * (mean / fix_1) / (np.sqrt(square / fix_2) + _TINY))

        everywhere: Places = jax.tree.map(moved, places, first, second)
        inside = [p._replace(v=np.clip(p.v, 0.0, 1.0), w=np.clip(p.w, 0.0, 1.0)) for p in everywhere[:-1]]
        return (*inside, places[-1]._replace(x=everywhere[-1].x))

    def _annealing(self, step: int) -> Annealing:
        done = min(step / (self.schedule.settled * self.steps), 1.0)
        low, sharp = (a * (b / a) ** done for a, b in (self.schedule.smoothing, self.schedule.exponent))
        return Annealing(jnp.asarray(low), jnp.asarray(sharp))

    def _watched(self, places: Places) -> tuple[FloatArray, Any]:
        """Return the scales to hold for a while, and the steps with the largest errors, and some others."""
        chain = self.chain_at(places)
        scales = chain_cost(chain, self.horizon, objective="max").scales
        if self.horizon <= _WATCHED:
            return scales, np.arange(self.horizon)
        looked_at = np.arange(self.horizon)
        if self.horizon > _LOOKED_AT:  # at random, always the same: an even spacing would miss digits
            looked_at = np.random.default_rng(0).integers(0, self.horizon, _LOOKED_AT)
        norms = scales**2 @ row_norms_sq(chain, looked_at)
        order = np.argsort(-norms, kind="stable")
        worst = 3 * _WATCHED // 4
        others = np.linspace(worst, len(order) - 1, _WATCHED - worst).astype(np.int64)
        return scales, looked_at[np.concatenate([order[:worst], order[others]])]
