"""The counter within a durable one: taken over from its owner, loaded again, and its keys."""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from trilift.counters.durable.folder import Folder
from trilift.counters.durable.identity import Identity
from trilift.counters.durable.kinds import class_named, kind_of
from trilift.counters.durable.lineage import Release, continue_from, release_of
from trilift.counters.durable.outside import KeySource, read_key
from trilift.counters.durable.replay import replayed
from trilift.counters.lock import exclusive
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.keys import Secret, derive_key

__all__ = [
    "at_the_start",
    "forked",
    "key_check",
    "key_of",
    "load_arguments",
    "loader",
    "noise_key",
    "own_arguments",
    "purpose_key",
    "taken_over",
]


class _Surrendered:
    """In the place of a state file that a counter keeps: the counter has become a part of another."""

    def check(self) -> NoReturn:
        raise StateError("this counter was given to a DurableCounter: use that one")

    def release(self) -> None:
        """There is nothing to release."""


def taken_over(counter: Any) -> Any:
    """Return a counter with everything that another has, which takes no more steps.

    Raises:
        StateError: it has taken steps, or keeps a state of its own.
    """
    with counter._lock:
        if counter.step != 0 or counter._held is not None:
            raise StateError("counter must be a new one, without a step and without a state of its own")
        inner = _twin(counter)
        counter._held = _Surrendered()
    return inner


def _twin(counter: Any) -> Any:
    inner: Any = object.__new__(type(counter))
    inner.__dict__.update(counter.__dict__)
    inner._lock = threading.Lock()
    return inner


def at_the_start(counter: Any) -> Any:
    """Return another counter of the same key, before its first step."""
    inner = _twin(counter)
    kind_of(inner).restart(inner, counter._key)
    return inner


def key_of(identity: Identity, key: KeySource | None, path: object) -> Secret | None:
    """Return the key that is kept outside a folder, None where it is inside.

    Raises:
        ParameterError: it is missing or not needed, or there is none.
    """
    if (key is not None) != identity.outside:
        wanted = "was kept apart: pass key=" if identity.outside else "is in the folder: pass no key="
        raise ParameterError(f"{path}: the key {wanted}")
    return None if key is None else read_key(key)


def forked(path: str | os.PathLike[str], inner: Any, *, key: KeySource | None) -> tuple[Release, ...]:
    """Let a new counter go on from that of a folder, and return what else was released of its inputs.

    The folder may be a copy. If it is none, it notes the fork, before there is one.

    Raises:
        TriliftError: as for opening the folder; or the counters do not fit.
        OSError: the folder cannot be written.
    """
    folder = Folder.found(path)
    with exclusive(folder.path / "state"):
        identity, place = Identity.read(folder.path)
        outside = key_of(identity, key, path)
        number = folder.newest()
        kind_class = class_named(identity.kind)
        extra = dict.fromkeys({"chain", "encode"} & load_arguments(kind_class))
        other, _ = loader(folder, kind_class, extra, outside)(number)
        check = purpose_key(other._key, other, "durable/journal")
        if not hmac.compare_digest(key_check(check), identity.key_check):
            raise ParameterError(f"{path}: the key is not that of this counter")
        replayed(folder, number, key=check, inner=other, anywhere=True)
        continue_from(inner, other)
        if place.is_at(folder.path):
            mine = release_of(inner, step=other.step)
            folder.write_identity(replace(identity, forks=(*identity.forks, mine)))
        return (*identity.before, release_of(other, step=other.step), *identity.forks)


def loader(
    folder: Folder, kind_class: Any, extra: dict[str, Any], outside: bytes | None
) -> Callable[[int], tuple[Any, bytes | None]]:
    """Return what makes the counter of a snapshot, and says what its file holds in the place of the key."""

    def loaded(number: int) -> tuple[Any, bytes | None]:
        inner = kind_class._loaded(folder.state(number), **extra)
        if outside is None:
            return inner, None
        placeholder = bytes(inner._key)
        kind_of(inner).rekey(inner, noise_key(outside, inner))
        return inner, placeholder

    return loaded


def own_arguments(inner: Any) -> dict[str, Any]:
    """Return what ``load`` would have to be given for a counter, since its state does not hold it."""
    wanted = load_arguments(type(inner))
    arguments: dict[str, Any] = {"encode": inner._encode} if "encode" in wanted else {}
    if "chain" in wanted:
        setup = inner._setup
        given = setup.horizon is not None and setup.names is None
        arguments["chain"] = getattr(setup, "chain", None) if given else None
    return arguments


def load_arguments(kind_class: Any) -> set[str]:
    """Return the names of what loading a class of counters takes."""
    code = kind_class._loaded.__func__.__code__
    return set(code.co_varnames[: code.co_argcount])


def purpose_key(key: bytes, inner: Any, purpose: str) -> Secret:
    """Return a key for one purpose of the counter's stream."""
    return derive_key(bytes(key), stream_id=inner._stream_id, purpose=purpose, digest=bytes(32))


def noise_key(outside: bytes, inner: Any) -> Secret:
    """Return the counter's key, of a key that may serve many."""
    return purpose_key(outside, inner, "durable/counter")


def key_check(key: bytes) -> str:
    """Return what tells a wrong key; it tells nothing else of it."""
    return hashlib.blake2b(b"key check", key=key, digest_size=16).hexdigest()
