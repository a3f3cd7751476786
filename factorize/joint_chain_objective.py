"""The exact cost of a whole chain at a horizon, as a differentiable function of all its levels (new).

Each level is a B on a sparse support, its columns divided by their l1 norms, and for a stage v and w. With
G = B^T B and Y = T_m - w (1 - v)^T, the left factor A = Y B^+ and g = (B^+)^T v never have to be formed:

    A A^T = Y G^-1 Y^T,    A g = Y G^-1 v,    |g|^2 = v^T G^-1 v

are all that the inner products of the rows of a level are made of. From these the mean squared row norm over
the horizon follows by carrying the 3 x 3 second moments of the window weights up the levels
(:func:`trilift.lift.costs.mean_row_norms_sq`, of which this is the differentiable twin), and the norms of
single steps by carrying their weights (:func:`trilift.lift.costs.row_norms_sq`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from trilift.factorize.support import Support

__all__ = ["Annealing", "LevelPoint", "Pairs", "log_max_cost", "log_mean_cost", "pairs_of"]

_CHARGE_EXPONENT = 2000.0  # of the power mean that stands for the largest blended column


class LevelPoint(NamedTuple):
    """Where a level is: x on its support, v and w of shape (m,) (of the top: zeros that do not move)."""

    x: Any
    v: Any
    w: Any


class Pairs(NamedTuple):
    """A support, and all pairs of entries in one row: the terms of G = B^T B."""

    rows: Any
    columns: Any
    first: Any
    second: Any


class Annealing(NamedTuple):
    """How sharp the objective is: |x| becomes sqrt(x^2 + (smoothing/m)^2), the maximum a power mean."""

    smoothing: Any
    exponent: Any


class _Level(NamedTuple):
    """What the rows and columns of a level contribute."""

    H: Any  # A A^T, shape (m, m)
    a: Any  # A g
    g_sq: Any
    w: Any
    v: Any
    B: Any


def pairs_of(support: Support) -> Pairs:
    """List the pairs of entries that share a row."""
    first, second = [], []
    for begin, end in zip(support.starts[:-1], support.starts[1:], strict=True):
        here = np.arange(begin, end)
        first.append(np.repeat(here, len(here)))
        second.append(np.tile(here, len(here)))
    return Pairs(support.rows, support.columns, np.concatenate(first), np.concatenate(second))


def log_mean_cost(
    places: tuple[LevelPoint, ...],
    pairs: tuple[Pairs, ...],
    annealing: Annealing,
    *,
    shapes: tuple[tuple[int, int], ...],
    horizon: int,
) -> Any:
    """Return log of (sum_l (b_l^2 q_l)^(1/3))^3, q_l the exact mean over the horizon."""
    levels = _levels(places, pairs, annealing, shapes)
    b, q = _charges(levels), _means(levels, horizon)
    return 3.0 * jnp.log(jnp.sum(jnp.cbrt(b * b * q)))


def log_max_cost(
    places: tuple[LevelPoint, ...],
    pairs: tuple[Pairs, ...],
    annealing: Annealing,
    scales: Any,
    steps: Any,
    *,
    shapes: tuple[tuple[int, int], ...],
) -> Any:
    """Return log of (sum_l b_l/s_l)^2 max_t sum_l s_l^2 q_l(t) over the given steps t, as a power mean.

    For scales s whose charges sum to 1 this is the largest squared row norm at these scales.
    """
    levels = _levels(places, pairs, annealing, shapes)
    norms = scales**2 @ _step_norms(levels, steps)
    top = jnp.max(norms)
    power = jnp.log(jnp.mean((norms / top) ** annealing.exponent)) / annealing.exponent
    return jnp.log(top) + power + 2.0 * jnp.log(jnp.sum(_charges(levels) / scales))


def _levels(
    places: tuple[LevelPoint, ...],
    pairs: tuple[Pairs, ...],
    annealing: Annealing,
    shapes: tuple[tuple[int, int], ...],
) -> list[_Level]:
    last = len(places) - 1
    return [
        _level(place, pair, annealing.smoothing, shape, is_top=index == last)
        for index, (place, pair, shape) in enumerate(zip(places, pairs, shapes, strict=True))
    ]


def _level(
    place: LevelPoint, pairs: Pairs, smoothing: Any, shape: tuple[int, int], *, is_top: bool
) -> _Level:
    m = shape[1]
    lengths = jnp.zeros(m).at[pairs.columns].add(jnp.sqrt(place.x**2 + (smoothing / m) ** 2))
    x = place.x / lengths[pairs.columns]
    i, j = pairs.columns[pairs.first], pairs.columns[pairs.second]
    G = jnp.zeros((m, m)).at[i, j].add(x[pairs.first] * x[pairs.second])
    inverse = jnp.linalg.inv(G)
    B = jnp.zeros(shape).at[pairs.rows, pairs.columns].set(x)
    sums = jnp.cumsum(inverse, axis=0)
    if is_top:
        return _Level(jnp.cumsum(sums, axis=1), jnp.zeros(m), 0.0, place.w, place.v, B)
    rest = 1.0 - place.v
    Z = sums - place.w[:, None] * (inverse @ rest)[None, :]  # Y G^-1
    H = jnp.cumsum(Z, axis=1) - (Z @ rest)[:, None] * place.w[None, :]
    return _Level(H, Z @ place.v, place.v @ (inverse @ place.v), place.w, place.v, B)


def _charges(levels: list[_Level]) -> Any:
    """Return b: 1 for the finest level, above it the largest column blended by an extreme v from below."""
    result = [jnp.asarray(1.0)]
    for index, (below, level) in enumerate(pairwise(levels)):
        B, is_top = level.B, index == len(levels) - 2
        own = jnp.abs(B).sum(axis=0)
        wraps = 0.0 if is_top else own[0]  # after the top's last column there is none
        norms = []
        for x in (jnp.min(below.v), jnp.max(below.v)):
            inside = jnp.abs((1.0 - x) * B[:, :-1] + x * B[:, 1:]).sum(axis=0)
            norms += [inside, jnp.reshape((1.0 - x) * own[-1] + x * wraps, (1,))]
        joined = jnp.concatenate(norms)
        top = jnp.max(joined)
        result.append(top * jnp.mean((joined / top) ** _CHARGE_EXPONENT) ** (1.0 / _CHARGE_EXPONENT))
    return jnp.stack(result)


def _row_steps(w: Any) -> Any:
    """As :func:`trilift.lift.windows.row_steps`: how window weights go up a level, shape (m, 3, 3)."""
    m = w.shape[0]
    digits = np.arange(m)[:, None] + np.arange(-2, 1)[None, :]
    i, a = np.indices((m, 3))
    block = np.where(digits >= 0, 2, 1)
    seen = w[digits % m]
    return jnp.zeros((m, 3, 3)).at[i, block, a].add(seen).at[i, block - 1, a].add(1.0 - seen)


def _row_grams(level: _Level) -> Any:
    """As :func:`trilift.lift.windows.row_grams`: inner products of neighbouring rows, shape (3, m, 3, 3)."""
    m = level.w.shape[0]
    digits = np.arange(m)[:, None] + np.arange(-2, 1)[None, :]
    before = digits < 0
    one, two = before[:, :, None], before[:, None, :]
    place = digits % m
    H = level.H[place[:, :, None], place[:, None, :]]
    rest = (1.0 - level.w)[place]
    both = rest[:, :, None] * rest[:, None, :] * level.g_sq  # the g parts of two rows of one block
    # a row of the block before meets the g part of a row of this block
    across = jnp.where(one, level.a[place][:, :, None] * rest[:, None, :], 0.0)
    across = jnp.where(one & ~two, across, 0.0)
    across = across + jnp.swapaxes(across, 1, 2)
    same, old = one == two, one & two
    later = jnp.where(same, H + both, across)
    second = jnp.where(old, H, later)  # nothing lies before the block before
    first = jnp.where(~one & ~two, H, 0.0)
    return jnp.stack([first, second, later])


def _top_grams(H: Any, count: int) -> Any:
    k = H.shape[0]
    rows = np.arange(count)[:, None] + np.arange(-2, 1)[None, :]
    known = (rows >= 0) & (rows < k)
    safe = np.clip(rows, 0, k - 1)
    return jnp.where(known[:, :, None] & known[:, None, :], H[safe[:, :, None], safe[:, None, :]], 0.0)


def _means(levels: list[_Level], horizon: int) -> Any:
    """Return each level's exact mean squared row norm over the horizon; see mean_row_norms_sq."""
    whole = jnp.zeros((3, 3)).at[2, 2].set(1.0)
    part = jnp.zeros((3, 3))
    count, result = horizon, []
    for level in levels[:-1]:
        grams, step = _row_grams(level), _row_steps(level.w)
        blocks, digit = divmod(count, level.w.shape[0])
        times = np.zeros(grams.shape[:2])
        times[: min(blocks, 2)] = 1.0
        times[2] = max(blocks - 2, 0)
        times[min(blocks, 2), :digit] += 1.0
        result.append(
            jnp.einsum("ci,ciab,ab->", times, grams, whole) + jnp.sum(grams[min(blocks, 2), digit] * part)
        )
        lifted = jnp.einsum("iab,bc,idc->iad", step, whole, step)
        part = lifted[:digit].sum(axis=0) + step[digit] @ part @ step[digit].T
        whole, count = lifted.sum(axis=0), blocks
    grams = _top_grams(levels[-1].H, count + 1)
    result.append(jnp.einsum("jab,ab->", grams[:count], whole) + jnp.sum(grams[count] * part))
    return jnp.stack(result) / horizon


def _step_norms(levels: list[_Level], steps: Any) -> Any:
    """Return each level's squared row norm at some steps, shape (levels, len(steps)); see row_norms_sq."""
    weights = jnp.zeros((steps.shape[0], 3)).at[:, 2].set(1.0)
    position, result = steps, []
    for level in levels[:-1]:
        block, digit = jnp.divmod(position, level.w.shape[0])
        local = _row_grams(level)[jnp.minimum(block, 2), digit]
        result.append(jnp.einsum("ta,tab,tb->t", weights, local, weights))
        weights = jnp.einsum("tab,tb->ta", _row_steps(level.w)[digit], weights)
        position = block
    local = _top_grams(levels[-1].H, levels[-1].H.shape[0] + 1)[position]
    result.append(jnp.einsum("ta,tab,tb->t", weights, local, weights))
    return jnp.stack(result)
