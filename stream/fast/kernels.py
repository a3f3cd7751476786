"""The loops that are compiled, as plain Python functions on arrays: nothing here imports numba.

Compiled integers wrap silently and indices are not checked, so every function says what must hold before it
is entered, and :mod:`trilift.stream.fast.calls`, the only caller, makes it hold. All arrays are C-contiguous
and do not overlap, except that ``octets`` is a view of ``flags``. Indices are unsigned, or run from zero:
signed ones would be tested for being negative, which keeps loops from being vectorised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["compare", "decode", "decode_wide", "round_half_up"]

Array = np.ndarray[Any, np.dtype[Any]]

_ONE, _THREE = np.uint64(1), np.uint64(3)
_LOW = np.uint64((1 << 32) - 1)
_HALF, _TOP, _CARRY = np.uint64(32), np.uint64(56), np.uint64(61)
_ALL = np.uint64((1 << 64) - 1)
_GATHER = np.uint64(0x0102040810204080)
_LIMIT = 2.0**52
_MARGIN = 2.0**-51  # four units of 2^-53


def compare(
    words: Array, skip: int, limits: Array, flags: Array, octets: Array, packed: Array, marks: Array
) -> None:
    """Set bit q of ``packed[b]`` to words[b, skip + q] < limits[q], ``marks[b]`` to whether two are equal.

    Eight flags (bytes of 0 and 1) times 0x0102040810204080 have the flag of byte i at bit 56 + i; the other
    products of bits lie below bit 56 or above bit 63, no two at one place, so nothing carries.

    Args:
        words: uint32 (nb, skip + count).
        skip: words that are not compared.
        limits: uint32 (count,), count a multiple of 8.
        flags: uint8 (count,), overwritten.
        octets: the same buffer as uint64.
        packed: uint8 (at least nb, at least count / 8); what lies behind count / 8 is left alone.
        marks: uint8 (nb,).
    """
    count = limits.shape[0]
    for b in range(words.shape[0]):
        row, bits = words[b, skip:], packed[b]
        ties = np.uint32(0)
        for q in range(count):
            word, limit = row[q], limits[q]
            flags[q] = word < limit
            ties |= np.uint32(word == limit)
        marks[b] = ties
        for q in range(octets.shape[0]):
            bits[q] = np.uint8((octets[q] * _GATHER) >> _TOP)


def decode(
    packed: Array, blocks: int, start: int, width: int, rows: int, out: Array, first: int, column: int
) -> None:
    """Turn the packed bits of rows that read at most 64 words into floats.

    The magnitude is what stands above the three flags, at most 2^61 - 1, plus one: no overflow. The
    conversion to a float is rounded to nearest, and the factor is 0, 1 or -1. Tail events need no look: their
    limit is floor(2^32 e^-64) = 0 at most, so a word for one is equal to its limit, and marked.

    Args:
        packed: uint8 (at least nb, at least start + width * rows + 8): bytes past a row are read, and masked.
        blocks: nb.
        start: first byte of the first row.
        width: bytes of a row, 1 to 8.
        rows: number of rows.
        out: float64 (blocks, columns).
        first: row of ``out`` for the first block; first + nb <= blocks.
        column: column of ``out`` for the first row; column + rows <= columns.
    """
    mask = _ALL >> np.uint64(64 - 8 * width)
    begin, step = np.uint64(start), np.uint64(width)
    for b in range(blocks):
        row, target = packed[b], out[first + b, column : column + rows]
        for r in range(rows):
            at = begin + np.uint64(r) * step
            bits = np.uint64(0)
            for k in range(8):
                bits |= np.uint64(row[at + np.uint64(k)]) << np.uint64(8 * k)
            bits &= mask
            factor = np.int64(bits & _ONE) - np.int64(bits & (bits >> _ONE) & _ONE) * 2
            target[r] = np.float64((bits >> _THREE) + _ONE) * np.float64(factor)


def decode_wide(
    packed: Array,
    blocks: int,
    start: int,
    width: int,
    rows: int,
    powers: Array,
    out: Array,
    first: int,
    column: int,
) -> None:
    """Turn the packed bits of rows that read more than 64 words into floats, as ``Draws.to_float`` does.

    Args:
        packed, start, rows, blocks, out, first, column: as for :func:`decode`.
        width: bytes of a row, 9 to 64: magnitudes below 2^512.
        powers: float64, 2^(32 k) for k = 0 .. 2 * ceil(width / 8) - 1: products with halves are exact.
    """
    limbs = (width + 7) // 8
    mask = _ALL >> np.uint64(64 * limbs - 8 * width)
    for b in range(blocks):
        row, target = packed[b], out[first + b, column : column + rows]
        for r in range(rows):
            at = np.uint64(start) + np.uint64(r) * np.uint64(width)
            bits = np.uint64(0)
            for k in range(8):
                bits |= np.uint64(row[at + np.uint64(k)]) << np.uint64(8 * k)
            flags, total = bits, 1.0
            for n in range(limbs):
                above = np.uint64(0)
                if n + 1 < limbs:
                    at += np.uint64(8)
                    for k in range(8):
                        above |= np.uint64(row[at + np.uint64(k)]) << np.uint64(8 * k)
                    if n + 2 == limbs:
                        above &= mask
                limb = (bits >> _THREE) | (above << _CARRY)
                total += np.float64(limb & _LOW) * powers[2 * n]
                total += np.float64(limb >> _HALF) * powers[2 * n + 1]
                bits = above
            factor = np.int64(flags & _ONE) - np.int64(flags & (flags >> _ONE) & _ONE) * 2
            target[r] = total * np.float64(factor)


def round_half_up(values: Array, factor: float, margin: float, out: Array, unsure: Array) -> int:
    """Set ``out`` to floor(factor values + 1/2) where a float decides it, and ``unsure`` where it does not.

    Undecided is what lies within margin + 2^-51 (|u| + 1) of an integer, u = factor values + 1/2, what is not
    below 2^52 in absolute value, and what is no number; only what is decided is converted to an integer.

    Args:
        values: float64 (k,).
        factor: a power of two.
        margin: >= 0.
        out: int64 (k,); 0 where undecided.
        unsure: bool (k,).

    Returns:
        How many are undecided.
    """
    count = 0
    for i in range(values.shape[0]):
        scaled = values[i] * factor + 0.5
        whole = np.floor(scaled)
        part = scaled - whole
        size = abs(scaled)
        near = margin + _MARGIN * (size + 1.0)
        sure = (part > near) & (1.0 - part > near) & (size < _LIMIT)
        out[i] = np.int64(whole if sure else 0.0)
        unsure[i] = not sure
        count += not sure
    return count
