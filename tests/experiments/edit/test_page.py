"""docs/edit-results.md is what the kept results give, and the kept results are what simulation gives."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from trilift.experiments.edit import page as page_module
from trilift.experiments.edit.page import KEPT, PICTURES, compact, keep, load_kept, page, write_page
from trilift.experiments.edit.plans import experiment
from trilift.experiments.edit.points import run_point
from trilift.experiments.edit.runner import points_file
from trilift.lift.errors import ParameterError

DOCS = Path(__file__).resolve().parents[3] / "docs"
MEASUREMENTS = DOCS / "measurements"


def test_the_page_is_current() -> None:
    assert (DOCS / "edit-results.md").read_text(encoding="utf-8") == page(MEASUREMENTS)


def test_the_pictures_are_small_and_there() -> None:
    text = (DOCS / "edit-results.md").read_text(encoding="utf-8")
    for name in PICTURES.values():
        assert f"({name})" in text
        picture = (DOCS / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < 300_000


def kept_points(name: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    points = load_kept(name, measurements=MEASUREMENTS)["points"]
    return {identity(p): p for p in points}


def identity(p: dict[str, Any]) -> tuple[Any, ...]:
    return (
        p["mechanism"],
        p["variant"],
        p["base"],
        f"{p['epsilon']:.5g}",
        f"{p['ln_delta']:.5g}",
        p["T"],
        p["stream"],
    )


@pytest.mark.parametrize("name", KEPT)
def test_every_point_is_kept(name: str) -> None:
    expected = {
        identity(vars(p) | {"T": p.stream.steps, "stream": p.stream.name}) for p in experiment(name).points
    }
    assert set(kept_points(name)) == expected


@pytest.mark.parametrize(
    ("name", "which", "runs"),
    [
        ("edit-table1", [0, 17, 29, 47, 80, -1], 60),
        ("edit-fig1b", [0, 2, 5, 8], 20),
        ("edit-fig3", [3, 100, 211, 305, -1], 100),
    ],
)
def test_some_points_again(name: str, which: list[int], runs: int) -> None:
    """Fewer runs, another seed; 5 standard errors of both: false alarm below 15 * 6e-7, if nearly normal."""
    kept = kept_points(name)
    points = experiment(name).points
    for index in which:
        again = run_point(points[index], runs=runs, seed=999)
        before = kept[identity(again)]
        allowed = 5 * math.hypot(again["rmse_se"], before["rmse_se"])
        assert abs(again["rmse"] - before["rmse"]) <= allowed, points[index].key
        if again["advantage"] is not None:
            assert abs(again["advantage"] - before["advantage"]) <= 5 / math.sqrt(runs)


def test_reference_numbers() -> None:
    """Within 3 standard errors of numbers computed independently."""
    kept = {
        (p["mechanism"], p["variant"], f"{p['epsilon']:.3g}"): p for p in kept_points("edit-table1").values()
    }
    for key, expected, expected_se in (
        (("GaussianCC", "paper", "20.4"), 325.98, 0.01),
        (("GaussianCC", "paper", "150"), 83.79, 0.01),
        (("BaseCC", "paper", "0.1"), 279.6, 1.1),
        (("PartitionCC", "paper", "0.378"), 106.5, 0.8),
        (("PartitionCC", "paper", "0.194"), 186.1, 1.4),
        (("SimECC", "paper", "150"), 49.7, 0.2),
        (("SimECC", "joint sqrt(40), eps/51", "150"), 22.9, 0.1),
        (("SimECC", "joint sqrt(40), eps/9", "150"), 21.2, 0.1),
    ):
        point = kept[key]
        assert abs(point["rmse"] - expected) <= 3 * math.hypot(point["rmse_se"], expected_se), key


def test_keeping(tmp_path: Path) -> None:
    """Of every point the record with the most runs; all points must be there."""
    chosen = experiment("edit-fig2")
    keys = [point.key for point in chosen.points]
    for folder, runs, own in (("few", 10, keys[:3]), ("many", 50, keys[2:]), ("none", 1, [])):
        (tmp_path / folder).mkdir()
        points = {key: {"runs": runs, "rmse": 1.23456789012, "correct": 3, "ci_low": None} for key in own}
        held = {"settings": {"seed": runs}, "points": points}
        points_file(chosen, folder=tmp_path / folder).write_text(json.dumps(held))
    with pytest.raises(ParameterError, match="2 points of edit-fig2 are missing"):
        keep("edit-fig2", folders=[tmp_path / "many"], measurements=tmp_path)
    folders = [tmp_path / "few", tmp_path / "many", tmp_path]
    path = keep("edit-fig2", folders=folders, measurements=tmp_path)
    held = load_kept("edit-fig2", measurements=tmp_path)
    assert [point["runs"] for point in held["points"]] == [10, 10, 50, 50]
    assert held["points"][0] == {"runs": 10, "rmse": 1.234568, "ci_low": None}
    assert held["seeds"] == [10, 50]
    assert len(path.read_text().splitlines()) == 6
    assert compact([0.1, {"a": 1e-9 / 3}]) == [0.1, {"a": 3.333333e-10}]
    with pytest.raises(ParameterError, match="is not there"):
        load_kept("edit-fig3", measurements=tmp_path)


@pytest.mark.slow
def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "measurements").mkdir()
    for path in MEASUREMENTS.glob("edit_*.json"):
        (tmp_path / "measurements" / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(page_module, "page", lambda measurements: "the page\n")
    files = write_page(tmp_path)
    assert [path.name for path in files] == ["edit-results.md", *PICTURES.values()]
    assert files[0].read_text() == "the page\n"
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in files[1:])
    assert page_module.main(["--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("\n") == len(files)


@pytest.mark.parametrize(("option", "code"), [("--help", 0), ("--bogus", 2)])
def test_help_and_usage(option: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        page_module.main([option])
    assert left.value.code == code
    captured = capsys.readouterr()
    assert (captured.out if code == 0 else captured.err).startswith("usage: ")
