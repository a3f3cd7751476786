"""The log of a run: one JSON object a line, appended while it works, cut back when it resumes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trilift.lift.errors import ArtifactFormatError
from trilift.lift.files import read_regular
from trilift.lift.strict_json import parse_json

__all__ = ["LOG", "RunLog", "read_log"]

LOG = "log.jsonl"
_MAX_BYTES = 1 << 30


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the whole records of a log; a last line cut short, by a crash or as it is written, is left out.

    Raises:
        ArtifactFormatError: a whole line that is no JSON object.
    """
    if not path.exists():
        return []
    data = read_regular(path, max_bytes=_MAX_BYTES, grows=True)
    if data is None:
        raise ArtifactFormatError(f"{path}: larger than {_MAX_BYTES} bytes")
    *lines, _rest = data.split(b"\n")
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = parse_json(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise ArtifactFormatError(f"{path}: line {number} is not a JSON object")
        records.append(record)
    return records


class RunLog:
    """Appends records to a log."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, **record: Any) -> None:
        """Write one record; an infinite or NaN figure becomes null."""
        cleaned = {name: _plain(value) for name, value in record.items()}
        with self.path.open("a", encoding="ascii") as file:
            file.write(json.dumps(cleaned, allow_nan=False) + "\n")

    def keep(self, wanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Drop all other records (what came after the last checkpoint is about to happen again)."""
        records = [record for record in read_log(self.path) if wanted(record)]
        partial = self.path.with_suffix(".part")
        partial.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="ascii")
        os.replace(partial, self.path)
        return records


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 12) if abs(value) < float("inf") else None
    return value
