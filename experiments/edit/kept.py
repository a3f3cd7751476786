"""Finished points in a file, so that an experiment that was stopped goes on where it was.

The file is JSON and is replaced as a whole after every point: a kill leaves the last complete one. It is
compatible with an experiment of the same name, runs, seed and format; anything else is refused, so that
results of different settings never mix.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from trilift.lift.errors import ParameterError

__all__ = ["Kept"]

FORMAT = 1


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
            held = json.loads(path.read_text(encoding="utf-8"))
            points, settings = held["points"], held["settings"]
        except (ValueError, KeyError, TypeError):
            raise ParameterError(f"{path} holds no results of an experiment: choose another folder") from None
        if settings != self._settings or not isinstance(points, dict):
            differ = [n for n, value in self._settings.items() if dict(settings).get(n) != value]
            raise ParameterError(
                f"{path} holds results of other settings ({', '.join(differ)}): choose another folder"
            )
        return dict(points)

    def add(self, key: str, record: dict[str, Any]) -> None:
        """Keep a finished point; the file is whole at every moment."""
        self.points[key] = record
        if self._path is None:
            return
        text = json.dumps({"settings": self._settings, "points": self.points}, indent=1, allow_nan=False)
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(self._path)
