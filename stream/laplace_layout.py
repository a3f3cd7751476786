"""Where the words of discrete Laplace draws lie in a block, and what they are compared with.

The layout is bound to the name of the sampler (:data:`trilift.stream.laplace.SAMPLER_ID`): other places would
be other noise. A block is cut into groups of 1024 rows, each beginning with a new 64-byte piece of keystream.
A group of k rows, in 16-bit words, the low half of a 32-bit word first:

* 24 k words of tests, 24 a row: word 0 "nonzero", 1 "exception of the low digits", 2 "tail event", then
  digits F .. F+20 of |X| - 1, the lowest one first. A test is won if its number is below its probability.
* the fair bits, W = ceil((F+3)/16) words a row, as one number: bit 1 says "negative", bits 3 .. F+2 are
  digits 0 .. F-1. What is left of them is not used.

With d the least integer such that 2^d >= 16 t, t the scale, F = max(0, d - 21).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trilift.lift.checks import fail, integer
from trilift.lift.errors import ParameterError
from trilift.stream import low_digits, thresholds
from trilift.stream.draws import FLAGS, NEGATIVE, NONZERO, TAIL_EVENT
from trilift.stream.keystream import WORDS_PER_PIECE
from trilift.stream.thresholds import Rule, Scale

__all__ = [
    "DIGITS",
    "EXCEPTION",
    "TESTS",
    "Group",
    "Run",
    "checked_scales",
    "low_count",
    "make_groups",
    "rule",
]

EXCEPTION = 1
"""Number of the test whose place among the flags of a draw belongs to the sign, a fair bit."""

TESTS = 24
DIGITS = TESTS - FLAGS
_TAIL_BITS = 4  # 2^d >= 2^4 t
_LEAST_FRACTION = Fraction(1, 1 << 10)
_GROUP_ROWS = 1 << 10
_MAX_WORDS = 1 << 31  # 16-bit words are numbered by 32 bits
_HALF, _LIMB = 16, 64


def _checked(scale: Any) -> Scale:
    """Return a scale as an integer >= 1 or a fraction >= 2^-10 (below, exp(1/t) would get too long)."""
    if isinstance(scale, Fraction) and scale.denominator != 1:
        if scale < _LEAST_FRACTION:
            raise fail("scale", f"at least {_LEAST_FRACTION}", scale)
        return scale
    return integer("scale", scale.numerator if isinstance(scale, Fraction) else scale, minimum=1)


def checked_scales(scales: Any) -> tuple[Scale, ...]:
    """Return the scales of rows, each an integer >= 1 or a fraction >= 2^-10.

    Raises:
        ParameterError: if one is neither, or they are no sequence.
    """
    known: dict[Any, Scale] = {}  # banks repeat a scale very often; True is no number, though equal to 1
    if not isinstance(scales, (list, tuple, np.ndarray)) or np.ndim(scales) != 1:
        raise fail("scales", "a sequence of integers", scales)
    for scale in scales:
        if not isinstance(scale, Hashable) or (type(scale), scale) not in known:
            known[type(scale), scale] = _checked(scale)
    return tuple(known[type(scale), scale] for scale in scales)


def low_count(scale: Scale) -> int:
    """Return F, the number of low digits that are fair bits."""
    sixteen = -(-(scale.numerator << _TAIL_BITS) // scale.denominator)
    return max(0, (sixteen - 1).bit_length() - DIGITS)


def _fair_words(low: int) -> int:
    return -(-(low + FLAGS) // _HALF)


@lru_cache(maxsize=1 << 12)
def rule(scale: Scale, test: int) -> Rule | None:
    """Return the probability of a test; None for the exception of a row without low digits: it is zero."""
    low = low_count(scale)
    if test == NONZERO:
        return thresholds.nonzero(scale)
    if test == EXCEPTION:
        return low_digits.LowException(low, scale) if low else None
    if test == TAIL_EVENT:
        return thresholds.tail(low + DIGITS, scale)
    return thresholds.digit(low + test - FLAGS, scale)


def _limits(scale: Scale) -> NDArray[np.uint16]:
    """Return floor(p 2^16) for the tests of a row; exceptions and tail events have p < 2^-16.

    Since 2^d < 32 t when F > 0, the one is below 2^F / t < 2^-16; the other is at most e^-16.
    """
    rules = (rule(scale, test) for test in range(TESTS))
    return np.array([0 if p is None else p.floor(_HALF) for p in rules], dtype="<u2")


@dataclass(frozen=True)
class Run:
    """Consecutive rows of a group with equally many words of fair bits.

    Attributes:
        first: the first row, counted from the group's first one.
        count: number of rows.
        begin: word of the group, of 16 bits, with which its fair bits begin.
        width: W, words of fair bits a row.
        low: int64 (count,), F of every row.
    """

    first: int
    count: int
    begin: int
    width: int
    low: NDArray[np.int64]

    @property
    def limbs(self) -> int:
        """Number of 64-bit limbs that hold a draw: three flags, F <= 16 W - 3 low digits, 21 digits."""
        return -(-(_HALF * self.width + DIGITS) // _LIMB)

    @cached_property
    def kept(self) -> NDArray[np.uint64]:
        """What is used of the fair bits, the sign and F low digits: uint64 (count, limbs)."""
        masks = [1 << NEGATIVE | ((1 << low) - 1) << FLAGS for low in self.low.tolist()]
        whole = (1 << _LIMB) - 1
        return np.array([[mask >> _LIMB * n & whole for n in range(self.limbs)] for mask in masks], np.uint64)


@dataclass(frozen=True)
class Group:
    """Consecutive rows whose words are read together.

    Attributes:
        rows: the rows.
        scales: their scales.
        start: word of the block, of 32 bits, with which the group begins.
        words: number of 32-bit words to be read.
        limits: uint16 (24 len(rows),), what the first words are compared with.
        runs: all rows, in order.
    """

    rows: range
    scales: tuple[Scale, ...]
    start: int
    words: int
    limits: NDArray[np.uint16]
    runs: tuple[Run, ...]

    def address(self, place: int) -> int:
        """Return the number of one of the group's 16-bit words within the block."""
        return 2 * self.start + place


def _runs(scales: Sequence[Scale]) -> Iterator[Run]:
    low = [low_count(scale) for scale in scales]
    first, begin = 0, TESTS * len(scales)
    for width, members in groupby(map(_fair_words, low)):
        count = sum(1 for _ in members)
        yield Run(first, count, begin, width, np.array(low[first : first + count], dtype=np.int64))
        first, begin = first + count, begin + width * count


def make_groups(scales: tuple[Scale, ...]) -> tuple[Group, ...]:
    """Lay out the words of all rows.

    Raises:
        ParameterError: if a block would need more than 2^31 words.
    """
    tables: dict[Scale, NDArray[np.uint16]] = {}
    known: dict[tuple[Scale, ...], tuple[NDArray[np.uint16], tuple[Run, ...]]] = {}
    groups, start = [], 0
    for first in range(0, len(scales), _GROUP_ROWS):
        some = scales[first : first + _GROUP_ROWS]
        if some not in known:  # banks repeat groups, too
            for scale in set(some) - tables.keys():
                tables[scale] = _limits(scale)
            known[some] = np.concatenate([tables[scale] for scale in some]), tuple(_runs(some))
        limits, runs = known[some]
        words = -(-(runs[-1].begin + runs[-1].width * runs[-1].count) // 2)
        groups.append(Group(range(first, first + len(some)), some, start, words, limits, runs))
        start = -(-(start + words) // WORDS_PER_PIECE) * WORDS_PER_PIECE
    if start > _MAX_WORDS:
        raise ParameterError(f"scales must need at most 2^31 words per block, got {start}")
    return tuple(groups)
