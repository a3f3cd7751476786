"""The journal of a counter: records that only ever are appended, each bound to all before it.

A record is a head (length, number of its first step, and a check of both) and a body, with a keyed hash over
everything since the beginning of the file. A crash in the middle of an append leaves a file that ends too
early, and nothing else: whatever is complete must fit, or the file is damaged and is refused. Appended is not
yet kept: :meth:`Journal.append` returns only after the system says that the bytes are on the disk.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
import weakref
from dataclasses import dataclass
from pathlib import Path

from trilift.lift.errors import ArtifactFormatError, StateError

__all__ = ["HEADER_BYTES", "Journal", "Tail", "header", "scan"]

MAGIC = b"trilift journal\n"
VERSION = 1
_FIELDS = struct.Struct("<16sIQQQ32s")
_HEAD = struct.Struct("<QQ")
_CHECK = 16
HEAD_BYTES = _HEAD.size + _CHECK
HEADER_BYTES = _FIELDS.size + _CHECK


def _hash(key: bytes, *parts: bytes) -> bytes:
    return hashlib.blake2b(b"".join(parts), key=key, digest_size=_CHECK).digest()


def header(key: bytes, *, generation: int, step: int, place: int, state: bytes) -> bytes:
    """Return the beginning of a journal.

    Args:
        key: 32 bytes that checks are made with.
        generation: number of the snapshot that the journal goes on from.
        step: steps before the first record.
        place: of the file itself; a copy has another one.
        state: a digest of the snapshot.
    """
    fields = _FIELDS.pack(MAGIC, VERSION, generation, step, place, state)
    return fields + _hash(key, b"header", fields)


@dataclass(frozen=True)
class Tail:
    """Where a journal ends: bytes that are whole, bytes that are there, hash of the last record."""

    whole: int
    size: int
    chain: bytes

    @property
    def torn(self) -> bool:
        """Whether the last append was not finished."""
        return self.size > self.whole


def scan(
    path: Path, data: bytes, *, key: bytes, generation: int, place: int | None, state: bytes
) -> tuple[int, list[tuple[int, bytes]], Tail]:
    """Return the steps before the first record, all records (steps before it, body), and where they end.

    Args:
        path: for messages.
        data: the file's bytes.
        key, generation, state: as for :func:`header`.
        place: of the file that was read; None where a copy is to be read too.

    Raises:
        ArtifactFormatError: damaged, not of this folder, or of another snapshot.
    """
    if len(data) < HEADER_BYTES:
        raise ArtifactFormatError(f"{path}: damaged journal (too short)")
    fields, check = data[: _FIELDS.size], data[_FIELDS.size : HEADER_BYTES]
    magic, version, number, start, written, snapshot = _FIELDS.unpack(fields)
    if magic != MAGIC:
        raise ArtifactFormatError(f"{path}: not a journal")
    if version != VERSION:
        raise ArtifactFormatError(f"{path}: version {version}, this library reads {VERSION}")
    if not hmac.compare_digest(check, _hash(key, b"header", fields)) or number != generation:
        raise ArtifactFormatError(f"{path}: damaged journal, or that of another counter")
    if snapshot != state:
        raise ArtifactFormatError(f"{path}: the snapshot beside it is not the one that it continues")
    if place is not None and place != written:
        raise ArtifactFormatError(f"{path}: is a copy of a journal, and is not continued")
    records, chain, at = [], check, HEADER_BYTES
    while len(data) - at >= HEAD_BYTES:
        head = data[at : at + _HEAD.size]
        if not hmac.compare_digest(data[at + _HEAD.size : at + HEAD_BYTES], _hash(key, b"head", chain, head)):
            raise ArtifactFormatError(f"{path}: damaged journal at byte {at}")
        length, step = _HEAD.unpack(head)
        end = at + HEAD_BYTES + length + _CHECK
        if end > len(data):
            break
        body = data[at + HEAD_BYTES : end - _CHECK]
        found = data[end - _CHECK : end]
        if not hmac.compare_digest(found, _hash(key, b"body", chain, head, body)):
            raise ArtifactFormatError(f"{path}: damaged journal at byte {at}")
        records.append((step, body))
        chain, at = found, end
    return start, records, Tail(at, len(data), chain)


class Journal:
    """A journal that is open for appending.

    Args:
        path: the file.
        key: as for :func:`header`.
        tail: where it ends; what is torn is cut off. Everything before is flushed to the disk first: a record
            that a killed process wrote may still be in memory only.

    Raises:
        StateError: another process writes it, although the folder's lock is free (its file was removed).
        OSError: the file cannot be opened or flushed.
    """

    def __init__(self, path: Path, *, key: bytes, tail: Tail) -> None:
        self.path, self._key, self._chain = path, key, tail.chain
        self.size = tail.whole
        self._handle = os.open(path, os.O_WRONLY | os.O_APPEND)
        self._close = weakref.finalize(self, os.close, self._handle)
        try:
            _lock(path, self._handle)
            if tail.torn:
                os.ftruncate(self._handle, tail.whole)
            os.fsync(self._handle)
        except BaseException:
            self.close()
            raise

    def append(self, step: int, body: bytes) -> None:
        """Add a record and wait until it is on the disk.

        Raises:
            OSError: it may be there whole, in part or not at all: the journal must be read again.
        """
        head = _HEAD.pack(len(body), step)
        check = _hash(self._key, b"body", self._chain, head, body)
        data = head + _hash(self._key, b"head", self._chain, head) + body + check
        written = 0
        while written < len(data):
            written += os.write(self._handle, data[written:])
        os.fsync(self._handle)
        self._chain = check
        self.size += len(data)

    def close(self) -> None:
        """Close the file."""
        self._close()


def _lock(path: Path, handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise StateError(f"{path} is in use by another process") from None
