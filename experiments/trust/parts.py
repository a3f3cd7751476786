"""The parts of the trust page: each is a module here that measures one subject and counts what held.

A part has ``PART``, its name, and ``measure(*, full, seed, tell)``. What it returns:

* "part", "full": the name, and whether all of it was run or a small version;
* "rows": a list of {"what", "tried", "held", "detail"}: of so many cases tried, in so many trilift did what
  it should (a fault was caught, a kill was survived, an input was handled);
* "note": plain text about how it was measured;
* "columns", if a part's rows carry more: {key of the rows: heading}, shown before the detail;
* anything else, which is kept and not shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from trilift.lift.checks import choice
from trilift.lift.errors import ArtifactFormatError, ParameterError

__all__ = ["PARTS", "failures", "kept_file", "load_result", "measure_part", "save_result"]

PARTS = ("faults", "audits", "kills", "inputs", "files", "fuzz", "samplers", "soak", "supply")
"""Names of the parts, in the order of the page."""

_ROW = {"what": str, "tried": int, "held": int, "detail": str}
_RESULT = {"part": str, "full": bool, "rows": list, "note": str}


def measure_part(
    part: str, *, full: bool, seed: int = 1, tell: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Measure one part.

    Args:
        part: one of :data:`PARTS`.
        full: all of it (minutes), or a small version (seconds).
        seed: decides everything that is random.
        tell: is told how far it is.

    Raises:
        ParameterError: no such part.
    """
    module = import_module(f"trilift.experiments.trust.{choice('part', part, PARTS)}")
    result: dict[str, Any] = module.measure(full=full, seed=seed, tell=tell)
    return _checked(result, part, f"the result of {part}")


def failures(result: dict[str, Any]) -> list[str]:
    """Return a line for every row of a result in which not everything held."""
    return [
        f"{result['part']}: {row['what']}: {row['held']} of {row['tried']} held: {row['detail']}"
        for row in result["rows"]
        if row["held"] != row["tried"]
    ]


def kept_file(part: str, *, measurements: Path) -> Path:
    """Return where the result of a part is kept."""
    return measurements / f"trust_{part}.json"


def load_result(part: str, *, measurements: Path) -> dict[str, Any]:
    """Read a result that is kept.

    Raises:
        ParameterError: it is not there.
        ArtifactFormatError: it is not the result of this part.
    """
    path = kept_file(part, measurements=measurements)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ParameterError(
            f"{path} is not there: make it by `trilift reproduce trust --part {part} --full`"
        ) from None
    try:
        return _checked(json.loads(text), part, str(path))
    except ValueError:
        raise ArtifactFormatError(f"{path}: is not JSON") from None


def save_result(result: dict[str, Any], *, measurements: Path) -> Path:
    """Keep a result, one row a line, and return its file.

    Raises:
        OSError: it cannot be written.
    """
    path = kept_file(result["part"], measurements=measurements)
    head = {key: value for key, value in result.items() if key != "rows"}
    opening = json.dumps(head, indent=1, allow_nan=False, ensure_ascii=False).removesuffix("\n}")
    rows = ",\n  ".join(json.dumps(row, allow_nan=False, ensure_ascii=False) for row in result["rows"])
    path.write_text(f'{opening},\n "rows": [\n  {rows}\n ]\n}}\n', encoding="utf-8")
    return path


def _checked(result: Any, part: str, where: str) -> dict[str, Any]:
    if not isinstance(result, dict) or result.get("part") != part or not _typed(result, _RESULT):
        raise ArtifactFormatError(f"{where}: is no result of the part {part}")
    extra = result.get("columns", {})
    for row in result["rows"]:
        if not isinstance(row, dict) or not _typed(row, _ROW) or not 0 <= row["held"] <= row["tried"]:
            raise ArtifactFormatError(f"{where}: a row is damaged")
        if not row["tried"] or any(key not in row for key in extra):
            raise ArtifactFormatError(f"{where}: the row {row['what']!r} tried nothing, or lacks a column")
    if not result["rows"]:
        raise ArtifactFormatError(f"{where}: nothing was tried")
    return result


def _typed(record: dict[str, Any], types: dict[str, type]) -> bool:
    return all(type(record.get(key)) is kind for key, kind in types.items())
