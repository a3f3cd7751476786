"""How a step is seen from each level of a chain: three neighbouring positions, their weights and norms.

From level 1 upwards a step t is seen as a weighted sum of rows at positions j-2, j-1, j of the level, where j
is the step's own position there. Three positions are enough: three neighbouring positions of a level lie in
at most two neighbouring blocks (block sizes are >= 2), each of which looks at one block more. The same holds
for columns, looking forward: j, j+1, j+2. Going up one level maps weights by a 3 x 3 matrix that depends on
the digit only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.lift.remembered import remembered
from trilift.lift.stage import Stage

__all__ = ["START_ROW", "column_parts", "column_steps", "row_grams", "row_steps", "top_grams"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

START_ROW = np.array([0.0, 0.0, 1.0])
"""Weights of a step at the finest level: itself alone (positions t-2, t-1, t)."""


_PLACE = np.arange(3)
_LAG = np.abs(np.subtract.outer(_PLACE, _PLACE))  # of two window positions: how far apart they are,
_LATER, _EARLIER = np.maximum.outer(_PLACE, _PLACE), np.minimum.outer(_PLACE, _PLACE)  # and which they are


def _frozen(array: FloatArray) -> FloatArray:
    array.flags.writeable = False
    return array


@remembered
def row_steps(stage: Stage) -> FloatArray:
    """Return P of shape (m, 3, 3): weights on (J-2..J) = P[i] @ weights on (j-2..j), j = J m + i."""
    m, w = stage.size, stage.w
    P = np.zeros((m, 3, 3))
    for i in range(m):
        for a in range(3):
            digit = i - 2 + a
            block = 2 if digit >= 0 else 1  # window index of the position's own block
            P[i, block, a] += w[digit]
            P[i, block - 1, a] += 1.0 - w[digit]
    return _frozen(P)


@remembered
def column_steps(stage: Stage) -> FloatArray:
    """Return P of shape (m, 3, 3): weights on (J..J+2) = P[i] @ weights on (j..j+2)."""
    m, v = stage.size, stage.v
    P = np.zeros((m, 3, 3))
    for i in range(m):
        for a in range(3):
            block, digit = divmod(i + a, m)
            P[i, block, a] += 1.0 - v[digit]
            P[i, block + 1, a] += v[digit]
    return _frozen(P)


@remembered
def row_grams(stage: Stage) -> FloatArray:
    """Return K of shape (3, m, 3, 3): inner products of the local rows at positions j-2, j-1, j.

    The first axis is the block: 0 for the first block (nothing lies before it), 1 for the second, 2 for all
    later ones. The local row of position (J, i) is A_i on block J and (1 - w_i) g on block J-1.
    """
    A, rest = stage.A, 1.0 - stage.w
    digits = np.arange(stage.size)[:, None] + np.arange(-2, 1)[None, :]  # below 0: of the block before
    later, earlier = digits[:, _LATER], digits[:, _EARLIER]  # (m, 3, 3)
    together = (later < 0) == (earlier < 0)
    own = _lagged(A)[_LAG, later]
    carried = rest[later] * rest[earlier] * (stage.g @ stage.g)
    across = rest[later] * (A @ stage.g)[earlier]  # the earlier row's block is where the later one's g lies
    out = np.empty((3, *own.shape))
    out[0] = np.where(earlier >= 0, own, 0.0)
    out[1] = np.where(together, own + np.where(earlier >= 0, carried, 0.0), across)
    out[2] = np.where(together, own + carried, across)
    return _frozen(out)


def _lagged(rows: FloatArray) -> FloatArray:
    """Return <row_j, row_{j-lag}>, cyclically, for the lags 0, 1 and 2: shape (3, rows)."""
    return np.array([np.einsum("ij,ij->i", rows, np.roll(rows, lag, axis=0)) for lag in range(3)])


def top_grams(top: Stage, count: int) -> FloatArray:
    """Return K of shape (count, 3, 3) for the top's rows at positions j-2, j-1, j, j < count <= k + 1.

    Rows before the stream are zero; so is row k, which a tail names with weight zero.
    """
    return _all_top_grams(top)[:count]


@remembered
def _all_top_grams(top: Stage) -> FloatArray:
    k = top.size
    padded = np.zeros((k + 3, top.inner))
    padded[2 : 2 + k] = top.A
    return _frozen(_lagged(padded)[_LAG, np.arange(k + 1)[:, None, None] + _LATER])


def column_parts(stage: Stage, digit: int, *, is_top: bool) -> tuple[FloatArray, FloatArray]:
    """Return the local columns at positions j, j+1, j+2 split by block: two arrays of shape (r, 3).

    The first holds the columns that lie in the block of j, the second those in the next block; columns
    past the end of the top are zero.
    """
    B, m = stage.B, stage.size
    here, there = np.zeros((len(B), 3)), np.zeros((len(B), 3))
    for a in range(3):
        block, i = divmod(digit + a, m)
        if block == 0:
            here[:, a] = B[:, i]
        elif not is_top and block == 1:
            there[:, a] = B[:, i]
    return here, there
