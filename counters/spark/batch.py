"""The plan of a batch: rows go to their tasks once, which sort, sum and release them; large groups in parts.

Most groups have few rows: one task has all rows of such a group. A group with more than ``rows_per_task`` is
cut into parts (:mod:`trilift.counters.spark.cuts`), and each part is moved by what comes before it in its
group. The engine only distributes rows; what is computed with them is in
:mod:`trilift.counters.spark.parts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trilift.counters.frames.spec import Columns
from trilift.counters.spark.columns import INTERNAL, check_types, col, guard
from trilift.counters.spark.cuts import PART, ROUTE, aliases, cuts_of, same_group, sizes_of, with_parts
from trilift.counters.spark.parts import RunningSums, Totals
from trilift.counters.spark.release import Release
from trilift.counters.streamed import StreamSetup
from trilift.lift.errors import ParameterError

__all__ = ["INPUT", "STEP", "SUM", "batch_plan", "check_sums", "result_schema"]

INPUT, STEP, SUM = (INTERNAL + name for name in ("input", "step", "sum"))
_ROWS, _ROWS_BEFORE, _SUM_BEFORE, _NUMBER, _WHICH = (
    INTERNAL + name for name in ("rows", "rows_before", "sum_before", "number", "which_part")
)

_APART = "the engine has torn a part of a group apart: nothing is released, since its steps would be wrong"


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
    sizes = sizes_of(frame, columns.by, rows_per_task)
    check_sums(setup, sizes.most)
    person = (columns.person,) if columns.person else ()
    used = dict.fromkeys((*shown, *columns.by, *columns.order, columns.value, *person))
    rows = frame.select(*[col(name) for name in used])
    cuts, most = cuts_of(frame, columns, sizes, rows_per_task, types) if sizes.large else (None, 0)
    parted = with_parts(rows, columns, cuts, most)
    if columns.person is not None:
        whose = col(columns.person)
        alone = Window.partitionBy(whose).orderBy(*[col(name) for name in columns.order])
        number = F.when(whose.isNotNull(), F.row_number().over(alone).cast("bigint"))
        parted = parted.withColumn(_NUMBER, number)
    # By number, not only by columns: such a distribution is not changed while the query runs. Each row checks
    # that it is where its route leads, so that all rows of a part are in one task, or nothing is released.
    sent = parted.repartition(sizes.tasks, col(ROUTE))
    if sizes.tasks > 1:
        led = F.pmod(F.hash(col(ROUTE)), F.lit(sizes.tasks))
        part = guard(bad=led != F.spark_partition_id(), message=_APART, otherwise=col(PART).cast("bigint"))
        sent = sent.withColumn(PART, part)
    if cuts is not None:
        cut = with_parts(rows, columns, cuts, most, small=False)
        sent = _with_offsets(sent, cut, columns, release)
    needed = [*used, PART]
    needed += [_ROWS_BEFORE, _SUM_BEFORE] if cuts is not None else []
    needed += [_NUMBER] if columns.person is not None else []
    sums = RunningSums(
        release,
        columns,
        shown,
        part=PART,
        offsets=None if cuts is None else (_ROWS_BEFORE, _SUM_BEFORE),
        number=_NUMBER if columns.person is not None else None,
        most=setup.max_contributions,
    )
    schema = result_schema(frame, shown, columns.name, setup)
    return sent.select(*[col(name) for name in needed]).mapInArrow(sums, schema)


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


def _with_offsets(sent: Any, cut: Any, columns: Columns, release: Release) -> Any:
    """Return the rows with what the earlier parts of their group have: rows and sum."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F
    from pyspark.sql.types import IntegerType, LongType, StructField, StructType

    names = (*columns.by, PART)
    fields = {field.name: field for field in cut.schema.fields}
    schema = StructType(
        [
            *(StructField(name, fields[name].dataType) for name in columns.by),
            StructField(PART, IntegerType()),
            StructField(_ROWS, LongType()),
            StructField(SUM, LongType()),
        ]
    )
    cut = cut.select(*[col(name) for name in (*names, columns.value)])
    by = [col(name) for name in columns.by]
    totals = cut.mapInArrow(Totals(release, names, (_ROWS, SUM)), schema).groupBy(*by, col(PART))
    totals = totals.agg(F.sum(col(_ROWS)).alias(_ROWS), F.sum(col(SUM)).alias(SUM))
    earlier = Window.partitionBy(*by).orderBy(col(PART)).rowsBetween(Window.unboundedPreceding, -1)
    offsets = totals.select(
        *[column.alias(alias) for column, alias in zip(by, aliases(columns.by), strict=True)],
        col(PART).cast("bigint").alias(_WHICH),
        F.coalesce(F.sum(col(_ROWS)).over(earlier), F.lit(0)).alias(_ROWS_BEFORE),
        F.coalesce(F.sum(col(SUM)).over(earlier), F.lit(0)).alias(_SUM_BEFORE),
    )
    same = same_group(columns.by) & (col(PART) == col(_WHICH))
    joined = sent.join(F.broadcast(offsets), on=same, how="left")
    for name in (_ROWS_BEFORE, _SUM_BEFORE):
        joined = joined.withColumn(name, F.coalesce(col(name), F.lit(0)))
    return joined
