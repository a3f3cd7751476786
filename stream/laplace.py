"""Exact discrete Laplace variates, vectorised, every one at a fixed address of a keystream.

X has scale t, an integer >= 1 or a fraction, and P(X = x) proportional to u^|x|, u = exp(-1/t). It is drawn
from its parts, which are independent:

* X is nonzero with probability 2u / (1+u); its sign is one fair bit; |X| = 1 + G with P(G >= g) = u^g.
* The binary digits of the geometric G are independent, because u^G is the product over the digits of
  u^(2^j digit): digit j is 1 with probability 1 / (1 + exp(2^j / t)). G >> J is geometric again, with ratio
  exp(-2^J / t), and independent of the digits below J.
* J is such that 2^J >= 64 t. Then G >> J is zero except with probability below e^-64; that event is drawn
  exactly as well, and when it happens G >> J is continued in Python integers.

Each part is "U < p" for a uniform U: a 32-bit word against floor(p 2^32), and only if they are equal
(probability 2^-32) further words against further digits of p (:mod:`trilift.stream.thresholds`).

Rejection samplers (Canonne, Kamath, Steinke 2020, among them) use a random number of random bits, so the
place in the keystream that serves a draw depends on the draws before it, or each draw needs its own loop.
Here every row reads the same words whatever their values: a draw is a function of (key, level, block, row)
alone, no batching can matter, and numpy compares whole blocks at once. Nothing is a float, nothing is
rejected, and all scales, from 2^-10 to past 2^200, take the same path.

Layout of a block (bound to :data:`SAMPLER_ID`; golden values in the tests hold it fast): rows in order; a row
of scale t has W words, W the least multiple of 8 with W >= bitlength(ceil(64 t) - 1) + 3. They are the zero
test, the sign, the tail test, and digits 0 .. J-1 with J = W - 3.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trilift.lift.checks import fail, integer
from trilift.lift.errors import ParameterError
from trilift.stream import thresholds
from trilift.stream.draws import FLAGS, NEGATIVE, NONZERO, TAIL_EVENT, Draws, Part
from trilift.stream.fast.calls import MOST_WIDTH, laplace_floats
from trilift.stream.fast.switch import kernels
from trilift.stream.keystream import MAX_WORDS, TAIL, TIE, Blocks, Keystream, WordSource, stream_blocks
from trilift.stream.thresholds import Scale, Threshold

__all__ = ["SAMPLER_ID", "LaplaceBlocks", "LaplaceRows", "row_words", "variance"]

SAMPLER_ID = "trilift/laplace/1"
_TAIL_BITS = 6  # 2^J >= 2^6 t
_LEAST_FRACTION = Fraction(1, 1 << 10)
_SIGN_LIMIT = 1 << 31
_PIECE_WORDS = 1 << 16
_CHUNK_WORDS = 1 << 18


def _checked(scale: Any) -> Scale:
    """Return a scale as an integer >= 1 or a fraction >= 2^-10 (below, exp(1/t) would get too long)."""
    if isinstance(scale, Fraction) and scale.denominator != 1:
        if scale < _LEAST_FRACTION:
            raise fail("scale", f"at least {_LEAST_FRACTION}", scale)
        return scale
    return integer("scale", scale.numerator if isinstance(scale, Fraction) else scale, minimum=1)


def row_words(scale: Scale) -> int:
    """Return W, the number of 32-bit words that a row of this scale reads per block."""
    digits = (-(-(scale.numerator << _TAIL_BITS) // scale.denominator) - 1).bit_length()
    return -(-(digits + FLAGS) // 8) * 8


def variance(scale: int) -> float:
    """Variance of the discrete Laplace variate of an integer scale, within relative 2^-52.

    Args:
        scale: integer >= 1; the variance is a little below 2 scale^2.

    Raises:
        ParameterError: if scale is not an integer >= 1, or the variance exceeds the range of a float.

    >>> variance(1)
    1.8413471884155845
    """
    lower, upper = thresholds.variance_bounds(scale)
    try:
        return float((lower + upper) / 2)
    except OverflowError:
        raise fail("scale", "an integer whose variance is within the range of a float", scale) from None


def _threshold(scale: Scale, word: int) -> Threshold | None:
    """Return the probability behind a row's word; None for the sign, whose limit 2^31 is exact."""
    if word == NONZERO:
        return thresholds.nonzero(scale)
    if word == NEGATIVE:
        return None
    if word == TAIL_EVENT:
        return thresholds.tail(row_words(scale) - FLAGS, scale)
    return thresholds.digit(word - FLAGS, scale)


def _limits(scale: Scale) -> NDArray[np.uint32]:
    rules = (_threshold(scale, word) for word in range(row_words(scale)))
    limits = [_SIGN_LIMIT if rule is None else rule.floor(32) for rule in rules]
    return np.array(limits, dtype="<u4")


@dataclass(frozen=True)
class LaplaceBlocks:
    """The draws of some blocks, made when they are asked for: what :mod:`trilift.stream.evaluate` reads.

    Attributes:
        rows: the plan.
        source, level, numbers: where the words are.
    """

    rows: LaplaceRows
    source: WordSource
    level: int
    numbers: NDArray[Any]

    @property
    def float_error(self) -> float:
        """Zero: :meth:`to_float` errs by no more than relative 2^-52."""
        return 0.0

    def to_float(self) -> NDArray[np.float64]:
        """Return float64 (blocks, rows), each within relative 2^-52 of the exact integer."""
        return self.rows.floats(self.source, self.level, self.numbers)

    def block(self, index: int) -> list[int]:
        """Return the exact integers of one block, given by its place."""
        return self.rows.sample(self.source, self.level, self.numbers[index, None]).block(0)


@dataclass(frozen=True)
class _Piece:
    """Consecutive rows with the same number of words, few enough to be compared at once."""

    rows: range
    start: int
    width: int
    limits: NDArray[np.uint32]


class LaplaceRows:
    """The sampling plan of the rows of a level: which words each row reads and what they are compared with.

    Args:
        scales: one for each row: an integer >= 1, or a fraction >= 2^-10, any size.

    Raises:
        ParameterError: if a scale is neither, or a block would need more than 2^32 words.

    >>> from trilift.stream.keys import simulation_key
    >>> from trilift.stream.keystream import Keystream
    >>> rows = LaplaceRows([3, 3, 2**70])
    >>> stream = Keystream(simulation_key(1))
    >>> both = rows.sample(stream, level=0, blocks=[5, 9]).to_objects()
    >>> bool((rows.sample(stream, level=0, blocks=[9]).to_objects() == both[1:]).all())
    True
    """

    def __init__(self, scales: Sequence[Scale] | NDArray[Any]) -> None:
        known: dict[Any, Scale] = {}  # banks repeat a scale very often; True is no number, though equal to 1
        if not isinstance(scales, (list, tuple, np.ndarray)) or np.ndim(scales) != 1:
            raise fail("scales", "a sequence of integers", scales)
        for scale in scales:
            if not isinstance(scale, Hashable) or (type(scale), scale) not in known:
                known[type(scale), scale] = _checked(scale)
        self._scales = tuple(known[type(scale), scale] for scale in scales)
        self._pieces: list[_Piece] = []
        tables: dict[Scale, NDArray[np.uint32]] = {}
        tiled: dict[tuple[Scale, ...], NDArray[np.uint32]] = {}
        start = 0
        for rows, width in self._runs():
            scales_here = self._scales[rows.start : rows.stop]
            for scale in set(scales_here) - tables.keys():
                tables[scale] = _limits(scale)
            if scales_here not in tiled:
                tiled[scales_here] = np.concatenate([tables[scale] for scale in scales_here])
            self._pieces.append(_Piece(rows, start, width, tiled[scales_here]))
            start += width * len(rows)
        if start > MAX_WORDS:
            raise ParameterError(f"scales must need at most 2^32 words per block, got {start}")
        self._words = start

    def _runs(self) -> Iterator[tuple[range, int]]:
        first = 0
        for width, group in groupby(map(row_words, self._scales)):
            stop = first + sum(1 for _ in group)
            most = max(1, _PIECE_WORDS // width)
            for begin in range(first, stop, most):
                yield range(begin, min(begin + most, stop)), width
            first = stop

    @property
    def scales(self) -> tuple[Scale, ...]:
        """The scales, one per row."""
        return self._scales

    @property
    def words(self) -> int:
        """Number of 32-bit keystream words that one block reads."""
        return self._words

    def sample(self, source: WordSource, level: int, blocks: Blocks) -> Draws:
        """Draw the variates of all rows in the given blocks.

        Args:
            source: the keystream; the result is a function of it and of the addresses alone.
            level: level of the chain, part of the address.
            blocks: nb block numbers in [0, 2^64), any order, repetitions allowed (and equal).

        Returns:
            :class:`~trilift.stream.draws.Draws` of shape (nb, rows).

        Raises:
            ParameterError: if level or a block does not fit its address field.
            StateError: if 2^14 words leave a comparison or a tail undecided; a random stream does so with
                probability below 2^-500000.
        """
        numbers = stream_blocks(blocks)
        draws = Draws((numbers.size, len(self._scales)))
        for piece in self._pieces:
            part = Part(piece.rows, self._sample_piece(piece, source, level, numbers))
            draws.parts.append(part)
            for i, k in part.tail_events():
                row = piece.rows[k]
                words = source.further(TAIL, level, int(numbers[i]), row)
                draws.overrides[i, row] = self._continue(part.exact(i, k), row, words)
        return draws

    def floats(self, source: WordSource, level: int, blocks: Blocks) -> NDArray[np.float64]:
        """Return ``sample(source, level, blocks).to_float()``, by compiled kernels where they are in use.

        Blocks with an undecided comparison (one of 2^32 words) are drawn by :meth:`sample`.

        Raises:
            ParameterError, StateError: as :meth:`sample` and :meth:`Draws.to_float`.
        """
        numbers = stream_blocks(blocks)
        fits = isinstance(source, Keystream) and all(piece.width <= MOST_WIDTH for piece in self._pieces)
        made = kernels(numbers.size * self._words) if fits else None
        if made is None or not isinstance(source, Keystream):
            return self.sample(source, level, numbers).to_float()
        out = np.empty((numbers.size, len(self._scales)), dtype=np.float64)
        for i in laplace_floats(made, self._pieces, source, level, numbers, out):
            out[i] = self.sample(source, level, numbers[i : i + 1]).to_float()[0]
        return out

    def _sample_piece(
        self, piece: _Piece, source: WordSource, level: int, numbers: NDArray[np.uint64]
    ) -> NDArray[np.uint64]:
        """Return the packed comparison bits of every row, shape (nb, rows, limbs)."""
        height, octets = len(piece.rows), piece.width // 8
        limbs = -(-octets // 8)
        packed = np.zeros((numbers.size, height, 8 * limbs), dtype=np.uint8)
        count = piece.limits.size
        step = max(1, _CHUNK_WORDS // count)
        for begin in range(0, numbers.size, step):
            some = numbers[begin : begin + step]
            words = source.words(level, some, count, start=piece.start)
            bits = words < piece.limits
            ties = words == piece.limits
            if ties.any():
                self._settle(bits, ties, piece, some, partial(source.further, TIE, level))
            flat = np.packbits(bits, bitorder="little")
            packed[begin : begin + step, :, :octets] = flat.reshape(some.size, height, octets)
        return packed.view("<u8").astype(np.uint64, copy=False)

    def _settle(
        self,
        bits: NDArray[np.bool_],
        ties: NDArray[np.bool_],
        piece: _Piece,
        numbers: NDArray[np.uint64],
        further: Callable[[int, int], Iterator[int]],
    ) -> None:
        """Decide the comparisons whose first word equals its limit (a fair sign that ties is not below)."""
        for i, q in zip(*(index.tolist() for index in np.nonzero(ties)), strict=True):
            k, word = divmod(q, piece.width)
            rule = _threshold(self._scales[piece.rows[k]], word)
            if rule is not None:
                bits[i, q] = rule.decide(further(int(numbers[i]), piece.start + q), matched=32)

    def _continue(self, value: int, row: int, words: Iterator[int]) -> int:
        """Add the part of |X| above the digits, known to be at least one step of 2^J."""
        scale = self._scales[row]
        bits = row_words(scale) - FLAGS
        rule, steps = thresholds.tail(bits, scale), 1
        while rule.decide(words):
            steps += 1
        return value + (steps << bits) if value > 0 else value - (steps << bits)
