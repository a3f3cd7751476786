"""Inputs on which a reader failed once, by target: made here, to show what was wrong with them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trilift.artifacts.listing import find
from trilift.verify.chains import write_chain

__all__ = ["FOUND"]


def _chain(**changes: Any) -> Callable[[], bytes]:
    def made() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            levels = [find("stage-max-9"), find("direct-max-4")]
            record = write_chain(Path(folder), levels, horizon=20, objective="max")
        return json.dumps(record | changes).encode("ascii")

    return made


FOUND: Mapping[str, Mapping[str, Callable[[], bytes]]] = {
    "chain": {
        "a scale beyond the floats": _chain(scales=["9" * 400, "9" * 400]),
        "a scale that would be multiplied out for hours": _chain(scales=["1e999999999", "1"]),
    },
}
"""By target and by what is wrong."""
