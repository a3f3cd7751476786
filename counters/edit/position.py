"""Where an edit-private counter stands, as one immutable value: what it holds is secret."""

from __future__ import annotations

from dataclasses import dataclass

from trilift.counters.edit.schedule import Schedule
from trilift.counters.position import Position

__all__ = ["EditPosition"]


@dataclass(frozen=True, repr=False)
class EditPosition:
    """Steps, exact sum and repeatable steps, the open bucket, and the schedule. Secret.

    Attributes:
        log: steps so far, exact sum (shape (1,)), the latest steps; an input is a pair (lattice steps, 1 for
            BOT or 0).
        bucket: number of buckets that have ended.
        clock: steps taken in the open bucket.
        opened: exact sum when it began.
        schedule: what is shown and what is pending.
    """

    log: Position
    bucket: int
    clock: int
    opened: int
    schedule: Schedule

    @classmethod
    def start(cls) -> EditPosition:
        """Return the beginning of a stream."""
        return cls(Position.start(1), 0, 0, 0, Schedule.start())

    @property
    def step(self) -> int:
        """Steps so far."""
        return self.log.step
