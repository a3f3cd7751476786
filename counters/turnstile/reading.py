"""What a turnstile counter releases: an estimate and an interval, for one step or for many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

__all__ = ["Reading", "Readings"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Reading:
    """What was released for one step.

    Attributes:
        step: number of events so far, from 1.
        estimate: of the quantity after that step.
        low, high: the interval that contains it; the stated failure is for all released steps together.
    """

    step: int
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Readings:
    """What was released for some steps, as arrays of one length; iterating gives :class:`Reading`.

    Attributes:
        step: int64, increasing.
        estimate, low, high: float64, as in :class:`Reading`.
    """

    step: IntArray
    estimate: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def none(cls) -> Self:
        """Return no readings."""
        return cls(np.zeros(0, dtype=np.int64), *(np.zeros(0) for _ in range(3)))

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Return the readings of consecutive parts as one."""
        if not parts:
            return cls.none()
        if len(parts) == 1:
            return parts[0]
        return cls(
            *(
                np.concatenate([getattr(p, name) for p in parts])
                for name in ("step", "estimate", "low", "high")
            )
        )

    def __len__(self) -> int:
        return len(self.step)

    def __getitem__(self, index: int) -> Reading:
        return Reading(
            int(self.step[index]),
            float(self.estimate[index]),
            float(self.low[index]),
            float(self.high[index]),
        )

    def __iter__(self) -> Iterator[Reading]:
        return (self[index] for index in range(len(self)))
