"""The counter within a durable one: taken over from its owner, loaded again, and its keys."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from trilift.counters.durable.folder import Folder
from trilift.counters.durable.kinds import kind_of
from trilift.lift.errors import StateError
from trilift.stream.keys import Secret, derive_key

__all__ = [
    "key_check",
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
        inner: Any = object.__new__(type(counter))
        inner.__dict__.update(counter.__dict__)
        inner._lock = threading.Lock()
        counter._held = _Surrendered()
    return inner


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
