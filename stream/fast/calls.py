"""Calls of the compiled kernels: everything that they take for granted is made certain here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from trilift.stream.keystream import WORDS_PER_PIECE, Keystream

__all__ = ["MOST_WIDTH", "RowPiece", "laplace_floats", "round_half_up"]

FloatArray = NDArray[np.float64]

MOST_WIDTH = 512
"""Words of a row: wider ones, of scales past 2^500, are left to the plain path."""

_GROUP_WORDS = 1 << 16
_BATCH_WORDS = 1 << 17


class RowPiece(Protocol):
    """Consecutive rows with equally many words, a multiple of 8."""

    @property
    def rows(self) -> range:
        """The rows."""
        ...

    @property
    def start(self) -> int:
        """Word of a block that the first row begins with."""
        ...

    @property
    def width(self) -> int:
        """Words of a row."""
        ...

    @property
    def limits(self) -> NDArray[np.uint32]:
        """What every word is compared with."""
        ...


def laplace_floats(
    made: SimpleNamespace,
    pieces: Sequence[RowPiece],
    source: Keystream,
    level: int,
    numbers: NDArray[np.uint64],
    out: FloatArray,
) -> list[int]:
    """Write the draws of all rows into ``out`` as floats, those of the plain path.

    Args:
        made: the compiled kernels.
        pieces: of a plan; widths at most :data:`MOST_WIDTH`.
        source, level, numbers: where the words are.
        out: float64 (nb, rows).

    Returns:
        The places of the blocks in which a comparison was undecided, by which tail events begin: what stands
        in ``out`` for them is not their draws.

    Raises:
        ParameterError: if level does not fit its address field.
    """
    columns = max((piece.rows.stop for piece in pieces), default=0)
    if any(piece.width % 8 or not 8 <= piece.width <= MOST_WIDTH for piece in pieces):
        raise ValueError("rows of another width than the kernels take")
    if not (out.flags.c_contiguous and out.dtype == np.float64 and out.shape == (numbers.size, columns)):
        raise ValueError("out must be a contiguous float64 array (nb, rows)")
    open_blocks: set[int] = set()
    for group in _groups(pieces):
        open_blocks.update(_one_group(made, group, source, level, numbers, out))
    return sorted(open_blocks)


def _groups(pieces: Sequence[RowPiece]) -> Iterator[list[RowPiece]]:
    """Join neighbouring pieces, so that a block is read at once where it is small."""
    group: list[RowPiece] = []
    words = 0
    for piece in pieces:
        if group and words + piece.limits.size > _GROUP_WORDS:
            yield group
            group, words = [], 0
        group.append(piece)
        words += piece.limits.size
    if group:
        yield group


def _one_group(
    made: SimpleNamespace,
    group: list[RowPiece],
    source: Keystream,
    level: int,
    numbers: NDArray[np.uint64],
    out: FloatArray,
) -> Iterator[int]:
    limits = np.ascontiguousarray(np.concatenate([piece.limits for piece in group]), dtype=np.uint32)
    count, begin = limits.size, group[0].start
    skip = begin % WORDS_PER_PIECE  # words are read from the beginning of a 64-byte piece on
    most = max(1, min(_BATCH_WORDS // (skip + count), numbers.size))
    flags, marks = np.empty(count, dtype=np.uint8), np.empty(most, dtype=np.uint8)
    octets, packed = flags.view(np.uint64), np.zeros((most, count // 8 + 8), dtype=np.uint8)
    for first, words in source.batches(level, numbers, skip + count, start=begin - skip, most=most):
        some = marks[: len(words)]
        made.compare(words, skip, limits, flags, octets, packed, some)
        for piece in group:
            # start + width * len(rows) <= count / 8, as limits has 8 width words for every row
            start, width, column = (piece.start - begin) // 8, piece.width // 8, piece.rows.start
            if width <= 8:
                made.decode(packed, len(words), start, width, len(piece.rows), out, first, column)
            else:
                powers = _powers(width)
                made.decode_wide(
                    packed, len(words), start, width, len(piece.rows), powers, out, first, column
                )
        if some.any():
            yield from (first + np.flatnonzero(some)).tolist()


def _powers(width: int) -> FloatArray:
    return np.ldexp(1.0, 32 * np.arange(2 * -(-width // 8)))


def round_half_up(
    made: SimpleNamespace, values: FloatArray, *, factor: float, margin: float
) -> tuple[NDArray[np.int64], NDArray[np.bool_], int]:
    """Return floor(factor values + 1/2) where floats decide it, where they do not, and in how many places."""
    flat = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
    whole, unsure = np.empty(flat.size, dtype=np.int64), np.empty(flat.size, dtype=np.bool_)
    count: Any = made.round_half_up(flat, factor, margin, whole, unsure)
    return whole.reshape(values.shape), unsure.reshape(values.shape), int(count)
