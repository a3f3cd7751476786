"""The folder of a durable counter: which files it holds, and how each is written.

    identity    what is kept, and what the folder is: inodes, which no copy shares
    state.N     snapshot number N, readable by its class alone, and the one before it
    history.N   digests of all inputs until then
    journal.N   what came after it
    released    how many steps are known to be kept: a mark, written after the disk has them
    state.lock  locked for as long as the counter lives

A snapshot is what makes its number count: the journal that goes on from it is written before it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trilift.counters.durable import journal as journals
from trilift.counters.durable.identity import Identity, Place
from trilift.counters.durable.journal import Tail
from trilift.counters.durable.places import place_of, place_of_path
from trilift.lift.checks import show
from trilift.lift.errors import ArtifactFormatError, StateError
from trilift.lift.files import open_regular

__all__ = ["Folder"]

_NUMBERED = re.compile(r"(state|history|journal)\.(0|[1-9][0-9]{0,17})")
_KNOWN = {"identity", "released", "state.next", "state.lock"}
_MARK = struct.Struct("<Q")
_CHECK = 16


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
        folder._check_ours()
        os.chmod(real, 0o700)
        _sync(real.parent)
        return folder

    @classmethod
    def begun_at(cls, path: str | os.PathLike[str]) -> bool:
        """Whether a counter was begun in a folder.

        Raises:
            StateError: other files are in it.
        """
        folder = cls(Path(os.path.realpath(path)))
        if not folder.path.is_dir():
            return False
        folder._check_ours()
        return bool(folder.numbers())

    def _check_ours(self) -> None:
        strange = [name for name in os.listdir(self.path) if not _is_ours(name)]
        if strange:
            shown = show(strange[0])
            raise StateError(f"{self.path}: the folder of a new counter must be empty, it holds {shown}")

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

    def newest(self) -> int:
        """Return the number of the newest snapshot.

        Raises:
            StateError: no counter was begun here.
        """
        numbers = self.numbers()
        if not numbers:
            raise StateError(f"{self.path}: no counter was begun here: make one with DurableCounter")
        return numbers[-1]

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

    def clean(self, *, newest: int | None, before: int = 1) -> None:
        """Remove what an interrupted write left, and all snapshots but the newest and so many before it."""
        keep = set() if newest is None else set(range(newest - before, newest + 1))
        for name in os.listdir(self.path):
            match = _NUMBERED.fullmatch(name)
            left = name == "state.next" or name.endswith(".part")
            if left or (match and int(match[2]) not in keep):
                with suppress(FileNotFoundError):
                    (self.path / name).unlink()

    # -- identity -------------------------------------------------------------------------------

    def write_identity(self, identity: Identity) -> None:
        """Write what the folder is; where it and the file lie is bound in."""

        def content(file: int) -> bytes:
            return identity.packed(Place(place_of_path(self.path), file, str(self.path)))

        self._write("identity", content)

    # -- snapshots and journals -----------------------------------------------------------------

    def begin(
        self, number: int, *, key: bytes, step: int, write: Callable[[Path], None], history: bytes
    ) -> Tail:
        """Write a snapshot and the empty journal that goes on from it, and return where that ends.

        Args:
            number: of both.
            key: of the journal's checks.
            step: steps so far.
            write: writes the snapshot to a path, durably.
            history: what is to be beside it.

        Raises:
            OSError: one cannot be written.
        """
        waiting = self.path / "state.next"
        write(waiting)
        self._write(f"history.{number}", lambda _: history)
        state = _digest(waiting.read_bytes(), history)

        def content(place: int) -> bytes:
            return journals.header(key, generation=number, step=step, place=place, state=state)

        data = self._write(f"journal.{number}", content)
        os.replace(waiting, self.state(number))  # from here on, it counts
        _sync(self.path)
        return Tail(len(data), len(data), data[-_CHECK:])

    def history(self, number: int) -> bytes:
        """Return the history beside a snapshot, not checked.

        Raises:
            ArtifactFormatError: it is missing.
        """
        return _whole(self.path / f"history.{number}")

    def read(
        self, number: int, key: bytes, *, anywhere: bool = False
    ) -> tuple[int, list[tuple[int, bytes]], Tail]:
        """Return the steps before a journal, its records, and where it ends.

        Args:
            number: of the journal.
            key: of its checks.
            anywhere: whether it may be a copy.

        Raises:
            ArtifactFormatError: missing, damaged, a copy, or of another snapshot.
        """
        path = self.journal(number)
        state = _digest(_whole(self.state(number)), self.history(number))
        try:
            with open_regular(path) as file:
                place, data = place_of(file.fileno()), file.read()
        except OSError as error:
            raise ArtifactFormatError(f"{path}: cannot be read ({error.strerror})") from None
        where = None if anywhere else place
        return journals.scan(path, data, key=key, generation=number, place=where, state=state)

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
        data = _whole(path)
        if len(data) == _MARK.size + _CHECK:
            (step,) = _MARK.unpack_from(data)
            if hmac.compare_digest(data[_MARK.size :], _mark_check(step, key)):
                return int(step)
        raise ArtifactFormatError(f"{path}: damaged")

    # -- inside ---------------------------------------------------------------------------------

    def _write(self, name: str, content: Callable[[int], bytes]) -> bytes:
        """Replace a file, durably, by bytes that may name the file's place; return them."""
        partial = self.path / f"{name}.part"
        partial.unlink(missing_ok=True)
        handle = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            data = content(place_of(file.fileno()))
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


def _whole(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read()
    except OSError as error:
        raise ArtifactFormatError(f"{path}: cannot be read ({error.strerror})") from None


def _digest(state: bytes, history: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(state).digest() + hashlib.sha256(history).digest()).digest()


def _is_ours(name: str) -> bool:
    return name in _KNOWN or name.endswith(".part") or _NUMBERED.fullmatch(name) is not None


def _mark_check(step: int, key: bytes) -> bytes:
    return hashlib.blake2b(b"mark" + _MARK.pack(step), key=key, digest_size=_CHECK).digest()
