"""Checked inputs of a counter as bytes, exactly and back: what one record of a journal holds."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.lift.integers import shrink

__all__ = ["Entry", "released_digest"]

Integers = np.ndarray[Any, np.dtype[Any]]

DIGEST_BYTES = 16
_SHAPE = struct.Struct("<cBQQ")
_NUMBERS = {b"b": "<i1", b"h": "<i2", b"i": "<i4", b"q": "<i8", b"Q": "<u8"}
_ANY = b"j"


@dataclass(frozen=True, repr=False)
class Entry:
    """Some steps: their checked inputs, and a digest of what was released for them. Secret.

    Attributes:
        skipped: number of steps that passed without inputs, else 0.
        finished: whether the stream ends here.
        arrays: what the counter takes, one row a step.
        released: :func:`released_digest` of the released values.
    """

    skipped: int
    arrays: tuple[Integers, ...]
    released: bytes
    finished: bool = False

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self.skipped if not self.arrays else len(self.arrays[0])

    def packed(self) -> bytes:
        """Return the entry as bytes."""
        head = self.released + struct.pack("<QBB", self.skipped, self.finished, len(self.arrays))
        return head + b"".join(map(_packed, self.arrays))

    @classmethod
    def unpacked(cls, data: bytes) -> Entry:
        """Return the entry of :meth:`packed`.

        Raises:
            ValueError, struct.error, TypeError, KeyError: the bytes are none.
        """
        released, place = data[:DIGEST_BYTES], DIGEST_BYTES
        skipped, finished, count = struct.unpack_from("<QBB", data, place)
        place += struct.calcsize("<QBB")
        arrays = []
        for _ in range(count):
            array, place = _unpacked(data, place)
            arrays.append(array)
        if (
            place != len(data)
            or len({len(array) for array in arrays}) > 1
            or bool(skipped) + bool(arrays) + finished > 1
        ):
            raise ValueError("not a journal entry")
        return cls(skipped, tuple(arrays), released, bool(finished))


def released_digest(values: Any) -> bytes:
    """Return 16 bytes that tell released values apart; they are computed again, not stored.

    >>> released_digest([1, 2]) == released_digest([1, 3])
    False
    """
    plain = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return hashlib.blake2b(repr(plain).encode(), digest_size=DIGEST_BYTES).digest()


def _packed(array: Integers) -> bytes:
    if array.dtype == np.uint64:
        kind, data = b"Q", array.astype("<u8").tobytes()
    elif array.dtype == object:
        kind, data = _ANY, json.dumps([f"{int(value):x}" for value in array.ravel().tolist()]).encode()
    else:
        largest = max(int(array.max()), -1 - int(array.min())) if array.size else 0
        bits = largest.bit_length()
        kind = b"b" if bits <= 7 else b"h" if bits <= 15 else b"i" if bits <= 31 else b"q"
        data = array.astype(_NUMBERS[kind]).tobytes()
    width = array.shape[1] if array.ndim == 2 else 0
    return _SHAPE.pack(kind, array.ndim, len(array), width) + struct.pack("<Q", len(data)) + data


def _unpacked(data: bytes, place: int) -> tuple[Integers, int]:
    kind, ndim, rows, width = _SHAPE.unpack_from(data, place)
    place += _SHAPE.size
    (size,) = struct.unpack_from("<Q", data, place)
    place += 8
    body = data[place : place + size]
    if len(body) != size or ndim not in (1, 2):
        raise ValueError("not an array")
    shape = (rows,) if ndim == 1 else (rows, width)
    if kind == _ANY:
        numbers = np.empty(rows if ndim == 1 else rows * width, dtype=object)
        numbers[:] = [int(text, 16) for text in json.loads(body)]
        array = shrink(numbers.reshape(shape))
    else:
        array = np.frombuffer(body, dtype=_NUMBERS[kind]).reshape(shape)
        array = array.astype(np.uint64 if kind == b"Q" else np.int64)
    return array, place + size
