"""The largest squared row norm and the largest column charge over all steps of a horizon, exactly (new).

Both are maxima of sums over levels of convex functions of the three window weights. Going up level by
level, a lower part of a step is a pair (weights, cost so far); it can be dropped when the pair lies on or
below the upper hull of others, because what the levels above add is convex in the weights. Few pairs survive,
so the work does not grow with the horizon. Ties are resolved to a relative 1e-12.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.lift.chain import Chain
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


@dataclass(frozen=True)
class _Level:
    """One stage as the search sees it: weight steps by digit, and the local cost of weights at a digit.

    ``local(block, digit, weights)`` gives costs of shape (S,); ``block`` is 0, 1 or 2 (2: any later block).
    """

    size: int
    steps: FloatArray
    local: Callable[[int, int, FloatArray], FloatArray]


def _hull(x: FloatArray, y: FloatArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the indices of the strict upper hull of points in the plane, by increasing x."""
    order = np.lexsort((-y, x))
    kept: list[int] = []
    for k in order:
        if kept and x[kept[-1]] == x[k]:
            continue  # same weights, no larger cost
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            bend = (y[b] - y[a]) * (x[k] - x[a]) - (y[k] - y[a]) * (x[b] - x[a])
            if bend > 1e-12 * abs(y[b]) * (x[k] - x[a]):
                break
            kept.pop()
        kept.append(int(k))
    return np.array(kept, dtype=np.int64)


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


def _join(parts: list[_States]) -> _States:
    return _States(
        np.concatenate([part.weights for part in parts]), np.concatenate([part.costs for part in parts])
    )


def _block(level: _Level, lookup: Callable[[int], _States], index: int, count: int, edge: int) -> _States:
    """Return the pairs of all steps in the first ``count`` positions of block ``index``, one level up."""
    block = min(index, 2)
    parts = []
    for digit in range(count):
        below = lookup(index * level.size + digit)
        costs = below.costs + level.local(block, digit, below.weights)
        parts.append(_States(below.weights @ level.steps[digit].T, costs))
    return _prune(_join(parts), edge)


def _maximise(
    levels: list[_Level],
    horizon: int,
    start: FloatArray,
    edge: int,
    top: Callable[[int, FloatArray], FloatArray],
) -> float:
    """Return the largest total over steps 0..horizon-1.

    At every level four sets of pairs suffice: positions 0 and 1 (the stream's start changes what they
    see), the last position (cut by the horizon), and one set for all others.
    """
    single = _States(start[None, :], np.zeros(1))
    first = second = inner = last_set = single
    last = horizon - 1

    for level in levels:

        def lookup(position: int, sets: tuple[Any, ...] = (first, second, inner, last_set, last)) -> _States:
            if position == sets[4]:
                return sets[3]  # type: ignore[no-any-return]
            return sets[min(position, 2)]  # type: ignore[no-any-return]

        upper, digit = divmod(last, level.size)
        last_set = _block(level, lookup, upper, digit + 1, edge)
        # whole blocks exist only before the last one
        whole = [_block(level, lookup, b, level.size, edge) if upper > b else last_set for b in range(3)]
        first, second, inner = whole
        last = upper

    best = -np.inf
    for position in range(last + 1):
        chosen = last_set if position == last else (first, second, inner)[min(position, 2)]
        best = max(best, float((chosen.costs + top(position, chosen.weights)).max()))
    return best


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

    def top(position: int, weights: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("sa,ab,sb->s", weights, grams[position], weights))

    return _maximise(levels, n, START_ROW, 0, top)


def _row_level(stage: Stage, square: float) -> _Level:
    grams = square * row_grams(stage)

    def local(block: int, digit: int, weights: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("sa,ab,sb->s", weights, grams[block, digit], weights))

    return _Level(stage.size, row_steps(stage), local)


def max_column_charge(chain: Chain, horizon: int, *, scales: Any) -> float:
    """Return max over steps t < horizon of sum_l |column_t on level l|_1 / scales_l: the exact charge.

    The charge of the chain's whole capacity is independent of the horizon in use; it never exceeds the sum of
    ``level_sensitivities / scales``. Columns at the very end of the capacity are charged as if more blocks
    followed, which can only be more.
    """
    n = chain.check_horizon(horizon)
    inverse = 1.0 / scales_array(chain, scales)
    chain = chain.to_float()
    start = np.array([1.0, 0.0, 0.0])
    levels = [_column_level(stage, scale) for stage, scale in zip(chain.stages, inverse, strict=False)]

    def top(position: int, weights: FloatArray) -> FloatArray:
        here, _ = column_parts(chain.top, min(position, chain.top.size), is_top=True)
        return np.asarray(inverse[-1] * np.abs(here @ weights.T).sum(axis=0))

    return _maximise(levels, n, start, 2, top)


def _column_level(stage: Stage, inverse: float) -> _Level:
    parts = [column_parts(stage, digit, is_top=False) for digit in range(stage.size)]

    def local(_block: int, digit: int, weights: FloatArray) -> FloatArray:
        here, there = parts[digit]
        norms = np.abs(here @ weights.T).sum(axis=0) + np.abs(there @ weights.T).sum(axis=0)
        return np.asarray(inverse * norms)

    return _Level(stage.size, column_steps(stage), local)
