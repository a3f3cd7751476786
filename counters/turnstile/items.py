"""Items of a turnstile stream, and the keyed fingerprints that stand for them.

An item is a string, bytes, an integer or a tuple of items. It is written down unambiguously (a type byte and
a length before every part) and hashed with keyed BLAKE2b, so that nobody who does not know the key can choose
items that collide. Hashes matter for accuracy alone: whatever function of the items is used, the guarantee of
a mechanism is the same, so a published or unlucky key costs accuracy, never privacy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from trilift.lift.checks import fail
from trilift.lift.errors import ParameterError

__all__ = ["FINGERPRINT_BYTES", "Fingerprints", "encoded"]

Words = np.ndarray[Any, np.dtype[np.uint64]]

FINGERPRINT_BYTES = 16
_DEEPEST = 16
_LARGEST = 1 << 20  # bytes of one written item
_HEAD = 9  # type byte and length


def _part(tag: bytes, data: bytes) -> bytes:
    return tag + len(data).to_bytes(8, "little") + data


def encoded(item: Any, *, depth: int = 0) -> bytes:
    """Write an item down: different items give different bytes, whatever their types.

    Args:
        item: str, bytes, int (a numpy integer counts as one) or a tuple of items.
        depth: how many tuples it stands in already.

    Raises:
        ParameterError: another type (booleans and floats too: say what they mean), text that is no Unicode,
            tuples more than 16 deep, or an item of more than 2^20 bytes.

    >>> encoded("1") == encoded(1), encoded(("ab", "c")) == encoded(("a", "bc"))
    (False, False)
    """
    kind = type(item)
    if kind is str:
        try:
            data = _part(b"s", item.encode("utf-8"))
        except UnicodeEncodeError:
            raise ParameterError("items must be valid Unicode, and a string is not") from None
    elif kind is bytes:
        data = _part(b"b", item)
    elif kind is int or isinstance(item, np.integer):
        number = int(item)
        width = (number.bit_length() + 8) // 8  # room for the sign
        if width > _LARGEST:  # before it is written down
            raise ParameterError(f"items must take at most {_LARGEST} bytes each")
        data = _part(b"i", number.to_bytes(width, "little", signed=True))
    elif kind is tuple:
        if depth == _DEEPEST:
            raise ParameterError(f"items must be tuples of at most {_DEEPEST} levels")
        data = _part(b"t", b"".join(encoded(part, depth=depth + 1) for part in item))
    elif isinstance(item, np.str_):
        return encoded(str(item), depth=depth)
    elif isinstance(item, np.bytes_):
        return encoded(bytes(item), depth=depth)
    else:
        raise fail("items", "str, bytes, int or tuples of them (or pass encode=)", kind.__name__)
    if len(data) > _LARGEST + _HEAD:
        raise ParameterError(f"items must take at most {_LARGEST} bytes each")
    return data


class Fingerprints:
    """128-bit keyed fingerprints of items, as two 64-bit words.

    Args:
        key: 32 secret bytes, derived for this purpose alone.
        encode: turns an item into str, bytes, int or a tuple of them; None for items that are.

    >>> prints = Fingerprints(bytes(32))
    >>> prints.many(["a", "b", "a"]).shape
    (3, 2)
    >>> bool((prints.many(["a"]) == prints.many(["b", "a"])[1:]).all())
    True
    """

    def __init__(self, key: bytes, *, encode: Callable[[Any], Any] | None = None) -> None:
        self._start = hashlib.blake2b(digest_size=FINGERPRINT_BYTES, key=key, person=b"trilift/items/1")
        self._encode = encode

    def __repr__(self) -> str:
        return "Fingerprints(key hidden)"

    def many(self, items: Iterable[Any]) -> Words:
        """Return the fingerprints of items, uint64 of shape (k, 2).

        Raises:
            ParameterError: an item of another type; nothing is remembered of the others.
        """
        if isinstance(items, np.ndarray):
            items = items.tolist() if items.dtype.kind in "iuUS" else list(items)
        encode = self._encode
        digests = [self._digest(item if encode is None else encode(item)) for item in items]
        joined = np.frombuffer(b"".join(digests), dtype="<u8")
        return joined.astype(np.uint64, copy=False).reshape(-1, 2)

    def _digest(self, item: Any) -> bytes:
        state = self._start.copy()
        state.update(encoded(item))
        return state.digest()
