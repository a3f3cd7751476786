"""Counters of insertions and removals as the command line sees them, and how their readings are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trilift.counters.turnstile import Reading
from trilift.counting import Sink
from trilift.reading_events import Event

__all__ = ["ReadingSink", "Turnstile", "figure"]

_EXACT = 1 << 53


def figure(value: float) -> str:
    """Return a figure of a reading as a number that reads back as the same one.

    >>> figure(64.0), figure(0.1)
    ('64', '0.1')
    """
    return str(int(value)) if value == int(value) and abs(value) <= _EXACT else repr(value)


class Turnstile:
    """A counter of turnstile streams: a :class:`trilift.counting.Taker`.

    Args:
        counter: a :class:`trilift.counters.turnstile.DistinctCounter` or ``SecondMoment``.
    """

    def __init__(self, counter: Any) -> None:
        self.counter = counter

    @property
    def step(self) -> int:
        """Number of events so far."""
        return int(self.counter.step)

    @property
    def horizon(self) -> int | None:
        """Number of events that can be taken."""
        return int(self.counter.horizon)

    def checked(self, number: int, value: Event) -> Event:
        """Return the event as it is: whether it fits those before it is nobody's business."""
        return value

    def arguments(self, inputs: list[Event]) -> tuple[Any, ...]:
        """Return events as ``extend`` takes them: items and signs."""
        return [item for item, _ in inputs], [sign for _, sign in inputs]

    def advance(self, inputs: list[Event]) -> list[Reading]:
        """Take events, and return what is released meanwhile."""
        return list(self.counter.extend(*self.arguments(inputs)))

    def save(self, path: Path) -> None:
        """Save the counter's state."""
        self.counter.save(path)

    def close(self) -> None:
        """Give the counter's state free."""
        self.counter.close()

    def statement(self) -> str:
        """Return what is guaranteed."""
        return str(self.counter.privacy_statement())


class ReadingSink(Sink):
    """Where readings go: rows step,estimate,low,high under a header, or an object a line.

    Attributes:
        last: the reading that was written last, or None.
    """

    header = "step,estimate,low,high"
    last: Reading | None = None

    def rows(self, first: int, values: list[Reading]) -> list[str]:
        """Return the lines of readings."""
        self.last = values[-1]
        if self._form == "json":
            return [
                f'{{"step": {r.step}, "estimate": {figure(r.estimate)}, "low": {figure(r.low)}, '
                f'"high": {figure(r.high)}}}'
                for r in values
            ]
        return [f"{r.step},{figure(r.estimate)},{figure(r.low)},{figure(r.high)}" for r in values]
