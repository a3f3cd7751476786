"""Saved turnstile counters: a JSON file, written atomically, readable by its owner only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilift.counters.state_file import (
    boolean,
    check_checksum,
    kind_record,
    secrets_of,
    sha256_text,
    whole,
    write_record,
)
from trilift.counters.turnstile.position import Event
from trilift.counters.turnstile.reading import Reading
from trilift.lift.errors import ArtifactFormatError, ParameterError, ReplayError

__all__ = ["FORMAT", "Snapshot", "damage", "read", "write"]

FORMAT = "trilift turnstile counter state"
VERSION = 1
_MAX_BYTES = 1 << 30


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


def write(path: Path, snapshot: Snapshot) -> None:
    """Write atomically, readable by the owner only; the end of a link is what is replaced.

    Raises:
        OSError: the file cannot be written; what was there before is unchanged.
        StateError: it would be larger than what is read again; likewise.
    """
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
    write_record(path, record=record, max_bytes=_MAX_BYTES)


def _event_record(event: Event) -> list[Any]:
    shown = event.released
    values = None if shown is None else [shown.estimate.hex(), shown.low.hex(), shown.high.hex()]
    return [event.number, list(event.item), event.sign, values]


def read(path: Path, *, kind: str) -> Snapshot:
    """Read a state.

    Raises:
        ArtifactFormatError: missing, too large, truncated, of another kind or of a newer version.
    """
    record = kind_record(
        path, form=FORMAT, version=VERSION, kind=kind, what="a turnstile counter", max_bytes=_MAX_BYTES
    )
    with damage(path):
        check_checksum(record)
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
    (key, stream_id), seed = secrets_of(record), record["seed"]
    if not isinstance(record["setup"], dict):
        raise ValueError
    return Snapshot(
        kind=record["kind"],
        setup=record["setup"],
        encoded=boolean(record["encoded"]),
        digest=sha256_text(record["digest"]),
        key=key,
        stream_id=stream_id,
        seed=None if seed is None else whole(seed),
        step=whole(record["step"]),
        held=record["held"],
        recent=tuple(_event(*row) for row in record["recent"]),
    )


def _event(number: Any, item: Any, sign: Any, values: Any) -> Event:
    first, second = item
    if whole(sign) not in (-1, 0, 1):
        raise ValueError
    shown = None
    if values is not None:
        estimate, low, high = (float.fromhex(value) for value in values)
        if math.isnan(estimate + low + high):
            raise ValueError
        shown = Reading(whole(number), estimate, low, high)
    return Event(whole(number), (whole(first), whole(second)), sign, shown)
