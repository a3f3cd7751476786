"""Finished points in a file, so that an experiment that was stopped goes on where it was.

The file is JSON and is replaced as a whole after every point: a kill leaves the last complete one. It is
compatible with an experiment of the same name, runs, seed and format; anything else is refused, so that
results of different settings never mix. A checksum finds damage.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from trilift.lift.errors import ParameterError
from trilift.lift.files import read_regular
from trilift.lift.strict_json import parse_json

__all__ = ["Kept"]

FORMAT = 1
_MAX_BYTES = 1 << 30


def _checksum(points: Any) -> str:
    """Return a hash of finished points, as they will be read again."""
    return hashlib.sha256(json.dumps(json.loads(json.dumps(points)), sort_keys=True).encode()).hexdigest()


class Kept:
    """The finished points of an experiment.

    Args:
        path: the file, or None to keep nothing.
        settings: what must agree for points to be used again ("experiment", "runs", "seed").
    """

    def __init__(self, path: Path | None, *, settings: dict[str, Any]) -> None:
        self._path = path
        self._settings = {"format": FORMAT, "simulation": True, **settings}
        self.points: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            self.points = self._read(path)

    def _read(self, path: Path) -> dict[str, dict[str, Any]]:
        try:
            held = parse_json(read_regular(path, max_bytes=_MAX_BYTES) or b"")
            points, settings, checksum = held["points"], dict(held["settings"]), held["checksum"]
            if not isinstance(points, dict) or checksum != _checksum(points):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise ParameterError(
                f"{path} holds no results of an experiment, or is damaged: choose another folder"
            ) from None
        if settings != self._settings:
            differ = [n for n, value in self._settings.items() if settings.get(n) != value]
            raise ParameterError(
                f"{path} holds results of other settings ({', '.join(differ)}): choose another folder"
            )
        return dict(points)

    def add(self, key: str, record: dict[str, Any]) -> None:
        """Keep a finished point; the file is whole at every moment."""
        self.points[key] = record
        if self._path is None:
            return
        whole = {"settings": self._settings, "checksum": _checksum(self.points), "points": self.points}
        text = json.dumps(whole, indent=1, allow_nan=False)
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(self._path)
