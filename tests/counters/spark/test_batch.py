"""Spark's batches release what a single machine releases, whoever sums which rows."""

import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from trilift.counters.frames import private_cumsum
from trilift.counters.spark import SparkCumsum, spark_cumsum
from trilift.counters.spark.cuts import routes_to

pytestmark = pytest.mark.slow

OPTIONS: dict[str, Any] = {
    "epsilon": 1,
    "by": "carrier",
    "groups": "observed",
    "order": "time",
    "horizon": 5000,
    "key": "env:TRILIFT_TEST_KEY",
    "version": "2026",
}


def flights() -> pd.DataFrame:
    """Return 1,200 rows in disorder: one carrier has half of them, forty have 15 each."""
    rows = [
        ("big" if index % 2 else f"c{index // 2 % 40}", (index * 517) % 1201, int(index % 7 < 3))
        for index in range(1200)
    ]
    return pd.DataFrame(rows, columns=["carrier", "time", "late"])


def many(**changed: Any) -> dict[str, Any]:
    return {**OPTIONS, **changed}


def test_equals_the_single_machine_with_one_key_of_half_the_rows(spark: Any) -> None:
    frame = flights()
    single = private_cumsum(frame, "late", **OPTIONS)
    wanted = {(row.carrier, row.time): row.late_private for row in single.itertuples()}
    source = spark.createDataFrame(frame).repartition(3)
    plan = spark_cumsum(source, "late", **OPTIONS, rows_per_task=100)
    assert plan.columns == ["carrier", "time", "late_private"]
    rows = plan.collect()
    assert len(rows) == len(frame)
    assert {(row.carrier, row.time): row.late_private for row in rows} == wanted
    # The rows of the key are summed and get their noise in several tasks, none of which has nearly all.
    from pyspark.sql import functions as F

    tasks = plan.where("carrier = 'big'").groupBy(F.spark_partition_id()).count().collect()
    assert len(tasks) > 1
    assert max(row["count"] for row in tasks) < 600
    # Neither the key nor what is derived from it is in the plan.
    text = plan._jdf.queryExecution().toString() + source._jdf.queryExecution().toString()
    assert "5a5a5a" not in text.lower()


def test_a_part_that_is_torn_apart_is_not_released(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = spark.createDataFrame(flights())
    original = type(source).repartition
    # What an engine that distributes rows otherwise than it says would do: any rows to any task.
    monkeypatch.setattr(type(source), "repartition", lambda frame, tasks, *columns: original(frame, tasks))
    plan = spark_cumsum(source, "late", **OPTIONS, rows_per_task=100)
    with pytest.raises(Exception, match="has torn a part of a group apart"):
        plan.collect()


def test_routes_lead_where_they_should(spark: Any) -> None:
    from pyspark.sql import functions as F

    for tasks, count in ((1, 3), (7, 20), (200, 12)):
        routes = routes_to(tasks, count)
        assert len(set(routes)) == count
        frame = spark.createDataFrame([(route,) for route in routes], "route int")
        sent = frame.repartition(tasks, "route").select("route", F.spark_partition_id())
        assert {row[0]: row[1] for row in sent.collect()} == {
            route: index % tasks for index, route in enumerate(routes)
        }


@pytest.mark.parametrize("rows_per_task", [60, 5000])
def test_one_group_of_all_rows(spark: Any, rows_per_task: int) -> None:
    frame = flights().drop(columns="carrier")
    options = many(by=None, groups=None)
    single = private_cumsum(frame.drop_duplicates("time"), "late", **options)
    source = spark.createDataFrame(frame.drop_duplicates("time")).repartition(5)
    plan = spark_cumsum(source, "late", **options, rows_per_task=rows_per_task)
    assert {row.time: row.late_private for row in plan.coalesce(1).collect()} == dict(
        zip(single.time, single.late_private, strict=True)
    )


def test_kinds_of_columns_and_noise(spark: Any) -> None:
    from pyspark.sql import types as T

    rows = [
        (
            None if i % 5 == 0 else i % 5,
            datetime.date(2026, 1, 1 + i % 2),
            i // 3,
            f"é{i % 3}",
            (i % 9) / 4,
            i,
            i % 50,
        )
        for i in range(300)
    ]
    rows[7] = (*rows[7][:4], None, *rows[7][5:])
    frame = pd.DataFrame(rows, columns=["ward", "day", "time", "bed", "dose", "row", "person"])
    frame = frame.astype({"ward": "Int64"})
    options = many(
        by=["ward", "day"],
        order=["time", "bed"],
        bounds=(0, 2),
        resolution=0.25,
        delta=1e-6,
        nulls="zero",
        horizon=None,
        keep=["row"],
        person="person",
        max_contributions=6,
        postprocess="nonnegative",
    )
    single = private_cumsum(frame, "dose", **options)
    kinds = (
        T.IntegerType(),
        T.DateType(),
        T.LongType(),
        T.StringType(),
        T.DoubleType(),
        T.LongType(),
        T.LongType(),
    )
    schema = T.StructType(
        [T.StructField(name, kind) for name, kind in zip(frame.columns, kinds, strict=True)]
    )
    result = spark_cumsum(spark.createDataFrame(rows, schema), "dose", **options, rows_per_task=25)
    assert result.columns == list(single.columns)
    got = {row.row: row.dose_private for row in result.collect()}
    assert got == dict(zip(single.row, single.dose_private, strict=True))


@pytest.mark.parametrize(
    ("changed", "columns", "said"),
    [
        ({}, {"time": [1, 1]}, "rows of one group have the same place in order="),
        ({}, {"time": [1, None]}, "an ordering column has nulls"),
        ({}, {"late": [1, 12345]}, "an input that is not acceptable (it is not shown here)"),
        ({}, {"late": [None, 1]}, "column 'late' has no value in some row"),
        ({"groups": ["DL"]}, {}, "group 'AA' is not among the declared groups"),
        ({"horizon": 1}, {}, "step 1 lies outside 0..0"),
        ({"person": "tail"}, {}, "a person has more than max_contributions = 1 rows"),
        ({"person": "tail"}, {"tail": ["a", None]}, "a row is nobody's: column 'tail' has no value there"),
    ],
)
def test_refused_rows(spark: Any, changed: dict[str, Any], columns: dict[str, list[Any]], said: str) -> None:
    table = {"carrier": ["AA", "AA"], "time": [1, 2], "late": [0, 1], "tail": ["a", "a"]} | columns
    frame = spark.createDataFrame(
        list(zip(*table.values(), strict=True)), "carrier string, time bigint, late bigint, tail string"
    )
    with pytest.raises(Exception, match=said.replace("(", r"\(").replace(")", r"\)")) as caught:
        spark_cumsum(frame, "late", **many(**changed)).collect()
    assert "12345" not in str(caught.value)


def test_refused_columns(spark: Any) -> None:
    frame = spark.createDataFrame([(1.5, 1, 0, [1])], "f double, time bigint, late bigint, a array<bigint>")
    for changed, said in (
        ({"by": "f"}, "column 'f' of type double cannot group"),
        ({"by": None, "groups": None, "order": "a"}, r"column 'a' of type array<bigint> cannot order"),
        ({"by": "carrier"}, "column 'carrier' is not in the frame"),
        ({"by": None, "groups": None, "bounds": (0, 1 << 45)}, "more than 62 bits"),
    ):
        with pytest.raises(ValueError, match=said):
            spark_cumsum(frame, "late", **many(**changed))
    with pytest.raises(ValueError, match="has a column that begins with"):
        spark_cumsum(frame.withColumnRenamed("f", "trilift_internal_x"), "late", **many(by=None, groups=None))


def test_another_key_than_the_drivers(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("11" * 32, encoding="ascii")
    private = SparkCumsum("late", **many(key=f"file:{path}"))
    frame = spark.createDataFrame(flights().head(20))
    plan = private.apply(frame)
    path.write_text("12" * 32, encoding="ascii")  # such as an executor that has another file
    with pytest.raises(Exception, match="the key or the mechanism here is not that of the driver"):
        plan.collect()
    path.write_text("11" * 32, encoding="ascii")
    assert len(private.apply(frame).collect()) == 20


def test_nothing_but_frames_of_spark(spark: Any) -> None:
    with pytest.raises(ValueError, match="df must be a DataFrame of Spark, got a DataFrame"):
        spark_cumsum(flights(), "late", **OPTIONS)
