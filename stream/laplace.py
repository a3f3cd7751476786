"""Exact discrete Laplace variates, vectorised, every one at a fixed address of a keystream.

X has scale t, an integer >= 1 or a fraction, and P(X = x) proportional to u^|x|, u = exp(-1/t). It is drawn
from its parts, which are independent:

* X is nonzero with probability 2u / (1+u); its sign is one fair bit; |X| = 1 + G with P(G >= g) = u^g.
* The binary digits of the geometric G are independent, because u^G is the product over the digits of
  u^(2^j digit): digit j is 1 with probability 1 / (1 + exp(2^j / t)).
* The digits below F together are F fair bits, or, with a probability below 2^-16, an exception that has a law
  of its own (:mod:`trilift.stream.low_digits`). The 21 digits from F on are compared one by one.
* G >> (F+21) is geometric again, with ratio exp(-2^(F+21) / t), and independent of the digits below. It is
  zero except with probability at most e^-16; that tail event is drawn exactly as well, and when it happens
  the rest is continued in Python integers.

Each comparison is "U < p" for a uniform U: a 16-bit word against floor(p 2^16), and only if they are equal
(probability 2^-16) further words against further digits of p (:mod:`trilift.stream.thresholds`). A draw reads
24 such words and F + 3 bits, 50 to 54 bytes at scales up to 2^62.

Rejection samplers (Canonne, Kamath, Steinke 2020, among them) use a random number of random bits, so the
place in the keystream that serves a draw depends on the draws before it, or each draw needs its own loop.
Here every row reads the same words whatever their values: a draw is a function of (key, level, block, row)
alone, no batching can matter, and numpy compares whole blocks at once. Nothing is a float, and all scales,
from 2^-10 to past 2^200, take the same path. The places of words: :mod:`trilift.stream.laplace_layout`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trilift.lift.checks import fail
from trilift.stream import thresholds
from trilift.stream.draws import Draws
from trilift.stream.fast.calls import MOST_WIDTH, laplace_floats
from trilift.stream.fast.switch import kernels
from trilift.stream.keystream import Blocks, Keystream, WordSource, stream_blocks
from trilift.stream.laplace_bits import sample_group
from trilift.stream.laplace_layout import checked_scales, make_groups
from trilift.stream.thresholds import Scale

__all__ = ["SAMPLER_ID", "LaplaceBlocks", "LaplaceRows", "variance"]

SAMPLER_ID = "trilift/laplace/2"


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


class LaplaceRows:
    """The sampling plan of the rows of a level: which words each row reads and what they are compared with.

    Args:
        scales: one for each row: an integer >= 1, or a fraction >= 2^-10, any size.

    Raises:
        ParameterError: if a scale is neither, or a block would need more than 2^31 words.

    >>> from trilift.stream.keys import simulation_key
    >>> from trilift.stream.keystream import Keystream
    >>> rows = LaplaceRows([3, 3, 2**70])
    >>> stream = Keystream(simulation_key(1))
    >>> both = rows.sample(stream, level=0, blocks=[5, 9]).to_objects()
    >>> bool((rows.sample(stream, level=0, blocks=[9]).to_objects() == both[1:]).all())
    True
    """

    def __init__(self, scales: Sequence[Scale] | NDArray[Any]) -> None:
        self._scales = checked_scales(scales)
        self._groups = make_groups(self._scales)
        self._compiled = all(run.width <= MOST_WIDTH for group in self._groups for run in group.runs)

    @property
    def scales(self) -> tuple[Scale, ...]:
        """The scales, one per row."""
        return self._scales

    @property
    def words(self) -> int:
        """Number of 32-bit keystream words from the first to the last one that a block reads."""
        return self._groups[-1].start + self._groups[-1].words if self._groups else 0

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
            StateError: if 2^14 words leave a comparison, a tail or low digits undecided; a random stream does
                so with probability below 2^-5000 at scales up to 2^81, 2^-2000 up to 2^200, 2^-500 up to
                2^1000 (:mod:`trilift.stream.low_digits`), and below 2^-300000 where there is no exception.
        """
        numbers = stream_blocks(blocks)
        draws = Draws((numbers.size, len(self._scales)))
        for group in self._groups:
            sample_group(group, source, level, numbers, draws)
        return draws

    def floats(self, source: WordSource, level: int, blocks: Blocks) -> NDArray[np.float64]:
        """Return ``sample(source, level, blocks).to_float()``, by compiled kernels where they are in use.

        Raises:
            ParameterError, StateError: as :meth:`sample` and :meth:`Draws.to_float`.
        """
        numbers = stream_blocks(blocks)
        fits = self._compiled and isinstance(source, Keystream)
        made = kernels(numbers.size * self.words) if fits else None
        if made is None or not isinstance(source, Keystream):
            return self.sample(source, level, numbers).to_float()
        out = np.empty((numbers.size, len(self._scales)), dtype=np.float64)
        for group in self._groups:
            laplace_floats(made, group, source, level, numbers, out)
        return out
