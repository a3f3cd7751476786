"""Values of groups as bytes: one encoding a value, and never one of two values, whatever their types."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
from trilift.lift.checks import fail
from trilift.lift.errors import ParameterError
from trilift.stream.keys import length_prefixed

__all__ = ["Codes", "encode_group", "shown_group"]

_WANTED = "text, integers, truth values, bytes, dates or null"


def encode_group(values: Sequence[Any]) -> bytes:
    """Return the bytes of a group: its value in each grouping column, with its type.

    >>> encode_group(["1"]) == encode_group([1]), encode_group([True]) == encode_group([1])
    (False, False)
    >>> encode_group(["a", "b"]) == encode_group(["ab", ""])
    False

    Raises:
        ParameterError: a value of a type that has no canonical form: a float (two of them can look alike), a
            time (cast it to a date or to text), or anything else.
    """
    return b"".join(map(_encoded, values))


def _encoded(value: Any) -> bytes:
    tag, payload = _parts(value)
    return length_prefixed(tag) + length_prefixed(payload)


def _parts(value: Any) -> tuple[bytes, bytes]:
    if value is None:
        return b"null", b""
    if isinstance(value, (bool, np.bool_)):
        return b"truth", b"1" if value else b"0"
    if isinstance(value, numbers.Integral) and not isinstance(value, np.timedelta64):
        return b"integer", str(int(value)).encode()
    if isinstance(value, str):
        try:
            return b"text", value.encode()
        except UnicodeEncodeError:
            raise ParameterError("a group's text must be valid Unicode") from None
    if isinstance(value, bytes):
        return b"bytes", bytes(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return b"date", value.isoformat().encode()
    if isinstance(value, float):
        hint = " (a float; whole numbers beside nulls: .convert_dtypes() keeps them integers)"
        raise ParameterError(f"{fail('groups', _WANTED, value)}{hint}")
    raise fail("groups", _WANTED, value)


def shown_group(values: Sequence[Any]) -> str:
    """Return a group for messages to the caller."""
    text = ", ".join(map(repr, values)) if values else "of all rows"
    return text if len(text) <= 60 else text[:57] + "..."


class Codes:
    """Which group each row is in.

    Args:
        columns: the values of each grouping column, nulls as None; none for a single group.
        rows: number of rows.

    Attributes:
        groups: encoding and values of every group that occurs, sorted by encoding.
        codes: for each row the index of its group, shape (rows,).

    Raises:
        ParameterError: a value that is none of a group.
    """

    def __init__(self, columns: Sequence[Iterable[Any]], rows: int) -> None:
        if not columns:
            self.groups: list[tuple[bytes, tuple[Any, ...]]] = [(b"", ())] if rows else []
            self.codes = np.zeros(rows, dtype=np.int64)
            return
        found: dict[bytes, tuple[int, tuple[Any, ...]]] = {}
        known: dict[Any, int] = {}
        codes = np.empty(rows, dtype=np.int64)
        for row, values in enumerate(zip(*columns, strict=True)):
            token = tuple([(value.__class__, value) for value in values])  # True is 1, and "1" is not
            try:
                code = known.get(token)
            except TypeError:
                raise fail("groups", _WANTED, values) from None
            if code is None:
                encoding = encode_group(values)
                code, _ = found.setdefault(encoding, (len(found), values))
                known[token] = code
            codes[row] = code
        order = sorted(found, key=lambda encoding: encoding)
        place = np.empty(len(found), dtype=np.int64)
        for rank, encoding in enumerate(order):
            place[found[encoding][0]] = rank
        self.groups = [(encoding, found[encoding][1]) for encoding in order]
        self.codes = place[codes] if rows else codes
