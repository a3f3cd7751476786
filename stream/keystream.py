"""ChaCha20 as a random-access array of 32-bit words, addressed by level, block and position.

One stream serves one (level, block). ChaCha20 (RFC 8439) has a 12-byte nonce and a 32-bit counter of
64-byte blocks; the nonce here is ``field u32 || block u64``, little endian, and

    field = region (2 bits) || step (10 bits) || level (20 bits)        (top bit first).

Regions:

* ``PRIMARY`` (0, step 0): the words that every draw reads. Word q is at byte 4q, so the counter of a word
  is q div 16; q < 2^32, the counter stays below 2^28.
* ``TIE`` (2): further words for a sampler's own word number q, of 16 or 32 bits, when its comparison was
  undecided. The counter is q itself, ``step`` counts the 64-byte pieces: 2^10 pieces, 2^19 bits.
* ``TAIL`` (3): words for the continuation of row number ``address``, in the same way.
* ``LOW`` (1): words for the low digits of row number ``address``, in the same way.

Since (region, step, level, block, counter) are disjoint bit fields of the 16 bytes given to the cipher, two
different addresses never share a keystream byte. Nothing wraps: what does not fit a field is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms
from numpy.typing import NDArray
from trilift.lift.checks import fail, integer
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.keys import KEY_BYTES, Secret

__all__ = ["LOW", "PRIMARY", "TAIL", "TIE", "Keystream", "WordSource", "nonce", "stream_blocks"]

PRIMARY, LOW, TIE, TAIL = 0, 1, 2, 3
LEVEL_BITS, STEP_BITS = 20, 10
MAX_WORDS = 1 << 32
WORDS_PER_PIECE = 16
_PIECE_BYTES = 64
_HEAD = 8  # words of a block that are looked at
_PIECE = struct.Struct("<16I")
_ZERO_PIECE = bytes(_PIECE_BYTES)
_NONCE = np.dtype([("counter", "<u4"), ("field", "<u4"), ("block", "<u8")])

Blocks = NDArray[Any] | Sequence[int]


class WordSource(Protocol):
    """What a sampler reads: primary words in bulk, and further words for single addresses."""

    def words(self, level: int, blocks: Blocks, count: int, *, start: int = 0) -> NDArray[np.uint32]:
        """Return words ``start .. start + count - 1`` of every block's primary region, (nb, count)."""
        ...

    def further(self, region: int, level: int, block: int, address: int) -> Iterator[int]:
        """Yield the 32-bit words of a secondary address, the first one first."""
        ...


def stream_blocks(blocks: Blocks) -> NDArray[np.uint64]:
    """Check block numbers (integers in [0, 2^64)) and return them as a 1-d uint64 array.

    Raises:
        ParameterError: for a block that is not an integer or out of range.
    """
    if isinstance(blocks, np.ndarray) and blocks.dtype.kind in "iu":
        if blocks.ndim != 1:
            raise ParameterError(f"blocks must have 1 dimension(s), got {blocks.ndim}")
        if blocks.size and blocks.min() < 0:
            raise fail("blocks", "integers >= 0", int(blocks.min()))
        return blocks.astype(np.uint64)
    checked = [integer("blocks", block, minimum=0, maximum=(1 << 64) - 1) for block in blocks]
    return np.array(checked, dtype=np.uint64)


def nonce(region: int, *, step: int, level: int, block: int, counter: int) -> bytes:
    """Return the 16 bytes (counter, then nonce) that select a 64-byte piece of keystream.

    Raises:
        ParameterError: if a part does not fit its field; nothing ever wraps into another address.
    """
    integer("region", region, minimum=0, maximum=3)
    integer("step", step, minimum=0, maximum=(1 << STEP_BITS) - 1)
    integer("level", level, minimum=0, maximum=(1 << LEVEL_BITS) - 1)
    integer("block", block, minimum=0, maximum=(1 << 64) - 1)
    integer("counter", counter, minimum=0, maximum=(1 << 32) - 1)
    field = (region << (STEP_BITS + LEVEL_BITS)) | (step << LEVEL_BITS) | level
    return struct.pack("<IIQ", counter, field, block)


class Keystream:
    """The keystream of one derived key. Holds no position: every read is a pure function of its address.

    Args:
        key: 32 bytes, used for nothing else.

    Raises:
        ParameterError: if the key is not 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise ParameterError(f"key must be bytes of length {KEY_BYTES}")
        self._key = Secret(key)

    def __repr__(self) -> str:
        return f"Keystream({self._key!r})"

    def words(self, level: int, blocks: Blocks, count: int, *, start: int = 0) -> NDArray[np.uint32]:
        """Return ``count`` words of the primary region of every block, from word ``start`` on.

        Args:
            level: level of the chain, in [0, 2^20).
            blocks: nb block numbers in [0, 2^64), in any order.
            count: number of words, >= 0.
            start: first word; start + count <= 2^32.

        Returns:
            little-endian uint32 array of shape (nb, count).

        Raises:
            ParameterError: if an argument is out of range (the counter never wraps).
            StateError: as :meth:`batches`.
        """
        numbers = stream_blocks(blocks)
        for _, words in self.batches(level, numbers, count, start=start, most=max(1, numbers.size)):
            return words
        return np.empty((numbers.size, int(count)), dtype="<u4")  # no words: one of the two is zero

    def batches(
        self, level: int, blocks: Blocks, count: int, *, start: int = 0, most: int
    ) -> Iterator[tuple[int, NDArray[np.uint32]]]:
        """Yield the words of :meth:`words` for at most ``most`` blocks at a time, in order.

        Every batch is written over the one before: one buffer stays in the processor's cache, and one cipher
        serves all blocks.

        Args:
            level, blocks, count, start: as for :meth:`words`.
            most: blocks in a batch, >= 1.

        Yields:
            (number of blocks before, little-endian uint32 array (some, count)); nothing if there is no word.

        Raises:
            ParameterError: if an argument is out of range.
            StateError: the first eight words of a block are all the same: the cipher is broken, and noise
                from it would be none. Random words are so with probability 2^-224.
        """
        start = integer("start", start, minimum=0, maximum=MAX_WORDS)
        count = integer("count", count, minimum=0, maximum=MAX_WORDS - start)
        most = integer("most", most, minimum=1)
        numbers = stream_blocks(blocks)
        counter, skip = divmod(start, WORDS_PER_PIECE)
        first = nonce(PRIMARY, step=0, level=level, block=0, counter=counter)
        if numbers.size == 0 or count == 0:
            return
        most = min(most, numbers.size)
        nonces = np.empty(numbers.size, dtype=_NONCE)
        nonces[:] = np.frombuffer(first, dtype=_NONCE)[0]
        nonces["block"] = numbers
        buffer = np.empty((most, skip + count), dtype="<u4")
        width = 4 * (skip + count)
        zeros, target = bytes(width), buffer.view(np.uint8).reshape(-1).data
        slots = [target[width * k : width * (k + 1)] for k in range(most)]
        flat = memoryview(nonces.tobytes())
        encryptor = self._encryptor(bytes(flat[:16]))
        reset, fill = encryptor.reset_nonce, encryptor.update_into
        for begin in range(0, numbers.size, most):
            some = min(most, numbers.size - begin)
            for k, i in enumerate(range(16 * begin, 16 * (begin + some), 16)):
                if i:
                    reset(flat[i : i + 16].tobytes())
                fill(zeros, slots[k])
            head = buffer[:some, :_HEAD]
            if head.shape[1] == _HEAD and (head[:, 1:] == head[:, :1]).all(axis=1).any():
                raise StateError("the keystream is stuck: the cipher returns one word again and again")
            yield begin, buffer[:some, skip:]

    def further(self, region: int, level: int, block: int, address: int) -> Iterator[int]:
        """Yield the words of a secondary address.

        Args:
            region: :data:`TIE`, with the number of a word as address, or :data:`TAIL` or :data:`LOW`, with a
                row as address.
            level: level of the chain, in [0, 2^20).
            block: block number in [0, 2^64).
            address: in [0, 2^32).

        Raises:
            ParameterError: if an argument is out of range.
            StateError: after 2^14 words, instead of wrapping. Comparisons of a random stream get there with
                probability below 2^-500000; tails and low digits: see the samplers.
        """
        if region not in (LOW, TIE, TAIL):
            raise fail("region", "LOW, TIE or TAIL", region)
        for step in range(1 << STEP_BITS):
            where = nonce(region, step=step, level=level, block=block, counter=address)
            yield from _PIECE.unpack(self._encryptor(where).update(_ZERO_PIECE))
        raise StateError("keystream exhausted: 2^14 words left a draw undecided")

    def _encryptor(self, where: bytes) -> CipherContext:
        return Cipher(algorithms.ChaCha20(self._key, where), mode=None).encryptor()
