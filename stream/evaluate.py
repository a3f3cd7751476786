"""Correlated noise N = L z of a chain at any steps: fast in floats with a rigorous bound, exact in integers.

With digits i = t mod m and blocks j = t div m, each level adds

    N_t = A_i z_j + (1 - w_i) (g z_{j-1} + N'_{j-1}) + w_i N'_j,

N' being the noise of the level above (the top's is C z) and everything before the stream zero. Released
values need floor(N / h + 1/2) of the exact N: the float value decides unless it lies within its own error
bound of a rounding boundary, and then Python integers decide.
"""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage
from trilift.stream.levels import ChainLedger, LevelLedger
from trilift.stream.rounding import round_floats

__all__ = ["BlockDraws", "DrawSource", "Evaluator", "blocks_with_previous"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]

_UNIT = 2.0**-53
_SAFETY = 1.0 + 2.0**-30


class BlockDraws(Protocol):
    """Exact integers of some blocks of a level: what a source returns."""

    @property
    def float_error(self) -> FloatArray | float:
        """Absolute errors of :meth:`to_float` beyond relative 2^-52: one a row, or one for all."""
        ...

    def to_float(self) -> FloatArray:
        """Return shape (blocks, rows), within relative 2^-52 and :attr:`float_error`."""
        ...

    def block(self, index: int) -> list[int]:
        """Return the exact integers of one of the blocks."""
        ...


class DrawSource(Protocol):
    """Where the integers z come from: a pure function of (level, block)."""

    def draws(self, level: int, blocks: IntArray) -> BlockDraws:
        """Return the draws of the measured rows of the given blocks."""
        ...


class _Level:
    """One level ready for evaluation: float factors of the measured rows, and the exact ones."""

    def __init__(self, stage: Stage, ledger: LevelLedger, *, is_top: bool) -> None:
        kept = list(ledger.measured)
        self.size, self.is_top = stage.size, is_top
        self.shifts = [ledger.places[i] for i in kept]
        self._exact_parts = stage.A[:, kept], stage.g[kept], stage.w
        self.A = self._exact_parts[0].to_float()
        self.g = self._exact_parts[1].to_float()
        self.w = stage.w.to_float()
        self.units = np.ldexp(1.0, -np.array(self.shifts))
        # (r + 12) u covers a dot product of length r in any order, its factors (u each, draws 2u) and more
        self.gamma = (len(kept) + 12) * _UNIT * _SAFETY
        self.largest_row = float(np.abs(self.A).sum(axis=1).max())
        self.norm_g = float(np.abs(self.g).sum())
        # rows (A_i, 1 - w_i, w_i), for columns (z_j, g z_{j-1} + N'_{j-1}, N'_j)
        self.blend = np.column_stack([self.A, 1.0 - self.w, self.w])

    @cached_property
    def exact(self) -> _ExactLevel:
        """The exact factors as Python integers, made when a rounding first needs them: mostly never."""
        return _ExactLevel(*self._exact_parts, self.shifts)


class _ExactLevel:
    """Exact numerators over one power of two: values of A z are integers over 2^places."""

    def __init__(self, A: Any, g: Any, w: Any, shifts: list[int]) -> None:
        exp = max(A.exp, g.exp)
        self.A = [[int(x) for x in row] for row in A.numerators(exp)]
        self.g = [int(x) for x in g.numerators(exp)]
        self.w = [int(x) for x in w.num]
        self.w_places = w.exp
        self.deepest = max(shifts)
        self.lifts = [self.deepest - s for s in shifts]
        self.places = exp + self.deepest

    def dot(self, row: list[int], z: list[int]) -> int:
        """Return sum of row times z, over 2^places."""
        return sum(a * (x << lift) for a, x, lift in zip(row, z, self.lifts, strict=True) if a)


class Evaluator:
    """Noise of a chain at any steps, given its draws.

    Args:
        chain: exact chain.
        ledger: its ledger, of Laplace or of Gaussian noise.
        source: the draws z.
    """

    def __init__(self, chain: Chain, ledger: ChainLedger, source: DrawSource) -> None:
        if len(chain.levels) != len(ledger.levels):
            raise ParameterError("the ledger belongs to another chain")
        last = len(chain.levels) - 1
        self.levels = [
            _Level(stage, entry, is_top=index == last)
            for index, (stage, entry) in enumerate(zip(chain.levels, ledger.levels, strict=True))
        ]
        self._source = source

    def drawing_from(self, source: DrawSource) -> Self:
        """Return an evaluator of the same factors with other draws."""
        other = copy.copy(self)
        other._source = source
        return other

    # -- floats ---------------------------------------------------------------------------------

    def floats(self, steps: IntArray) -> tuple[FloatArray, float]:
        """Return the noise at strictly increasing steps, and a bound on every entry's absolute error."""
        if steps.size and int(steps[-1]) - int(steps[0]) == steps.size - 1:
            return self._span(0, int(steps[0]), int(steps[-1]) + 1)
        return self._floats(0, steps)

    def _span(self, index: int, start: int, stop: int) -> tuple[FloatArray, float]:
        """Return the noise of consecutive positions: whole blocks by one matrix product, the ends cut off."""
        level = self.levels[index]
        first, last = start // level.size, (stop - 1) // level.size + 1  # blocks
        if level.is_top or 4 * (stop - start) < (last - first) * level.size:
            return self._floats(index, np.arange(start, stop))
        begin = max(first - 1, 0)
        above, above_error = self._span(index + 1, begin, last)
        z, off = self._draws(index, np.arange(begin, last), spare=2)
        draws = z[:, :-2]
        carried = draws @ level.g + above  # g z_j + N'_j, for the block after
        z[0, -2], z[1:, -2], z[:, -1] = 0.0, carried[:-1], above
        values = (z[first - begin :] @ level.blend.T).reshape(-1)
        error = self._error(level, _largest(draws), _largest(above), above_error, sum(off))
        return values[start - first * level.size : stop - first * level.size], error

    def _floats(self, index: int, positions: IntArray) -> tuple[FloatArray, float]:
        level = self.levels[index]
        if level.is_top:
            (z,), (own, _) = self._draws(index, np.zeros(1, dtype=np.int64))
            values = _rows(level.A, positions) @ z
            return values, _SAFETY * (level.gamma * level.largest_row * _largest(z) + own)
        block, digit = np.divmod(positions, level.size)
        blocks = blocks_with_previous(block)
        z, off = self._draws(index, blocks)
        above, above_error = self._floats(index + 1, blocks)
        here = np.searchsorted(blocks, block)
        local = self._local(level, z, here, digit)
        carried = z @ level.g + above  # g z_j + N'_j, for the block after
        before = np.where(block > 0, carried[here - 1], 0.0)
        w = level.w[digit]
        values = local + (1.0 - w) * before + w * above[here]
        return values, self._error(level, _largest(z), _largest(above), above_error, sum(off))

    @staticmethod
    def _error(level: _Level, z: float, above: float, above_error: float, off: float) -> float:
        """Bound the error of A_i z_j + (1 - w_i) (g z_{j-1} + N'_{j-1}) + w_i N'_j however it is added up.

        As one dot product of length r + 2, whose factors and terms have been rounded a few times before: (r +
        28) u times the sum of the terms' absolute values, that of g z counted twice; and what the draws and
        N' are off by themselves.

        Args:
            level: the level.
            z, above: largest absolute values of the draws and of N'.
            above_error: bound on the error of N'.
            off: what errors of draws do.
        """
        sizes = (level.largest_row + 2.0 * level.norm_g) * z + 2.0 * above
        return _SAFETY * ((level.gamma + 16.0 * _UNIT) * sizes + off + above_error)

    def _draws(
        self, index: int, blocks: IntArray, *, spare: int = 0
    ) -> tuple[FloatArray, tuple[float, float]]:
        """Return the draws z in units of the count, and what their errors beyond relative 2^-52 do.

        That is a bound on the part of these errors in A_i z, for any i, and on their part in g z. ``spare``
        columns are left free at the end.
        """
        level = self.levels[index]
        drawn = self._source.draws(index, blocks)
        z = np.empty((len(blocks), level.units.size + spare))
        np.multiply(drawn.to_float(), level.units, out=z[:, : level.units.size])
        off = drawn.float_error * level.units
        if not np.any(off):
            return z, (0.0, 0.0)
        parts = float(np.max(np.abs(level.A) @ off)), float(np.abs(level.g) @ off)
        return z, (_SAFETY * parts[0], _SAFETY * parts[1])

    @staticmethod
    def _local(level: _Level, z: FloatArray, here: IntArray, digit: IntArray) -> FloatArray:
        """Return A_i z_j for each position: one matrix product when the blocks are well filled."""
        if 4 * digit.size >= len(z) * level.size:
            return np.asarray((z @ level.A.T)[here, digit])
        return np.asarray(np.einsum("tr,tr->t", level.A[digit], z[here]))

    # -- exact ----------------------------------------------------------------------------------

    def exact(self, step: int) -> tuple[int, int]:
        """Return the exact noise at a step as (numerator, places): numerator / 2^places."""
        return self._exact(0, int(step), {})

    def _exact(self, index: int, position: int, memo: dict[tuple[int, int], Any]) -> tuple[int, int]:
        key = (index, position)
        if key in memo:
            known: tuple[int, int] = memo[key]
            return known
        level = self.levels[index]
        exact = level.exact
        if level.is_top:
            row = exact.A[min(position, level.size - 1)]
            result = exact.dot(row, self._block(index, 0, memo)), exact.places
        else:
            block, digit = divmod(position, level.size)
            w, unit = exact.w[digit], 1 << exact.w_places
            local = exact.dot(exact.A[digit], self._block(index, block, memo))
            total = [(local << exact.w_places, exact.places + exact.w_places)]
            if block > 0 and w != unit:
                carried = exact.dot(exact.g, self._block(index, block - 1, memo))
                total.append(((unit - w) * carried, exact.places + exact.w_places))
                num, places = self._exact(index + 1, block - 1, memo)
                total.append(((unit - w) * num, places + exact.w_places))
            if w:
                num, places = self._exact(index + 1, block, memo)
                total.append((w * num, places + exact.w_places))
            result = _sum_dyadic(total)
        memo[key] = result
        return result

    def _block(self, index: int, block: int, memo: dict[tuple[int, int], Any]) -> list[int]:
        key = (-1 - index, block)
        if key not in memo:
            memo[key] = self._source.draws(index, np.array([block], dtype=np.int64)).block(0)
        z: list[int] = memo[key]
        return z

    # -- rounded --------------------------------------------------------------------------------

    def rounded(self, steps: IntArray, *, places: int, inflate: float = 0.0) -> Integers:
        """Return floor(N / h + 1/2) at strictly increasing steps, h = 2^-places.

        Args:
            steps: strictly increasing 0-based steps.
            places: binary places of the output lattice.
            inflate: added to the error bound (in units of h), to force the exact path in tests.

        Returns:
            int64 array, or Python integers (dtype object) where they do not fit.
        """
        values, error = self.floats(steps)
        result: Integers
        result, unsure = round_floats(values, error, places=places, inflate=inflate)
        exact = {i: self.round_exact(int(steps[i]), places=places) for i in unsure.tolist()}
        if any(abs(value) >= 1 << 62 for value in exact.values()):
            result = result.astype(object)
        for i, value in exact.items():
            result[i] = value
        return result

    def round_exact(self, step: int, *, places: int) -> int:
        """Return floor(N / h + 1/2) at a step, h = 2^-places, without floats."""
        num, own = self.exact(step)
        shift = own - places
        if shift <= 0:
            return num << -shift
        return (num + (1 << (shift - 1))) >> shift  # floor, also below zero


def _rows(A: FloatArray, positions: IntArray) -> FloatArray:
    """Return rows at increasing positions, the last one for those behind it; a view where they follow on."""
    if positions.size and positions[-1] < len(A) and positions[-1] - positions[0] == positions.size - 1:
        return A[positions[0] : positions[-1] + 1]
    return np.asarray(A[np.minimum(positions, len(A) - 1)])  # a tail names position k with weight zero


def _largest(values: FloatArray) -> float:
    """Return the largest absolute value."""
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def blocks_with_previous(block: IntArray) -> IntArray:
    """Return the sorted blocks and their predecessors."""
    if block.size and block[-1] - block[0] < 2 * block.size + 2:  # a range, or nearly one
        return np.arange(max(int(block[0]) - 1, 0), int(block[-1]) + 1)
    both = np.concatenate([block, np.maximum(block - 1, 0)])
    return np.unique(both)


def _sum_dyadic(terms: list[tuple[int, int]]) -> tuple[int, int]:
    places = max(p for _, p in terms)
    return sum(num << (places - p) for num, p in terms), places
