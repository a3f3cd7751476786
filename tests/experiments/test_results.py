"""docs/results.md is what the exact costs and the shipped certificates give."""

import json
from pathlib import Path

import pytest
from trilift.experiments import results, results_pictures
from trilift.experiments.bench.page import load_record
from trilift.experiments.published import KAPPA_CERTIFIED, KAPPA_DIRECT
from trilift.experiments.results import (
    best_chain,
    page,
    published_bound,
    shipped_constants,
    table1,
    table2,
)
from trilift.lift.errors import ParameterError
from trilift.lift.mechanisms import NAMES, price

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.slow
def test_the_page_is_current() -> None:
    record = load_record(DOCS / "measurements" / "bench.json")
    assert (DOCS / "results.md").read_text(encoding="utf-8") == page(record)


def test_the_pictures_are_small_and_there() -> None:
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    for name in ("results-constants.png", "results-errors.png", "results-peers.png"):
        assert f"({name})" in text
        picture = (DOCS / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < 300_000


def test_table1_keeps_its_contract() -> None:
    rows = json.loads(json.dumps(table1(1000), allow_nan=False))
    assert [row["mechanism"] for row in rows] == [*NAMES, "trilift"]
    keys = ["mechanism", "n", "kappa_max", "kappa_mean", "limit_max", "limit_mean"]
    assert all(list(row) == keys and row["n"] == 1000 for row in rows)
    by_name = {row["mechanism"]: row for row in rows}
    assert by_name["kary"]["kappa_max"] == price("kary", 1000).kappa("max")
    assert by_name["paper"]["kappa_max"] is by_name["paper"]["kappa_mean"] is None
    assert by_name["toeplitz-sqrt"]["limit_max"] is None
    ours = by_name.pop("trilift")
    assert ours["kappa_max"] == best_chain(1000, "max").cost.kappa("max")
    for row in by_name.values():  # smaller than all that is exact, and than all limits
        for key in keys[2:]:
            assert row[key] is None or ours[key] < row[key]
    for bad in (1, 0, 2.0, True, 10**15 + 1):
        with pytest.raises(ParameterError):
            table1(bad)


def test_table2_keeps_its_contract() -> None:
    rows = json.loads(json.dumps(table2(), allow_nan=False))
    keys = ["k", "kappa_direct_max", "kappa_direct_mean", "paper_max", "paper_mean", "certified"]
    assert {row["k"] for row in rows} >= {4, 8, 16, 32, 64, 128}
    for row in rows:
        assert list(row) == keys
        assert (row["paper_max"], row["paper_mean"]) == KAPPA_DIRECT[row["k"]]
        assert row["kappa_direct_max"] < row["paper_max"]
        assert row["kappa_direct_mean"] < row["paper_mean"]
        assert row["certified"] is True


def test_constants_by_size() -> None:
    stages, interior = shipped_constants("stage"), shipped_constants("stage", interior=True)
    assert list(stages) == sorted(stages) == list(interior)
    for size, pair in stages.items():
        assert all(inner <= outer for inner, outer in zip(interior[size], pair, strict=True))
    assert min(worst for worst, _ in stages.values()) < KAPPA_CERTIFIED[0]


def test_published_bound() -> None:
    # At the size of one base its own constant; never worse than with k = 1024 alone.
    assert published_bound(1024, "max") == pytest.approx(KAPPA_DIRECT[1024][0])
    for n in (100, 2**16, 2**20, 2**30):
        assert published_bound(n, "mean") <= price("paper", n, objective="mean").kappa("mean", bound=True)
    assert published_bound((9**2 - 1) // 2, "max") <= KAPPA_DIRECT[4][0] * 8 * 8 / results.math.log2(40) ** 3


def test_pictures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name, draw in (
        ("a.png", results_pictures.draw_constants),
        ("b.png", lambda path: results_pictures.draw_errors(path, powers=range(4, 7), ours=(4, 6))),
    ):
        draw(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_the_command_writes_page_and_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, planned, seen = [], [], []
    monkeypatch.setattr(results, "best_chain", lambda n, objective: planned.append((n, objective)))
    monkeypatch.setattr(results, "page", lambda record: "the page\n")
    monkeypatch.setattr(results_pictures, "draw_constants", drawn.append)
    monkeypatch.setattr(results_pictures, "draw_errors", drawn.append)
    assert results.main(["--out", str(tmp_path)]) == 0
    assert (tmp_path / "results.md").read_text(encoding="utf-8") == "the page\n"
    pictures = [tmp_path / "results-constants.png", tmp_path / "results-errors.png"]
    assert drawn == pictures
    assert {(n, o) for n in (2**10, 2**16, 2**20, 2**30) for o in ("max", "mean")} <= set(planned)
    files = results.write_results(tmp_path, report=lambda done, steps: seen.append((done, steps)))
    assert files == [tmp_path / "results.md", *pictures]
    steps = len(planned) // 2 + 1
    assert seen == [(done, steps) for done in range(steps)]


def test_table1_reports_its_progress() -> None:
    seen: list[tuple[int, int]] = []
    rows = table1(8, report=lambda done, steps: seen.append((done, steps)))
    assert seen == [(done, len(rows)) for done in range(len(rows))]
