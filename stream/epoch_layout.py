"""Where the epochs of an unbounded process begin and end: integers alone, the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from trilift.lift.checks import choice, fail, integer, rational
from trilift.lift.errors import ParameterError

__all__ = ["GROWTHS", "LAST_STEP", "Layout"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]

GROWTHS = ("doubling", "relay")
LAST_STEP = 1 << 62
"""Steps that an unbounded process has, so that positions stay int64: at 10^9 steps a second, 146 years."""

_EXPONENTS = (Fraction(3, 2), Fraction(2))
_FIRST_OF_RELAY = 32


@dataclass(frozen=True)
class Layout:
    """A division of the steps 0, 1, ..., 2^62 - 1 into consecutive epochs of growing length.

    Attributes:
        growth: "doubling" (epoch j = the 1-based steps 2^j .. 2^(j+1) - 1) or "relay".
        first: length of the first epoch; 1 for "doubling".
        exponent: for "relay", n_(j+1) = floor(n_j^exponent), so that the logarithms of the lengths grow
            geometrically; 3/2 or 2. For "doubling" the lengths themselves double, and it is 1.
        ends: 0-based end (one past the last step) of every epoch; the last is 2^62.

    >>> Layout.doubling().ends[:5]
    (1, 3, 7, 15, 31)
    >>> Layout.relay(first=16, exponent=2).ends[:3]
    (16, 272, 65808)
    """

    growth: str
    first: int
    exponent: Fraction
    ends: tuple[int, ...] = field(repr=False)

    @classmethod
    def doubling(cls) -> Layout:
        """Return the epochs of the hybrid mechanism: lengths 1, 2, 4, ..."""
        return cls("doubling", 1, Fraction(1), tuple(min((2 << j) - 1, LAST_STEP) for j in range(63)))

    @classmethod
    def relay(cls, *, first: int = _FIRST_OF_RELAY, exponent: Any = 2) -> Layout:
        """Return the epochs of a relay: n_0 = first, n_(j+1) = floor(n_j^exponent).

        Raises:
            ParameterError: first outside 4..2^20, an exponent that is not 3/2 or 2.
        """
        n = integer("first", first, minimum=4, maximum=1 << 20)
        power = rational("exponent", exponent)
        if power not in _EXPONENTS:
            raise fail("exponent", "3/2 or 2", exponent)
        ends, start = [], 0
        while start < LAST_STEP:
            start = min(start + n, LAST_STEP)
            ends.append(start)
            n = n * n if power == 2 else isqrt(n**3)
        return cls("relay", int(first), power, tuple(ends))

    @classmethod
    def of(cls, growth: str, *, first: int | None = None, exponent: Any = None) -> Layout:
        """Return the layout of a growth by its name, with the defaults of a relay where nothing is given.

        Raises:
            ParameterError: another growth; first or exponent for "doubling".
        """
        if choice("growth", growth, GROWTHS) == "relay":
            return cls.relay(
                first=_FIRST_OF_RELAY if first is None else first,
                exponent=2 if exponent is None else exponent,
            )
        if first not in (None, 1) or exponent not in (None, 1):
            raise ParameterError("growth='doubling' takes no first length and no exponent")
        return cls.doubling()

    @property
    def text(self) -> str:
        """A name that tells the layout apart from every other one: part of what keys are derived from."""
        return self.growth if self.growth == "doubling" else f"relay-{self.first}-{self.exponent}"

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
