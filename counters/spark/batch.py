"""Exact running sums by the engine in two levels: parts of a group in parallel, then what came before each.

Most groups have few rows: one task sorts and sums each of them. A group with more than ``rows_per_task`` is
cut into parts at places (values of the ordering columns) that are fixed before anything is summed. Which
part a row is in is then a function of the row alone, so that a task that runs again, or a total that is
computed twice, finds the same parts: nothing depends on how the engine happened to split its data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trilift.counters.frames.spec import Columns
from trilift.counters.spark.columns import INTERNAL, check_types, col, guard, null_or_nan, place
from trilift.counters.spark.executor import Inputs, Released
from trilift.counters.spark.release import Release
from trilift.counters.streamed import StreamSetup
from trilift.lift.errors import ParameterError

__all__ = ["batch_plan", "check_sums", "result_schema"]

_SAMPLES = 64  # of a part, to find the places where to cut: its size is then right within an eighth or so
_SEED = 1

INPUT, STEP, SUM, PART = (INTERNAL + name for name in ("input", "step", "sum", "part"))
_CUTS, _COUNT, _ROWS_BEFORE, _SUM_BEFORE = (
    INTERNAL + name for name in ("cuts", "count", "rows_before", "sum_before")
)
_NUMBER = INTERNAL + "number"


def batch_plan(
    frame: Any, columns: Columns, setup: StreamSetup, release: Release, *, rows_per_task: int
) -> Any:
    """Return the frame with the released column, to be computed by whatever action comes.

    Two jobs run at once: one counts the rows of the groups, and if any group is large, one samples its
    places.

    Raises:
        ParameterError: a column that is not acceptable, or sums that need more than 63 bits.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    shown = columns.shown(frame.columns)
    types = check_types(frame, columns)
    large = _large(frame, columns.by, rows_per_task)
    check_sums(setup, max([rows_per_task, *(row[_COUNT] for row in large)]))
    rows = _inputs(frame, columns, release, shown)
    cuts = _cuts(frame, columns, large, rows_per_task, types) if large else None
    rows = _with_parts(rows, columns, cuts)
    by = [col(name) for name in columns.by]
    within = Window.partitionBy(*by, col(PART)).orderBy(*[col(name) for name in columns.order])
    before = within.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    tied = F.coalesce(F.lag(place(columns.order)).over(within) == place(columns.order), F.lit(False))
    step = F.row_number().over(within).cast("bigint")
    step = guard(bad=tied, message=_TIES, otherwise=step)
    step = guard(bad=null_or_nan(columns.order, types), message=_NULLS, otherwise=step)
    if columns.person is not None:
        most = setup.max_contributions
        nobody, surplus = col(columns.person).isNull(), col(_NUMBER) > F.lit(most)
        step = guard(bad=surplus, message=_SURPLUS.format(most), otherwise=step)
        step = guard(bad=nobody, message=_NOBODY.format(columns.person), otherwise=step)
        alone = Window.partitionBy(col(columns.person)).orderBy(*[col(name) for name in columns.order])
        rows = rows.withColumn(_NUMBER, F.row_number().over(alone))
    summed = rows.withColumn(STEP, step).withColumn(SUM, F.sum(col(INPUT)).over(before))
    if large:
        summed = _with_offsets(summed, rows, columns)
    kept = summed.select(*[col(name) for name in shown], col(STEP), col(SUM))
    return kept.mapInArrow(
        Released(release, columns.by, shown, STEP, SUM), result_schema(frame, shown, columns.name, setup)
    )


_TIES = (
    "rows of one group have the same place in order=: name columns that tell them apart, since which of them "
    "comes first would be up to the engine"
)
_NULLS = "order: an ordering column has nulls, and where they belong nobody knows"
_SURPLUS = "a person has more than max_contributions = {} rows"
_NOBODY = "a row is nobody's: column {!r} has no value there"


def check_sums(setup: StreamSetup, rows: int) -> None:
    """Check that exact sums of so many rows fit into the engine's integers.

    Raises:
        ParameterError: they may not.
    """
    size = max(abs(setup.rule.low), abs(setup.rule.high)) << (setup.output_places - setup.rule.places)
    if size * rows >= 1 << 62:
        raise ParameterError("sums may need more than 62 bits, which is what Spark's integers hold")


def result_schema(frame: Any, shown: Sequence[str], name: str, setup: StreamSetup) -> Any:
    """Return the schema of the result: integers on the integer lattice, floats (exact ones) otherwise."""
    from pyspark.sql.types import DoubleType, LongType, StructField, StructType

    fields = {field.name: field for field in frame.schema.fields}
    kind = LongType() if setup.output_places == 0 else DoubleType()
    return StructType([*(fields[column] for column in shown), StructField(name, kind)])


def _large(frame: Any, by: Sequence[str], rows_per_task: int) -> list[Any]:
    from pyspark.sql import functions as F

    counts = frame.groupBy(*[col(name) for name in by]).agg(F.count(F.lit(1)).alias(_COUNT))
    return list(counts.where(col(_COUNT) > rows_per_task).collect())


def _inputs(frame: Any, columns: Columns, release: Release, shown: Sequence[str]) -> Any:
    """Return the rows with their inputs in lattice steps instead of values."""
    from pyspark.sql.types import LongType, StructField, StructType

    passed = list(dict.fromkeys((*shown, *columns.order, *((columns.person,) if columns.person else ()))))
    fields = {field.name: field for field in frame.schema.fields}
    schema = StructType([*(fields[name] for name in passed), StructField(INPUT, LongType())])
    needed = frame.select(*[col(name) for name in dict.fromkeys((*passed, columns.value))])
    return needed.mapInArrow(Inputs(release, passed, INPUT), schema)


def _with_parts(rows: Any, columns: Columns, cuts: Any) -> Any:
    """Return the rows with the number of their part of the group: 0 for groups that are not cut."""
    from pyspark.sql import functions as F

    if cuts is None:
        return rows.withColumn(PART, F.lit(0))
    most = max((len(row[_CUTS]) for row in cuts.collect()), default=1)
    halves = F.array(*[F.lit(1 << bit) for bit in reversed(range(max(most, 1).bit_length()))])
    here = place(columns.order)

    def further(found: Any, half: Any) -> Any:  # a binary search: how many cuts are at or before this place
        return F.when(F.get(col(_CUTS), found + half - 1) <= here, found + half).otherwise(found)

    part = F.when(col(_CUTS).isNull(), F.lit(0)).otherwise(F.aggregate(halves, F.lit(0), further) + 1)
    joined = rows.join(F.broadcast(cuts), on=_same(columns.by), how="left").withColumn(PART, part)
    return joined.drop(_CUTS, *_aliases(columns.by))


def _aliases(by: Sequence[str]) -> list[str]:
    return [f"{INTERNAL}by{index}" for index in range(len(by))]


def _same(by: Sequence[str]) -> Any:
    """Return whether the groups of two sides are the same, nulls too; the other side has aliases."""
    from pyspark.sql import functions as F

    same = F.lit(True)
    for name, alias in zip(by, _aliases(by), strict=True):
        same = same & col(name).eqNullSafe(col(alias))
    return same


def _cuts(frame: Any, columns: Columns, large: list[Any], rows_per_task: int, types: dict[str, Any]) -> Any:
    """Return a frame with a row for each large group: the places where it is cut. They are fixed here."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, StructField, StructType

    spark = frame.sparkSession
    aliases = _aliases(columns.by)
    keys = StructType(
        [StructField(alias, types[name]) for alias, name in zip(aliases, columns.by, strict=True)]
    )
    which = spark.createDataFrame([tuple(row[name] for name in columns.by) for row in large], keys)
    fraction = min(1.0, _SAMPLES / rows_per_task)
    own = frame.select(*[col(name) for name in dict.fromkeys((*columns.by, *columns.order))])
    if aliases:
        own = own.join(F.broadcast(which), on=_same(columns.by), how="inner")
    sampled = own.sample(fraction, seed=_SEED).groupBy(*[col(alias) for alias in aliases])
    places = F.sort_array(F.collect_list(place(columns.order)))
    found = sampled.agg(F.transform(_every(places), lambda index: F.element_at(places, index)).alias(_CUTS))
    order = StructType([StructField(f"o{index}", types[name]) for index, name in enumerate(columns.order)])
    schema = StructType([*keys.fields, StructField(_CUTS, ArrayType(order))])
    return spark.createDataFrame(found.collect(), schema)


def _every(places: Any) -> Any:
    from pyspark.sql import functions as F

    last = F.size(places)
    first = F.lit(_SAMPLES)
    return F.when(last >= first, F.sequence(first, last, F.lit(_SAMPLES))).otherwise(
        F.array().cast("array<int>")
    )


def _with_offsets(summed: Any, rows: Any, columns: Columns) -> Any:
    """Add to steps and sums within parts what the earlier parts of the group have."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    by = [col(name) for name in columns.by]
    totals = rows.where(col(PART) > 0).groupBy(*by, col(PART))
    totals = totals.agg(F.count(F.lit(1)).alias(_COUNT), F.sum(col(INPUT)).alias(SUM))
    earlier = Window.partitionBy(*by).orderBy(col(PART)).rowsBetween(Window.unboundedPreceding, -1)
    aliases, part = _aliases(columns.by), INTERNAL + "which_part"
    offsets = totals.select(
        *[column.alias(alias) for column, alias in zip(by, aliases, strict=True)],
        col(PART).alias(part),
        F.coalesce(F.sum(col(_COUNT)).over(earlier), F.lit(0)).alias(_ROWS_BEFORE),
        F.coalesce(F.sum(col(SUM)).over(earlier), F.lit(0)).alias(_SUM_BEFORE),
    )
    same = _same(columns.by) & (col(PART) == col(part))
    joined = summed.join(F.broadcast(offsets), on=same, how="left")
    return joined.withColumn(STEP, col(STEP) + F.coalesce(col(_ROWS_BEFORE), F.lit(0))).withColumn(
        SUM, col(SUM) + F.coalesce(col(_SUM_BEFORE), F.lit(0))
    )
