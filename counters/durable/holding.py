"""Holding the folder of a durable counter: turns, appending, snapshots, recovery."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

from trilift.counters.durable.folder import Folder
from trilift.counters.durable.history import History
from trilift.counters.durable.identity import Identity
from trilift.counters.durable.journal import Journal, Tail
from trilift.counters.durable.kinds import Integers, Kind, kind_of
from trilift.counters.durable.records import Entry, released_digest
from trilift.counters.durable.replay import Again, history_of, noted, replayed
from trilift.counters.durable.within import at_the_start, purpose_key
from trilift.counters.lock import StateLock
from trilift.lift.checks import integer
from trilift.lift.errors import ReplayError, StateError, TriliftError

__all__ = ["Holding"]

_BROKEN = "a step was interrupted, and what the disk has of it is not known: open the folder again"


class Holding:
    """What a durable counter does with its folder, whatever it counts."""

    _journal: Journal
    _history: History
    _identity: Identity
    _loaded: Callable[[int], tuple[Any, bytes | None]]

    def _start(
        self, folder: Folder, held: StateLock, inner: Any, *, placeholder: bytes | None, limit: int
    ) -> None:
        self._folder, self._held, self._counter = folder, held, inner
        self._kind: Kind = kind_of(inner)
        self._placeholder, self._limit, self._number = placeholder, limit, 0
        self._check_key = purpose_key(inner._key, inner, "durable/journal")
        self._lock = threading.Lock()
        self._broken: str | None = None
        self._closed = False

    def _recover(self, seen: int | None) -> None:
        """Take the steps of the journal, and go on with it; or, adopting, with a new one."""
        folder, key = self._folder, self._check_key
        self._history = history_of(folder, self._number, key)
        anywhere = seen is not None
        _, tail = replayed(
            folder, self._number, key=key, inner=self._counter, history=self._history, anywhere=anywhere
        )
        marked = max(folder.marked(key), seen or 0)
        if marked > self.step:
            raise StateError(
                f"{folder.path}: {marked} steps were released, {self.step} are there: the end of the "
                "journal is lost, and taking the steps again would release them twice"
            )
        self._journal = Journal(folder.journal(self._number), key=key, tail=tail)
        folder.mark(self.step, key)
        if seen is not None:
            self._rotate(before=0)
            adopted = (*self._identity.adopted, (seen, self.step))
            self._identity = replace(self._identity, adopted=adopted)
            folder.write_identity(self._identity)
        folder.clean(newest=self._number)

    @property
    def step(self) -> int:
        """Number of steps so far."""
        step: int = self._counter.step
        return step

    # -- again ----------------------------------------------------------------------------------

    def released(self, first: int) -> list[tuple[int, Any]]:
        """Return what was released from a step on, as pairs (number of the step, value).

        The values are computed again from the last but one snapshot on: for whoever lost the end of them.

        Args:
            first: number of the first step wanted, from 1.

        Raises:
            ParameterError: not an integer >= 1.
            ReplayError: the step lies before the snapshots that are there.
            StateError: as :meth:`update`.
        """
        wanted = integer("first", first, minimum=1)
        with self._turn():
            numbers = [number for number in self._folder.numbers() if number <= self._number]
            starts = {number: self._folder.read(number, self._check_key)[0] for number in numbers}
            fitting = [number for number in numbers if starts[number] < wanted]
            if not fitting:
                raise ReplayError(f"step {wanted} was taken and is no longer remembered")
            inner, _ = self._loaded(fitting[-1])
            pairs: list[tuple[int, Any]] = []
            for number in numbers[numbers.index(fitting[-1]) :]:
                for step, released in replayed(self._folder, number, key=self._check_key, inner=inner)[0]:
                    pairs += self._kind.pairs(step, released)
            return [pair for pair in pairs if pair[0] >= wanted]

    def again(self) -> Again:
        """Return what takes the whole stream so far again, from its first step, and gives the same values.

        For whoever lost what was released, but has the inputs: nothing is spent, since nothing new comes out.

        Raises:
            StateError: as :meth:`update`; or a fork, whose first steps were counted elsewhere.
        """
        with self._turn():
            if self._identity.before:
                raise StateError(f"{self._folder.path} is a fork: its first steps are not here")
            inner, whole = at_the_start(self._counter), History(self._check_key, self._history.packed())
            return Again(inner, steps=self.step, whole=whole, key=self._check_key)

    # -- keeping --------------------------------------------------------------------------------

    def close(self) -> None:
        """Give the folder free for others; nothing is released from then on. Leaving ``with`` closes too."""
        with self._lock:
            self._closed = True
            self._journal.close()
            self._held.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    # -- inside ---------------------------------------------------------------------------------

    def _most(self) -> int:
        return 2 if hasattr(self._counter, "_prints") else 1

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Let one thread go on; in a fork, before a lock that another thread of its parent may have held."""
        if not self._closed:
            self._held.check()
        with self._lock:
            if self._closed:
                raise StateError(f"{self._folder.path} was closed: continue it with DurableCounter.open")
            if self._broken is not None:
                raise StateError(f"{self._folder.path}: {self._broken}")
            yield

    def _taken(self, arrays: tuple[Integers, ...]) -> Any:
        self._counter._check_room(len(arrays[0]))
        return self._kept(lambda: self._kind.take(self._counter, arrays), arrays=arrays)

    def _kept(
        self,
        act: Callable[[], Any],
        *,
        skipped: int = 0,
        arrays: tuple[Integers, ...] = (),
        finished: bool = False,
    ) -> Any:
        """Do some steps and keep them. Whatever fails or interrupts half-way ends the counter's use."""
        inner = self._counter
        before, step = inner._now, inner.step
        self._broken = _BROKEN
        try:
            released = act()
        except TriliftError:
            if inner._now is before:
                self._broken = None
            raise
        digest = released_digest(() if released is None else released)
        entry = Entry(skipped, arrays, digest, finished)
        self._journal.append(step, entry.packed())
        noted(self._history, entry)
        self._folder.mark(inner.step, self._check_key)
        if self._journal.size > self._limit:
            self._rotate()
        self._broken = None
        return released

    def _begin(self, number: int) -> Tail:
        inner = self._counter

        def write(path: Any) -> None:
            self._kind.write(inner, path, self._placeholder)

        history = self._history.packed()
        return self._folder.begin(number, key=self._check_key, step=inner.step, write=write, history=history)

    def _rotate(self, *, before: int = 1) -> None:
        """Write a snapshot, and go on with an empty journal."""
        number = self._number + 1
        tail = self._begin(number)
        old, self._number = self._journal, number
        self._journal = Journal(self._folder.journal(number), key=self._check_key, tail=tail)
        old.close()
        self._folder.clean(newest=number, before=before)
