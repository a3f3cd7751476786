"""Exact costs of a chain at any horizon, level by level, without a matrix of the horizon's size (new).

Costs are squared row norms of L, |row_t|^2 = sum over levels of s_l^2 |row_t on level l|^2, with s_l the
level's noise scale; the squared error of step t is twice that (Laplace noise of scale s has variance 2 s^2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.checks import flag, numeric_array, show
from trilift.lift.errors import HorizonError, ParameterError
from trilift.lift.windows import START_ROW, column_parts, column_steps, row_grams, row_steps, top_grams

__all__ = ["column_norms", "column_norms_sq", "mean_row_norms_sq", "row_norms_sq", "steps_array"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


def steps_array(chain: Chain, steps: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return 0-based steps as a 1-D int64 array, checked against the capacity."""
    array = numeric_array("steps", steps)
    if array.dtype.kind not in "iu":
        raise ParameterError(f"steps must be integers, got dtype {array.dtype}")
    flat = np.atleast_1d(array).astype(np.int64).ravel()
    if flat.size and (flat.min() < 0 or flat.max() >= chain.capacity):
        bad = int(flat.min()) if flat.min() < 0 else int(flat.max())
        raise HorizonError(f"step {bad} lies outside 0..{chain.capacity - 1}")
    return flat


def row_norms_sq(chain: Chain, steps: Any) -> FloatArray:
    """Return each level's squared row norm at the given 0-based steps, shape (levels, len(steps)).

    The levels come finest first and without their scales: step t has variance
    ``2 * (scales**2) @ row_norms_sq(chain, [t])[:, 0]``.

    Raises:
        HorizonError: a step outside 0..capacity-1.

    >>> import numpy as np
    >>> from trilift.lift import Chain, Stage
    >>> row_norms_sq(Chain(Stage.plain(np.tril(np.ones((3, 3))), np.eye(3))), [0, 2]).tolist()
    [[1.0, 3.0]]
    """
    chain = chain.to_float()
    position = steps_array(chain, steps)
    weights = np.broadcast_to(START_ROW, (position.size, 3))
    result = np.empty((len(chain.levels), position.size))
    for index, stage in enumerate(chain.stages):
        block, digit = np.divmod(position, stage.size)
        local = row_grams(stage)[np.minimum(block, 2), digit]
        result[index] = np.einsum("ta,tab,tb->t", weights, local, weights)
        weights = np.einsum("tab,tb->ta", row_steps(stage)[digit], weights)
        position = block
    local = top_grams(chain.top, int(position.max(initial=0)) + 1)[position]
    result[-1] = np.einsum("ta,tab,tb->t", weights, local, weights)
    return result


def column_norms(chain: Chain, steps: Any) -> FloatArray:
    """Return each level's l1 column norm at the given 0-based steps, shape (levels, len(steps)).

    An input of size 1 at step t is charged ``sum_l column_norms[l] / scale_l``. The columns are those of
    :func:`trilift.lift.dense.materialise`: they do not depend on the horizon.
    """
    return _columns(chain, steps, np.abs)


def column_norms_sq(chain: Chain, steps: Any) -> FloatArray:
    """Return each level's squared l2 column norm at the given 0-based steps, shape (levels, len(steps)).

    Under Gaussian noise an input of size 1 at step t is charged ``sum_l column_norms_sq[l] / scale_l^2``.
    """
    return _columns(chain, steps, np.square)


def _columns(chain: Chain, steps: Any, measure: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Sum ``measure`` over the entries of the columns, level by level."""
    chain = chain.to_float()
    position = steps_array(chain, steps)
    weights = np.zeros((position.size, 3))
    weights[:, 0] = 1.0
    result = np.empty((len(chain.levels), position.size))
    for index, level in enumerate(chain.levels):
        is_top = index == len(chain.stages)
        block, digit = np.divmod(position, level.size)
        if is_top:  # a tail position k has no column of its own
            digit = np.where(block > 0, level.size, digit)
        for i in np.unique(digit):
            chosen = digit == i
            here, there = column_parts(level, int(i), is_top=is_top)
            blended = weights[chosen].T
            result[index, chosen] = measure(here @ blended).sum(axis=0) + measure(there @ blended).sum(axis=0)
        if not is_top:
            weights = np.einsum("tab,tb->ta", column_steps(level)[digit], weights)
            position = block
    return result


def mean_row_norms_sq(chain: Chain, horizon: int, *, blended: bool = True) -> FloatArray:
    """Return each level's squared row norm averaged over the first ``horizon`` steps, shape (levels,).

    Only the second moments of the three weights are carried upwards: all whole blocks of a level share
    one 3 x 3 matrix, and the last, partial block has its own. The work is O(sum of sizes) at any horizon.

    Args:
        chain: the chain, exact or float.
        horizon: number of steps n, 1..capacity.
        blended: with False, the norm of a blend of rows is replaced by the blend of their norms, which by
            convexity is at least as large: the level's share of the additive bound.
    """
    n = chain.check_horizon(horizon)
    blended = flag("blended", blended)
    chain = chain.to_float()
    whole = np.outer(START_ROW, START_ROW)
    part = np.zeros((3, 3))
    count = n  # whole positions of the level; position ``count`` itself is covered by ``part``
    result = np.empty(len(chain.levels))
    for index, stage in enumerate(chain.stages):
        m = stage.size
        grams, step = row_grams(stage), row_steps(stage)
        blocks, digit = divmod(count, m)
        # how many whole positions have digit i, for the first, the second and all later blocks
        times = np.zeros((3, m))
        times[: min(blocks, 2)] = 1.0
        times[2] = max(blocks - 2, 0)
        times[min(blocks, 2), :digit] += 1.0
        total = np.einsum("ci,ciab,ab->", times, grams, whole)
        result[index] = total + np.sum(grams[min(blocks, 2), digit] * part)
        lifted = _lift_moments(step, whole, blended)
        part = lifted[:digit].sum(axis=0) + _lift_moments(step[digit : digit + 1], part, blended)[0]
        whole, count = lifted.sum(axis=0), blocks
    grams = top_grams(chain.top, count + 1)
    result[-1] = np.einsum("jab,ab->", grams[:count], whole) + np.sum(grams[count] * part)
    return result / n


def _lift_moments(step: FloatArray, moments: FloatArray, blended: bool) -> FloatArray:
    """Carry moments of the weights up one level, for every digit: shape (digits, 3, 3)."""
    if blended:
        return np.asarray(step @ moments @ step.transpose(0, 2, 1))
    first = step @ np.diagonal(moments)
    return np.asarray(first[:, :, None] * np.eye(3))


def scales_array(chain: Chain, scales: Sequence[float] | FloatArray) -> FloatArray:
    """Return positive finite level scales, shape (levels,)."""
    array = numeric_array("scales", scales, ndim=1).astype(np.float64)
    if array.shape != (len(chain.levels),) or not np.all(array > 0):
        raise ParameterError(
            f"scales must be {len(chain.levels)} numbers > 0, one a level, got {show(array)}"
        )
    return array
