"""All variants on the grid: what a cell says, and going on with a file."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift.counters.edit.choose import choose_design
from trilift.counters.edit.design import make_design
from trilift.experiments.edit import grid
from trilift.experiments.edit.designs import mechanism_of
from trilift.experiments.edit.display import mean_squares
from trilift.experiments.edit.grid import CELLS, DELTA, Cell, Variant, cell_errors, do_cell, main, summary
from trilift.experiments.edit.grid_page import grid_section, load_grid
from trilift.lift.errors import ParameterError

MEASUREMENTS = Path(__file__).resolve().parents[3] / "docs" / "measurements"
SMALL = Cell("10", 500, 0.5)


def design(display: str = "latest", **options: Any) -> Any:
    settings = {"horizon": 500, "rate": 0.5, "accounting": "sharp", "base": "toeplitz"} | options
    return make_design(Fraction(10), delta=Fraction(DELTA), display=display, **settings)


def variant(of: Any) -> Variant:
    return Variant.of(of, predicted_rmse=of.predict(horizon=500, rate=0.5).rmse)


def test_cells() -> None:
    assert len(CELLS) == len({cell.key for cell in CELLS}) == 31
    assert {(cell.epsilon, cell.steps, cell.rate) for cell in CELLS} >= {
        ("1/2", 10**6, 0.01),
        ("30", 10**4, 0.5),
    }
    assert CELLS[-1].stream.name == "blocks of 10: 0.1, 0.9"


def test_errors_are_those_of_the_whole_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run by run against simulate(), with the same draws; and a sample of steps is nearly the same."""
    mechanisms = [mechanism_of(design(display)) for display in ("latest", "extrapolated")]
    found = cell_errors(mechanisms, cell=SMALL, first=2, runs=3, seed=9)
    place = grid.zlib.crc32(SMALL.key.encode())
    for run in range(3):
        inputs = np.random.default_rng([9, place, run + 2])
        prefix = SMALL.stream.draw(inputs, runs=1, shift=False).prefix
        for index, mechanism in enumerate(mechanisms):
            rng = np.random.default_rng([9, place, run + 2, index])
            whole = math.sqrt(mean_squares(mechanism.simulate(prefix, rng=rng), prefix)[0])
            assert found[index, run] == pytest.approx(whole)
    monkeypatch.setattr(grid, "_SAMPLED", 100)
    sampled = cell_errors(mechanisms, cell=SMALL, first=2, runs=3, seed=9)
    assert sampled == pytest.approx(found, rel=0.15)
    assert not np.array_equal(sampled, found)


def test_a_cell() -> None:
    designs = [design(), design("extrapolated"), design(accounting="paper", base="cc")]
    variants = [variant(d) for d in designs]
    said: list[str] = []
    cell = do_cell(SMALL, variants=variants, chosen=0, runs=(6, 20, 30), say=said.append)
    rows = cell["variants"]
    assert [row["rmse"] for row in rows] == sorted(row["rmse"] for row in rows)
    assert rows[0]["display"] == "extrapolated"
    assert [row["accounting"] for row in rows] == ["sharp", "sharp", "paper"]
    # the best, the choice (always looked at as closely), and one far off
    assert [row["runs"] for row in rows] == [30, 30, 6]
    assert cell["best_rmse"] == rows[0]["rmse"]
    assert cell["chosen_rmse"] == rows[1]["rmse"]
    assert cell["excess"] == pytest.approx(rows[1]["rmse"] / rows[0]["rmse"] - 1)
    assert len(said) == 4
    excess, off = summary([cell])
    assert excess == cell["excess"]
    assert 0 <= off < 0.5
    assert rows[0]["predicted_rmse"] == pytest.approx(rows[0]["rmse"], rel=0.25)


def test_going_on_with_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two = [variant(design()), variant(design("extrapolated"))]
    monkeypatch.setattr(grid, "CELLS", (SMALL, Cell("3", 500, 0.5)))
    monkeypatch.setattr(grid, "_RUNS", {500: (2, 3, 4)})
    monkeypatch.setattr(grid, "_variants", lambda cell: (two, 1))
    path = tmp_path / "edit_grid.json"
    assert main(["--out", str(path), "--only", "10 |"]) == 0
    first = json.loads(path.read_text())
    assert list(first["cells"]) == [SMALL.key]
    monkeypatch.setattr(grid, "_variants", lambda cell: (two, 0))
    assert main(["--out", str(path)]) == 1  # the choice is far from the best one
    second = json.loads(path.read_text())
    assert len(second["cells"]) == 2
    assert second["cells"][SMALL.key] == first["cells"][SMALL.key]
    assert "above the best" in capsys.readouterr().out
    blocks = grid_section(tmp_path)
    assert blocks[0].startswith("## ")
    assert "SimECC sharp, toeplitz, extrapolated" in "".join(blocks)
    with pytest.raises(ParameterError, match="another seed"):
        main(["--out", str(path), "--seed", "4"])
    with pytest.raises(ParameterError, match="is not there"):
        load_grid(tmp_path / "none")


@pytest.mark.slow
def test_all_variants_of_a_cell() -> None:
    found, chosen = grid._variants(Cell("10", 1000, 0.1))
    names = [tuple(v.names.values()) for v in found]
    assert len(set(names)) == len(names)
    kinds = {(v.names["mechanism"], v.names["accounting"]) for v in found}
    assert {("simecc", "paper"), ("ecc", "paper"), ("simecc", "sharp"), ("ecc", "sharp")} <= kinds
    assert {v.names["values"] for v in found} >= {"toeplitz", "l2-chain", "chain", "cc", "independent"}
    automatic = choose_design(10, delta=Fraction(DELTA), horizon=1000, rate=0.1)
    assert found[chosen].names["display"] == automatic.display
    assert found[chosen].predicted_rmse == min(v.predicted_rmse for v in found)
    errors = cell_errors([v.simulated for v in found[-2:]], cell=SMALL, first=0, runs=1, seed=0)
    assert np.all(errors > 0)


def test_the_kept_grid_holds_what_is_asked() -> None:
    """The automatic choice is never more than 5 % worse than the best variant, in any cell."""
    cells = load_grid(MEASUREMENTS)
    assert len(cells) == len(CELLS)
    assert summary(cells)[0] <= 0.05
    block = cells[-1]
    assert block["stream"] == "blocks of 10: 0.1, 0.9"
    assert block["best_rmse"] <= 30
    assert all(sum(row["chosen"] for row in cell["variants"]) == 1 for cell in cells)


@pytest.mark.parametrize(("option", "code"), [("--help", 0), ("--bogus", 2)])
def test_help_and_usage(option: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([option])
    assert left.value.code == code
    captured = capsys.readouterr()
    assert (captured.out if code == 0 else captured.err).startswith("usage: ")
