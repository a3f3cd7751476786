"""The durable counter: any counter in a folder of its own, where every step is kept before it is seen."""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Self

from trilift.counters.durable import lineage
from trilift.counters.durable.folder import Folder
from trilift.counters.durable.history import History
from trilift.counters.durable.holding import Holding
from trilift.counters.durable.identity import Identity
from trilift.counters.durable.journal import Journal
from trilift.counters.durable.kinds import class_named, kind_of
from trilift.counters.durable.outside import KeySource, read_key
from trilift.counters.durable.within import (
    forked,
    key_check,
    key_of,
    load_arguments,
    loader,
    noise_key,
    own_arguments,
    taken_over,
)
from trilift.counters.lock import acquired
from trilift.lift.checks import integer
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.keys import KEY_BYTES

__all__ = ["DurableCounter"]

JOURNAL_BYTES = 1 << 20
"""Size of a journal after which a snapshot is written."""

_NEVER = {"save", "load", "skip", "of", "finish"}  # of the counter within: they would go past the journal


class DurableCounter(Holding):
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

    A copy goes on in one of two ways, both written down. **Adopted** (``open(path, adopt=STEP)``), where the
    original is gone for good and no step after STEP was ever seen: key and budget stay. **Forked**
    (``DurableCounter(new_path, counter, fork=path)``), in any case: the new counter goes on from the exact
    sum after the last step that is there, with a key and a budget of its own, and both are told as spent:
    what it releases is what it would release for the whole stream, from the next step on, so its own
    guarantee stands, and that of all releases together is the sum of the budgets (basic composition). Only
    counters whose state does not depend on the key are forked: ``Counter``, ``GaussianCounter``,
    ``BiasedCounter`` into each other, ``GaussianCC`` and ``HorizonGaussian`` into each other.

    Args:
        path: a folder that does not exist yet, or is empty.
        counter: a counter that has taken no step and keeps no state; it cannot be used by itself after.
        fork: folder of a counter to go on from; nothing in it changes, but that it notes the fork (a copy
            does not, and the original knows nothing of it).
        fork_key: the ``key`` of that one.
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

    def __init__(
        self,
        path: str | os.PathLike[str],
        counter: Any,
        *,
        key: KeySource | None = None,
        fork: str | os.PathLike[str] | None = None,
        fork_key: KeySource | None = None,
        journal_bytes: int = JOURNAL_BYTES,
    ) -> None:
        kind = kind_of(counter)
        limit = integer("journal_bytes", journal_bytes, minimum=1)
        outside = None if key is None else read_key(key)
        if fork is None and fork_key is not None:
            raise ParameterError("fork_key is of no use without fork")
        folder = Folder.made(path)
        with acquired(folder.path / "state") as held:
            folder.check_unused()
            folder.clean(newest=None)
            inner = taken_over(counter)
            try:
                before = () if fork is None else forked(fork, inner, key=fork_key)
                placeholder = None
                if outside is not None:
                    kind.rekey(inner, noise_key(outside, inner))
                    placeholder = os.urandom(KEY_BYTES)
                self._start(folder, held, inner, placeholder=placeholder, limit=limit)
                self._history = History(self._check_key)
                folder.mark(self.step, self._check_key)
                check = key_check(self._check_key)
                self._identity = Identity(type(inner).__name__, outside is not None, check, before)
                folder.write_identity(self._identity)
                tail = self._begin(0)
            except BaseException:
                if not folder.numbers():
                    counter._held = None
                raise
            self._journal = Journal(folder.journal(0), key=self._check_key, tail=tail)
            self._loaded = loader(folder, type(inner), own_arguments(inner), outside)

    @staticmethod
    def is_at(path: str | os.PathLike[str]) -> bool:
        """Whether a counter was begun in a folder; nothing is made or changed.

        Raises:
            StateError: it is a folder of something else.
        """
        return Folder.begun_at(path)

    @staticmethod
    def kind_at(path: str | os.PathLike[str]) -> str:
        """Return the name of the class of the counter in a folder; nothing is checked but that it is there.

        Raises:
            ArtifactFormatError, StateError: there is none.
        """
        return str(Identity.read(Folder.found(path).path)[0].kind)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        key: KeySource | None = None,
        chain: Any = None,
        encode: Callable[[Any], Any] | None = None,
        adopt: int | None = None,
        journal_bytes: int = JOURNAL_BYTES,
    ) -> Self:
        """Continue the counter of a folder after its last step, whatever ended the process before.

        Args:
            path: the folder.
            key: as it was made with.
            chain, encode: as for ``load`` of the counter within.
            adopt: for a copy (a restored backup, a folder moved to another disk): number of the last step
                that anybody may have seen a value of, 0 for none. You declare that the original is gone and
                that no later step was released: if that is false, later steps share their noise.
            journal_bytes: as for the constructor.

        Raises:
            ArtifactFormatError: a file is missing or damaged.
            ParameterError: ``key``, ``chain`` or ``encode`` is missing, not needed, or not acceptable.
            ReplayError: going through the journal gives other values: the mechanism is another one.
            StateError: no counter is here, or it is in use, or the folder is a copy (with ``adopt``: is none,
                or its original is still there), or steps that were released are missing at the end.
            OSError: the folder cannot be written.
        """
        folder = Folder.found(path)
        limit = integer("journal_bytes", journal_bytes, minimum=1)
        seen = None if adopt is None else integer("adopt", adopt, minimum=0)
        with acquired(folder.path / "state") as held:
            identity = Identity.at(folder.path) if seen is None else Identity.left(folder.path)
            outside = key_of(identity, key, folder.path)
            kind_class = class_named(identity.kind)
            extra = {"chain": chain} if "chain" in load_arguments(kind_class) else {}
            extra |= {"encode": encode} if "encode" in load_arguments(kind_class) else {}
            if (chain is not None and "chain" not in extra) or (encode is not None and "encode" not in extra):
                raise ParameterError(f"a {identity.kind} takes no such argument")

            loaded = loader(folder, kind_class, extra, outside)
            inner, placeholder = loaded(folder.newest())
            counter = cls.__new__(cls)
            counter._start(folder, held, inner, placeholder=placeholder, limit=limit)
            counter._number, counter._loaded, counter._identity = folder.newest(), loaded, identity
            if not hmac.compare_digest(key_check(counter._check_key), identity.key_check):
                raise ParameterError(f"{path}: the key is not that of this counter")
            counter._recover(seen)
        return counter

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
    def kind(self) -> str:
        """Name of the class of the counter within."""
        return type(self._counter).__name__

    @property
    def total_budget(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta of all releases that are known here, if this one is a fork or has forks.

        Raises:
            AttributeError: a counter that is never forked, and has another budget.
            ParameterError: some are simulated and others are not: nothing bounds all of them.
        """
        return lineage.total(self._counter, self._identity.before + self._identity.forks)

    def privacy_statement(self) -> str:
        """Return what is guaranteed, to whom, and what it rests on; with what forks have released too."""
        text: str = self._counter.privacy_statement()
        before, forks = self._identity.before, self._identity.forks
        return text + (lineage.told(self._counter, before, forks) if before or forks else "")

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

    def finish(self) -> Any:
        """End the stream, where the counter within can hide its end, and return what is released then.

        Raises:
            ParameterError: it cannot.
            StateError, OSError: as :meth:`update`; or it has ended already.
        """
        with self._turn():
            return self._kept(lambda: self._kind.finish(self._counter), finished=True)
