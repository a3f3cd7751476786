"""The section of docs/edit-results.md about all variants on the grid."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trilift.experiments.edit.grid import summary
from trilift.lift.errors import ParameterError

__all__ = ["FILE", "grid_section", "load_grid"]

FILE = "edit_grid.json"


def load_grid(measurements: Path) -> list[dict[str, Any]]:
    """Return the cells that are kept.

    Raises:
        ParameterError: there are none.
    """
    path = measurements / FILE
    if not path.is_file():
        raise ParameterError(f"{path} is not there: see the text of trilift.experiments.edit.grid")
    return list(json.loads(path.read_text(encoding="utf-8"))["cells"].values())


def _variant(row: dict[str, Any]) -> str:
    bases = row["values"] if row["values"] == row["times"] else f"{row['values']}, {row['times']}"
    shown = "" if row["display"] == "latest" else f", {row['display']}"
    names = {"simecc": "SimECC", "ecc": "ECC", "gaussian": "GaussianCC"}
    return f"{names.get(row['mechanism'], row['mechanism'])} {row['accounting']}, {bases}{shown}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _error(row: dict[str, Any]) -> str:
    return _digits(row["rmse"]) + ("" if row["rmse_se"] is None else f" ± {1.96 * row['rmse_se']:.1g}")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(header), ["---"] * len(header), *[list(row) for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _overview(cells: Sequence[dict[str, Any]]) -> str:
    rows = []
    for cell in cells:
        chosen = next(row for row in cell["variants"] if row["chosen"])
        best = cell["variants"][0]
        rows.append(
            [
                cell["epsilon"],
                f"10^{len(str(cell['T'])) - 1}",
                cell["stream"],
                _variant(chosen),
                _error(chosen),
                _digits(chosen["predicted_rmse"]),
                "the same" if best["chosen"] else f"{_variant(best)}: {_error(best)}",
                f"{100 * cell['excess']:.1f} %",
            ]
        )
    header = ["ε", "T", "stream", "automatic choice", "error", "predicted", "best variant", "excess"]
    return _table(header, rows)


def _all_variants(cells: Sequence[dict[str, Any]]) -> str:
    """Error of every variant, a column a cell."""
    names = list(dict.fromkeys(_variant(row) for cell in cells for row in cell["variants"]))
    found = [{_variant(row): row for row in cell["variants"]} for cell in cells]
    rows = []
    for name in names:
        cells_of = [_digits(own[name]["rmse"]) if name in own else "" for own in found]
        rows.append([name, *cells_of])
    return _table(["variant", *[f"ε = {cell['epsilon']}" for cell in cells]], rows)


def grid_section(measurements: Path) -> list[str]:
    """Return the blocks of the section: headings, paragraphs and tables.

    Raises:
        ParameterError: no grid is kept.
    """
    cells = load_grid(measurements)
    excess, off = summary(cells)
    blocks = [
        "## All variants on a grid",
        f"""Every variant of SimECC and ECC in `trilift.counters.edit`, δ = 1e-5, simulated on the same
        streams (`python -m trilift.experiments.edit.grid`). The automatic choice goes by predicted errors;
        it is never more than {100 * excess:.1f} % worse than the best variant here, and predictions of
        variants near the best one are within {100 * off:.1f} % of the simulation. All figures with their
        standard errors are in [{FILE}](measurements/{FILE}).""",
        _overview(cells),
    ]
    for steps, stream in dict.fromkeys((cell["T"], cell["stream"]) for cell in cells):
        own = [cell for cell in cells if (cell["T"], cell["stream"]) == (steps, stream)]
        blocks += [f"### T = 10^{len(str(steps)) - 1}, {stream}", _all_variants(own)]
    return blocks
