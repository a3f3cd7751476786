"""Saved edit-private counters: a small JSON file, written atomically, readable by its owner only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from trilift.counters.edit.blueprint import Blueprint
from trilift.counters.edit.position import EditPosition
from trilift.counters.edit.schedule import Pairs, Schedule
from trilift.counters.position import Position
from trilift.counters.state_file import (
    boolean,
    check_checksum,
    kind_record,
    recent_record,
    recent_steps,
    secrets_of,
    sha256_text,
    whole,
    wholes,
    write_record,
)
from trilift.lift.errors import ArtifactFormatError, TriliftError
from trilift.lift.integers import shrink

__all__ = ["FORMAT", "Snapshot", "read", "record_of", "snapshot_of", "write"]

FORMAT = "trilift edit counter state"
VERSION = 1
_MAX_BYTES = 64 << 20


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


def _pairs_record(pairs: Pairs) -> list[list[int]]:
    return [list(row) for row in zip(*(column.tolist() for column in pairs.columns()), strict=True)]


def write(path: Path, snapshot: Snapshot) -> None:
    """Write atomically, readable by the owner only; the end of a link is what is replaced.

    Raises:
        OSError: the file cannot be written; what was there before is unchanged.
        StateError: it would be larger than what is read again; likewise.
    """
    record = {"format": FORMAT, "version": VERSION, **record_of(snapshot)}
    write_record(path, record=record, max_bytes=_MAX_BYTES)


def record_of(snapshot: Snapshot) -> dict[str, Any]:
    """Return what a file holds besides format and version."""
    now = snapshot.position
    return {
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
        "recent": recent_record(now.log),
    }


def read(path: Path, *, kind: str, restored: Callable[[dict[str, Any]], Blueprint]) -> Snapshot:
    """Read a state.

    Args:
        path: the file.
        kind: name of the class that is to continue it.
        restored: makes the design of its record.

    Raises:
        ArtifactFormatError: missing, too large, truncated, of another kind or of a newer version.
    """
    record = kind_record(
        path,
        form=FORMAT,
        version=VERSION,
        kind=kind,
        what="an edit-private counter",
        max_bytes=_MAX_BYTES,
    )
    try:
        check_checksum(record)
        return snapshot_of(record, restored)
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError, TriliftError):
        raise ArtifactFormatError(f"{path}: damaged counter state") from None


def snapshot_of(record: dict[str, Any], restored: Callable[[dict[str, Any]], Blueprint]) -> Snapshot:
    """Return what :func:`record_of` wrote.

    Raises:
        KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError, TriliftError: it is damaged.
    """
    (key, stream_id), simulated = secrets_of(record), boolean(record["simulated"])
    digest = sha256_text(record["digest"])
    design = restored(record["design"])
    position = _position(record)
    if design.horizon is not None and position.step > design.horizon:
        raise ValueError
    return Snapshot(record["kind"], design, digest, key, stream_id, simulated, position)


def _position(record: dict[str, Any]) -> EditPosition:
    step, bucket, clock = (whole(record[name]) for name in ("step", "bucket", "clock"))
    count, opened = whole(record["count"]), whole(record["opened"])
    shown, pending = _pairs(record["shown"]), _pairs(record["pending"])
    recent = recent_steps(record["recent"], inputs=2, released=1)
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
    columns = zip(*(wholes(row, count=3) for row in rows), strict=True)
    return Pairs(*(shrink(np.array(column, dtype=object)) for column in columns))
