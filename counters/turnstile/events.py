"""Events of a turnstile stream: pairs of an item and a sign, checked before anything changes.

Whether an event fits the events before it (an item removed that is not there) is not checked anywhere: no
answer and no error may depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from itertools import islice
from typing import Any

import numpy as np
from trilift.lift.checks import fail, integer
from trilift.lift.errors import ParameterError

__all__ = ["batches", "one_event", "one_sign"]

Signs = np.ndarray[Any, np.dtype[np.int8]]

BATCH = 1 << 15
"""Events that are hashed at once: bounds the memory of a long ``extend``."""

_WANTED = "-1, 0 or 1"


def one_sign(sign: Any) -> int:
    """Return a sign.

    Raises:
        ParameterError: not the integer -1, 0 or 1 (truth values and floats are none).
    """
    value = integer("sign", sign)
    if value not in (-1, 0, 1):
        raise fail("sign", _WANTED, sign)
    return value


def one_event(event: Any, sign: Any) -> tuple[Any, int]:
    """Return (item, sign) of an event that is given as two arguments, or as a pair if ``sign`` is None."""
    if sign is None:
        if not isinstance(event, (tuple, list)) or len(event) != 2:
            raise ParameterError("an event must be a pair (item, sign), or an item and a sign")
        event, sign = event
    return event, one_sign(sign)


def _signs(values: list[Any], start: int) -> Signs:
    array = np.empty(len(values), dtype=np.int8)
    for offset, value in enumerate(values):
        if type(value) is int and -1 <= value <= 1:
            array[offset] = value
            continue
        try:
            array[offset] = one_sign(value)
        except ParameterError as error:
            raise ParameterError(f"{error} at index {start + offset}") from None
    return array


def _plain(name: str, values: Any) -> Any:
    """Return something whose items are Python objects, slices of which are cheap."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise fail(name, "an iterable", values)
    if isinstance(values, np.ma.MaskedArray):
        raise ParameterError(f"{name} must not be a masked array")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ParameterError(f"{name} must have 1 dimension(s), got {values.ndim}")
    if hasattr(values, "to_numpy"):  # a column of a dataframe
        values = values.to_numpy()
    return values


def batches(items: Any, signs: Any) -> Iterator[tuple[list[Any], Signs]]:
    """Split events into batches of checked signs and unchecked items.

    Args:
        items: an array, a column or any iterable of items.
        signs: as many signs; None if all of them are insertions.

    Raises:
        ParameterError: no iterables, not equally many, or a bad sign (the first bad index is named).
    """
    items = _plain("items", items)
    if signs is None:
        for chunk in _chunks(items):
            yield _listed(chunk), np.ones(len(chunk), dtype=np.int8)
        return
    signs = _plain("signs", signs)
    if isinstance(items, Sized) and isinstance(signs, Sized) and len(items) != len(signs):
        raise ParameterError(f"items and signs must be equally many, got {len(items)} and {len(signs)}")
    left, right = _chunks(items), _chunks(signs)
    start = 0
    while True:
        some: Any = next(left, [])
        their: Any = next(right, [])
        if len(some) != len(their):
            raise ParameterError("items and signs must be equally many")
        if len(some) == 0:
            return
        if (
            isinstance(their, np.ndarray)
            and their.dtype.kind in "iu"
            and not np.any((their < -1) | (their > 1))
        ):
            checked = their.astype(np.int8)
        else:
            checked = _signs(their.tolist() if isinstance(their, np.ndarray) else their, start)
        yield _listed(some), checked
        start += len(their)


def _listed(some: Any) -> list[Any]:
    return some.tolist() if isinstance(some, np.ndarray) and some.dtype.kind in "iuUS" else list(some)


def _chunks(values: Any) -> Iterator[Any]:
    if isinstance(values, (np.ndarray, list, tuple)):
        for start in range(0, len(values), BATCH):
            yield values[start : start + BATCH]
        return
    iterator = iter(values)
    while chunk := list(islice(iterator, BATCH)):
        yield chunk
