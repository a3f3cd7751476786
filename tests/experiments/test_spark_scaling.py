"""The table of docs/spark.md is that of the record, and the record is of what was promised."""

import json
from pathlib import Path
from typing import Any

import pytest
from trilift.experiments.spark_plan import Plan, with_plan
from trilift.experiments.spark_scaling import page_table, with_table

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
    for workers in (1, 2):
        times = [run["seconds"] for run in record["runs"] if run["workers"] == workers]
        assert len(times) == len(record["runs"]) / 2
        assert record["seconds"][str(workers)] == min(times)
    assert record["ratio"] == record["seconds"]["1"] / record["seconds"]["2"]
    assert record["same_values"] is (len({run["values"] for run in record["runs"]}) == 1)
    assert record["same_values"]


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
    assert "| 64 MB |" in table["shuffle of the rows"]
    assert "| 10 |" in table["parts of the large key"]
    assert "| 4 core-seconds |" in table["noise"]
    assert "| 1,000 bytes |" in table["state of a stream"]
