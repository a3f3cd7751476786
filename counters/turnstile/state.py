"""Saved turnstile counters: a JSON file, written atomically, readable by its owner only."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilift.counters.turnstile.position import Event
from trilift.counters.turnstile.reading import Reading
from trilift.lift.checks import show
from trilift.lift.errors import ArtifactFormatError, ParameterError, ReplayError
from trilift.lift.files import atomic_write

__all__ = ["FORMAT", "Snapshot", "damage", "read", "write"]

FORMAT = "trilift turnstile counter state"
VERSION = 1
_MAX_BYTES = 1 << 30
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, repr=False)
class Snapshot:
    """What a file holds: class, public parameters, secrets, and where the stream stands."""

    kind: str
    setup: dict[str, Any]
    encoded: bool
    digest: str
    key: bytes
    stream_id: bytes
    seed: int | None
    step: int
    held: Any
    recent: tuple[Event, ...]


def _checksum(record: dict[str, Any]) -> str:
    """Return SHA-256 of everything else in the record: edits and flipped bits show, forgeries do not."""
    rest = {name: value for name, value in record.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write(path: Path, snapshot: Snapshot) -> None:
    """Write atomically, readable by the owner only; the end of a link is what is replaced.

    Raises:
        OSError: the file cannot be written; what was there before is unchanged.
    """
    path = Path(os.path.realpath(path))  # the end of a link, or it would keep an old state
    record = {
        "format": FORMAT,
        "version": VERSION,
        "kind": snapshot.kind,
        "setup": snapshot.setup,
        "encoded": snapshot.encoded,
        "digest": snapshot.digest,
        "key": snapshot.key.hex(),
        "stream_id": snapshot.stream_id.hex(),
        "seed": snapshot.seed,
        "step": snapshot.step,
        "held": snapshot.held,
        "recent": [_event_record(event) for event in snapshot.recent],
    }
    record["checksum"] = _checksum(record)
    atomic_write(path, json.dumps(record).encode("ascii"), private=True)


def _event_record(event: Event) -> list[Any]:
    shown = event.released
    values = None if shown is None else [shown.estimate.hex(), shown.low.hex(), shown.high.hex()]
    return [event.number, list(event.item), event.sign, values]


def read(path: Path, *, kind: str) -> Snapshot:
    """Read a state.

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
        raise ArtifactFormatError(f"{path}: not the state of a turnstile counter")
    if record.get("version") != VERSION or isinstance(record["version"], bool):
        raise ArtifactFormatError(
            f"{path}: version {show(record.get('version'))}, this library reads {VERSION}"
        )
    if record.get("kind") != kind:
        raise ArtifactFormatError(f"{path}: is the state of {show(record.get('kind'))}, not of {kind}")
    with damage(path):
        if record["checksum"] != _checksum(record):
            raise ValueError
        return _snapshot(record)


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Turn errors about a state's contents into one about the file; missing artifacts keep their own.

    Raises:
        ArtifactFormatError: anything in the block failed because of what the file holds.
        ReplayError: as raised in the block.
    """
    try:
        yield
    except ReplayError:
        raise
    except (
        IndexError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        ZeroDivisionError,
        AttributeError,
        ParameterError,
    ):
        raise ArtifactFormatError(f"{path}: damaged counter state") from None


def _snapshot(record: dict[str, Any]) -> Snapshot:
    key, stream_id = bytes.fromhex(record["key"]), bytes.fromhex(record["stream_id"])
    seed = record["seed"]
    if len(key) != 32 or len(stream_id) != 16 or not isinstance(record["setup"], dict):
        raise ValueError
    if not _SHA256.fullmatch(record["digest"]) or not isinstance(record["encoded"], bool):
        raise ValueError
    return Snapshot(
        kind=record["kind"],
        setup=record["setup"],
        encoded=record["encoded"],
        digest=record["digest"],
        key=key,
        stream_id=stream_id,
        seed=None if seed is None else _whole(seed),
        step=_whole(record["step"]),
        held=record["held"],
        recent=tuple(_event(*row) for row in record["recent"]),
    )


def _event(number: Any, item: Any, sign: Any, values: Any) -> Event:
    first, second = item
    if _whole(sign) not in (-1, 0, 1):
        raise ValueError
    shown = None
    if values is not None:
        estimate, low, high = (float.fromhex(value) for value in values)
        if math.isnan(estimate + low + high):
            raise ValueError
        shown = Reading(_whole(number), estimate, low, high)
    return Event(_whole(number), (_whole(first), _whole(second)), sign, shown)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError
    return value
