"""``trilift reproduce edit-*``."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trilift.experiments.edit import plans
from trilift.experiments.edit.plans import EXPERIMENTS, experiment

Run = Callable[..., Any]
KEYS = ("mechanism", "variant", "base", "epsilon", "ln_delta", "T", "runs", "rmse", "rmse_se")
KEYS += ("advantage", "ci_low", "ci_high")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave every experiment its first points."""
    for name, (title, points, runs, kept) in list(plans._LISTS.items()):
        first = points()[:4]
        monkeypatch.setitem(plans._LISTS, name, (title, lambda first=first: first, runs, kept))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_json_keeps_its_contract(name: str, run: Run) -> None:
    done = run("reproduce", name, "--runs", 4, "--seed", 7, "--json")
    assert done.code == 0
    assert done.err.startswith("Simulation in floating point")
    points = done.json["points"]
    assert len(points) == len(experiment(name).points) == 4
    for point in points:
        assert set(KEYS) <= set(point)
        assert point["runs"] == 4
        assert point["rmse"] > 0
    assert ("table" in done.json) == (name == "edit-table1")
    assert {p["variant"] for p in points} & {"paper"}


@pytest.mark.usefixtures("few")
def test_a_folder_is_gone_on_with(run: Run) -> None:
    pytest.importorskip("matplotlib")
    first = run("reproduce", "edit-fig1a", "--runs", 3, "--out", "new/folder")
    assert first.code == 0
    names = sorted(path.name for path in Path("new/folder").iterdir())
    assert names == [f"edit-fig1a.{end}" for end in ("csv", "json", "png", "points.json")]
    held = Path("new/folder/edit-fig1a.points.json")
    kept = json.loads(held.read_text())
    key, other = list(kept["points"])[:2]
    kept["points"][key]["rmse"] = 12345.0  # to see that it is taken from there
    del kept["points"][other]
    held.write_text(json.dumps({"settings": kept["settings"], "checksum": "", "points": kept["points"]}))
    refused = run("reproduce", "edit-table1", "--runs", 3, "--out", "new/folder", "--resume")
    assert refused.code == 2
    assert "damaged" in refused.err
    text = json.dumps(kept["points"], sort_keys=True)
    held.write_text(json.dumps({**kept, "checksum": hashlib.sha256(text.encode()).hexdigest()}))
    again = run("reproduce", "edit-table1", "--runs", 3, "--out", "new/folder", "--resume", "--json")
    assert again.code == 0
    assert [p["rmse"] == 12345.0 for p in again.json["points"]] == [True, False, False, False]
    assert json.loads(Path("new/folder/edit-table1.json").read_text()) == again.json


@pytest.mark.usefixtures("few")
def test_tables(run: Run) -> None:
    text = run("reproduce", "edit-table1", "--runs", 3).out
    assert "280.60" in text
    text = run("reproduce", "edit-fig1b", "--runs", 2).out
    assert "HorizonGaussian" in text
    assert "advantage" not in text


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("edit-fig1a", "--runs", 0), "runs must be an integer >= 1"),
        (("edit-fig1a", "--runs", "1e3"), "runs must be an integer, such as 1000"),
        (("edit-fig1a", "--seed", -1), "seed must be an integer >= 0"),
        (("edit-fig1a", "--jobs", 0), "jobs must be an integer >= 1"),
        (("edit-fig1a", "--resume"), "--resume needs an --out folder"),
        (("edit-fig1a", "--resume", "--out", "empty"), "--resume needs an --out folder"),
        (("edit-fig4",), "No such command"),
    ],
)
def test_refusals(refused: Callable[..., str], arguments: tuple[object, ...], message: str) -> None:
    assert message in refused("reproduce", *arguments)
