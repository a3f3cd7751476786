"""Single rows of L, by level and block: for variances of differences, tails and intervals (new)."""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.costs import scales_array, steps_array

__all__ = ["Row", "row_covariance", "row_entries"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
Row = list[dict[int, FloatArray]]


def row_entries(chain: Chain, step: int) -> Row:
    """Return row ``step`` of L: for each level, finest first, block number -> coefficients of shape (r,).

    At most four blocks a level have coefficients. Scales are not applied.

    Raises:
        HorizonError: a step outside 0..capacity-1.
    """
    chain = chain.to_float()
    weights = {int(steps_array(chain, [step])[0]): 1.0}
    row: Row = []
    for stage in chain.stages:
        entries: dict[int, FloatArray] = {}
        above: dict[int, float] = {}
        for position, weight in weights.items():
            block, digit = divmod(position, stage.size)
            rest = weight * (1.0 - stage.w[digit])
            entries[block] = entries.get(block, 0.0) + weight * stage.A[digit]
            if block > 0 and rest != 0.0:
                entries[block - 1] = entries.get(block - 1, 0.0) + rest * stage.g
                above[block - 1] = above.get(block - 1, 0.0) + rest
            if stage.w[digit] != 0.0:
                above[block] = above.get(block, 0.0) + weight * float(stage.w[digit])
        row.append(entries)
        weights = above
    total = np.zeros(chain.top.inner)
    for position, weight in weights.items():
        total = total + weight * chain.top.A[position]
    row.append({0: total})
    return row


def row_covariance(chain: Chain, first: int, second: int, *, scales: Any) -> float:
    """Return sum over levels of scales^2 <row_first, row_second>: half the covariance of two steps' noise.

    Half, because Laplace noise of scale s has variance 2 s^2.
    """
    squares = scales_array(chain, scales) ** 2
    left, right = row_entries(chain, first), row_entries(chain, second)
    total = 0.0
    for square, a, b in zip(squares, left, right, strict=True):
        total += square * sum(float(a[block] @ b[block]) for block in a.keys() & b.keys())
    return total
