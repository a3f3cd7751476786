"""One counter for one state file: a lock that lasts as long as the counter or its process."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trilift.lift.errors import StateError

__all__ = ["StateLock", "acquired", "exclusive"]


class StateLock:
    """Holds a state file: continued twice, it would release two streams with one noise.

    The lock is on ``<file>.lock`` beside the file itself, wherever links may lead to it; the lock file stays
    there. The system gives the lock free when the process ends, however it ends. Where there are no such
    locks (no ``fcntl``), nothing is locked.

    Args:
        path: the state file; it need not exist yet.

    Raises:
        StateError: another process, or another counter of this one, holds it.
        OSError: the lock file cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))
        self._process = os.getpid()
        handle = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        self._close = weakref.finalize(self, os.close, handle)
        try:
            import fcntl
        except ImportError:
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            raise StateError(f"the state {path} is in use by another process (or counter)") from None

    def check(self) -> None:
        """Check that the file is still held, and by this process.

        Raises:
            StateError: the lock was released, or this process is a fork of the one that took it.
        """
        if not self._close.alive:
            raise StateError(f"the state {self.path} was closed: continue it with Counter.load")
        if os.getpid() != self._process:
            raise StateError(f"the state {self.path} is in use by the process that this one was forked from")

    def release(self) -> None:
        """Let others have the file."""
        if os.getpid() == self._process:
            self._close()


@contextmanager
def acquired(path: str | os.PathLike[str]) -> Iterator[StateLock]:
    """Take a lock that is kept after the ``with`` block, unless the block fails."""
    lock = StateLock(path)
    try:
        yield lock
    except BaseException:
        lock.release()
        raise


@contextmanager
def exclusive(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a state file for the time of a ``with`` block: see :class:`StateLock`.

    Raises:
        StateError: another process holds it.
        OSError: the lock file cannot be made.
    """
    lock = StateLock(path)
    try:
        yield
    finally:
        lock.release()
