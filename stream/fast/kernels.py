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

_ONE, _SIGN, _FLAGS = np.int64(1), np.int64(2), np.int64(3)
_LOW = np.int64((1 << 32) - 1)
_TOP = np.uint64(56)
_GATHER = np.uint64(0x0102040810204080)
_LIMIT = 2.0**52
_MARGIN = 2.0**-51  # four units of 2^-53


def compare(words: Array, limits: Array, flags: Array, octets: Array, packed: Array, found: Array) -> int:
    """Set bit q of ``packed[b]`` to words[b, q] < limits[q], and list where the two are equal.

    Eight flags (bytes of 0 and 1) times 0x0102040810204080 have the flag of byte i at bit 56 + i; the other
    products of bits lie below bit 56 or above bit 63, no two at one place, so nothing carries.

    Args:
        words: uint16 (nb, at least count).
        limits: uint16 (count,), count a multiple of 8.
        flags: uint8 (count,), overwritten.
        octets: the same buffer as uint64.
        packed: uint8 (at least nb, at least count / 8); what lies behind count / 8 is left alone.
        found: int64 (room, 2); receives (b, q) of equal pairs, as many as there is room for.

    Returns:
        The number of equal pairs.
    """
    count, room = limits.shape[0], found.shape[0]
    equal = 0
    for b in range(words.shape[0]):
        row, bits = words[b], packed[b]
        ties = np.uint8(0)
        for q in range(count):
            word, limit = row[q], limits[q]
            flags[q] = word < limit
            ties |= np.uint8(word == limit)
        if ties:
            for q in range(count):
                if row[q] == limits[q]:
                    if equal < room:
                        found[equal, 0], found[equal, 1] = b, q
                    equal += 1
        for q in range(octets.shape[0]):
            bits[q] = np.uint8((octets[q] * _GATHER) >> _TOP)
    return equal


def decode(
    words: Array,
    packed: Array,
    blocks: int,
    start: int,
    begin: int,
    width: int,
    low: Array,
    masks: Array,
    out: Array,
    first: int,
    column: int,
) -> None:
    """Turn the results of tests and the fair bits of rows with at most 29 low digits into floats.

    The magnitude, 21 digits above the low ones, is below 2^50, so that it is exact; the factor is 0, 1 or -1.
    Tail events and exceptions are left out.

    Args:
        words: uint16 (nb, at least begin + width * rows).
        packed: uint8 (at least nb, at least 3 (start + rows)): 24 results a row.
        blocks: nb.
        start: the first row's place in ``packed``.
        begin: word with which the first row's fair bits begin.
        width: words of fair bits a row, 1 or 2.
        low: int64 (rows,), numbers F of low digits.
        masks: int64 (rows,), 2^F - 1.
        out: float64 (blocks, columns).
        first: row of ``out`` for the first block; first + nb <= blocks.
        column: column of ``out`` for the first row; column + rows <= columns.
    """
    rows = low.shape[0]
    for b in range(blocks):
        results = packed[b, 3 * start : 3 * (start + rows)]
        fair, target = words[b, begin : begin + width * rows], out[first + b, column : column + rows]
        for r in range(rows):
            at = np.uint64(3 * r)
            tests = np.int64(results[at]) | np.int64(results[at + np.uint64(1)]) << np.int64(8)
            tests |= np.int64(results[at + np.uint64(2)]) << np.int64(16)
            if width == 1:
                bits = np.int64(fair[np.uint64(r)])
            else:
                bits = np.int64(fair[np.uint64(2 * r)])
                bits |= np.int64(fair[np.uint64(2 * r + 1)]) << np.int64(16)
            magnitude = (tests >> _FLAGS << low[r] | bits >> _FLAGS & masks[r]) + _ONE
            factor = (tests & _ONE) - (tests << _ONE & bits & _SIGN)
            target[r] = np.float64(magnitude) * np.float64(factor)


def decode_wide(
    words: Array,
    packed: Array,
    blocks: int,
    start: int,
    begin: int,
    width: int,
    low: Array,
    powers: Array,
    out: Array,
    first: int,
    column: int,
) -> None:
    """Turn results and fair bits of rows with any number of low digits into floats, as ``Draws.to_float``.

    The magnitude is added up from its 32-bit halves, the lowest one first.

    Args:
        words, packed, blocks, start, begin, low, out, first, column: as for :func:`decode`.
        width: words of fair bits a row, 3 to 32.
        powers: float64, 2^(32 k) for every half of the limbs of a draw: products with halves are exact.
    """
    rows = low.shape[0]
    for b in range(blocks):
        for r in range(rows):
            at, own, digits = 3 * (start + r), begin + width * r, low[r]
            tests = np.int64(packed[b, at]) | np.int64(packed[b, at + 1]) << np.int64(8)
            tests |= np.int64(packed[b, at + 2]) << np.int64(16)
            total = 1.0
            for k in range(powers.shape[0]):
                place = np.int64(32 * k)
                half = np.int64(0)
                left = digits - place
                if left > 0:  # low digits place .. place + 31 are the fair bits from place + 3 on
                    word = 2 * k
                    for n in range(3):
                        if word + n < width:
                            half |= np.int64(words[b, own + word + n]) << np.int64(16 * n)
                    half = half >> _FLAGS & _LOW
                    if left < 32:
                        half &= (_ONE << left) - _ONE
                if left >= 0:
                    if left < 32:
                        half |= (tests >> _FLAGS << left) & _LOW
                elif left > -32:
                    half |= tests >> _FLAGS >> -left
                total += np.float64(half) * powers[k]
            factor = (tests & _ONE) - (tests << _ONE & np.int64(words[b, own]) & _SIGN)
            out[first + b, column + r] = total * np.float64(factor)


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
