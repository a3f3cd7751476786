"""What is shown at every step, from noisy checkpoints and counts, many runs at once. FOR SIMULATION ONLY."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["latest", "latest_index", "mean_squares"]


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


def mean_squares(outputs: NDArray[np.float64], prefix: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return each run's mean squared error over the T steps."""
    difference = outputs - prefix[:, 1:]
    return np.asarray(np.einsum("ij,ij->i", difference, difference) / difference.shape[1])
