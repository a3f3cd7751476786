"""Going through what was counted again: from a journal, or from inputs that are given once more."""

from __future__ import annotations

import hmac
import struct
import threading
from typing import Any

from trilift.counters.durable.folder import Folder
from trilift.counters.durable.history import History
from trilift.counters.durable.journal import Tail
from trilift.counters.durable.kinds import Kind, kind_of
from trilift.counters.durable.records import Entry, released_digest
from trilift.lift.errors import ArtifactFormatError, ParameterError, ReplayError

__all__ = ["Again", "history_of", "replayed"]


def history_of(folder: Folder, number: int, key: bytes) -> History:
    """Return the history beside a snapshot.

    Raises:
        ArtifactFormatError: missing or damaged.
    """
    try:
        return History(key, folder.history(number))
    except (ValueError, struct.error):
        raise ArtifactFormatError(f"{folder.path}: damaged history.{number}") from None


def replayed(
    folder: Folder,
    number: int,
    *,
    key: bytes,
    inner: Any,
    history: History | None = None,
    anywhere: bool = False,
) -> tuple[list[tuple[int, Any]], Tail]:
    """Take the steps of a journal, and return what is released (after so many steps) and where it ends.

    Args:
        folder, number: the journal.
        key: of its checks.
        inner: the counter of its snapshot.
        history: takes the inputs too.
        anywhere: whether the journal may be a copy.

    Raises:
        ArtifactFormatError: damaged.
        ReplayError: other values come out than were released.
    """
    path, kind = folder.journal(number), kind_of(inner)
    start, records, tail = folder.read(number, key, anywhere=anywhere)
    if start != inner.step:
        raise ArtifactFormatError(f"{path}: does not go on from its snapshot")
    parts = []
    for step, body in records:
        try:
            entry = Entry.unpacked(body)
            if step != inner.step or (entry.steps < 1 and not entry.finished):
                raise ValueError
        except (ValueError, KeyError, TypeError, struct.error):
            raise ArtifactFormatError(f"{path}: damaged journal (step {step + 1})") from None
        released: Any = ()
        if entry.skipped:
            inner.skip(entry.skipped)
        elif entry.finished:
            released = kind.finish(inner)
        else:
            inner._check_room(entry.steps)
            released = kind.take(inner, entry.arrays)
        if not hmac.compare_digest(released_digest(released), entry.released):
            raise ReplayError(f"{path}: step {step + 1} was released with another value; not continued")
        if history is not None:
            noted(history, entry)
        if not entry.skipped:
            parts.append((step, released))
    return parts, tail


def noted(history: History, entry: Entry) -> None:
    """Add an entry to a history."""
    if entry.skipped:
        history.skip(entry.skipped)
    elif entry.finished:
        history.finish()
    else:
        history.add(entry.arrays)


class Again:
    """A counter's stream from its first step on, given once more: the same inputs give the same values.

    Values are handed out only when the inputs up to them are known to be those that were counted: other ones
    under the same noise would show the difference.

    Args:
        counter: a counter without a step, with the key of the one that took the stream.
        steps: how many that one has taken.
        whole: their history.
        key: of histories.
    """

    def __init__(self, counter: Any, *, steps: int, whole: History, key: bytes) -> None:
        self._counter, self._steps, self._whole = counter, steps, whole
        self._kind: Kind = kind_of(counter)
        self._history = History(key)
        self._waiting: list[tuple[int, int, Any]] = []  # bytes until then, steps before, values
        self._lock = threading.Lock()
        self._failed = False

    @property
    def step(self) -> int:
        """Number of steps given again so far."""
        return int(self._counter.step)

    @property
    def left(self) -> int:
        """Number of steps still to be given."""
        return self._steps - self.step

    def extend(self, *values: Any) -> list[tuple[int, Any]]:
        """Take the next inputs again, and return what is known to be released by now, as (step, value).

        Args:
            values: as for ``extend`` of the counter.

        Raises:
            ParameterError: inputs that are not acceptable, or more than were counted.
            ReplayError: they are not what was counted.
        """
        with self._lock:
            arrays = self._kind.many(self._counter, values)
            count = len(arrays[0])
            if count > self.left:
                raise ParameterError(f"only {self.left} steps are left to be given again")
            if not count:
                return []
            before = self.step
            self._history.add(arrays)
            same = not self._failed and self._history.agrees(self._whole)
            if same and count == self.left:
                same = hmac.compare_digest(self._history.end(), self._whole.end())
            if not same:
                self._failed = True
                raise ReplayError(
                    f"the input is not what was counted, somewhere before step {before + count + 1}: "
                    "corrected data need a new counter, and spend their budget again"
                )
            self._waiting.append((self._history.size, before, self._kind.take(self._counter, arrays)))
            known = self._history.size if self.left == 0 else self._history.blocks_size
            pairs: list[tuple[int, Any]] = []
            while self._waiting and self._waiting[0][0] <= known:
                _, step, released = self._waiting.pop(0)
                pairs += self._kind.pairs(step, released)
            return pairs
