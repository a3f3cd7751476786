"""How a step is seen from each level of a chain: three neighbouring positions, their weights and norms.

From level 1 upwards a step t is seen as a weighted sum of rows at positions j-2, j-1, j of the level, where j
is the step's own position there. Three positions are enough: three neighbouring positions of a level lie in
at most two neighbouring blocks (block sizes are >= 2), each of which looks at one block more. The same holds
for columns, looking forward: j, j+1, j+2. Going up one level maps weights by a 3 x 3 matrix that depends on
the digit only.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from trilift.lift.stage import Stage

__all__ = ["START_ROW", "column_parts", "column_steps", "row_grams", "row_steps", "top_grams"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

START_ROW = np.array([0.0, 0.0, 1.0])
"""Weights of a step at the finest level: itself alone (positions t-2, t-1, t)."""


_KEPT = 16  # stages are immutable and compared by identity; planning meets the same ones again and again


def _frozen(array: FloatArray) -> FloatArray:
    array.flags.writeable = False
    return array


@lru_cache(maxsize=_KEPT)
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


@lru_cache(maxsize=_KEPT)
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


@lru_cache(maxsize=_KEPT)
def row_grams(stage: Stage) -> FloatArray:
    """Return K of shape (3, m, 3, 3): inner products of the local rows at positions j-2, j-1, j.

    The first axis is the block: 0 for the first block (nothing lies before it), 1 for the second, 2 for all
    later ones. The local row of position (J, i) is A_i on block J and (1 - w_i) g on block J-1.
    """
    m, r = stage.size, stage.inner
    digits = np.arange(m)[:, None] + np.arange(-2, 1)[None, :]  # (m, 3)
    own = np.where(digits >= 0, 2, 1)
    rows = np.zeros((m, 3, 3, r))  # digit, window position, block offset, measurement
    i, a = np.indices((m, 3))
    rows[i, a, own] = stage.A[digits]
    rows[i, a, own - 1] += (1.0 - stage.w[digits])[..., None] * stage.g
    out = np.empty((3, m, 3, 3))
    for block in range(3):
        seen = rows.copy()
        if block < 2:
            seen[:, :, : 2 - block] = 0.0  # blocks before the stream
        if block == 0:
            seen[digits < 0] = 0.0  # positions before the stream
        flat = seen.reshape(m, 3, 3 * r)
        out[block] = flat @ flat.transpose(0, 2, 1)
    return _frozen(out)


def top_grams(top: Stage, count: int) -> FloatArray:
    """Return K of shape (count, 3, 3) for the top's rows at positions j-2, j-1, j, j < count <= k + 1.

    Rows before the stream are zero; so is row k, which a tail names with weight zero.
    """
    C = top.A
    padded = np.zeros((2 + max(count, len(C)), C.shape[1]))
    padded[2 : 2 + len(C)] = C
    rows = np.stack([padded[a : a + count] for a in range(3)], axis=1)
    result: FloatArray = rows @ rows.transpose(0, 2, 1)
    return result


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
