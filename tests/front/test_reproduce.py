"""``trilift reproduce``."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trilift.experiments import results, results_pictures
from trilift.output import progress

Run = Callable[..., Any]


def test_table1(run: Run) -> None:
    done = run("reproduce", "table1", "--horizon", 64, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json == results.table1(64)
    text = run("reproduce", "table1", "-n", 64).out
    assert "for n = 64" in text
    for row in done.json:
        title = f"  {results.TITLES[row['mechanism']]}  "
        (line,) = [line for line in text.splitlines() if line.startswith(title)]
        assert row["kappa_max"] is None or f"{row['kappa_max']:.6f}" in line.split()


def test_table1_is_about_a_million_steps(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(results, "table1", lambda n, *, report: asked.append(n) or [])
    assert run("reproduce", "table1", "--json").json == []
    assert asked == [2**20]


def test_table2(run: Run) -> None:
    done = run("reproduce", "table2", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json == results.table2()
    lines = run("reproduce", "table2").out.splitlines()
    for row in done.json:
        (cells,) = [line.split() for line in lines if line.split()[:1] == [str(row["k"])]]
        assert 0 <= float(cells[1]) - row["kappa_direct_max"] <= 1.0001e-6
        assert math.isclose(float(cells[4]), row["paper_mean"])


def test_results(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the page and the pictures left out; tests/experiments look at them."""
    monkeypatch.setattr(results, "best_chain", lambda n, objective: None)
    monkeypatch.setattr(results, "page", lambda record: "the page\n")
    for name in ("draw_constants", "draw_errors"):
        monkeypatch.setattr(results_pictures, name, lambda path: path.write_bytes(b"png"))
    done = run("reproduce", "results", "--out", "new/folder")
    assert (done.code, done.out) == (0, "")
    names = ["results-constants.png", "results-errors.png", "results.md"]
    assert sorted(path.name for path in Path("new/folder").iterdir()) == names
    assert all(name in done.err for name in names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table1", "-n", 1), "horizon must be an integer >= 2"),
        (("table1", "-n", 10**16), "and <= 1000000000000000"),
        (("table1", "-n", "1e6"), "horizon must be an integer, such as 1000000"),
        (("table3",), "No such command 'table3'"),
        (("results",), "Missing option '--out'"),
    ],
)
def test_refusals(refused: Callable[..., str], arguments: tuple[object, ...], message: str) -> None:
    assert message in refused("reproduce", *arguments)


def test_progress_is_for_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress("Working") as report:
        report(1, 2)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress("Working") as report:
        report(1, 2)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Working" in shown.err
    assert "1/2" in shown.err
