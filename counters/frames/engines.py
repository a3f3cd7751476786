"""Dataframes of pandas and polars, seen alike: their columns as arrays, and a column more.

Nothing is imported: whoever has a frame has loaded its library.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from trilift.lift.checks import fail
from trilift.lift.errors import ParameterError

__all__ = ["Engine", "engine_of", "lazy_frame", "ranks"]

Array = np.ndarray[Any, np.dtype[Any]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Engine(Protocol):
    """What is asked of a frame."""

    def names(self, frame: Any) -> list[Any]:
        """Return the names of all columns."""

    def numbers(self, frame: Any, name: str) -> tuple[Array, Flags]:
        """Return a column of numbers, zeros where there is none, and where that is.

        Raises:
            ParameterError: another kind of column.
        """

    def values(self, frame: Any, name: str) -> list[Any]:
        """Return a column as Python values, None where there is none."""

    def with_column(self, frame: Any, columns: Sequence[str], name: str, released: Array) -> Any:
        """Return the frame of these columns and a new one."""


class _Pandas:
    def names(self, frame: Any) -> list[Any]:
        return list(frame.columns)

    def numbers(self, frame: Any, name: str) -> tuple[Array, Flags]:
        column = frame[name]
        kind = getattr(column.dtype, "kind", "O")
        if kind == "b":
            raise ParameterError(f"column {name!r} holds truth values: .astype(int) makes them 0 and 1")
        if kind not in "iufO":
            raise fail(f"column {name!r}", "numbers", str(column.dtype))
        nulls = np.asarray(column.isna().to_numpy(), dtype=bool)
        return _filled(np.asarray(column[~nulls].to_numpy()), nulls)

    def values(self, frame: Any, name: str) -> list[Any]:
        column = frame[name]
        nulls = column.isna().to_numpy()
        values = column.astype(object).tolist() if column.dtype.kind in "OMm" else column.tolist()
        if nulls.any():
            values = [None if null else value for value, null in zip(values, nulls.tolist(), strict=True)]
        return list(values)

    def with_column(self, frame: Any, columns: Sequence[str], name: str, released: Array) -> Any:
        return frame[list(columns)].assign(**{name: released})


class _Polars:
    def names(self, frame: Any) -> list[Any]:
        return list(frame.columns)

    def numbers(self, frame: Any, name: str) -> tuple[Array, Flags]:
        column = frame[name]
        if not (column.dtype.is_integer() or column.dtype.is_float()):
            truth = str(column.dtype) == "Boolean"
            hint = ": .cast(pl.Int8) makes them 0 and 1" if truth else ""
            raise ParameterError(f"column {name!r} must be numbers, got {column.dtype}{hint}")
        nulls = np.asarray(column.is_null().to_numpy(), dtype=bool)
        return _filled(np.asarray(column.drop_nulls().to_numpy()), nulls)

    def values(self, frame: Any, name: str) -> list[Any]:
        column = frame[name]
        if str(column.dtype).startswith("Datetime"):  # Python's own have no nanoseconds
            nulls = column.is_null().to_list()
            stamps = zip(column.to_physical().to_list(), nulls, strict=True)
            return [None if null else np.datetime64(int(stamp), "ns") for stamp, null in stamps]
        return list(column.to_list())

    def with_column(self, frame: Any, columns: Sequence[str], name: str, released: Array) -> Any:
        if released.dtype == object:
            raise ParameterError("released values do not fit into 64 bits, which is what polars holds")
        series = sys.modules["polars"].Series(name, released)
        if not columns:
            return sys.modules["polars"].DataFrame([series])
        return frame.select(list(columns)).with_columns(series)


def _filled(present: Array, nulls: Flags) -> tuple[Array, Flags]:
    if not nulls.any():
        return present, nulls
    column = np.zeros(len(nulls), dtype=present.dtype)
    column[~nulls] = present
    return column, nulls


def engine_of(frame: Any) -> Engine:
    """Return how to read a frame.

    Raises:
        ParameterError: it is no DataFrame of pandas or polars.
    """
    for library, engine in (("pandas", _Pandas()), ("polars", _Polars())):
        loaded = sys.modules.get(library)
        if loaded is not None and isinstance(frame, loaded.DataFrame):
            return engine
    raise ParameterError(
        f"df must be a DataFrame of pandas or polars, or a LazyFrame of polars, got a {type(frame).__name__}"
    )


def lazy_frame(frame: Any) -> bool:
    """Return whether it is a LazyFrame of polars."""
    loaded = sys.modules.get("polars")
    return loaded is not None and isinstance(frame, loaded.LazyFrame)


def ranks(name: str, values: list[Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the ranks of the values of an ordering column: equal values have equal ranks.

    Raises:
        ParameterError: a null, NaN, or values that have no order among each other.
    """
    if any(value is None or (isinstance(value, float) and math.isnan(value)) for value in values):
        raise ParameterError(f"order: column {name!r} has nulls, and where they belong nobody knows")
    try:
        ordered = {value: rank for rank, value in enumerate(sorted(set(values)))}
    except (TypeError, ValueError):
        raise ParameterError(f"order: the values of column {name!r} have no order among each other") from None
    return np.fromiter((ordered[value] for value in values), dtype=np.int64, count=len(values))
