"""Saved counters of streams that end: the state of the counter inside, the budget, and whether it ended."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from trilift.counters.edit.design import Design
from trilift.counters.edit.state import Snapshot, record_of, snapshot_of
from trilift.counters.state_file import boolean, check_checksum, exact_number, kind_record, write_record
from trilift.lift.errors import ArtifactFormatError, TriliftError

__all__ = ["EndingSnapshot", "read", "write"]

FORMAT = "trilift ending counter state"
VERSION = 1
_KIND = "EndingCounter"
_MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class EndingSnapshot:
    """What a file holds: the snapshot of the counter inside, its design, epsilon and delta of both parts."""

    inner: Snapshot
    design: Design
    epsilon: Fraction
    delta: Fraction
    finished: bool

    def __repr__(self) -> str:
        return f"EndingSnapshot(step={self.inner.position.step}, secrets hidden)"


def write(path: Path, snapshot: EndingSnapshot) -> None:
    """Write atomically, readable by the owner only; the end of a link is what is replaced.

    Raises:
        OSError: the file cannot be written; what was there before is unchanged.
        StateError: it would be larger than what is read again; likewise.
    """
    record: dict[str, Any] = {"format": FORMAT, "version": VERSION, **record_of(snapshot.inner)}
    record |= {"epsilon": str(snapshot.epsilon), "delta": str(snapshot.delta), "finished": snapshot.finished}
    write_record(path, record=record, max_bytes=_MAX_BYTES)


def read(path: Path) -> EndingSnapshot:
    """Read a state.

    Raises:
        ArtifactFormatError: missing, too large, truncated, of another kind or of a newer version.
    """
    what = "a counter of streams that end"
    record = kind_record(path, form=FORMAT, version=VERSION, kind=_KIND, what=what, max_bytes=_MAX_BYTES)
    try:
        check_checksum(record)
        design = Design.from_record(record["design"])
        inner = snapshot_of(record, lambda _: design)
        epsilon, delta = exact_number(record["epsilon"]), exact_number(record["delta"])
        fits = (design.epsilon, design.delta, design.horizon) == (epsilon / 2, delta / 2, None)
        if not fits or not 0 < delta < 1 or epsilon <= 0:
            raise ValueError
        return EndingSnapshot(inner, design, epsilon, delta, boolean(record["finished"]))
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError, TriliftError):
        raise ArtifactFormatError(f"{path}: damaged counter state") from None
