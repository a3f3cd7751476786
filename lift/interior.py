"""The interior cost: what a level costs when another level lies beneath it (new; see docs/lifting.md).

A level above the finest is only seen through the weights of the level below: its rows come blended,
(1 - w_i') Row_{j-1} + w_i' Row_j, and its columns too, (1 - v_i') Col_j + v_i' Col_{j+1}, on the infinite
lattice of blocks. Blending can only lower norms, so deeper levels, which blend again, cost no more.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.remembered import remembered
from trilift.lift.stage import Stage

__all__ = [
    "interior_column_norms",
    "interior_column_norms_sq",
    "interior_row_norms_sq",
    "interior_sensitivity",
    "interior_sensitivity_sq",
]


def _one(like: Any) -> Any:
    return Dyadic(np.ones(like.shape, dtype=np.int64)) if isinstance(like, Dyadic) else 1.0


def _previous(rows: Any) -> Any:
    """Shift by one step, cyclically: entry j becomes that of step j-1 (of the block before for j = 0)."""
    if isinstance(rows, Dyadic):
        return Dyadic(np.roll(rows.num, 1, axis=0), rows.exp)
    return np.roll(rows, 1, axis=0)


def neighbour_products(stage: Stage) -> tuple[Any, Any]:
    """Return |Row_j|^2 and <Row_{j-1}, Row_j> on the infinite lattice, shapes (m,) and (m,).

    Row_j is A_j on its own block and (1 - w_j) g on the block before; Row_{-1} is the last row of the block
    before, whose A part meets the g part of Row_0.
    """
    A, w, g = stage.A, stage.w, stage.g
    rest = _one(w) - w
    last = _previous(rest)
    gram_g = (g * g).sum()
    norms = (A * A).sum(axis=1) + rest * rest * gram_g
    inside = (A * _previous(A)).sum(axis=1) + rest * last * gram_g
    across = rest[:1] * (A[-1:] @ g)  # step 0: its g part lies on the block of the step before
    if isinstance(A, Dyadic):
        return norms, Dyadic.concatenate([across, inside[1:]])
    return norms, np.concatenate([across, inside[1:]])


def interior_row_norms_sq(stage: Stage, *, below: Stage | None = None) -> Any:
    """Return the squared blended row norms of a level seen through the weights of the level below it.

    Args:
        stage: the level, of size m.
        below: the level beneath it, of size m'; the stage itself when left out (the repeated stage).

    Returns:
        Array of shape (m', m): floats, or Dyadic when both are exact.
    """
    w = (stage if below is None else below).w
    if isinstance(w, Dyadic) != stage.is_exact:
        raise ParameterError("stage and below must be both exact or both float")
    norms, products = neighbour_products(stage)
    rest = _one(w) - w
    own = (w * w)[:, None] * norms[None, :]
    before = (rest * rest)[:, None] * _previous(norms)[None, :]
    cross = (w * rest)[:, None] * products[None, :]
    return own + before + cross + cross


def interior_column_norms(stage: Stage, *, below: Stage | None = None) -> Any:
    """Return the l1 norms of the blended columns, shape (m', m): as for the rows, with v in place of w."""
    return _column_norms(stage, _weights_below(stage, below))


def interior_column_norms_sq(stage: Stage, *, below: Stage | None = None) -> Any:
    """Return the squared l2 norms of the blended columns, shape (m', m)."""
    return _column_norms_sq(stage, _weights_below(stage, below))


def interior_sensitivity_sq(stage: Stage, *, below: Stage | None = None) -> float | Fraction:
    """Return the square of b-bar under l2: the largest squared l2 norm of a blended column.

    A Fraction when exact. It is convex in the weight too, so the extreme weights suffice.
    """
    return _sensitivity_sq(stage, stage if below is None else below)


@remembered
def _sensitivity_sq(stage: Stage, below: Stage) -> float | Fraction:
    norms = _column_norms_sq(stage, extreme_weights(_weights_below(stage, below)))
    return norms.max() if isinstance(norms, Dyadic) else float(norms.max())


def _column_norms_sq(stage: Stage, v: Any) -> Any:
    B, own, rest = stage.B, stage.column_norms_sq(), _one(v) - v
    inside = (B[:, :-1] * B[:, 1:]).sum(axis=0)
    # the column after the last belongs to the next block: other coordinates
    products: Any
    if isinstance(inside, Dyadic):
        products = Dyadic.concatenate([inside, Dyadic.zeros(1)])
    else:
        products = np.append(inside, 0.0)
    cross = (v * rest)[:, None] * products[None, :]
    return (rest * rest)[:, None] * own[None, :] + (v * v)[:, None] * _next(own)[None, :] + cross + cross


def _next(values: Any) -> Any:
    """Shift by one step, cyclically: entry j becomes that of step j+1."""
    if isinstance(values, Dyadic):
        return Dyadic(np.roll(values.num, -1, axis=0), values.exp)
    return np.roll(values, -1, axis=0)


def _weights_below(stage: Stage, below: Stage | None) -> Any:
    v = (stage if below is None else below).v
    if isinstance(v, Dyadic) != stage.is_exact:
        raise ParameterError("stage and below must be both exact or both float")
    return v.normalized() if isinstance(v, Dyadic) else v  # few places: the blends stay within int64


def extreme_weights(v: Any) -> Any:
    """Return the smallest and the largest of some weights, shape (2,)."""
    values = v.num if isinstance(v, Dyadic) else v
    return v[[int(values.argmin()), int(values.argmax())]]


def _column_norms(stage: Stage, v: Any) -> Any:
    B, rest = stage.B, _one(v) - v
    if isinstance(B, Dyadic):
        blended = [_blend_exact(B, rest[i : i + 1], v[i : i + 1]) for i in range(len(v))]
        return Dyadic.concatenate([norms[None, :] for norms in blended])
    following = np.roll(B, -1, axis=1)
    norms = np.empty((len(v), stage.size))
    for i in range(len(v)):  # one row at a time: (m', r, m) would not fit for large stages
        norms[i] = np.abs(rest[i] * B + v[i] * following).sum(axis=0)
    # the column after the last belongs to the next block: other coordinates, so the norms add
    own = np.abs(B).sum(axis=0)
    norms[:, -1] = rest * own[-1] + v * own[0]
    return norms


def _blend_exact(B: Dyadic, rest: Dyadic, v: Dyadic) -> Dyadic:
    inside = (B[:, :-1] * rest + B[:, 1:] * v).abs_sum(axis=0)
    own = B.abs_sum(axis=0)
    return Dyadic.concatenate([inside, own[-1:] * rest + own[:1] * v])


def interior_sensitivity(stage: Stage, *, below: Stage | None = None) -> float | Fraction:
    """Return b-bar, the largest l1 norm of a blended column (a Fraction when exact).

    A blended norm is a convex function of the weight, so it is largest at the least or the largest v.
    """
    return _sensitivity(stage, stage if below is None else below)


@remembered
def _sensitivity(stage: Stage, below: Stage) -> float | Fraction:
    norms = _column_norms(stage, extreme_weights(_weights_below(stage, below)))
    return norms.max() if isinstance(norms, Dyadic) else float(norms.max())
