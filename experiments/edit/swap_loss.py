"""What a counter that is private for swaps gives away about any other change of its stream.

The Laplace matrix mechanism releases R x + z. Streams that differ by a vector d (one entry a step) are told
apart with a privacy loss of at most

    sum over levels of  ||R_l d||_1 / s_l,

and of exactly that where the noise happens to fall outside: for a change of one input this is what the
budget covers, for edit neighbours d has as many entries as the queue is long. The levels of R d follow from
the bridge lift (docs/lifting.md): a block measures B x, and hands (1 - v) x to the level above at its own
place and v x at the next one. All of it in floats: this is an analysis, no mechanism rests on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.costs import scales_array

__all__ = ["swap_losses"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


def swap_losses(
    chain: Chain, changes: Sequence[Mapping[int, float]], *, scales: Sequence[Any] | FloatArray
) -> FloatArray:
    """Return the largest privacy loss between streams that differ by each of several changes.

    Args:
        chain: of the counter.
        changes: each maps steps (from 0) to the difference of the two inputs there; steps not named agree.
        scales: noise scale of each level, finest first, in units of the inputs.

    Returns:
        The losses as epsilons, shape (len(changes),): with that, and with no less, the odds of any conclusion
        change by at most a factor of e to it.

    >>> import numpy as np
    >>> from trilift.lift import Stage
    >>> chain = Chain(Stage.plain(np.tril(np.ones((3, 3))), np.eye(3)))
    >>> swap_losses(chain, [{0: 1.0}, {0: 1.0, 2: -1.0}], scales=[2.0]).tolist()
    [0.5, 1.0]
    """
    chain = chain.to_float()
    sizes = scales_array(chain, np.array([float(scale) for scale in scales])).tolist()
    later = [level.B.T @ level.g for level in chain.levels]  # v
    return np.array([_loss(chain, change, sizes, later) for change in changes])


def _loss(chain: Chain, change: Mapping[int, float], scales: list[float], later: list[FloatArray]) -> float:
    here = {step: float(value) for step, value in change.items() if value}
    total = 0.0
    for level, scale, v in zip(chain.levels, scales, later, strict=True):
        measured: dict[int, FloatArray] = {}
        above: dict[int, float] = {}
        for position, value in here.items():
            block, digit = divmod(position, level.size)
            if block and level is chain.top:
                continue  # past the top's last row there is no measurement
            measured[block] = measured.get(block, 0.0) + value * level.B[:, digit]
            above[block] = above.get(block, 0.0) + (1.0 - v[digit]) * value
            above[block + 1] = above.get(block + 1, 0.0) + v[digit] * value
        total += sum(float(np.abs(row).sum()) for row in measured.values()) / scale
        here = above
    return total
