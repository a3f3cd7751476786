"""The largest squared row norm and the largest column charge over all steps of a horizon, exactly (new).

Both are maxima of sums over levels of convex functions of the three window weights. Going up level by
level, a lower part of a step is a pair (weights, cost so far); it can be dropped when the pair lies on or
below the upper hull of others, because what the levels above add is convex in the weights. Few pairs survive,
but for those with three nonzero weights, which may double from level to level: the work grows with the number
of levels, not with the horizon itself. Ties are resolved to a relative 1e-12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from trilift.lift.chain import NORMS, Chain
from trilift.lift.checks import choice
from trilift.lift.costs import scales_array
from trilift.lift.stage import Stage
from trilift.lift.windows import START_ROW, column_parts, column_steps, row_grams, row_steps, top_grams

__all__ = ["level_max_row_norms_sq", "max_column_charge", "max_row_norm_sq"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class _States:
    """Pairs (weights, cost so far) of the lower parts of steps: shapes (S, 3) and (S,)."""

    weights: FloatArray
    costs: FloatArray


Digits = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class _Level:
    """One stage as the search sees it: weight steps by digit, and the local cost of weights at digits.

    ``local(block, digits, weights)`` gives costs of shape (D, S) for D digits and S weights; ``block`` is
    0, 1 or 2 (2: any later block).
    """

    size: int
    steps: FloatArray
    local: Callable[[int, Digits, FloatArray], FloatArray]


def _highest(x: FloatArray, y: FloatArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the indices of the points that may lie on the upper hull, by increasing x, no x twice.

    Points on or below the line through both of their neighbours are dropped, every other one at a time, for
    as long as many fall: what is left is few enough to be looked at one by one.
    """
    order = np.lexsort((-y, x))
    order = order[np.diff(x[order], prepend=-np.inf) != 0]  # same weights, no larger cost
    fallen = order.size
    while 4 * fallen > order.size > 16:
        fallen = 0
        for first in (1, 2):
            at = np.arange(first, order.size - 1, 2)
            a, b, k = order[at - 1], order[at], order[at + 1]
            low = at[(y[b] - y[a]) * (x[k] - x[a]) <= (y[k] - y[a]) * (x[b] - x[a])]
            order = np.delete(order, low)
            fallen += low.size
    return order


def _hull(x: FloatArray, y: FloatArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the indices of the strict upper hull of points in the plane, by increasing x."""
    order = _highest(x, y)
    kept: list[int] = []
    px, py = x[order].tolist(), y[order].tolist()
    for k in range(len(px)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            bend = (py[b] - py[a]) * (px[k] - px[a]) - (py[k] - py[a]) * (px[b] - px[a])
            if bend > 1e-12 * abs(py[b]) * (px[k] - px[a]):
                break
            kept.pop()
        kept.append(k)
    return np.asarray(order[kept], dtype=np.int64)


def _prune(states: _States, edge: int) -> _States:
    """Drop dominated pairs; ``edge`` is the window position that two-wide weights leave empty.

    Two-wide weights (1 - x, x) lie on a line, where the hull is cheap; the few three-wide ones are kept.
    """
    narrow = states.weights[:, edge] == 0.0
    two, three = np.flatnonzero(narrow), np.flatnonzero(~narrow)
    if two.size:
        two = two[_hull(states.weights[two, 1], states.costs[two])]
    chosen = np.concatenate([two, three])
    return _States(states.weights[chosen], states.costs[chosen])


@dataclass(frozen=True)
class _Sets:
    """The pairs of every position of a level, 0..last: four sets suffice.

    Positions 0 and 1 differ because of the stream's start, the last one because the horizon cuts it; all
    others share the third of ``whole``.
    """

    whole: tuple[_States, _States, _States]
    cut: _States
    last: int

    def at(self, position: int) -> _States:
        """Return the set of one position."""
        return self.cut if position == self.last else self.whole[min(position, 2)]

    def groups(self, first: int, count: int) -> Iterator[tuple[Digits, _States]]:
        """Split positions first..first+count-1 into runs with the same set; yields (digits, set)."""
        edges = sorted({0, count, *(p - first for p in (1, 2, self.last) if 0 < p - first < count)})
        for begin, end in pairwise(edges):
            yield np.arange(begin, end), self.at(first + begin)


def _join(parts: list[_States]) -> _States:
    return _States(
        np.concatenate([part.weights for part in parts]), np.concatenate([part.costs for part in parts])
    )


def _block(level: _Level, sets: _Sets, index: int, count: int, edge: int) -> _States:
    """Return the pairs of all steps in the first ``count`` positions of block ``index``, one level up."""
    parts = []
    for digits, below in sets.groups(index * level.size, count):
        costs = below.costs[None, :] + level.local(min(index, 2), digits, below.weights)
        weights = np.einsum("dab,sb->dsa", level.steps[digits], below.weights)
        parts.append(_States(weights.reshape(-1, 3), costs.reshape(-1)))
    return _prune(_join(parts), edge)


def _maximise(
    levels: list[_Level],
    horizon: int,
    start: FloatArray,
    edge: int,
    top: Callable[[Digits, FloatArray], FloatArray],
) -> float:
    """Return the largest total over steps 0..horizon-1; ``top`` gives costs of positions, shape (D, S)."""
    single = _States(start[None, :], np.zeros(1))
    sets = _Sets((single, single, single), single, horizon - 1)
    for level in levels:
        upper, digit = divmod(sets.last, level.size)
        cut = _block(level, sets, upper, digit + 1, edge)
        # whole blocks exist only before the last one
        whole = [_block(level, sets, b, level.size, edge) if upper > b else cut for b in range(3)]
        sets = _Sets((whole[0], whole[1], whole[2]), cut, upper)
    groups = sets.groups(0, sets.last + 1)
    return max(float((below.costs + top(positions, below.weights)).max()) for positions, below in groups)


def max_row_norm_sq(chain: Chain, horizon: int, *, scales: Any) -> float:
    """Return max over steps t < horizon of sum_l scales_l^2 |row_t on level l|^2.

    The largest squared error is twice this. ``scales`` has one entry a level, finest first.

    Raises:
        HorizonError: horizon past the capacity.
        ParameterError: scales that are not positive finite numbers, one a level.
    """
    return _max_row(chain.to_float(), chain.check_horizon(horizon), scales_array(chain, scales) ** 2)


def level_max_row_norms_sq(chain: Chain, horizon: int) -> FloatArray:
    """Return each level's own largest squared row norm over steps t < horizon, shape (levels,)."""
    n, chain = chain.check_horizon(horizon), chain.to_float()
    return np.array([_max_row(chain, n, one) for one in np.eye(len(chain.levels))])


def _max_row(chain: Chain, n: int, squares: FloatArray) -> float:
    levels = [_row_level(stage, square) for stage, square in zip(chain.stages, squares, strict=False)]
    grams = squares[-1] * top_grams(chain.top, chain.top.size + 1)

    def top(positions: Digits, weights: FloatArray) -> FloatArray:
        return _quadratic(grams[positions], weights)

    return _maximise(levels, n, START_ROW, 0, top)


def _row_level(stage: Stage, square: float) -> _Level:
    grams = square * row_grams(stage)

    def local(block: int, digits: Digits, weights: FloatArray) -> FloatArray:
        return _quadratic(grams[block, digits], weights)

    return _Level(stage.size, row_steps(stage), local)


def _quadratic(grams: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the squared norms of blended rows, shape (D, S), of Gram matrices (D, 3, 3), weights (S, 3)."""
    pairs = (weights[:, :, None] * weights[:, None, :]).reshape(-1, 9)
    return np.asarray(grams.reshape(-1, 9) @ pairs.T)


def max_column_charge(chain: Chain, horizon: int, *, scales: Any, norm: str = "l1") -> float:
    """Return max over steps t < horizon of sum_l |column_t on level l|_1 / scales_l: the exact charge.

    It never exceeds the sum of ``level_sensitivities / scales``, which does not depend on the horizon. With
    norm "l2" the charge is sum_l |column_t on level l|_2^2 / scales_l^2, at most the sum of
    ``level_sensitivities_sq / scales^2``: Gaussian noise of these scales is rho-zCDP with rho half of it.

    Raises:
        HorizonError, ParameterError: as :func:`max_row_norm_sq`, and for another norm.
    """
    n = chain.check_horizon(horizon)
    inverse = 1.0 / scales_array(chain, scales)
    measure = np.abs if choice("norm", norm, NORMS) == "l1" else np.square
    if norm == "l2":
        inverse = inverse**2
    chain = chain.to_float()
    start = np.array([1.0, 0.0, 0.0])
    levels = [_column_level(stage, each, measure) for stage, each in zip(chain.stages, inverse, strict=False)]

    def top(positions: Digits, weights: FloatArray) -> FloatArray:
        parts = (column_parts(chain.top, min(int(j), chain.top.size), is_top=True)[0] for j in positions)
        return np.asarray(inverse[-1] * np.array([measure(here @ weights.T).sum(axis=0) for here in parts]))

    return _maximise(levels, n, start, 2, top)


def _column_level(stage: Stage, inverse: float, measure: Callable[[FloatArray], FloatArray]) -> _Level:
    parts = [column_parts(stage, digit, is_top=False) for digit in range(stage.size)]

    def local(_block: int, digits: Digits, weights: FloatArray) -> FloatArray:
        norms = [sum(measure(part @ weights.T).sum(axis=0) for part in parts[digit]) for digit in digits]
        return inverse * np.array(norms)

    return _Level(stage.size, column_steps(stage), local)
