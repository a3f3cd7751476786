"""Saved counters: a small JSON file, written atomically, readable by its owner only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from trilift.counters.epoch_mechanisms import EpochRecord
from trilift.counters.levels import SavedLevel
from trilift.counters.position import Position
from trilift.counters.setup import Setup
from trilift.counters.state_file import (
    boolean,
    check_checksum,
    exact_number,
    read_record,
    recent_record,
    recent_steps,
    secrets_of,
    sha256_text,
    whole,
    wholes,
    write_record,
)
from trilift.counters.streamed import StreamSetup
from trilift.lift.checks import show
from trilift.lift.errors import ArtifactFormatError, ParameterError
from trilift.lift.integers import shrink

__all__ = [
    "Snapshot",
    "check_fit",
    "read",
    "setup_arguments",
    "setup_record",
    "stream_record",
    "unchained_arguments",
    "write",
]

FORMAT = "trilift counter state"
VERSION = 2
"""Of bounded counters with Laplace noise."""
LATER_VERSION = 3
"""Of the others, which also say what kind they are and which epochs were begun."""
KINDS = ("Counter", "GaussianCounter", "BiasedCounter")
_MAX_BYTES = 512 << 20


@dataclass(frozen=True)
class Snapshot:
    """What a file holds: public parameters, the mechanism, secrets, and where the stream stands."""

    setup: dict[str, Any]
    levels: tuple[SavedLevel, ...]
    digest: str
    key: bytes
    stream_id: bytes
    simulated: bool
    position: Position
    kind: str = "Counter"
    epochs: dict[int, EpochRecord] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """Version of the file."""
        bounded = self.kind == "Counter" and self.setup.get("horizon") is not None
        return VERSION if bounded else LATER_VERSION

    def __repr__(self) -> str:
        return f"Snapshot(step={self.position.step}, secrets hidden)"


def stream_record(setup: StreamSetup) -> dict[str, Any]:
    """Return the arguments that all counters share, exact numbers as strings."""
    unit = Fraction(1, 1 << setup.rule.places)
    return {
        "horizon": setup.horizon,
        "bounds": [str(setup.rule.low * unit), str(setup.rule.high * unit)],
        "max_contributions": setup.max_contributions,
        "clip": setup.rule.clip,
        "resolution": str(unit),
        "output_resolution": str(Fraction(1, 1 << setup.output_places)),
        "dimension": setup.dimension,
        "norm_bound": None if setup.norm_bound is None else str(setup.norm_bound * unit),
        "postprocess": setup.postprocess,
    }


def setup_record(setup: Setup) -> dict[str, Any]:
    """Return the arguments that make the setup of a bounded counter again, exact numbers as strings."""
    return stream_record(setup) | setup.own_record()


def setup_arguments(
    snapshot: Snapshot, chain: Any, name: str, own: Iterable[str] = ("epsilon", "objective", "chain")
) -> dict[str, Any]:
    """Return keyword arguments for :func:`trilift.counters.setup.make_setup`, or for another setup.

    Args:
        snapshot: what was read.
        chain: the caller's Chain object, or None.
        name: of the file, for messages.
        own: the fields besides those of :func:`stream_record`, "chain" among them.

    Raises:
        ParameterError: the counter was made with a Chain object and none is given, or the reverse.
        ArtifactFormatError: the record is damaged.
    """
    record = _fields(snapshot, name, own)
    if record["chain"] is None and chain is None:
        raise ParameterError("this counter was made with a Chain object: pass it as chain=")
    if record["chain"] is not None and chain is not None:
        raise ParameterError("this counter names its artifacts itself: chain= is not needed")
    if chain is not None:
        record["chain"] = chain
    return _read(record, name)


def unchained_arguments(snapshot: Snapshot, chain: Any, name: str, own: Iterable[str]) -> dict[str, Any]:
    """Return keyword arguments for a setup whose chains, if any, are chosen for it.

    Raises:
        ParameterError: a chain is given.
        ArtifactFormatError: the record is damaged.
    """
    if chain is not None:
        raise ParameterError("this counter finds its artifacts itself: chain= is not needed")
    return _read(_fields(snapshot, name, own), name)


def _fields(snapshot: Snapshot, name: str, own: Iterable[str]) -> dict[str, Any]:
    record = dict(snapshot.setup)
    if set(record) != {*_SHARED, *own}:
        raise ArtifactFormatError(f"{name}: the state's parameters are not those of this version")
    return record


def _read(record: dict[str, Any], name: str) -> dict[str, Any]:
    try:
        for field_name in _EXACT_FIELDS & set(record):
            if record[field_name] is not None or field_name in _NEVER_NONE:
                record[field_name] = exact_number(record[field_name])
        record["bounds"] = tuple(exact_number(bound) for bound in record["bounds"])
    except (TypeError, ValueError, ZeroDivisionError):
        raise ArtifactFormatError(f"{name}: the state's parameters are damaged") from None
    return record


_SHARED = (
    "horizon",
    "bounds",
    "max_contributions",
    "clip",
    "resolution",
    "output_resolution",
    "dimension",
    "norm_bound",
    "postprocess",
)
_NEVER_NONE = {"epsilon", "resolution", "output_resolution"}
_EXACT_FIELDS = _NEVER_NONE | {"norm_bound", "delta", "mu", "base_delta", "ln_eta"}


def write(path: Path, snapshot: Snapshot) -> None:
    """Write atomically, readable by the owner only; the end of a link is what is replaced."""
    now = snapshot.position
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": snapshot.version,
        "kind": snapshot.kind,
        "setup": snapshot.setup,
        "levels": [asdict(level) for level in snapshot.levels],
        "digest": snapshot.digest,
        "key": snapshot.key.hex(),
        "stream_id": snapshot.stream_id.hex(),
        "simulated": snapshot.simulated,
        "step": now.step,
        "counts": now.counts.tolist(),
        "peaks": now.peaks.tolist(),
        "recent": recent_record(now),
    }
    if snapshot.version != VERSION:
        record["epochs"] = {str(j): _epoch_record(epoch) for j, epoch in sorted(snapshot.epochs.items())}
    write_record(path, record=record, max_bytes=_MAX_BYTES)


def read(path: Path) -> Snapshot:
    """Read a state.

    Raises:
        ArtifactFormatError: missing, too large, truncated, of another kind or of a newer version.
    """
    record = read_record(path, max_bytes=_MAX_BYTES)
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ArtifactFormatError(f"{path}: not a counter state")
    version = record.get("version")
    if version not in (VERSION, LATER_VERSION) or isinstance(version, bool):
        wanted = f"{VERSION} and {LATER_VERSION}"
        raise ArtifactFormatError(f"{path}: version {show(version)}, this library reads {wanted}")
    try:
        check_checksum(record)
        return _snapshot(record)
    except (KeyError, TypeError, ValueError):
        raise ArtifactFormatError(f"{path}: damaged counter state") from None


def _snapshot(record: dict[str, Any]) -> Snapshot:
    key, stream_id = secrets_of(record)
    if not isinstance(record["setup"], dict):
        raise ValueError
    later = record["version"] == LATER_VERSION
    kind = record["kind"] if later else record.get("kind", "Counter")  # older files do not say it
    if kind not in (KINDS if later else KINDS[:1]):
        raise ValueError
    snapshot = Snapshot(
        setup=record["setup"],
        levels=tuple(_level(level) for level in record["levels"]),
        digest=sha256_text(record["digest"]),
        key=key,
        stream_id=stream_id,
        simulated=boolean(record["simulated"]),
        position=Position(
            whole(record["step"]),
            shrink(np.array(wholes(record["counts"]), dtype=object)),
            shrink(np.array(wholes(record["peaks"]), dtype=object)),
            recent_steps(record["recent"]),
        ),
        kind=kind,
        epochs=_epochs(record["epochs"]) if later else {},
    )
    if snapshot.version != record["version"]:
        raise ValueError
    return snapshot


def _epoch_record(epoch: EpochRecord) -> dict[str, Any]:
    return {
        "chain": list(epoch.names),
        "levels": [asdict(level) for level in epoch.levels],
        "digest": epoch.digest,
    }


def _epochs(records: Any) -> dict[int, EpochRecord]:
    if not isinstance(records, dict):
        raise ValueError
    return {int(j): _epoch(epoch) for j, epoch in records.items()}


def _epoch(record: Any) -> EpochRecord:
    if not isinstance(record, dict) or set(record) != {"chain", "levels", "digest"}:
        raise ValueError
    names = tuple(record["chain"])
    if not all(isinstance(name, str) for name in names):
        raise ValueError
    return EpochRecord(
        names, tuple(_level(level) for level in record["levels"]), sha256_text(record["digest"])
    )


def _level(record: Any) -> SavedLevel:
    if not isinstance(record, dict) or set(record) != {"sha256", "scale", "places"}:
        raise ValueError
    return SavedLevel(sha256_text(record["sha256"]), whole(record["scale"]), whole(record["places"]))


def check_fit(position: Position, width: int, horizon: int, name: str) -> None:
    """Check that counts and remembered steps belong to the setup.

    Raises:
        ArtifactFormatError: they do not.
    """
    numbers = [step.number for step in position.recent]
    latest = list(range(position.step - len(numbers) + 1, position.step + 1))
    lengths = {len(position.counts), len(position.peaks)}
    lengths |= {len(values) for step in position.recent for values in (step.inputs, step.released)}
    if (
        lengths != {width}
        or not 0 <= position.step <= horizon
        or numbers != latest
        or min(latest, default=1) < 1
    ):
        raise ArtifactFormatError(f"{name}: the state contradicts its own parameters")
