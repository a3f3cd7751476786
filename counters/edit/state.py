"""Saved edit-private counters: a small JSON file, written atomically, readable by its owner only."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from trilift.counters.edit.blueprint import Blueprint
from trilift.counters.edit.position import EditPosition
from trilift.counters.edit.schedule import Pairs, Schedule
from trilift.counters.position import Position, Step
from trilift.lift.checks import show
from trilift.lift.errors import ArtifactFormatError, TriliftError
from trilift.lift.files import atomic_write
from trilift.lift.integers import shrink

__all__ = ["FORMAT", "Snapshot", "read", "write"]

FORMAT = "trilift edit counter state"
VERSION = 1
_MAX_BYTES = 64 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Snapshot:
    """What a file holds: the class of the counter, its design, secrets, and where the stream stands."""

    kind: str
    design: Blueprint
    digest: str
    key: bytes
    stream_id: bytes
    simulated: bool
    position: EditPosition

    def __repr__(self) -> str:
        return f"Snapshot({self.kind}, step={self.position.step}, secrets hidden)"


def _checksum(record: dict[str, Any]) -> str:
    """Return SHA-256 of everything else in the record: edits and flipped bits show, forgeries do not."""
    rest = {name: value for name, value in record.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _pairs_record(pairs: Pairs) -> list[list[int]]:
    return [list(row) for row in zip(*(column.tolist() for column in pairs.columns()), strict=True)]


def write(path: Path, snapshot: Snapshot) -> None:
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
        "design": snapshot.design.record(),
        "digest": snapshot.digest,
        "key": snapshot.key.hex(),
        "stream_id": snapshot.stream_id.hex(),
        "simulated": snapshot.simulated,
        "step": now.step,
        "count": int(now.log.counts[0]),
        "bucket": now.bucket,
        "clock": now.clock,
        "opened": now.opened,
        "shown": _pairs_record(now.schedule.shown),
        "pending": _pairs_record(now.schedule.pending),
        "recent": [[step.number, list(step.inputs), list(step.released)] for step in now.log.recent],
    }
    record["checksum"] = _checksum(record)
    atomic_write(path, json.dumps(record).encode("ascii"), private=True)


def read(path: Path, *, kind: str, restored: Callable[[dict[str, Any]], Blueprint]) -> Snapshot:
    """Read a state.

    Args:
        path: the file.
        kind: name of the class that is to continue it.
        restored: makes the design of its record.

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
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ArtifactFormatError(f"{path}: not the state of an edit-private counter")
    if record.get("version") != VERSION or isinstance(record["version"], bool):
        version = show(record.get("version"))
        raise ArtifactFormatError(f"{path}: version {version}, this library reads {VERSION}")
    if record.get("kind") != kind:
        raise ArtifactFormatError(f"{path}: is the state of {show(record.get('kind'))}, not of {kind}")
    try:
        if record["checksum"] != _checksum(record):
            raise ValueError
        return _snapshot(record, restored)
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError, TriliftError):
        raise ArtifactFormatError(f"{path}: damaged counter state") from None


def _snapshot(record: dict[str, Any], restored: Callable[[dict[str, Any]], Blueprint]) -> Snapshot:
    key, stream_id = bytes.fromhex(record["key"]), bytes.fromhex(record["stream_id"])
    if len(key) != 32 or len(stream_id) != 16 or not isinstance(record["simulated"], bool):
        raise ValueError
    if not isinstance(record["digest"], str) or not _SHA256.fullmatch(record["digest"]):
        raise ValueError
    design = restored(record["design"])
    position = _position(record)
    if design.horizon is not None and position.step > design.horizon:
        raise ValueError
    return Snapshot(record["kind"], design, record["digest"], key, stream_id, record["simulated"], position)


def _position(record: dict[str, Any]) -> EditPosition:
    step, bucket, clock = (_whole(record[name]) for name in ("step", "bucket", "clock"))
    count, opened = _whole(record["count"]), _whole(record["opened"])
    shown, pending = _pairs(record["shown"]), _pairs(record["pending"])
    recent = tuple(Step(_whole(n), _wholes(x, 2), _wholes(y, 1)) for n, x, y in record["recent"])
    numbers = [one.number for one in recent]
    fits = (
        0 <= opened <= count
        and 0 <= clock <= step
        and 0 <= bucket <= step
        and len(shown) <= 1
        and bool((shown.time <= step).all() and (pending.time > step).all())
        and bool((np.diff(pending.time) > 0).all())
        and numbers == list(range(step - len(numbers) + 1, step + 1))
        and min(numbers, default=1) >= 1
    )
    if not fits:
        raise ValueError
    counts = shrink(np.array([count], dtype=object))
    log = Position(step, counts, np.zeros(1, dtype=np.int64), recent)
    return EditPosition(log, bucket, clock, opened, Schedule(shown, pending))


def _pairs(rows: Any) -> Pairs:
    if not rows:
        return Pairs.none()
    columns = zip(*(_wholes(row, 3) for row in rows), strict=True)
    return Pairs(*(shrink(np.array(column, dtype=object)) for column in columns))


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError
    return value


def _wholes(values: Any, count: int) -> tuple[int, ...]:
    numbers = tuple(_whole(value) for value in values)
    if len(numbers) != count:
        raise ValueError
    return numbers
