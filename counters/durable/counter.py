"""The durable counter: any counter in a folder of its own, where every step is kept before it is seen."""

from __future__ import annotations

import hmac
import os
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from trilift.counters.durable.folder import Folder, Identity
from trilift.counters.durable.journal import Journal, Tail
from trilift.counters.durable.kinds import Integers, Kind, class_named, kind_of
from trilift.counters.durable.outside import KeySource, read_key
from trilift.counters.durable.records import Entry, released_digest
from trilift.counters.durable.within import (
    key_check,
    load_arguments,
    loader,
    noise_key,
    own_arguments,
    purpose_key,
    taken_over,
)
from trilift.counters.lock import StateLock, acquired
from trilift.lift.checks import integer
from trilift.lift.errors import (
    ArtifactFormatError,
    ParameterError,
    ReplayError,
    StateError,
    TriliftError,
)
from trilift.stream.keys import KEY_BYTES

__all__ = ["DurableCounter"]

JOURNAL_BYTES = 1 << 20
"""Size of a journal after which a snapshot is written."""

_NEVER = {"save", "load", "skip", "of"}  # of the counter within: they would go past the journal
_BROKEN = "a step was interrupted, and what the disk has of it is not known: open the folder again"


class DurableCounter:
    """A counter whose steps are on the disk before their values are seen, whenever the process ends (new).

    A folder holds a snapshot and a journal of the checked inputs since; noise is a function of key and step,
    so going through the journal again gives the very same values, which is checked. A step is taken in this
    order: compute, append to the journal, flush it to the disk, return the value. So at every instant a
    process can be killed and the folder opened again: each step whose value was seen is there, with its
    value (one more step, or ``extend``, may be there than was seen: naming the step gives its value). An end
    that is torn by a crash is cut off, if no step of it can have been seen; anything else that does not fit
    is refused, since a lost step would be released again.

    Neighbours, guarantee, composition and theorem are those of the counter within: what is released is what
    it would release. The folder adds nothing to it, and protects nobody by itself: journal and snapshots are
    as secret as the data. It is made for its owner only (0700, files 0600).

    One process at a time holds the folder; its threads take turns, and forks are refused. A copy of the
    folder (or of a journal) is refused by its inodes. What cannot be told from the original is not refused:
    an image of the whole disk, or older contents written back into the same files. Inodes must be lasting,
    which some network and FAT file systems do not promise: their counters are refused later.

    Args:
        path: a folder that does not exist yet, or is empty.
        counter: a counter that has taken no step and keeps no state; it cannot be used by itself after.
        key: keep the key of the noise apart from the folder: 32 bytes, a function that returns them, or
            "env:NAME" or "file:PATH" where 64 hexadecimal digits stand. One key may serve many folders. The
            snapshots then hold no key (they hold other random bytes in its place), but counts and inputs as
            ever. None: the key is in the folder.
        journal_bytes: size of a journal after which a snapshot is written.

    Raises:
        ParameterError: no such counter, or no key.
        StateError: the counter was used, or the folder holds other things, or is in use.
        OSError: the folder cannot be written.

    >>> import tempfile
    >>> from trilift.counters import Counter
    >>> home = tempfile.TemporaryDirectory()
    >>> with DurableCounter(home.name, Counter(1, horizon=100)) as counter:
    ...     values = counter.extend([1, 0, 1]).tolist()
    >>> with DurableCounter.open(home.name) as counter:
    ...     counter.step, counter.update(1, step=3) == values[2]
    (3, True)
    >>> home.cleanup()
    """

    _held: StateLock
    _journal: Journal
    _loaded: Callable[[int], tuple[Any, bytes | None]]

    def __init__(
        self,
        path: str | os.PathLike[str],
        counter: Any,
        *,
        key: KeySource | None = None,
        journal_bytes: int = JOURNAL_BYTES,
    ) -> None:
        kind = kind_of(counter)
        limit = integer("journal_bytes", journal_bytes, minimum=1)
        outside = None if key is None else read_key(key)
        folder = Folder.made(path)
        with acquired(folder.path / "state") as held:
            folder.check_unused()
            folder.clean(newest=None)
            inner = taken_over(counter)
            try:
                placeholder = None
                if outside is not None:
                    kind.rekey(inner, noise_key(outside, inner))
                    placeholder = os.urandom(KEY_BYTES)
                self._start(folder, held, inner, placeholder=placeholder, limit=limit)
                folder.mark(0, self._check_key)
                check = key_check(self._check_key)
                folder.write_identity(Identity(type(inner).__name__, outside is not None, check))
                tail = self._begin(0)
            except BaseException:
                if not folder.numbers():
                    counter._held = None
                raise
            self._journal = Journal(folder.journal(0), key=self._check_key, tail=tail)
            self._loaded = loader(folder, type(inner), own_arguments(inner), outside)

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

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        key: KeySource | None = None,
        chain: Any = None,
        encode: Callable[[Any], Any] | None = None,
        journal_bytes: int = JOURNAL_BYTES,
    ) -> Self:
        """Continue the counter of a folder after its last step, whatever ended the process before.

        Args:
            path: the folder.
            key: as it was made with.
            chain, encode: as for ``load`` of the counter within.
            journal_bytes: as for the constructor.

        Raises:
            ArtifactFormatError: a file is missing or damaged.
            ParameterError: ``key``, ``chain`` or ``encode`` is missing, not needed, or not acceptable.
            ReplayError: going through the journal gives other values: the mechanism is another one.
            StateError: no counter is here, or it is in use, or the folder is a copy, or steps that were
                released are missing at the end.
            OSError: the folder cannot be written.
        """
        folder = Folder.found(path)
        limit = integer("journal_bytes", journal_bytes, minimum=1)
        with acquired(folder.path / "state") as held:
            identity = folder.read_identity()
            if (key is not None) != identity.outside:
                wanted = "was kept apart: pass key=" if identity.outside else "is in the folder: pass no key="
                raise ParameterError(f"{path}: the key {wanted}")
            outside = None if key is None else read_key(key)
            kind_class = class_named(identity.kind)
            extra = {"chain": chain} if "chain" in load_arguments(kind_class) else {}
            extra |= {"encode": encode} if "encode" in load_arguments(kind_class) else {}
            if (chain is not None and "chain" not in extra) or (encode is not None and "encode" not in extra):
                raise ParameterError(f"a {identity.kind} takes no such argument")

            loaded = loader(folder, kind_class, extra, outside)
            numbers = folder.numbers()
            if not numbers:
                raise StateError(f"{path}: no counter was begun here: make one with DurableCounter")
            inner, placeholder = loaded(numbers[-1])
            counter = cls.__new__(cls)
            counter._start(folder, held, inner, placeholder=placeholder, limit=limit)
            counter._number, counter._loaded = numbers[-1], loaded
            if not hmac.compare_digest(key_check(counter._check_key), identity.key_check):
                raise ParameterError(f"{path}: the key is not that of this counter")
            counter._recover()
        return counter

    def _recover(self) -> None:
        """Take the steps of the journal, and go on with it."""
        folder, key = self._folder, self._check_key
        _, tail = self._replay(self._number, self._counter)
        marked = folder.marked(key)
        if marked > self.step:
            raise StateError(
                f"{folder.path}: {marked} steps were released, {self.step} are there: the end of the "
                "journal is lost, and taking the steps again would release them twice"
            )
        self._journal = Journal(folder.journal(self._number), key=key, tail=tail)
        folder.mark(self.step, key)
        folder.clean(newest=self._number)

    def _replay(self, number: int, inner: Any) -> tuple[list[tuple[int, Any]], Tail]:
        """Take the steps of a journal, and return what is released (after so many steps) and its end."""
        path = self._folder.journal(number)
        start, records, tail = self._folder.read(number, self._check_key)
        if start != inner.step:
            raise ArtifactFormatError(f"{path}: does not go on from its snapshot")
        parts = []
        for step, body in records:
            try:
                entry = Entry.unpacked(body)
                if step != inner.step or entry.steps < 1:
                    raise ValueError
            except (ValueError, KeyError, TypeError, struct.error):
                raise ArtifactFormatError(f"{path}: damaged journal (step {step + 1})") from None
            if entry.skipped:
                inner.skip(entry.skipped)
                continue
            inner._check_room(entry.steps)
            released = self._kind.take(inner, entry.arrays)
            if not hmac.compare_digest(released_digest(released), entry.released):
                raise ReplayError(f"{path}: step {step + 1} was released with another value; not continued")
            parts.append((step, released))
        return parts, tail

    def __repr__(self) -> str:
        return f"DurableCounter({str(self._folder.path)!r}, {self._counter!r})"

    def __reduce__(self) -> Any:
        raise StateError("a counter is not copied or pickled, because a copy would re-use its noise")

    def __getattr__(self, name: str) -> Any:
        """What is public about the counter within: its parameters, statements and accuracy."""
        if name.startswith("_") or name in _NEVER:
            raise AttributeError(f"a DurableCounter has no attribute {name!r}")
        return getattr(self._counter, name)

    @property
    def step(self) -> int:
        """Number of steps so far."""
        step: int = self._counter.step
        return step

    # -- counting -------------------------------------------------------------------------------

    def update(self, *event: Any, step: int | None = None) -> Any:
        """Take the next input, and return what is released, which is on the disk by then.

        Args:
            event: as for ``update`` of the counter within.
            step: number of the step, 1 for the first one; one of the last 1024 steps again gives its value.

        Raises:
            TriliftError: as ``update`` of the counter within; nothing was changed.
            StateError: closed, interrupted before, or a fork of the process that opened the folder.
            OSError: the disk does not take it. The counter releases nothing until the folder is opened again.
        """
        if not 1 <= len(event) <= self._most():
            raise ParameterError("update takes one input (an event may be an item and a sign)")
        named = None if step is None else integer("step", step, minimum=1)
        with self._turn():
            if named is not None and named != self.step + 1:
                return self._counter.update(*event, step=named)  # an old step, or an error: nothing moves
            arrays = self._kind.one(self._counter, event)
            return self._kind.single(self._counter, self._taken(arrays))

    def extend(self, *values: Any) -> Any:
        """Take many inputs, which share one write to the disk, and return what is released for them.

        Args:
            values: as for ``extend`` of the counter within.

        Raises:
            TriliftError, StateError, OSError: as :meth:`update`.
        """
        if not 1 <= len(values) <= self._most():
            raise ParameterError("extend takes one sequence of inputs (events: items and signs)")
        with self._turn():
            arrays = self._kind.many(self._counter, values)
            return self._taken(arrays) if len(arrays[0]) else self._counter.extend([])

    def skip(self, steps: int) -> None:
        """Let steps pass with input 0 and release nothing for them, where the counter within can.

        Raises:
            ParameterError: it cannot, or as its own ``skip``.
            HorizonError, StateError, OSError: as :meth:`update`.
        """
        count = integer("steps", steps, minimum=0, maximum=(1 << 63) - 1)
        with self._turn():
            if not hasattr(self._counter, "skip"):
                raise ParameterError(f"a {type(self._counter).__name__} skips no steps")
            if count:
                self._kept(lambda: self._counter.skip(count), skipped=count)

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
                for step, released in self._replay(number, inner)[0]:
                    pairs += self._kind.pairs(step, released)
            return [pair for pair in pairs if pair[0] >= wanted]

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

    def _kept(self, act: Callable[[], Any], *, skipped: int = 0, arrays: tuple[Integers, ...] = ()) -> Any:
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
        self._journal.append(step, Entry(skipped, arrays, digest).packed())
        self._folder.mark(inner.step, self._check_key)
        if self._journal.size > self._limit:
            self._rotate()
        self._broken = None
        return released

    def _begin(self, number: int) -> Tail:
        inner = self._counter

        def write(path: Any) -> None:
            self._kind.write(inner, path, self._placeholder)

        return self._folder.begin(number, key=self._check_key, step=inner.step, write=write)

    def _rotate(self) -> None:
        """Write a snapshot, and go on with an empty journal."""
        number = self._number + 1
        tail = self._begin(number)
        old, self._number = self._journal, number
        self._journal = Journal(self._folder.journal(number), key=self._check_key, tail=tail)
        old.close()
        self._folder.clean(newest=number)
