"""Where the epochs of an unbounded process begin and end, and what share of an epoch's budget its total has.

Integers and rationals alone: the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from trilift.lift.checks import choice, fail, integer, rational

__all__ = ["GROWTHS", "LAST_STEP", "LAWS", "Layout"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]

GROWTHS = ("tapered", "relay", "doubling")
LAWS = ("laplace", "gaussian")

LAST_STEP = 1 << 62
"""Steps that an unbounded process has, so that positions stay int64: at 10^9 steps a second, 146 years."""

_EXPONENTS = (Fraction(3, 2), Fraction(2))


@dataclass(frozen=True)
class Layout:
    """A division of the steps 0, 1, ..., 2^62 - 1 into epochs, and the share of every epoch's total.

    Attributes:
        text: a name that tells the layout apart from every other one; part of what keys are derived from.
        ends: 0-based end (one past the last step) of every epoch; the last is 2^62.
        shares: for every epoch the part of its budget (epsilon for Laplace noise, mu^2 for Gaussian noise)
            that a total with noise of its own has; 0 where the counter's own last value is the total.

    >>> Layout.doubling().ends[:5], Layout.doubling().shares[0]
    ((1, 3, 7, 15, 31), Fraction(1, 2))
    >>> Layout.relay(first=16, exponent=2).ends[:3]
    (16, 272, 65808)
    """

    text: str
    ends: tuple[int, ...] = field(repr=False)
    shares: tuple[Fraction, ...] = field(repr=False)

    @classmethod
    def doubling(cls) -> Layout:
        """Return the epochs of the hybrid mechanism: lengths 1, 2, 4, ..., halves for the totals.

        Epoch j is the 1-based steps 2^j .. 2^(j+1) - 1.
        """
        ends = tuple(min((2 << j) - 1, LAST_STEP) for j in range(63))
        return cls("doubling", ends, (Fraction(1, 2),) * len(ends))

    @classmethod
    def relay(cls, *, first: int = 64, exponent: Any = Fraction(3, 2)) -> Layout:
        """Return the epochs of a relay: n_0 = first, n_(j+1) = floor(n_j^exponent), no shares.

        Raises:
            ParameterError: first outside 4..2^20, an exponent that is not 3/2 or 2.
        """
        n = integer("first", first, minimum=4, maximum=1 << 20)
        power = rational("exponent", exponent)
        if power not in _EXPONENTS:
            raise fail("exponent", "3/2 or 2", exponent)
        lengths = [n]
        while sum(lengths) < LAST_STEP:
            lengths.append(lengths[-1] ** 2 if power == 2 else isqrt(lengths[-1] ** 3))
        return cls._made(f"relay-{n}-{power}", lengths, [Fraction(0)] * len(lengths))

    @classmethod
    def tapered(cls, *, law: str = "laplace") -> Layout:
        """Return epochs whose totals have a share of the budget that shrinks as they grow longer.

        With lengths 2^k: for Laplace noise k = 3, 8, 10, 12, 14, ... and shares 0, 0, then min(1/5, 4/k); for
        Gaussian noise k = 2, 5, 8, 12, 18, 27, 40, 60 and shares min(1/2, 5/(2k)). These are the best of some
        thousand rules in a search over exact variances at t = 2^5 .. 2^40, by the worst and the mean ratio to
        the counter that was made for t.

        Raises:
            ParameterError: another law.
        """
        if choice("law", law, LAWS) == "laplace":
            logs = [3, 8, *range(10, 64, 2)]
            shares = [Fraction(0) if k < 10 else min(Fraction(1, 5), Fraction(4, k)) for k in logs]
        else:
            logs = [2, 5, 8, 12, 18, 27, 40, 62]
            shares = [min(Fraction(1, 2), Fraction(5, 2 * k)) for k in logs]
        return cls._made(f"tapered-{law}", [1 << k for k in logs], shares)

    @classmethod
    def of(cls, growth: str, *, law: str = "laplace") -> Layout:
        """Return the layout of a growth by its name.

        Raises:
            ParameterError: another growth or law.
        """
        choice("law", law, LAWS)
        if choice("growth", growth, GROWTHS) == "tapered":
            return cls.tapered(law=law)
        return cls.relay() if growth == "relay" else cls.doubling()

    @classmethod
    def _made(cls, text: str, lengths: list[int], shares: list[Fraction]) -> Layout:
        ends: list[int] = []
        for length in lengths:
            if not ends or ends[-1] < LAST_STEP:
                ends.append(min((ends[-1] if ends else 0) + length, LAST_STEP))
        return cls(text, tuple(ends), tuple(shares[: len(ends)]))

    @property
    def growth(self) -> str:
        """The growth: "tapered", "relay" or "doubling"."""
        return self.text.split("-")[0]

    def start(self, epoch: int) -> int:
        """Return the 0-based first step of an epoch."""
        return self.ends[epoch - 1] if epoch > 0 else 0

    def length(self, epoch: int) -> int:
        """Return the number of steps of an epoch."""
        return self.ends[epoch] - self.start(epoch)

    def epoch_of(self, steps: Any) -> IntArray:
        """Return the epoch of each 0-based step, int64."""
        ends = np.array(self.ends, dtype=np.int64)
        return np.asarray(np.searchsorted(ends, np.asarray(steps, dtype=np.int64), side="right"))

    def closes_apart(self, epoch: int, local: int) -> bool:
        """Whether a step is the last of an epoch whose total has noise of its own, and shows that total."""
        return self.shares[epoch] > 0 and local == self.length(epoch) - 1
