"""The canonical bytes of a stage's numbers, which a certificate's SHA-256 is about (see docs/format.md)."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage

__all__ = ["ARRAYS", "MAGIC", "canonical_bytes", "digest", "from_limbs", "limbs_needed", "to_limbs"]

MAGIC = b"trilift/stage/1\n"
ARRAYS = ("A", "B", "w", "g")

LimbArray = np.ndarray[Any, np.dtype[np.int64]]

_WORD = 64


def limbs_needed(num: np.ndarray[Any, np.dtype[Any]]) -> int:
    """Return the least number of 64-bit words that holds every entry in two's complement (at least 1)."""
    if num.dtype != object:
        return 1
    low, high = int(num.min()), int(num.max())
    widest = max(high.bit_length(), (-low - 1).bit_length() if low < 0 else 0)
    return widest // _WORD + 1  # one bit more for the sign


def to_limbs(num: np.ndarray[Any, np.dtype[Any]]) -> LimbArray:
    """Return the entries as little-endian int64 words: the shape of ``num``, with a last axis if wider."""
    count = limbs_needed(num)
    if count == 1:
        return np.ascontiguousarray(num.astype("<i8"))
    raw = b"".join(int(entry).to_bytes(8 * count, "little", signed=True) for entry in num.flat)
    return np.frombuffer(raw, dtype="<i8").reshape(*num.shape, count)


def from_limbs(words: LimbArray, ndim: int) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the integers of ``words``: the inverse of :func:`to_limbs` for an array of ``ndim`` axes."""
    if words.ndim == ndim:
        return words.astype(np.int64, copy=False)
    width, raw = 8 * words.shape[-1], np.ascontiguousarray(words).tobytes()
    out = np.empty(words.size // words.shape[-1], dtype=object)
    out[:] = [int.from_bytes(raw[i : i + width], "little", signed=True) for i in range(0, len(raw), width)]
    return out.reshape(words.shape[:-1])


def header_line(name: str, shape: tuple[int, ...], exponent: int, limbs: int) -> bytes:
    """Return the line that stands before an array's entries in the canonical bytes."""
    sizes = ",".join(str(length) for length in shape)
    return f"{name} shape={sizes} exponent={exponent} limbs={limbs}\n".encode("ascii")


def canonical_parts(stage: Stage) -> list[tuple[str, Dyadic, LimbArray]]:
    """Return (name, normalised numbers, words) for A, B, w and g of an exact stage.

    Raises:
        ParameterError: the stage holds floats.
    """
    if not stage.is_exact:
        raise ParameterError("only an exact stage has canonical bytes: complete it first")
    parts = []
    for name in ARRAYS:
        numbers = getattr(stage, name).normalized()
        parts.append((name, numbers, to_limbs(numbers.num)))
    return parts


def canonical_bytes(stage: Stage) -> bytes:
    """Return the canonical bytes of an exact stage: equal numbers have equal bytes, and nothing else has.

    Raises:
        ParameterError: the stage holds floats.
    """
    pieces = [MAGIC]
    for name, numbers, words in canonical_parts(stage):
        limbs = 1 if words.ndim == numbers.ndim else words.shape[-1]
        pieces += [header_line(name, numbers.shape, numbers.exp, limbs), words.tobytes()]
    return b"".join(pieces)


def digest(stage: Stage) -> str:
    """Return the SHA-256 of the canonical bytes, as 64 hexadecimal digits.

    Raises:
        ParameterError: the stage holds floats.

    >>> one = Stage.plain(Dyadic([[1]]), Dyadic([[1]]))
    >>> digest(one) == digest(Stage.plain(Dyadic([[2]], 1), Dyadic([[1]]))), len(digest(one))
    (True, 64)
    """
    return hashlib.sha256(canonical_bytes(stage)).hexdigest()
