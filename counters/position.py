"""Where a counter stands: exact sums and the steps that can be repeated, as one immutable value.

A counter moves by replacing its position in one assignment, so that an error or an interrupt in the middle
of a step leaves it exactly where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.lift.errors import ReplayError
from trilift.lift.integers import bit_width, shrink

__all__ = ["REMEMBERED", "Position", "Step", "running_sums"]

Integers = np.ndarray[Any, np.dtype[Any]]

REMEMBERED = 1024
"""How many of the latest steps can be repeated with the same input."""

_REMEMBERED_NUMBERS = 1 << 20  # fewer steps of very long vectors, so that saved states stay readable


@dataclass(frozen=True, repr=False)
class Step:
    """What is remembered of a released step: its input and its released values, in lattice steps. Secret."""

    number: int
    inputs: tuple[int, ...]
    released: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class Position:
    """Number of steps so far, exact sums, largest released values, and the latest steps. Secret.

    Attributes:
        step: steps so far.
        counts: exact sums of all inputs, in lattice steps, shape (d,).
        peaks: largest values released so far (for a running maximum), shape (d,).
        recent: consecutive steps, the last of which is ``step`` (or none).
    """

    step: int
    counts: Integers
    peaks: Integers
    recent: tuple[Step, ...]

    @classmethod
    def start(cls, width: int) -> Position:
        """Return the beginning of a stream of vectors of this width."""
        return cls(0, np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64), ())

    def skipped(self, count: int) -> Position:
        """Return the position after zeros that nothing was released for."""
        return self if count == 0 else Position(self.step + count, self.counts, self.peaks, ())

    def advanced(
        self, inputs: Integers, *, counts: Integers, peaks: Integers, released: Integers
    ) -> Position:
        """Return the position after k >= 1 more steps.

        Args:
            inputs: shape (k, d).
            counts: the new exact sums.
            peaks: the new largest values.
            released: shape (k, d).
        """
        k, width = inputs.shape
        kept = max(1, min(REMEMBERED, _REMEMBERED_NUMBERS // width))
        new = tuple(
            Step(self.step + offset + 1, tuple(inputs[offset].tolist()), tuple(released[offset].tolist()))
            for offset in range(max(k - kept, 0), k)
        )
        return Position(self.step + k, counts.copy(), peaks.copy(), (self.recent + new)[-kept:])

    def replayed(self, number: int, inputs: tuple[int, ...]) -> Integers:
        """Return what was released for a step, if it had this input.

        Raises:
            ReplayError: it had another one, or it is no longer remembered.
        """
        offset = number - (self.recent[0].number if self.recent else self.step + 1)
        if offset < 0:
            raise ReplayError(f"step {number} was taken and is no longer remembered; it cannot be repeated")
        known = self.recent[offset]
        if known.inputs != inputs:
            raise ReplayError(
                f"step {number} was released with another input; corrected data need a new counter"
            )
        return shrink(np.array(known.released, dtype=object))


def running_sums(counts: Integers, inputs: Integers) -> Integers:
    """Return counts + cumulative sums of the inputs (shape (k, d), k >= 1) along axis 0, exactly."""
    bits = max(bit_width(counts), bit_width(inputs) + len(inputs).bit_length()) + 1
    if bits > 63 or inputs.dtype == object:
        counts, inputs = counts.astype(object), inputs.astype(object)
    return shrink(counts + np.cumsum(inputs, axis=0))
