"""Where a turnstile counter stands: exact sketches and the events that can be repeated. Secret."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from trilift.counters.position import REMEMBERED
from trilift.counters.turnstile.reading import Reading, Readings
from trilift.lift.errors import ReplayError

__all__ = ["Event", "TurnstilePosition"]


@dataclass(frozen=True, repr=False, slots=True)
class Event:
    """What is remembered of an event: the item's fingerprint, the sign, and what was released. Secret."""

    number: int
    item: tuple[int, int]
    sign: int
    released: Reading | None


@dataclass(frozen=True, repr=False)
class TurnstilePosition:
    """Number of events, exact state of the mechanism, and the latest events. Secret.

    Attributes:
        step: events so far.
        held: what the mechanism keeps.
        recent: consecutive events, the last of which is ``step`` (or none).
    """

    step: int
    held: Any
    recent: tuple[Event, ...]

    def advanced(self, held: Any, prints: Any, signs: Any, readings: Readings) -> Self:
        """Return the position after k >= 1 more events."""
        k = len(signs)
        first = max(k - REMEMBERED, 0)
        released = {
            int(readings.step[index]): readings[index]
            for index in range(int(np.searchsorted(readings.step, self.step + first + 1)), len(readings))
        }
        items, numbers = prints[first:].tolist(), signs[first:].tolist()
        new = tuple(
            Event(number, (words[0], words[1]), sign, released.get(number))
            for number, (words, sign) in enumerate(zip(items, numbers, strict=True), self.step + first + 1)
        )
        return type(self)(self.step + k, held, (self.recent + new)[-REMEMBERED:])

    def holding(self, held: Any) -> Self:
        """Return the same position with another state of the mechanism."""
        return replace(self, held=held)

    def replayed(self, number: int, item: tuple[int, int], sign: int) -> Reading | None:
        """Return what was released for an event, if it was this one.

        Raises:
            ReplayError: it was another one, or it is no longer remembered.
        """
        offset = number - (self.recent[0].number if self.recent else self.step + 1)
        if offset < 0:
            raise ReplayError(f"step {number} was taken and is no longer remembered; it cannot be repeated")
        known = self.recent[offset]
        if (known.item, known.sign) != (item, sign):
            raise ReplayError(
                f"step {number} was taken with another event; corrected data need a new counter"
            )
        return known.released

    def checked(self, horizon: int) -> Self:
        """Return itself.

        Raises:
            ValueError: the remembered events do not end at the step, or lie past the horizon.
        """
        numbers = [event.number for event in self.recent]
        latest = list(range(self.step - len(numbers) + 1, self.step + 1))
        if not 0 <= self.step <= horizon or numbers != latest or min(numbers, default=1) < 1:
            raise ValueError("the position contradicts itself")
        return self
