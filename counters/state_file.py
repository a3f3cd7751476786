"""The files of saved counters: one JSON object with a checksum, written atomically, for their owner only.

What a state holds is said by the rooms that write it; how it is written and what a file can be is said here.
Readers of a record raise ValueError (or KeyError, TypeError) where it is damaged: whoever reads the file
makes one error of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

from trilift.counters.position import Position, Step
from trilift.lift.checks import show
from trilift.lift.errors import ArtifactFormatError, StateError
from trilift.lift.files import atomic_write, read_regular
from trilift.lift.strict_json import parse_json

__all__ = [
    "boolean",
    "check_checksum",
    "checksum",
    "exact_number",
    "headed_record",
    "kind_record",
    "read_record",
    "recent_record",
    "recent_steps",
    "secrets_of",
    "sha256_text",
    "whole",
    "wholes",
    "write_record",
]

_SHA256 = re.compile(r"[0-9a-f]{64}")
_EXACT = re.compile(r"-?[0-9]{1,2000}(/[0-9]{1,2000})?")  # Fraction would also read 1e999999999


def checksum(record: dict[str, Any]) -> str:
    """Return SHA-256 of everything else in the record: edits and flipped bits show, forgeries do not.

    >>> checksum({"step": 1}) == checksum({"checksum": "any", "step": 1})
    True
    """
    rest = {name: value for name, value in record.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def check_checksum(record: dict[str, Any]) -> None:
    """Check the checksum of a record.

    Raises:
        KeyError, ValueError: it is missing, or another.
    """
    if record["checksum"] != checksum(record):
        raise ValueError


def write_record(path: Path, *, record: dict[str, Any], max_bytes: int | None = None) -> None:
    """Write a record and its checksum; the end of a link is what is replaced.

    Args:
        path: the file.
        record: what it is to hold.
        max_bytes: the largest file that will be read again.

    Raises:
        StateError: the file would be larger than that; what was there before is unchanged.
        OSError: the file cannot be written; likewise.
    """
    path = Path(os.path.realpath(path))  # the end of a link, or it would keep an old state
    data = json.dumps({**record, "checksum": checksum(record)}).encode("ascii")
    if max_bytes is not None and len(data) > max_bytes:
        raise StateError(f"{path} would be larger than {max_bytes} bytes, and could not be read again")
    atomic_write(path, data, private=True)


def read_record(path: Path, *, max_bytes: int) -> Any:
    """Return what the file holds, not checked any further.

    Raises:
        ArtifactFormatError: missing, no regular file, larger than ``max_bytes``, truncated, no JSON or one
            that parsers read in different ways (:func:`trilift.lift.strict_json.parse_json`).
    """
    try:
        data = read_regular(path, max_bytes=max_bytes)
    except OSError as error:
        raise ArtifactFormatError(f"{path}: cannot be read ({error.strerror})") from None
    if data is None:
        raise ArtifactFormatError(f"{path}: too large for a counter state")
    try:
        return parse_json(data)
    except ValueError:
        raise ArtifactFormatError(f"{path}: damaged, or not a counter state") from None


def headed_record(path: Path, *, form: str, version: int, what: str, max_bytes: int) -> dict[str, Any]:
    """Return the record of a file of this form and version; its checksum is not looked at yet.

    Args:
        path: the file.
        form: what its ``format`` must be.
        version: the one that is read.
        what: what it should be, in words.
        max_bytes: the largest file that is read.

    Raises:
        ArtifactFormatError: as :func:`read_record`; another form or version.
    """
    record = read_record(path, max_bytes=max_bytes)
    if not isinstance(record, dict) or record.get("format") != form:
        raise ArtifactFormatError(f"{path}: not {what}")
    found = record.get("version")
    if found != version or isinstance(found, bool):
        raise ArtifactFormatError(f"{path}: version {show(found)}, this library reads {version}")
    return record


def kind_record(
    path: Path, *, form: str, version: int, kind: str, what: str, max_bytes: int
) -> dict[str, Any]:
    """Return the record of a state of this form, version and class; its checksum is not looked at yet.

    Args:
        path: the file.
        form: what its ``format`` must be.
        version: the one that is read.
        kind: name of the class that is to continue it.
        what: what it is the state of, in words.
        max_bytes: the largest file that is read.

    Raises:
        ArtifactFormatError: as :func:`headed_record`; another class.
    """
    record = headed_record(path, form=form, version=version, what=f"the state of {what}", max_bytes=max_bytes)
    if record.get("kind") != kind:
        raise ArtifactFormatError(f"{path}: is the state of {show(record.get('kind'))}, not of {kind}")
    return record


def secrets_of(record: dict[str, Any]) -> tuple[bytes, bytes]:
    """Return key and stream identity.

    Raises:
        KeyError, TypeError, ValueError: they are missing or damaged.
    """
    key, stream_id = bytes.fromhex(record["key"]), bytes.fromhex(record["stream_id"])
    if len(key) != 32 or len(stream_id) != 16:
        raise ValueError
    return key, stream_id


def recent_record(position: Position) -> list[list[Any]]:
    """Return the steps that can be repeated, as a record keeps them."""
    return [[step.number, list(step.inputs), list(step.released)] for step in position.recent]


def recent_steps(rows: Any, *, inputs: int | None = None, released: int | None = None) -> tuple[Step, ...]:
    """Return the steps that :func:`recent_record` wrote, of so many inputs and released values each.

    Raises:
        TypeError, ValueError: they are damaged.
    """
    return tuple(Step(whole(n), wholes(x, count=inputs), wholes(y, count=released)) for n, x, y in rows)


def sha256_text(value: Any) -> str:
    """Return a hash written in hexadecimal digits.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise ValueError
    return value


def exact_number(text: Any) -> Fraction:
    """Return a rational that was written as str does: "3", "-1/4".

    >>> exact_number("-1/4")
    Fraction(-1, 4)

    Raises:
        ValueError, ZeroDivisionError: it is none, or of more than 2000 digits.
    """
    if not isinstance(text, str) or not _EXACT.fullmatch(text):
        raise ValueError("not an exact number")
    return Fraction(text)


def boolean(value: Any) -> bool:
    """Return a truth value.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, bool):
        raise ValueError
    return value


def whole(value: Any) -> int:
    """Return an integer.

    Raises:
        ValueError: it is none; truth values are none.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError
    return value


def wholes(values: Any, *, count: int | None = None) -> tuple[int, ...]:
    """Return integers, ``count`` of them where it is given.

    >>> wholes([1, 2], count=2)
    (1, 2)

    Raises:
        TypeError, ValueError: they are none, or others in number.
    """
    numbers = tuple(whole(value) for value in values)
    if count is not None and len(numbers) != count:
        raise ValueError
    return numbers
