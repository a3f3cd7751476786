"""The folder of a durable counter: which files it holds, and how each is written.

    identity    what is kept, and what the folder is: inodes, which no copy shares
    state.N     snapshot number N, readable by its class alone, and the one before it
    journal.N   what came after it
    released    how many steps are known to be kept: a mark, written after the disk has them
    state.lock  locked for as long as the counter lives

A snapshot is what makes its number count: the journal that goes on from it is written before it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilift.counters.durable import journal as journals
from trilift.counters.durable.journal import Tail
from trilift.counters.state_file import check_checksum, checksum, read_record
from trilift.lift.checks import show
from trilift.lift.errors import ArtifactFormatError, StateError

__all__ = ["Folder", "Identity"]

FORMAT = "trilift durable counter"
VERSION = 1
_NUMBERED = re.compile(r"(state|journal)\.(0|[1-9][0-9]{0,17})")
_KNOWN = {"identity", "released", "state.next", "state.lock"}
_MARK = struct.Struct("<Q")
_CHECK = 16


@dataclass(frozen=True)
class Identity:
    """What a folder says of itself: the class of its counter, where the key is, and a check of the key."""

    kind: str
    outside: bool
    key_check: str


@dataclass(frozen=True)
class Folder:
    """The files of a durable counter; only whoever holds the lock writes them."""

    path: Path

    @classmethod
    def made(cls, path: str | os.PathLike[str]) -> Folder:
        """Return a folder that is there now, for its owner only.

        Raises:
            StateError: other files are in it.
            OSError: it cannot be made.
        """
        real = Path(os.path.realpath(path))
        real.mkdir(mode=0o700, exist_ok=True)
        folder = cls(real)
        strange = [name for name in os.listdir(real) if not _is_ours(name)]
        if strange:
            raise StateError(
                f"{path}: the folder of a new counter must be empty, it holds {show(strange[0])}"
            )
        os.chmod(real, 0o700)
        _sync(real.parent)
        return folder

    @classmethod
    def found(cls, path: str | os.PathLike[str]) -> Folder:
        """Return a folder that holds a counter.

        Raises:
            StateError: it holds none.
        """
        folder = cls(Path(os.path.realpath(path)))
        if not (folder.path / "identity").is_file():
            raise StateError(
                f"{path}: no counter was begun here: make one with DurableCounter(path, counter)"
            )
        return folder

    # -- what is there --------------------------------------------------------------------------

    def state(self, number: int) -> Path:
        """Return the path of a snapshot."""
        return self.path / f"state.{number}"

    def journal(self, number: int) -> Path:
        """Return the path of a journal."""
        return self.path / f"journal.{number}"

    def numbers(self, kind: str = "state") -> list[int]:
        """Return the numbers of the snapshots (or journals), ascending."""
        found = (_NUMBERED.fullmatch(name) for name in os.listdir(self.path))
        return sorted(int(match[2]) for match in found if match and match[1] == kind)

    def check_unused(self) -> None:
        """Check that no counter was ever begun here.

        Raises:
            StateError: one was.
        """
        used = self.numbers() or any(
            self.journal(number).stat().st_size > journals.HEADER_BYTES for number in self.numbers("journal")
        )
        if used:
            raise StateError(f"{self.path} holds a counter: continue it with DurableCounter.open(path)")

    def clean(self, *, newest: int | None) -> None:
        """Remove what an interrupted write left, and snapshots before the last but one."""
        keep = set() if newest is None else {newest - 1, newest}
        for name in os.listdir(self.path):
            match = _NUMBERED.fullmatch(name)
            left = name == "state.next" or name.endswith(".part")
            if left or (match and int(match[2]) not in keep):
                with suppress(FileNotFoundError):
                    (self.path / name).unlink()

    # -- identity -------------------------------------------------------------------------------

    def write_identity(self, identity: Identity) -> None:
        """Write what the folder is; its inode and the file's own are bound in."""

        def content(inode: int) -> bytes:
            record: dict[str, Any] = {
                "format": FORMAT,
                "version": VERSION,
                "kind": identity.kind,
                "outside": identity.outside,
                "key_check": identity.key_check,
                "folder": os.stat(self.path).st_ino,
                "file": inode,
            }
            record["checksum"] = checksum(record)
            return json.dumps(record).encode("ascii")

        self._write("identity", content)

    def read_identity(self) -> Identity:
        """Read it.

        Raises:
            ArtifactFormatError: damaged, or of a newer version.
            StateError: the folder is a copy.
        """
        path = self.path / "identity"
        record = read_record(path, max_bytes=1 << 16)
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise ArtifactFormatError(f"{path}: not of a durable counter")
        if record.get("version") != VERSION or isinstance(record["version"], bool):
            version = show(record.get("version"))
            raise ArtifactFormatError(f"{path}: version {version}, this library reads {VERSION}")
        try:
            check_checksum(record)
            identity = Identity(record["kind"], bool(record["outside"]), str(record["key_check"]))
            where = (record["folder"], record["file"])
        except (KeyError, TypeError, ValueError):
            raise ArtifactFormatError(f"{path}: damaged") from None
        if where != (os.stat(self.path).st_ino, path.stat().st_ino):
            raise StateError(
                f"{self.path} is a copy of a counter's folder: two continuations would release two "
                "streams with one noise; continue the original, or make a new counter (new key, new budget)"
            )
        return identity

    # -- snapshots and journals -----------------------------------------------------------------

    def begin(self, number: int, *, key: bytes, step: int, write: Callable[[Path], None]) -> Tail:
        """Write a snapshot and the empty journal that goes on from it, and return where that ends.

        Args:
            number: of both.
            key: of the journal's checks.
            step: steps so far.
            write: writes the snapshot to a path, durably.

        Raises:
            OSError: one cannot be written.
        """
        waiting = self.path / "state.next"
        write(waiting)
        state = hashlib.sha256(waiting.read_bytes()).digest()

        def content(inode: int) -> bytes:
            return journals.header(key, generation=number, step=step, inode=inode, state=state)

        data = self._write(f"journal.{number}", content)
        os.replace(waiting, self.state(number))  # from here on, it counts
        _sync(self.path)
        return Tail(len(data), len(data), data[-_CHECK:])

    def read(self, number: int, key: bytes) -> tuple[int, list[tuple[int, bytes]], Tail]:
        """Return the steps before a journal, its records, and where it ends.

        Raises:
            ArtifactFormatError: missing, damaged, a copy, or of another snapshot.
        """
        path = self.journal(number)
        try:
            state = hashlib.sha256(self.state(number).read_bytes()).digest()
            with open(path, "rb") as file:
                inode, data = os.fstat(file.fileno()).st_ino, file.read()
        except OSError as error:
            raise ArtifactFormatError(f"{path}: cannot be read ({error.strerror})") from None
        return journals.scan(path, data, key=key, generation=number, inode=inode, state=state)

    # -- the mark -------------------------------------------------------------------------------

    def mark(self, step: int, key: bytes) -> None:
        """Note that so many steps are on the disk; not flushed: a crash of the machine may lose the note."""
        handle = os.open(self.path / "released", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(handle, _MARK.pack(step) + _mark_check(step, key), 0)
        finally:
            os.close(handle)

    def marked(self, key: bytes) -> int:
        """Return the number of steps that must be there.

        Raises:
            ArtifactFormatError: missing or damaged.
        """
        path = self.path / "released"
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ArtifactFormatError(f"{path}: cannot be read ({error.strerror})") from None
        if len(data) == _MARK.size + _CHECK:
            (step,) = _MARK.unpack_from(data)
            if hmac.compare_digest(data[_MARK.size :], _mark_check(step, key)):
                return int(step)
        raise ArtifactFormatError(f"{path}: damaged")

    # -- inside ---------------------------------------------------------------------------------

    def _write(self, name: str, content: Callable[[int], bytes]) -> bytes:
        """Replace a file, durably, by bytes that may name the file's inode; return them."""
        partial = self.path / f"{name}.part"
        partial.unlink(missing_ok=True)
        handle = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            data = content(os.fstat(file.fileno()).st_ino)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, self.path / name)
        _sync(self.path)
        return data


def _sync(path: Path) -> None:
    """Make what was made, renamed or removed in a folder durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_ours(name: str) -> bool:
    return name in _KNOWN or name.endswith(".part") or _NUMBERED.fullmatch(name) is not None


def _mark_check(step: int, key: bytes) -> bytes:
    return hashlib.blake2b(b"mark" + _MARK.pack(step), key=key, digest_size=_CHECK).digest()
