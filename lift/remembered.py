"""What is computed once for an object, or for a pair of them, and forgotten together with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

__all__ = ["remembered"]

Objects = TypeVarTuple("Objects")
T = TypeVar("T")


def remembered(function: Callable[[*Objects], T]) -> Callable[[*Objects], T]:
    """Remember what a function of immutable objects that are compared by identity has returned.

    For stages above all: planning and proving meet the same ones again and again. A result is kept for as
    long as all the objects live, so it must not hold one of them; it is shared, so it must be immutable too.
    Exceptions are not kept.

    >>> class Thing: pass
    >>> calls = []
    >>> @remembered
    ... def weight(thing):
    ...     calls.append(thing)
    ...     return 3
    >>> thing = Thing()
    >>> weight(thing), weight(thing), len(calls)
    (3, 3, 1)
    """
    memory: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    @wraps(function)
    def look(*objects: *Objects) -> T:
        every: tuple[Any, ...] = objects
        *first, last = every
        known = memory
        for each in first:
            found = known.get(each)
            if found is None:
                found = known.setdefault(each, WeakKeyDictionary())
            known = found
        try:
            result: T = known[last]
        except KeyError:
            result = known[last] = function(*objects)
        return result

    return look
