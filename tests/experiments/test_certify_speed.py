"""The comparison runs, checks its own products and prints what it promises (no time is asserted)."""

import json

from trilift.artifacts import find
from trilift.experiments import certify_speed


def test_record_and_json(capsys):
    assert certify_speed.main(["--sizes", "9", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert (record["size"], record["inner"]) == (9, find("stage-mean-9").stage.inner)
    assert record["sympy_task_ratio"] == record["sympy_task_seconds"] / record["certify_seconds"] > 0


def test_table(capsys):
    assert certify_speed.main(["--sizes", "9"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
