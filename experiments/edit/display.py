"""What is shown at every step, from noisy checkpoints and counts, many runs at once. FOR SIMULATION ONLY."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["extrapolated", "latest", "latest_index", "mean_squares", "shown_at"]


def latest_index(times: NDArray[np.int64], *, steps: int) -> NDArray[np.int32]:
    """Return which checkpoint is shown at every step: (runs, T + 1) int32, 0 for none, else l = 1, 2, ...

    Checkpoint l becomes due at times[:, l-1]; of those due at one step the largest l wins, and a checkpoint
    due later replaces what is shown whatever its l, as the paper's schedule does.

    >>> latest_index(np.array([[4, 2, 2]]), steps=5).tolist()
    [[0, 0, 3, 3, 1, 1]]
    """
    runs = times.shape[0]
    shown = np.zeros((runs, steps + 1), dtype=np.int32)
    row, column = np.nonzero(times <= steps)  # by rows, columns increasing: the last one written wins
    shown[row, times[row, column]] = column + 1
    due = np.where(shown > 0, np.arange(steps + 1, dtype=np.int32), 0)
    np.maximum.accumulate(due, axis=1, out=due)
    return np.take_along_axis(shown, due, axis=1)


def latest(times: NDArray[np.int64], values: NDArray[np.float64], *, steps: int) -> NDArray[np.float64]:
    """Return the value shown at steps 1..T: that of the checkpoint that became due last, else 0."""
    padded = np.concatenate([np.zeros((values.shape[0], 1)), values], axis=1)
    return np.take_along_axis(padded, latest_index(times, steps=steps)[:, 1:], axis=1)


def extrapolated(
    times: NDArray[np.int64],
    values: NDArray[np.float64],
    *,
    steps: int,
    delays: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the value shown at steps 1..T, carried on from the checkpoint at the mean rate until then.

    A bucket that became due at step ``that`` ended about at that - alpha; from there its value goes on with
    rate value / (that - alpha), limited to [0, 1]. As :func:`trilift.counters.edit.schedule.extrapolated`
    does, but without its rounding.
    """
    ends = times - delays
    known = ends >= 1
    rates = np.where(known, np.clip(values / np.where(known, ends, 1.0), 0.0, 1.0), 0.0)
    none = np.zeros((values.shape[0], 1))
    index = latest_index(times, steps=steps)[:, 1:]
    offset = np.concatenate([none, values - rates * ends], axis=1)
    slope = np.concatenate([none, rates], axis=1)
    shown = np.take_along_axis(slope, index, axis=1)
    shown *= np.arange(1, steps + 1)
    shown += np.take_along_axis(offset, index, axis=1)
    return shown


def shown_at(
    times: NDArray[np.int64],
    values: NDArray[np.float64],
    *,
    at: NDArray[np.int64],
    delays: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return what one run shows at some steps: as :func:`latest`, or :func:`extrapolated` with delays.

    Args:
        times: noisy times of one run, (K,).
        values: counts, (K,).
        at: steps >= 1, (M,).
        delays: alpha, (K,).
    """
    order = np.lexsort((np.arange(times.size), times))
    index = np.searchsorted(times[order], at, side="right")
    chosen = np.concatenate([[0], order + 1])[index]  # 0: nothing yet
    shown = np.concatenate([[0.0], values])[chosen]
    if delays is None:
        return np.asarray(shown)
    ends = times - delays
    known = ends >= 1
    rates = np.where(known, np.clip(values / np.where(known, ends, 1.0), 0.0, 1.0), 0.0)
    ahead = at - np.concatenate([[0.0], ends])[chosen]
    return np.asarray(shown + np.concatenate([[0.0], rates])[chosen] * ahead)


def mean_squares(outputs: NDArray[np.float64], prefix: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return each run's mean squared error over the T steps."""
    difference = outputs - prefix[:, 1:]
    return np.asarray(np.einsum("ij,ij->i", difference, difference) / difference.shape[1])
