"""Noise of a chain whose draws are real numbers, known as closely as anyone asks.

A sum N = L z of reals z cannot be written down, but floor(N / h + 1/2) can be: each z is replaced by an
integer over 2^bits within 2^-bits-1, the sum is exact in those integers, and twice as many bits are taken
until the error, which is bounded by the factors' norms, no longer matters. N / h + 1/2 is an integer with
probability 0, so this ends with probability 1.
"""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.errors import StateError
from trilift.stream.evaluate import BlockDraws, DrawSource, Evaluator
from trilift.stream.levels import ChainLedger

__all__ = ["RealEvaluator", "RealSource"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]

_FIRST_BITS = 64
_MOST_BITS = 1 << 12
_SAFETY = Fraction(1001, 1000)  # of norms that were added up in floats


class RealSource(Protocol):
    """Where the reals z come from: a pure function of (level, block)."""

    def draws(self, level: int, blocks: IntArray) -> BlockDraws:
        """Return draws whose ``to_float`` is near the reals (within its ``float_error``)."""
        ...

    def finer(self, bits: int) -> DrawSource:
        """Return a source of the integers floor(2^bits z + 1/2)."""
        ...


class RealEvaluator(Evaluator):
    """Noise of a chain at any steps, given its real draws: the same float path, another exact one.

    Args:
        chain: exact chain.
        ledger: its ledger; draws are in units of the rows' lattices.
        source: the draws z, as :class:`RealSource`.
    """

    _source: RealSource

    def __init__(self, chain: Chain, ledger: ChainLedger, source: RealSource) -> None:
        super().__init__(chain, ledger, source)
        # above a level only weighted means of its noise are met, so errors of levels add up at most
        self._weight = _SAFETY * sum(
            (Fraction(level.largest_row) + Fraction(level.norm_g)) * Fraction(float(level.units.max()))
            for level in self.levels
        )

    def exact(self, step: int) -> tuple[int, int]:
        """Refused: the noise is a real number. See :meth:`enclosure`."""
        raise StateError("real noise has no exact value; ask for an enclosure")

    def enclosure(self, step: int, *, bits: int) -> tuple[Fraction, Fraction]:
        """Return rationals around the noise at a step, from draws that are known within 2^-bits-1."""
        rounded = copy.copy(self)
        rounded._source = self._source.finer(bits)  # type: ignore[assignment]
        num, places = rounded._exact(0, int(step), {})
        value, error = Fraction(num, 1 << (places + bits)), self._weight / (1 << (bits + 1))
        return value - error, value + error

    def round_exact(self, step: int, *, places: int) -> int:
        """Return floor(N / h + 1/2) at a step, h = 2^-places, from draws as fine as that needs."""
        bits = _FIRST_BITS
        while bits <= _MOST_BITS:
            low, high = (
                (end * (1 << places) + Fraction(1, 2)).__floor__() for end in self.enclosure(step, bits=bits)
            )
            if low == high:
                return low
            bits *= 2
        raise StateError("real noise lies within 2^-4096 of a rounding boundary: its draws are not random")
