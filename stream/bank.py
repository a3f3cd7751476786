"""A bank of counters: many independent noises of one mechanism, drawn and evaluated together.

One page of keystream, addressed by (level, block), serves the whole bank: the first row of every counter,
then their second rows, and so on (rows of a scale lie together and are drawn at once). The number of counters
is bound into the digest, since the places of words depend on it. The noise of a counter is what
:class:`trilift.stream.Noise` or :class:`trilift.stream.GaussianNoise` describe; nothing of it depends on the
counters that an event touches, or on the steps that are read.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.checks import integer, show
from trilift.lift.costs import row_norms_sq
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.stream.evaluate import Evaluator, blocks_with_previous
from trilift.stream.gaussian import GaussianRows
from trilift.stream.gaussian_ledger import GaussianLedger, check_gaussian_ledger
from trilift.stream.gaussian_noise import GaussianReals, gaussian_digest
from trilift.stream.keys import DigestBuilder, derive_key
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import LaplaceBlocks, LaplaceRows
from trilift.stream.ledger import Ledger, check_ledger
from trilift.stream.levels import MAX_PLACES
from trilift.stream.noise import mechanism_digest
from trilift.stream.reals import RealEvaluator

__all__ = ["NoiseBank"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]

_LABEL = "trilift/noise bank/1"
_UNIT = 2.0**-53
_SAFETY = 1.0 + 2.0**-30
_EXACT_LIMIT = 2.0**52
_CHUNK_DRAWS = 1 << 21
_MOST_COUNTERS = 1 << 24
_MOST_HELD = 1 << 20  # numbers of a block of an upper level that is kept


class _LaplaceSource:
    """Discrete Laplace draws of the whole bank under one derived key."""

    def __init__(self, rows: list[LaplaceRows], key: bytes) -> None:
        self._rows, self._stream = rows, Keystream(key)

    def draws(self, level: int, blocks: IntArray) -> Any:
        return LaplaceBlocks(self._rows[level], self._stream, level, blocks)


class _OneBlock:
    """The draws of one counter in some blocks, exact."""

    def __init__(self, draws: Any, rows: slice) -> None:
        self._draws, self._rows = draws, rows

    def block(self, index: int) -> list[int]:
        values: list[int] = self._draws.block(index)[self._rows]
        return values


class _OneCounter:
    """The draws of one counter of a bank, for the exact evaluation of a rounding that floats leave open."""

    def __init__(self, source: Any, *, counter: int, width: int) -> None:
        self._source, self._counter, self._width = source, counter, width

    def draws(self, level: int, blocks: IntArray) -> Any:
        return _OneBlock(self._source.draws(level, blocks), slice(self._counter, None, self._width))

    def finer(self, bits: int) -> _OneCounter:
        return _OneCounter(self._source.finer(bits), counter=self._counter, width=self._width)


class NoiseBank:
    """Independent noises N = L z of ``width`` counters of one chain, rounded to the output lattice.

    Neighbours: streams whose inputs to all counters differ, over all steps and counters together, by at most
    ``ledger.change`` in l1 norm: pure epsilon-DP for a Laplace ledger, mu-GDP for a Gaussian one (hence
    mu^2/2-zCDP). Composition: the counters' rows stand side by side, so that R becomes I (x) R, whose image
    of a change has at most the norm of a column times the l1 norm of the change; for changes of several
    counters at the *same* step the l2 norm may be used with Gaussian noise: their images are orthogonal.
    Theorems: as for a single counter.

    Args:
        chain: exact chain.
        ledger: its budget, Laplace or Gaussian.
        width: number of counters.
        horizon: number of steps.
        key, stream_id, purpose, places: as for :class:`trilift.stream.Noise`.

    Raises:
        ParameterError: arguments out of range, or a ledger that does not prove its budget for this chain.
        HorizonError: a horizon past the chain's capacity.
    """

    def __init__(
        self,
        chain: Chain,
        ledger: Ledger | GaussianLedger,
        *,
        width: int,
        horizon: int,
        key: bytes,
        stream_id: bytes,
        purpose: str,
        places: int | None = None,
    ) -> None:
        self.chain, self.ledger = chain, ledger
        self.width = integer("width", width, minimum=1, maximum=_MOST_COUNTERS)
        self.horizon = chain.check_horizon(horizon)
        wanted = ledger.input_places if places is None else places
        self.places = integer("places", wanted, minimum=ledger.input_places, maximum=MAX_PLACES)
        self._gaussian = isinstance(ledger, GaussianLedger)
        self.digest = self._make_digest()
        derived = derive_key(key, stream_id=stream_id, purpose=purpose, digest=self.digest)
        scales = [[s for s in entry.row_scales for _ in range(self.width)] for entry in ledger.levels]
        self._counts = [len(entry.row_scales) for entry in ledger.levels]
        if self._gaussian:
            self._source: Any = GaussianReals([GaussianRows(some) for some in scales], derived)
            self._single: Evaluator = RealEvaluator(chain, ledger, self._source)
        else:
            self._source = _LaplaceSource([LaplaceRows(some) for some in scales], derived)
            self._single = Evaluator(chain, ledger, self._source)
        self._levels = self._single.levels
        self._float_chain: Chain | None = None
        self._needed = [self.horizon]  # positions of every level
        for level in self._levels[:-1]:
            self._needed.append((self._needed[-1] - 1) // level.size + 1)
        # of every level: of which source, and blocks' values with their errors
        self._held: list[tuple[Any, dict[int, tuple[FloatArray, float]]]] = [(None, {}) for _ in self._levels]

    def _make_digest(self) -> bytes:
        if isinstance(self.ledger, GaussianLedger):
            check_gaussian_ledger(self.chain, self.ledger)
            inner = gaussian_digest(self.chain, self.ledger, places=self.places)
        else:
            check_ledger(self.chain, self.ledger)
            inner = mechanism_digest(self.chain, self.ledger, places=self.places)
        return DigestBuilder(_LABEL).add("mechanism", inner).add("width", self.width).digest()

    def __repr__(self) -> str:
        return f"NoiseBank(sizes={self.chain.sizes}, width={self.width}, horizon={self.horizon})"

    def __reduce__(self) -> Any:
        raise StateError(
            "noise is not copied or pickled, because it holds its key: make it again from the key"
        )

    def range(self, start: int, stop: int) -> Integers:
        """Return floor(N / h + 1/2) of all counters for the 0-based steps start..stop-1, shape (k, width).

        Raises:
            ParameterError: not integers, start < 0, or stop < start.
            HorizonError: steps past horizon-1.
        """
        first = integer("start", start, minimum=0)
        last = integer("stop", stop, minimum=first)
        if last > self.horizon:
            raise HorizonError(f"step {show(last)} is past the horizon {self.horizon}")
        return self.at(np.arange(first, last))

    def at(self, steps: IntArray) -> Integers:
        """Return floor(N / h + 1/2) of all counters at strictly increasing 0-based steps, shape (k, width).

        Raises:
            ParameterError: steps that do not increase.
            HorizonError: steps outside 0..horizon-1.
        """
        steps = np.asarray(steps)
        if steps.ndim != 1 or (steps.size and (steps.dtype.kind not in "iu" or np.any(np.diff(steps) <= 0))):
            raise ParameterError("steps must be integers that increase strictly")
        if steps.size and not 0 <= int(steps[0]) <= int(steps[-1]) < self.horizon:
            raise HorizonError(f"steps must lie within 0..{self.horizon - 1}")
        # a step needs at most the draws of its block and of the one before
        each = max(1, _CHUNK_DRAWS // (2 * self.width * max(self._counts)))
        size = max(each, self._levels[0].size)
        parts = [self._rounded(steps[a : a + size].astype(np.int64)) for a in range(0, steps.size, size)]
        if not parts:
            return np.zeros((0, self.width), dtype=np.int64)
        if any(part.dtype == object for part in parts):
            parts = [part.astype(object) for part in parts]
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def variance(self, steps: Any) -> FloatArray:
        """Return the variance of one counter's noise at 0-based steps, in squared units of the count.

        As for a single noise; h^2 / 12 stands for the rounding.
        """
        if self._float_chain is None:
            self._float_chain = self.chain.to_float()
        squares = np.array([float(scale) ** 2 for scale in self.ledger.scales])
        factor = 1.0 if self._gaussian else 2.0
        norms = row_norms_sq(self._float_chain, steps)
        return np.asarray(factor * squares @ norms + np.ldexp(1.0, -2 * self.places) / 12.0)

    # -- evaluation: as trilift.stream.evaluate, with an axis of counters ------------------------------

    def _draws(self, index: int, blocks: IntArray) -> tuple[FloatArray, tuple[float, float]]:
        """Return the draws, (blocks, width, rows), in units of the count, and what their own errors do."""
        level, drawn = self._levels[index], self._source.draws(index, blocks)
        z = drawn.to_float().reshape(len(blocks), -1, self.width).swapaxes(1, 2) * level.units
        off = np.broadcast_to(drawn.float_error, (self.width * self._counts[index],))
        if not np.any(off):
            return z, (0.0, 0.0)
        worst = off.reshape(-1, self.width).max(axis=1) * level.units
        parts = float(np.max(np.abs(level.A) @ worst)), float(np.abs(level.g) @ worst)
        return z, (_SAFETY * parts[0], _SAFETY * parts[1])

    def floats(self, steps: IntArray) -> tuple[FloatArray, float]:
        """Return the noise at strictly increasing steps, (k, width), and a bound on every entry's error."""
        return self._floats(0, steps)

    def _above(self, index: int, positions: IntArray) -> tuple[FloatArray, float]:
        """Return :meth:`_floats` of a level above the finest, whole blocks of which are kept for a while.

        A page of steps reads few positions of it, and the next page the ones that follow: without this, the
        draws of the upper levels, of which there are as many a block, would be made again for each page.
        """
        size = self._levels[index].size
        first, last = int(positions[0]) // size, int(positions[-1]) // size
        if last - first > 1 or size * self.width > _MOST_HELD:
            return self._floats(index, positions)
        source, held = self._held[index]
        if source is not self._source:
            held = {}
        blocks = {block: held.get(block) or self._whole(index, block) for block in range(first, last + 1)}
        self._held[index] = self._source, blocks  # one assignment: other threads see the old ones or these
        offset = first * size
        values = blocks[first][0] if first == last else np.concatenate([v for v, _ in blocks.values()])
        return values[positions - offset], max(error for _, error in blocks.values())

    def _whole(self, index: int, block: int) -> tuple[FloatArray, float]:
        size = self._levels[index].size
        end = min((block + 1) * size, self._needed[index])
        return self._floats(index, np.arange(block * size, end))

    def _floats(self, index: int, positions: IntArray) -> tuple[FloatArray, float]:
        level = self._levels[index]
        if level.is_top:
            (z,), (off, _) = self._draws(index, np.zeros(1, dtype=np.int64))
            inside = np.minimum(positions, level.size - 1)
            largest_z = float(np.abs(z).max(initial=0.0))
            return level.A[inside] @ z.T, _SAFETY * (level.gamma * level.largest_row * largest_z + off)
        block, digit = np.divmod(positions, level.size)
        blocks = blocks_with_previous(block)
        z, (off, off_carried) = self._draws(index, blocks)
        above, above_error = self._above(index + 1, blocks)
        here = np.searchsorted(blocks, block)
        carried = z @ level.g + above
        before = np.where((block > 0)[:, None], carried[here - 1], 0.0)
        w = level.w[digit][:, None]
        values = self._local(level, z, here, digit) + (1.0 - w) * before + w * above[here]
        largest_z = float(np.abs(z).max(initial=0.0))
        products = level.gamma * (level.largest_row + level.norm_g) * largest_z + off + off_carried
        sizes = (
            level.largest_row * largest_z
            + 2.0 * level.norm_g * largest_z
            + 2.0 * float(np.abs(above).max(initial=0.0))
        )
        return values, _SAFETY * (products + above_error + 16.0 * _UNIT * sizes)

    @staticmethod
    def _local(level: Any, z: FloatArray, here: IntArray, digit: IntArray) -> FloatArray:
        """Return A_i z_j, (k, width): one matrix product if the blocks are well filled, else one a block."""
        if 4 * digit.size >= len(z) * level.size:
            products = (z.reshape(-1, z.shape[-1]) @ level.A.T).reshape(*z.shape[:2], level.size)
            return np.asarray(products[here, :, digit])
        if digit.size <= 2 * len(z):
            return np.asarray(np.einsum("tr,tcr->tc", level.A[digit], z[here]))
        values = np.empty((digit.size, z.shape[1]))
        for block in np.unique(here).tolist():
            inside = here == block
            values[inside] = level.A[digit[inside]] @ z[block].T
        return values

    def _rounded(self, steps: IntArray) -> Integers:
        values, error = self.floats(steps)
        scaled = np.ldexp(values, self.places) + 0.5
        if not np.all(np.isfinite(scaled)):
            raise ParameterError("the budget is too small: the noise exceeds the range of floats")
        margin = np.ldexp(error, self.places) * _SAFETY + 4.0 * _UNIT * (np.abs(scaled) + 1.0)
        unsure = (np.abs(scaled - np.rint(scaled)) <= margin) | (np.abs(scaled) >= _EXACT_LIMIT)
        result: Integers = np.where(unsure, 0.0, np.floor(scaled)).astype(np.int64)
        for i, counter in np.argwhere(unsure).tolist():
            value = self.exactly(int(steps[i]), counter=counter)
            if abs(value) >= 1 << 62:
                result = result.astype(object)
            result[i, counter] = value
        return result

    def exactly(self, step: int, *, counter: int) -> int:
        """Return floor(N / h + 1/2) of one counter at one step, without floats."""
        source = _OneCounter(self._source, counter=counter, width=self.width)
        return self._single.drawing_from(source).round_exact(step, places=self.places)

    def exact(self, step: int, *, counter: int) -> Fraction:
        """Return the exact noise of one counter with Laplace noise at one step.

        Raises:
            StateError: Gaussian noise, which is a real number.
        """
        source = _OneCounter(self._source, counter=counter, width=self.width)
        num, places = self._single.drawing_from(source).exact(step)
        return Fraction(num, 1 << places)
