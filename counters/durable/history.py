"""All inputs that a counter has ever taken, as digests: what was counted can be recognised, not read.

Inputs are written down as bytes, independently of the batches that they came in, and a keyed hash is noted
after every 4096 bytes of them, bound to all before. So a stream that is given again can be compared piece by
piece, and no piece of it need be kept.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np

__all__ = ["History"]

Integers = np.ndarray[Any, np.dtype[Any]]

BLOCK = 4096
_DIGEST = 16
_ESCAPE = -(1 << 63)
_MARK = struct.pack("<q", _ESCAPE)
_SKIPPED, _ENDED = (1 << 64) - 1, (1 << 64) - 2


class History:
    """Digests of inputs so far: one for each whole block, and the bytes that make no block yet. Secret.

    Args:
        key: 32 bytes; without it, digests tell nothing.
        packed: :meth:`packed` of a history that is to go on.

    Raises:
        ValueError: ``packed`` is none.

    >>> one, two = History(bytes(32)), History(bytes(32))
    >>> one.add((np.arange(1000),))
    >>> two.add((np.arange(600),)); two.add((np.arange(600, 1000),))
    >>> one.whole == two.whole == 1, one.end() == two.end()
    (True, True)
    """

    def __init__(self, key: bytes, packed: bytes = bytes(8)) -> None:
        self._key = bytes(key)
        (size,) = struct.unpack_from("<Q", packed)
        self._rest = packed[8 : 8 + size]
        self._digests = bytearray(packed[8 + size :])
        if size >= BLOCK or len(self._rest) != size or len(self._digests) % _DIGEST:
            raise ValueError("not a history")

    @property
    def whole(self) -> int:
        """Number of whole blocks."""
        return len(self._digests) // _DIGEST

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return self.blocks_size + len(self._rest)

    @property
    def blocks_size(self) -> int:
        """Number of bytes in whole blocks."""
        return self.whole * BLOCK

    def packed(self) -> bytes:
        """Return everything but the key as bytes."""
        return struct.pack("<Q", len(self._rest)) + self._rest + bytes(self._digests)

    def add(self, arrays: tuple[Integers, ...]) -> None:
        """Take inputs: one array of numbers, a row a step; or two, fingerprints and signs of events."""
        self._feed(_written(arrays))

    def skip(self, steps: int) -> None:
        """Take steps without inputs."""
        self._feed(_MARK + struct.pack("<QQ", _SKIPPED, steps))

    def finish(self) -> None:
        """Take the end of the stream."""
        self._feed(_MARK + struct.pack("<QQ", _ENDED, 0))

    def end(self) -> bytes:
        """Return a digest of everything so far."""
        return self._hash(self._last() + self._rest, b"end")

    def agrees(self, whole: History) -> bool:
        """Whether all blocks are those of a history that is at least as long."""
        return whole._digests.startswith(self._digests)

    def _feed(self, data: bytes) -> None:
        data = self._rest + data
        full = len(data) - len(data) % BLOCK
        for start in range(0, full, BLOCK):
            self._digests += self._hash(self._last() + data[start : start + BLOCK], b"block")
        self._rest = data[full:]

    def _last(self) -> bytes:
        return bytes(self._digests[-_DIGEST:])

    def _hash(self, data: bytes, purpose: bytes) -> bytes:
        return hashlib.blake2b(data, key=self._key, digest_size=_DIGEST, person=purpose).digest()


def _written(arrays: tuple[Integers, ...]) -> bytes:
    """Return rows of numbers as bytes, eight for a number unless it is very large."""
    if len(arrays) == 2:  # fingerprints are 64 random bits each, and no numbers
        prints, signs = arrays
        columns = [prints.astype(np.uint64).view(np.int64), signs.astype(np.int64)[:, None]]
        return np.concatenate(columns, axis=1).astype("<i8").tobytes()
    (array,) = arrays
    if array.dtype != object and array.size:
        small = array.dtype != np.uint64 or int(array.max()) < 1 << 63
        if small and int(array.min()) > _ESCAPE:
            return array.astype("<i8").tobytes()
    return b"".join(map(_number, array.ravel().tolist()))


def _number(value: int) -> bytes:
    if -(1 << 63) < value < 1 << 63:
        return struct.pack("<q", value)
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return _MARK + struct.pack("<Q", len(data)) + data
