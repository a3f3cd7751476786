"""Inputs on which a reader failed once, by target: made here, to show what was wrong with them."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trilift.artifacts.listing import find
from trilift.experiments.trust.forgery import plain_npy
from trilift.verify.chains import write_chain

__all__ = ["FOUND"]


def _chain(**changes: Any) -> Callable[[], bytes]:
    def made() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            levels = [find("stage-max-9"), find("direct-max-4")]
            record = write_chain(Path(folder), levels, horizon=20, objective="max")
        return json.dumps(record | changes).encode("ascii")

    return made


def _member(kind: str) -> bytes:
    """Return an archive whose only array names a type of its own."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("R.npy", plain_npy(kind, (2, 4), bytes(8)))
    return file.getvalue()


FOUND: Mapping[str, Mapping[str, Callable[[], bytes]]] = {
    "chain": {
        "a scale beyond the floats": _chain(scales=["9" * 400, "9" * 400]),
        "a scale that would be multiplied out for hours": _chain(scales=["1e999999999", "1"]),
    },
    "checkpoint": {"a type that numpy does not have": lambda: _member("<f1")},
    "matrix": {"a type that numpy does not have": lambda: _member("<f1")},
}
"""By target and by what is wrong."""
