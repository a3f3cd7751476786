"""From the columns of a frame to the inputs of each group: what is refused, and what counts as 0."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.counters.frames.engines import Engine, ranks
from trilift.counters.frames.groups import Codes
from trilift.counters.frames.spec import Columns
from trilift.counters.streamed import StreamSetup
from trilift.lift.errors import ParameterError

__all__ = ["Rows", "read_rows"]

Integers = np.ndarray[Any, np.dtype[Any]]
Places = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Rows:
    """Checked inputs of a frame.

    Attributes:
        inputs: in lattice steps, shape (rows,), in the order of the frame.
        places: the rows' indices, group after group, each in its order.
        groups: encoding, values, and where its part of ``places`` starts and ends, of each group.
    """

    inputs: Integers
    places: Places
    groups: tuple[tuple[bytes, tuple[Any, ...], int, int], ...]

    def each(self) -> Iterator[tuple[bytes, tuple[Any, ...], Places, Integers]]:
        """Yield encoding, values, the rows' indices and inputs of each group."""
        for encoding, values, start, stop in self.groups:
            where = self.places[start:stop]
            yield encoding, values, where, self.inputs[where]


def read_rows(
    frame: Any,
    engine: Engine,
    columns: Columns,
    setup: StreamSetup,
    *,
    excess: str,
    nulls: str,
    ties: str,
) -> Rows:
    """Read a frame.

    Raises:
        ParameterError: a column or a value that is not acceptable; rows are counted from 0.
    """
    inputs = _inputs(frame, engine, columns, setup, nulls=nulls)
    codes = Codes([engine.values(frame, name) for name in columns.by], len(inputs))
    order = [ranks(name, engine.values(frame, name)) for name in columns.order]
    places = np.lexsort((*reversed(order), codes.codes)) if len(inputs) else np.zeros(0, dtype=np.int64)
    if order and ties == "refuse":
        _check_ties(places, [codes.codes, *order])
    if columns.person is not None:
        persons = engine.values(frame, columns.person)
        sequence = np.lexsort((codes.codes, *reversed(order))) if order else np.arange(len(inputs))
        surplus = _surplus(persons, sequence, setup.max_contributions)
        if surplus.any():
            if excess == "refuse":
                raise ParameterError(
                    f"row {int(np.flatnonzero(surplus)[0])}: its person has more than max_contributions ="
                    f" {setup.max_contributions} rows (excess='zero' counts the later ones as 0)"
                )
            setup.check_zeros()
            inputs = np.where(surplus, 0, inputs)
    starts = np.searchsorted(codes.codes[places], np.arange(len(codes.groups) + 1))
    groups = tuple(
        (encoding, values, int(starts[index]), int(starts[index + 1]))
        for index, (encoding, values) in enumerate(codes.groups)
    )
    return Rows(inputs, places, groups)


def _inputs(frame: Any, engine: Engine, columns: Columns, setup: StreamSetup, *, nulls: str) -> Integers:
    column, missing = engine.numbers(frame, columns.value)
    if missing.any():
        if nulls == "refuse":
            raise ParameterError(
                f"column {columns.value!r} has no value in row {int(np.flatnonzero(missing)[0])} "
                "(nulls='zero' counts it as 0)"
            )
        setup.check_zeros()
    try:
        inputs: Integers = setup.many(column.tolist() if column.dtype == object else column)[:, 0]
    except ParameterError as error:
        raise ParameterError(f"column {columns.value!r}: {error}") from None
    return inputs


def _check_ties(places: Places, keys: list[Places]) -> None:
    same = np.ones(max(len(places) - 1, 0), dtype=bool)
    for key in keys:
        sorted_key = key[places]
        same &= sorted_key[1:] == sorted_key[:-1]
    if same.any():
        first = int(np.flatnonzero(same)[0])
        raise ParameterError(
            f"rows {int(places[first])} and {int(places[first + 1])} have the same place in order=: name "
            "columns that tell them apart (ties='rows' takes them as the frame has them)"
        )


def _surplus(persons: list[Any], sequence: Places, most: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows come after so many others of their person."""
    seen: dict[Any, int] = {}
    surplus = np.zeros(len(persons), dtype=bool)
    for row in sequence.tolist():
        person = persons[row]
        if person is None or (isinstance(person, float) and math.isnan(person)):  # NaN differs from itself
            raise ParameterError(f"row {row} is nobody's: the column of persons has no value there")
        try:
            seen[person] = count = seen.get(person, 0) + 1
        except TypeError:
            raise ParameterError(f"row {row}: a person must be a text or a number") from None
        surplus[row] = count > most
    return surplus
