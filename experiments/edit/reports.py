"""What an experiment leaves: JSON, CSV, and a picture where matplotlib is installed."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trilift.experiments.edit.tables import adversary_table
from trilift.lift.errors import MissingExtraError

__all__ = ["COLUMNS", "result_of", "write_reports"]

COLUMNS = (
    "mechanism",
    "variant",
    "base",
    "epsilon",
    "ln_delta",
    "T",
    "stream",
    "runs",
    "rmse",
    "rmse_se",
    "advantage",
    "ci_low",
    "ci_high",
)
"""Columns of the CSV file; the fields that every point has."""


def result_of(name: str, *, records: Sequence[dict[str, Any]], seed: int) -> dict[str, Any]:
    """Return the JSON of an experiment: its points, and for edit-table1 the table."""
    result: dict[str, Any] = {
        "experiment": name,
        "simulation": "floating-point noise, many runs at once",
        "seed": seed,
        "points": list(records),
    }
    if name == "edit-table1":
        result["table"] = adversary_table(records)
    return result


def write_reports(
    name: str, *, result: dict[str, Any], folder: Path, picture: bool = True
) -> tuple[list[Path], str | None]:
    """Write NAME.json, NAME.csv and NAME.png into a folder, over those that are there.

    Args:
        name: of the experiment.
        result: from :func:`result_of`.
        folder: an existing one.
        picture: whether to draw.

    Returns:
        the files written, and why there is no picture, or None.

    Raises:
        OSError: a file cannot be written.
    """
    files = [folder / f"{name}.json", folder / f"{name}.csv"]
    files[0].write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    with files[1].open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(result["points"])
    if not picture:
        return files, None
    try:
        from trilift.experiments.edit.pictures import draw

        draw(name, records=result["points"], path=folder / f"{name}.png")
    except MissingExtraError as error:
        return files, str(error)
    return [*files, folder / f"{name}.png"], None
