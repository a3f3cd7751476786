"""Exact running sums of a stream, kept by the engine: for every group its step, its sum, and its last place.

A row's step is its rank in the group by the ordering columns, whichever micro-batch it comes in: rows of a
micro-batch are sorted, and one that belongs before a row of an earlier micro-batch is refused. So steps,
and with them noise and released values, do not depend on where micro-batches begin and end, nor on what was
run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from trilift.counters.frames.groups import shown_group
from trilift.counters.frames.spec import Columns
from trilift.counters.spark.batch import INPUT, STEP, SUM, check_sums, result_schema
from trilift.counters.spark.columns import INTERNAL, check_types, col
from trilift.counters.spark.executor import Inputs, Released
from trilift.counters.spark.release import Release
from trilift.counters.streamed import StreamSetup
from trilift.lift.errors import HorizonError, ParameterError, StateError

__all__ = ["Steps", "stream_plan"]

_TO_WHOLE = {"DateType": "unix_date", "TimestampType": "unix_micros"}
_FROM_WHOLE = {"DateType": "date_from_unix_date", "TimestampType": "timestamp_micros"}
_ORDERS = {"ByteType", "ShortType", "IntegerType", "LongType", "StringType", "DateType", "TimestampType"}
_MOST = (1 << 62) - 1


def stream_plan(frame: Any, columns: Columns, setup: StreamSetup, release: Release) -> Any:
    """Return the streaming frame with the released column.

    Raises:
        ParameterError: a column that is not acceptable, or sums that need more than 63 bits.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    _check_versions()
    shown = columns.shown(frame.columns)
    types = check_types(frame, columns, orders=_ORDERS)
    extra = [name for name in shown if name not in {*columns.by, *columns.order}]
    if extra or columns.person is not None:
        raise ParameterError("a stream has no keep= and no person=: nothing but groups and places is held")
    check_sums(setup, 1)
    groups = [f"{INTERNAL}group{index}" for index in range(len(columns.by))]
    places = [f"{INTERNAL}place{index}" for index in range(len(columns.order))]
    passed = list(dict.fromkeys((*columns.by, *columns.order)))
    fields = {field.name: field for field in frame.schema.fields}
    wide = StructType([*(fields[name] for name in passed), StructField(INPUT, LongType())])
    needed = frame.select(*[col(name) for name in dict.fromkeys((*passed, columns.value))])
    rows = needed.mapInArrow(Inputs(release, passed, INPUT), wide).select(
        *[
            _group_text(name, types[name]).alias(alias)
            for name, alias in zip(columns.by, groups, strict=True)
        ],
        *[_whole(name, types[name]).alias(alias) for name, alias in zip(columns.order, places, strict=True)],
        F.lit(0).cast("bigint").alias(INTERNAL + "all"),
        col(INPUT),
    )
    keys = groups or [INTERNAL + "all"]
    group_fields = [StructField(alias, StringType()) for alias in groups]
    place_fields = [
        StructField(alias, StringType() if _text(types[name]) else LongType())
        for name, alias in zip(columns.order, places, strict=True)
    ]
    counted = [StructField(STEP, LongType()), StructField(SUM, LongType())]
    stepped = rows.groupBy(*[col(key) for key in keys]).applyInPandasWithState(
        Steps(release.mark, groups, places),
        StructType([*group_fields, *place_fields, *counted]),
        StructType([StructField("mark", StringType()), *counted, *place_fields]),
        "append",
        "NoTimeout",
    )
    typed = stepped.select(
        *[
            _group_value(alias, types[name]).alias(name)
            for name, alias in zip(columns.by, groups, strict=True)
        ],
        *[
            _place_value(alias, types[name]).alias(name)
            for name, alias in zip(columns.order, places, strict=True)
            if name not in columns.by
        ],
        col(STEP),
        col(SUM),
    )
    return typed.mapInArrow(
        Released(release, columns.by, shown, STEP, SUM), result_schema(frame, shown, columns.name, setup)
    )


def _check_versions() -> None:
    """Refuse what would fail in every micro-batch, with a message that nobody understands.

    Raises:
        ParameterError: PySpark 3.5 with a pyarrow from which it gets the groups' state wrong.
    """
    import pyarrow
    import pyspark

    spark, arrow = (int(module.__version__.split(".")[0]) for module in (pyspark, pyarrow))
    if spark < 4 and arrow >= 26:
        raise ParameterError("streams on PySpark 3.5 need an older pyarrow: pip install 'pyarrow<26'")


def _text(kind: Any) -> bool:
    return type(kind).__name__ == "StringType"


def _group_text(name: str, kind: Any) -> Any:
    """Return a group's value as text, a null as null: pandas keeps these as they are."""
    from pyspark.sql import functions as F

    return F.hex(col(name)) if type(kind).__name__ == "BinaryType" else col(name).cast("string")


def _group_value(alias: str, kind: Any) -> Any:
    from pyspark.sql import functions as F

    return F.unhex(col(alias)) if type(kind).__name__ == "BinaryType" else col(alias).cast(kind)


def _whole(name: str, kind: Any) -> Any:
    """Return a place as text or as a 64-bit integer in the same order."""
    from pyspark.sql import functions as F

    if _text(kind):
        return col(name)
    turned = _TO_WHOLE.get(type(kind).__name__)
    return (col(name) if turned is None else getattr(F, turned)(col(name))).cast("bigint")


def _place_value(alias: str, kind: Any) -> Any:
    from pyspark.sql import functions as F

    turned = _FROM_WHOLE.get(type(kind).__name__)
    if turned == "date_from_unix_date":
        return F.date_from_unix_date(col(alias).cast("int"))
    return (col(alias) if turned is None else getattr(F, turned)(col(alias))).cast(kind)


class Steps:
    """Numbers and sums the rows of a group: for ``applyInPandasWithState``.

    Args:
        mark: of key and mechanism. A stream that was begun under others is not continued.
        groups, places: columns.
    """

    def __init__(self, mark: str, groups: Sequence[str], places: Sequence[str]) -> None:
        self.mark, self.groups, self.places = mark, tuple(groups), tuple(places)

    def __call__(self, key: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        """Yield the rows of a micro-batch with steps and exact sums.

        Raises:
            StateError: the stream was begun under another key, version or mechanism.
            ParameterError: a row whose place is that of another, or lies before what was released.
            HorizonError: sums that do not fit into the engine's integers.
        """
        import pandas

        group = shown_group(key if self.groups else ())
        mark, count, total, *last = state.get if state.exists else (self.mark, 0, 0)
        if mark != self.mark:
            raise StateError(f"group {group} was begun under another key, version or mechanism")
        rows = pandas.concat(list(frames), ignore_index=True)
        if rows[list(self.places)].isna().to_numpy().any():
            raise ParameterError("order: an ordering column has nulls, and where they belong nobody knows")
        rows = rows.sort_values(list(self.places), kind="stable", ignore_index=True)
        if rows.duplicated(list(self.places)).any():
            raise ParameterError(f"rows of group {group} have the same place in order=: name further columns")
        first, final = (tuple(_plain(rows[name].iloc[at]) for name in self.places) for at in (0, -1))
        if last and first <= tuple(last):
            raise ParameterError(
                f"a row of group {group} belongs at or before a place that was released: "
                "rows must come in order"
            )
        sums = _summed(int(total), rows[INPUT].to_numpy(dtype=np.int64))
        steps = np.arange(count + 1, count + 1 + len(rows), dtype=np.int64)
        result = rows[[*self.groups, *self.places]].assign(**{STEP: steps, SUM: sums})
        state.update((self.mark, int(steps[-1]), int(sums[-1]), *final))
        yield result


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else int(value)


def _summed(total: int, inputs: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return total plus the running sums.

    Raises:
        HorizonError: they do not fit.
    """
    size = max(abs(int(inputs.min())), abs(int(inputs.max())))
    if abs(total) + size * len(inputs) > _MOST:
        raise HorizonError("the sum needs more than 62 bits, which is what Spark's integers hold")
    return total + np.cumsum(inputs)
