"""The table of docs/spark.md is that of the record, and the record is of what was promised."""

import json
from pathlib import Path
from typing import Any

import pytest
from trilift.experiments.spark_plan import Plan, with_plan
from trilift.experiments.spark_scaling import CASES
from trilift.experiments.spark_stages import KINDS, stages
from trilift.experiments.spark_table import page_table, ratio, with_table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "spark.md"


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    text = (ROOT / "docs" / "measurements" / "spark_scaling.json").read_text(encoding="utf-8")
    kept: dict[str, Any] = json.loads(text)
    return kept


def test_the_page_shows_the_record(record: dict[str, Any]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text, record) == text
    assert page_table(record) in text


def test_the_record_is_whole(record: dict[str, Any]) -> None:
    assert (record["rows"], record["keys"]) == (10**7, 10**4)
    cases = [(one["workers"], one["cores"]) for one in record["processes"]]
    assert cases == list(CASES) * (len(cases) // len(CASES))
    runs = [run for one in record["processes"] for run in one["runs"]]
    assert record["same_values"] is (len({run["values"] for run in runs}) == 1)
    assert record["same_values"]
    for run in runs:
        assert [stage["kind"] for stage in run["stages"]] == list(KINDS)
        assert all(stage["tasks"] and stage["longest"] <= stage["seconds"] for stage in run["stages"])


def test_ratios_are_those_of_the_quickest(record: dict[str, Any]) -> None:
    slower = json.loads(json.dumps(record["processes"]))
    for one in slower:
        for run in one["runs"]:
            run["seconds"] *= 2
    twice = record | {"processes": slower + record["processes"]}
    for cores in (1, 2):
        for run in (0, 1):
            assert ratio(twice, cores=cores, run=run) == ratio(record, cores=cores, run=run)
    quicker = json.loads(json.dumps(record))
    quicker["processes"][2]["runs"][1]["seconds"] /= 3
    assert ratio(quicker, cores=1, run=1) == pytest.approx(3 * ratio(record, cores=1, run=1))
    assert ratio(quicker, cores=1, run=0) == ratio(record, cores=1, run=0)


def test_stages_of_an_event_log(tmp_path: Path) -> None:
    def task(stage: int, at: float, took: float, *, read: int, wrote: int, python: bool) -> str:
        metrics = {
            "Input Metrics": {"Records Read": read},
            "Shuffle Write Metrics": {"Shuffle Records Written": wrote, "Shuffle Bytes Written": 8 * wrote},
        }
        sent = [{"Name": "data sent to Python workers", "Update": "1"}] if python else []
        info = {"Launch Time": 1000 * at, "Finish Time": 1000 * (at + took), "Accumulables": sent}
        event = {
            "Event": "SparkListenerTaskEnd",
            "Stage ID": stage,
            "Task Info": info,
            "Task Metrics": metrics,
        }
        return json.dumps(event)

    lines = [
        json.dumps({"Event": "SparkListenerLogStart"}),
        task(0, 5, 9, read=100, wrote=100, python=False),  # of an earlier run
        task(1, 10, 1, read=100, wrote=7, python=False),
        task(2, 11, 2, read=50, wrote=50, python=False),
        task(2, 11, 3, read=50, wrote=50, python=False),
        task(3, 12, 4, read=100, wrote=5, python=True),
        task(4, 16, 5, read=0, wrote=1, python=True),
        task(5, 21, 0.5, read=0, wrote=0, python=False),
    ]
    (tmp_path / "log").write_text("\n".join(lines), encoding="utf-8")
    found = stages(tmp_path, begin=10, end=30)
    assert [stage["kind"] for stage in found] == list(KINDS)
    assert [stage["tasks"] for stage in found] == [1, 2, 1, 1, 1]
    assert [stage["seconds"] for stage in found] == pytest.approx([1, 5, 4, 5, 0.5])
    assert [stage["longest"] for stage in found] == pytest.approx([1, 3, 4, 5, 0.5])
    assert [stage["bytes"] for stage in found] == [56, 800, 40, 8, 0]


def test_a_page_without_a_place_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match="no place for the table"):
        with_table("# Spark\n", record)


def test_values_that_differ_are_said_to(record: dict[str, Any]) -> None:
    assert "NOT THE SAME" in page_table(record | {"same_values": False})


def test_the_page_shows_the_plan() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_plan(text, Plan()) == text
    assert with_plan(text, Plan(rows=10**9)) != text
    with pytest.raises(SystemExit, match="no place for the plan"):
        with_plan("# Spark\n", Plan())


def test_the_plan_adds_up() -> None:
    table = {
        line.split(" | ")[0].strip("| "): line
        for line in Plan(rows=2 * 10**6, keys=10, rows_per_task=10**5).lines()
    }
    assert "| 144 MB |" in table["reads of the source"]  # 2e6 x (8 + 16 + 24 + 24)
    assert "| 80 MB |" in table["shuffle of the rows"]  # 2e6 x (24 + 16)
    assert "| 10 |" in table["parts of the large key"]
    assert "| 4 core-seconds |" in table["noise"]
    assert "| 1,000 bytes |" in table["state of a stream"]
