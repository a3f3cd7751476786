"""Saved Gaussian counters of edit neighbours: a small JSON file, written atomically, for its owner only."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from trilift.counters.edit.gaussian_setup import GaussianSetup
from trilift.counters.position import Position, Step
from trilift.lift.checks import show
from trilift.lift.errors import ArtifactFormatError, TriliftError
from trilift.lift.files import atomic_write
from trilift.lift.integers import shrink

__all__ = ["FORMAT", "GaussianSnapshot", "read", "write"]

FORMAT = "trilift edit gaussian state"
VERSION = 1
_MAX_BYTES = 64 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class GaussianSnapshot:
    """What a file holds: the class of the counter, its setup, secrets, and where the stream stands."""

    kind: str
    setup: GaussianSetup
    digest: str
    key: bytes
    stream_id: bytes
    simulated: bool
    position: Position

    def __repr__(self) -> str:
        return f"GaussianSnapshot({self.kind}, step={self.position.step}, secrets hidden)"


def _checksum(record: dict[str, Any]) -> str:
    """Return SHA-256 of everything else in the record: edits and flipped bits show, forgeries do not."""
    rest = {name: value for name, value in record.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write(path: Path, snapshot: GaussianSnapshot) -> None:
    """Write atomically, readable by the owner only; the end of a link is what is replaced.

    Raises:
        OSError: the file cannot be written; what was there before is unchanged.
    """
    path = Path(os.path.realpath(path))  # the end of a link, or it would keep an old state
    now = snapshot.position
    record = {
        "format": FORMAT,
        "version": VERSION,
        "kind": snapshot.kind,
        "setup": snapshot.setup.record(),
        "digest": snapshot.digest,
        "key": snapshot.key.hex(),
        "stream_id": snapshot.stream_id.hex(),
        "simulated": snapshot.simulated,
        "step": now.step,
        "count": int(now.counts[0]),
        "recent": [[step.number, list(step.inputs), list(step.released)] for step in now.recent],
    }
    record["checksum"] = _checksum(record)
    atomic_write(path, json.dumps(record).encode("ascii"), private=True)


def read(path: Path, *, kind: str) -> GaussianSnapshot:
    """Read a state.

    Args:
        path: the file.
        kind: name of the class that is to continue it.

    Raises:
        ArtifactFormatError: missing, too large, truncated, of another kind or of a newer version.
    """
    try:
        small = path.stat().st_size <= _MAX_BYTES
        record = json.loads(path.read_text(encoding="ascii")) if small else None
    except OSError as error:
        raise ArtifactFormatError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise ArtifactFormatError(f"{path}: damaged, or not a counter state") from None
    if not small:
        raise ArtifactFormatError(f"{path}: too large for a counter state")
    if not isinstance(record, dict) or "kind" not in record:
        raise ArtifactFormatError(f"{path}: not the state of an edit-private Gaussian counter")
    if record["kind"] != kind:
        raise ArtifactFormatError(f"{path}: is the state of {show(record['kind'])}, not of {kind}")
    version = record.get("version")
    if record.get("format") != FORMAT or version != VERSION or isinstance(version, bool):
        raise ArtifactFormatError(f"{path}: version {show(version)}, this library reads {VERSION}")
    try:
        if record["checksum"] != _checksum(record):
            raise ValueError
        return _snapshot(record)
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError, TriliftError):
        raise ArtifactFormatError(f"{path}: damaged counter state") from None


def _snapshot(record: dict[str, Any]) -> GaussianSnapshot:
    key, stream_id = bytes.fromhex(record["key"]), bytes.fromhex(record["stream_id"])
    if len(key) != 32 or len(stream_id) != 16 or not isinstance(record["simulated"], bool):
        raise ValueError
    if not isinstance(record["digest"], str) or not _SHA256.fullmatch(record["digest"]):
        raise ValueError
    setup = GaussianSetup.from_record(record["setup"])
    position = _position(record)
    if setup.horizon is not None and position.step > setup.horizon:
        raise ValueError
    return GaussianSnapshot(
        record["kind"], setup, record["digest"], key, stream_id, record["simulated"], position
    )


def _position(record: dict[str, Any]) -> Position:
    step, count = _whole(record["step"]), _whole(record["count"])
    recent = tuple(Step(_whole(n), _wholes(x, 2), _wholes(y, 1)) for n, x, y in record["recent"])
    numbers = [one.number for one in recent]
    if min(step, count) < 0 or numbers != list(range(step - len(numbers) + 1, step + 1)):
        raise ValueError
    if min(numbers, default=1) < 1:
        raise ValueError
    return Position(step, shrink(np.array([count], dtype=object)), np.zeros(1, dtype=np.int64), recent)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError
    return value


def _wholes(values: Any, count: int) -> tuple[int, ...]:
    numbers = tuple(_whole(value) for value in values)
    if len(numbers) != count:
        raise ValueError
    return numbers
