"""Where large groups are cut into parts, and which task has which part: functions of a row alone.

Places to cut at are fixed before anything is summed, so that a task that runs again, or a total that is
computed twice, finds the same parts: nothing depends on how the engine happened to split its data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.counters.frames.spec import Columns
from trilift.counters.spark.columns import INTERNAL, col, place

__all__ = [
    "PART",
    "ROUTE",
    "Sizes",
    "aliases",
    "cuts_of",
    "routes_to",
    "same_group",
    "sizes_of",
    "with_parts",
]

PART, ROUTE = INTERNAL + "part", INTERNAL + "route"

_SAMPLES = 64  # of a part, to find the places where to cut: its size is then right within an eighth or so
_SEED = 1
_COUNT, _CUTS, _ROUTES, _STEP = (INTERNAL + name for name in ("count", "cuts", "routes", "cut_step"))
_WORTH_A_TASK = 1 << 16  # rows: starting a task for fewer takes longer than the rows

Words = np.ndarray[Any, np.dtype[np.uint32]]


@dataclass(frozen=True)
class Sizes:
    """How many rows there are.

    Attributes:
        rows: of the frame.
        large: a row of the engine for each group that is cut: its ``by`` values.
        most: rows of the largest group, or ``rows_per_task`` if that is more.
        tasks: that sum and release.
    """

    rows: int
    large: list[Any]
    most: int
    tasks: int


def sizes_of(frame: Any, by: Sequence[str], rows_per_task: int) -> Sizes:
    """Count the rows of groups, in one job; those of more than ``rows_per_task`` rows are to be cut."""
    from pyspark.sql import functions as F

    counts = frame.groupBy(*[col(name) for name in by]).agg(F.count(F.lit(1)).alias(_COUNT))
    is_large = col(_COUNT) > rows_per_task
    values = F.struct(
        *[col(name).alias(alias) for name, alias in zip(by, aliases(by), strict=True)], col(_COUNT)
    )
    found = counts.agg(
        F.coalesce(F.sum(col(_COUNT)), F.lit(0)).alias("rows"),
        F.collect_list(F.when(is_large, values)).alias("large"),
    ).collect()[0]
    rows, large = int(found["rows"]), list(found["large"])
    usual = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    tasks = max(-(-rows // rows_per_task), min(usual, -(-rows // _WORTH_A_TASK)), 1)
    if not by and not large:
        tasks = 1
    return Sizes(rows, large, max([rows_per_task, *(row[_COUNT] for row in large)]), tasks)


def aliases(by: Sequence[str]) -> list[str]:
    """Return names for the grouping columns of the other side of a join."""
    return [f"{INTERNAL}by{index}" for index in range(len(by))]


def same_group(by: Sequence[str]) -> Any:
    """Return whether the groups of two sides are the same, nulls too; the other side has aliases."""
    from pyspark.sql import functions as F

    same = F.lit(True)
    for name, alias in zip(by, aliases(by), strict=True):
        same = same & col(name).eqNullSafe(col(alias))
    return same


def cuts_of(frame: Any, columns: Columns, sizes: Sizes, rows_per_task: int, types: dict[str, Any]) -> Any:
    """Return a frame with a row for each large group: where it is cut, and the routes of its parts.

    One job samples places; they are fixed here.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

    spark, names = frame.sparkSession, aliases(columns.by)
    keys = [StructField(alias, types[name]) for alias, name in zip(names, columns.by, strict=True)]
    groups = [tuple(row[alias] for alias in names) for row in sizes.large]
    which = spark.createDataFrame(groups, StructType(keys))
    own = frame.select(*[col(name) for name in dict.fromkeys((*columns.by, *columns.order))])
    # Sampled before they are joined: few rows are left then.
    own = own.sample(min(1.0, _SAMPLES / rows_per_task), seed=_SEED)
    if names:
        own = own.join(F.broadcast(which), on=same_group(columns.by), how="inner")
    places = F.sort_array(F.collect_list(place(columns.order)))
    cuts = F.transform(_every(places), lambda index: F.element_at(places, index))
    found = own.groupBy(*[col(alias) for alias in names]).agg(cuts.alias(_CUTS)).collect()
    routes = iter(routes_to(sizes.tasks, sum(len(row[_CUTS]) + 1 for row in found)))
    rows = [(*row, [next(routes) for _ in range(len(row[_CUTS]) + 1)]) for row in found]
    order = StructType([StructField(f"o{index}", types[name]) for index, name in enumerate(columns.order)])
    more = [StructField(_CUTS, ArrayType(order)), StructField(_ROUTES, ArrayType(IntegerType()))]
    return spark.createDataFrame(rows, StructType([*keys, *more])), max(
        (len(row[_CUTS]) for row in found), default=0
    )


def _every(places: Any) -> Any:
    from pyspark.sql import functions as F

    last, first = F.size(places), F.lit(_SAMPLES)
    return F.when(last >= first, F.sequence(first, last, first)).otherwise(F.array().cast("array<int>"))


def with_parts(rows: Any, columns: Columns, cuts: Any, most: int, *, small: bool = True) -> Any:
    """Return the rows with a route and the number of their part of the group, 0 where it is not cut.

    Args:
        rows: of the source.
        columns: that are used.
        cuts: of :func:`cuts_of`, or None.
        most: cuts of a group.
        small: keep the rows of groups that are not cut. (Never filter by part: the engine would move the
            filter before the comparisons, and write each of them out for every use of its result.)
    """
    from pyspark.sql import functions as F

    hashed = F.hash(*[col(name) for name in columns.by]) if columns.by else F.lit(0)
    if cuts is None:
        return rows.withColumn(PART, F.lit(0)).withColumn(ROUTE, hashed)
    here, found = place(columns.order), F.lit(0)
    joined = rows.join(F.broadcast(cuts), on=same_group(columns.by), how="left" if small else "inner")
    # A binary search: how many cuts are at or before this place. One column a comparison, which the engine
    # compiles; as a function of higher order it would be interpreted row by row.
    for bit in reversed(range(most.bit_length())):
        at = F.get(col(_CUTS), found + ((1 << bit) - 1))
        joined = joined.withColumn(_STEP, F.when(at <= here, found + (1 << bit)).otherwise(found))
        found = col(_STEP)
    own = ~col(_ROUTES).isNull()
    joined = joined.withColumn(PART, F.when(own, found + 1).otherwise(F.lit(0)))
    joined = joined.withColumn(ROUTE, F.when(own, F.get(col(_ROUTES), col(PART) - 1)).otherwise(hashed))
    return joined.drop(_CUTS, _ROUTES, _STEP, *aliases(columns.by))


def routes_to(tasks: int, count: int) -> list[int]:
    """Return integers that the engine's hash sends to the tasks 0, 1, 2, ..., in turn, ``count`` of them.

    A part of a large group is a task's work: left to their own hashes, several would meet in some tasks and
    others would have none. Which task it is does not change what is released, only how long it takes.
    """
    routes: dict[int, list[int]] = {task: [] for task in range(min(tasks, count))}
    needed, begin = -(-count // tasks), 0
    while any(len(found) < needed for found in routes.values()):
        numbers = np.arange(begin, begin + 8 * tasks + 64, dtype=np.uint32)
        begin = int(numbers[-1]) + 1
        for number, task in zip(numbers.tolist(), (_murmur3(numbers) % tasks).tolist(), strict=True):
            if task in routes:
                routes[task].append(number)
    return [routes[index % tasks][index // tasks] for index in range(count)]


def _murmur3(numbers: Words) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return Murmur3 (x86, 32 bits, seed 42) of 32-bit integers: what the engine distributes rows by."""

    def turned(words: Words, bits: int) -> Words:
        return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))

    mixed = turned(numbers * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    hashed = turned(np.uint32(42) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    hashed = hashed ^ np.uint32(4)  # bytes
    hashed = (hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (hashed ^ (hashed >> np.uint32(16))).astype(np.int32).astype(np.int64)
