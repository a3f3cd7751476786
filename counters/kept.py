"""What counters of every kind share about their states: kept on disk where asked for, never copied."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, Self

from trilift.counters.lock import StateLock, acquired
from trilift.lift.errors import StateError

__all__ = ["Kept"]


class Kept:
    """A counter whose position can be kept in a file that it holds, and which one process alone moves on.

    A fork of the process has a copy of the counter: if both took steps, two streams would be released with
    one noise, and their difference with none. So a counter moves in the process that made it only.

    Subclasses have ``_now``, their position, and a ``_lock``, and write a position down in ``_write``.
    """

    _held: StateLock | None = None  # the lock of a state that the counter keeps itself
    _lock: threading.Lock
    _now: Any
    _process: int

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        """Note the process."""
        self = super().__new__(cls)
        self._process = os.getpid()
        return self

    def _write(self, path: Path, position: Any) -> None:
        """Write the state that the counter has at a position."""
        raise NotImplementedError

    def __reduce__(self) -> Any:
        raise StateError("a counter is not copied or pickled, because a copy would re-use its noise: save it")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file readable by the owner only; the write is atomic.

        Save before you publish what was released: a crash without a saved state loses the key, and counting
        again spends the budget again. The file holds the key, the true count and whatever else is true inside
        the counter: it is as secret as the data. A copy of it must not be continued twice with different
        data: that would release two streams with the same noise. A link is followed: the file that it points
        to is replaced. A counter made with ``state`` saves itself.

        Raises:
            OSError: the file cannot be written; what was there before is unchanged.
            StateError: it would be larger than what is read again; likewise.
        """
        self._write(Path(path), self._now)  # one value: signal handlers may save any time

    def close(self) -> None:
        """Give the state file free for others; a counter with a state releases nothing from then on.

        Leaving a ``with`` block closes too, and so does the end of the process.
        """
        with self._lock:
            if self._held is not None:
                self._held.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _keep(self, state: str | os.PathLike[str] | None) -> None:
        """Hold a new state file from now on, if there is to be one.

        Raises:
            StateError: it exists already, or is in use.
            OSError: it cannot be written.
        """
        if state is None:
            return
        with acquired(state) as held:
            if held.path.exists():
                name = type(self).__name__
                raise StateError(f"{state} exists: continue it by {name}.load(path, persist=True)")
            self._held = held
            self._move(self._now)

    def _move(self, position: Any) -> None:
        """Go to a new position, on disk first where a state is kept: what fails changes nothing here.

        Raises:
            StateError: this process is a fork of the one that made the counter, or the state was closed.
            OSError: the state cannot be written.
        """
        if self._held is not None:
            self._held.check()
        if os.getpid() != self._process:
            raise StateError(
                "this counter belongs to the process that this one was forked from, and both would use the "
                "same noise: make a counter in each process, or save it there and load it here"
            )
        if self._held is not None:
            self._write(self._held.path, position)
        self._now = position
