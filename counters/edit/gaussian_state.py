"""Saved Gaussian counters of edit neighbours: a small JSON file, written atomically, for its owner only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from trilift.counters.edit.gaussian_setup import GaussianSetup
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
    write_record,
)
from trilift.lift.errors import ArtifactFormatError, TriliftError
from trilift.lift.integers import shrink

__all__ = ["FORMAT", "GaussianSnapshot", "read", "write"]

FORMAT = "trilift edit gaussian state"
VERSION = 1
_MAX_BYTES = 64 << 20


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


def write(path: Path, snapshot: GaussianSnapshot) -> None:
    """Write atomically, readable by the owner only; the end of a link is what is replaced.

    Raises:
        OSError: the file cannot be written; what was there before is unchanged.
        StateError: it would be larger than what is read again; likewise.
    """
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
        "recent": recent_record(now),
    }
    write_record(path, record=record, max_bytes=_MAX_BYTES)


def read(path: Path, *, kind: str) -> GaussianSnapshot:
    """Read a state.

    Args:
        path: the file.
        kind: name of the class that is to continue it.

    Raises:
        ArtifactFormatError: missing, too large, truncated, of another kind or of a newer version.
    """
    what = "an edit-private Gaussian counter"
    record = kind_record(path, form=FORMAT, version=VERSION, kind=kind, what=what, max_bytes=_MAX_BYTES)
    try:
        check_checksum(record)
        return _snapshot(record)
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError, TriliftError):
        raise ArtifactFormatError(f"{path}: damaged counter state") from None


def _snapshot(record: dict[str, Any]) -> GaussianSnapshot:
    (key, stream_id), simulated = secrets_of(record), boolean(record["simulated"])
    digest = sha256_text(record["digest"])
    setup = GaussianSetup.from_record(record["setup"])
    position = _position(record)
    if setup.horizon is not None and position.step > setup.horizon:
        raise ValueError
    return GaussianSnapshot(record["kind"], setup, digest, key, stream_id, simulated, position)


def _position(record: dict[str, Any]) -> Position:
    step, count = whole(record["step"]), whole(record["count"])
    recent = recent_steps(record["recent"], inputs=2, released=1)
    numbers = [one.number for one in recent]
    if min(step, count) < 0 or numbers != list(range(step - len(numbers) + 1, step + 1)):
        raise ValueError
    if min(numbers, default=1) < 1:
        raise ValueError
    return Position(step, shrink(np.array([count], dtype=object)), np.zeros(1, dtype=np.int64), recent)
