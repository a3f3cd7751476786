"""Finished points are kept, survive a kill, and never mix with those of other settings."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from trilift.experiments.edit import kept, runner
from trilift.experiments.edit.float_noise import IndependentNoise
from trilift.experiments.edit.mechanisms import NoisyCounter
from trilift.experiments.edit.plans import Experiment
from trilift.experiments.edit.points import Point
from trilift.experiments.edit.reports import COLUMNS, result_of, write_reports
from trilift.experiments.edit.runner import do_experiment, points_file
from trilift.experiments.edit.streams import block_stream
from trilift.experiments.edit.tables import adversary_table, published_cell
from trilift.lift.errors import ParameterError

STREAM = block_stream(100)


class Interrupted(Exception):
    pass


def make(sd: float) -> NoisyCounter:
    return NoisyCounter(IndependentNoise(np.full(STREAM.steps, sd)))


SMALL = Experiment(
    "edit-fig1a",
    "small",
    tuple(
        Point("GaussianCC", "paper", "independent", e, -3.0, STREAM, lambda e=e: make(10 / e))
        for e in (1.0, 2.0, 4.0)
    ),
    runs=10,
    kept="small",
)


def test_going_on_after_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = do_experiment(SMALL, seed=5)
    done: list[str] = []

    def counted(point: Point, **options: object) -> dict[str, object]:
        if len(done) == 2:
            raise Interrupted
        done.append(point.key)
        return plain(point, **options)

    plain = runner.run_point
    monkeypatch.setattr(runner, "run_point", counted)
    with pytest.raises(Interrupted):
        do_experiment(SMALL, seed=5, folder=tmp_path)
    assert list(json.loads(points_file(SMALL, folder=tmp_path).read_text())["points"]) == done
    done.clear()
    told: list[tuple[int, int]] = []
    assert do_experiment(SMALL, seed=5, folder=tmp_path, report=lambda *at: told.append(at)) == whole
    assert done == [SMALL.points[2].key]
    assert [path.name for path in tmp_path.iterdir()] == ["small.points.json"]


def test_a_stop_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    do_experiment(replace(SMALL, points=SMALL.points[:1]), folder=tmp_path)
    before = points_file(SMALL, folder=tmp_path).read_bytes()

    def stop(handle: int) -> None:
        raise Interrupted

    monkeypatch.setattr(kept.os, "fsync", stop)
    with pytest.raises(Interrupted):
        do_experiment(SMALL, folder=tmp_path)
    assert points_file(SMALL, folder=tmp_path).read_bytes() == before


def test_other_settings_are_refused(tmp_path: Path) -> None:
    do_experiment(SMALL, folder=tmp_path)
    with pytest.raises(ParameterError, match=r"other settings \(seed\)"):
        do_experiment(SMALL, seed=1, folder=tmp_path)
    with pytest.raises(ParameterError, match=r"other settings \(runs\)"):
        do_experiment(SMALL, runs=11, folder=tmp_path)
    points_file(SMALL, folder=tmp_path).write_text("[]")
    with pytest.raises(ParameterError, match="no results"):
        do_experiment(SMALL, folder=tmp_path)
    for bad in (0, -1, True, 2.0, 10**9):
        with pytest.raises(ParameterError):
            do_experiment(SMALL, runs=bad)


def test_progress_ends_at_the_total() -> None:
    told: list[tuple[int, int]] = []
    long = replace(SMALL, runs=12_000)
    do_experiment(long, report=lambda done, total: told.append((done, total)))
    assert told[-1] == (3, 3)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def record(mechanism: str, epsilon: float, rmse: float, high: float | None) -> dict[str, object]:
    return {
        "mechanism": mechanism,
        "variant": "paper",
        "base": "b",
        "epsilon": epsilon,
        "rmse": rmse,
        "rmse_se": 1.0,
        "advantage": 0.0,
        "ci_low": None if high is None else -high,
        "ci_high": high,
    }


def test_the_rule_of_the_table() -> None:
    records = [
        record("A", 1, 50.0, 0.04),
        record("A", 2, 20.0, 0.09),
        record("A", 3, 10.0, 0.11),
        record("B", 1, 7.0, 0.2),
    ]
    rows = {(r["mechanism"], r["bound"]): (r["rmse"], r["epsilon"]) for r in adversary_table(records)}
    assert rows == {
        ("A", 0.1): (20.0, 2),
        ("A", 0.05): (50.0, 1),
        ("B", 0.1): (None, None),
        ("B", 0.05): (None, None),
    }
    turned = {**record("A", 4, 1.0, 0.05), "ci_low": -0.2}  # an attack that is wrong too often
    assert adversary_table([*records, turned])[0]["rmse"] == 1.0
    assert adversary_table([*records, turned], two_sided=True)[0]["rmse"] == 20.0
    assert published_cell("BaseCC", variant="paper", bound=0.05) is None
    assert published_cell("SimECC", variant="joint", bound=0.1) is None


@pytest.mark.parametrize("name", ["edit-fig1a", "edit-fig1b", "edit-fig2", "edit-fig3", "edit-table1"])
def test_reports(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    points = tuple(replace(p, histogram=name == "edit-fig2") for p in SMALL.points)
    records = do_experiment(replace(SMALL, points=points), runs=6)
    result = result_of(name, records=records, seed=0)
    files, missing = write_reports(name, result=result, folder=tmp_path)
    assert missing is None
    assert [path.name for path in files] == [f"{name}.json", f"{name}.csv", f"{name}.png"]
    assert json.loads(files[0].read_text()) == result
    lines = files[1].read_text().splitlines()
    assert lines[0].split(",") == list(COLUMNS)
    assert len(lines) == 4
    assert files[2].read_bytes().startswith(b"\x89PNG")
    assert ("table" in result) == (name == "edit-table1")
