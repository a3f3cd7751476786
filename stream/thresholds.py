"""Binary expansions of the probabilities that the Laplace sampler compares against, certified digit by digit.

Every probability here has the form p = c / (d + exp(times 2^shift / odd)), c and d small integers (the two of
:mod:`trilift.stream.low_digits` are other ones). ``floor(bits)`` is floor(p 2^bits) exactly: exp is enclosed
between two integers over a power of two, and the precision is raised until both ends give the same floor.
This ends, because exp of a nonzero rational is irrational (Lindemann-Weierstrass), hence p 2^bits is no
integer. No floating point is used.

Enclosure of exp(x), x > 0 rational: with y = x / 2^k < 2^-7 the Taylor terms y^i / i! are carried as two
integers, one always rounded down and one always up; the terms after term i are together less than
term i (each is less than half of the one before). Then exp(x) is k squarings away, again rounded down for the
lower end and up for the upper end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from trilift.lift.checks import integer
from trilift.lift.errors import StateError

__all__ = ["Rule", "Scale", "Threshold", "digit", "exp_bounds", "nonzero", "tail", "variance_bounds"]

Scale = int | Fraction
"""Scale of a discrete Laplace variate on the integers: a positive rational."""

WORD = 32
_REDUCTION = 8
_GUARD = 16


def exp_bounds(numerator: int, denominator: int, *, bits: int) -> tuple[int, int]:
    """Return integers (low, high) with low <= exp(numerator/denominator) 2^bits <= high.

    The width high - low is a few units times exp(numerator/denominator).

    Args:
        numerator: > 0. The result has about 1.44 numerator/denominator + bits bits.
        denominator: > 0.
        bits: >= 0.

    >>> exp_bounds(1, 1, bits=16)  # e = 2.71828...
    (178145, 178146)
    """
    halvings = max(0, numerator.bit_length() - denominator.bit_length() + _REDUCTION)
    guard = halvings + _GUARD
    one = 1 << (bits + guard)
    reduced = denominator << halvings
    low = high = term_low = term_high = one
    index = 0
    while term_low:
        index += 1
        term_low = term_low * numerator // (reduced * index)
        term_high = -(-term_high * numerator // (reduced * index))
        low += term_low
        high += term_high
    high += term_high
    precision = bits + guard
    for _ in range(halvings):
        low = low * low >> precision
        high = -(-high * high >> precision)
    return low >> guard, -(-high >> guard)


class Rule(ABC):
    """A probability p, irrational, as an exact binary expansion: what a uniform number is compared with."""

    __slots__ = ()

    @abstractmethod
    def floor(self, bits: int) -> int:
        """Return floor(p 2^bits), exactly."""

    def decide(self, words: Iterator[int], *, matched: int = 0) -> bool:
        """Decide U < p for a uniform U whose binary expansion is read 32 bits at a time.

        Args:
            words: the words of U that follow the first ``matched`` bits.
            matched: leading bits of U already found equal to those of p.

        Raises:
            StateError: if the words end undecided.
        """
        for word in words:
            matched += WORD
            limit = self.floor(matched) & ((1 << WORD) - 1)
            if word != limit:
                return word < limit
        raise StateError("the words ended before the comparison was decided")


@dataclass(frozen=True, slots=True)
class Threshold(Rule):
    """The probability c / (d + exp(times 2^shift / odd)), as an exact binary expansion.

    Scales that differ by a power of two share these values: the digit j at scale odd * 2^s is the digit
    j - s at scale odd, so equal probabilities are equal objects and their floors are computed once.
    """

    c: int
    d: int
    odd: int
    shift: int
    times: int = 1

    def floor(self, bits: int) -> int:
        """Return floor(p 2^bits), exactly."""
        return _floor(self, bits)


@lru_cache(maxsize=1 << 16)
def _floor(p: Threshold, bits: int) -> int:
    numerator, denominator = p.times << max(p.shift, 0), p.odd << max(-p.shift, 0)
    # p 2^bits <= c 2^bits e^-x < 1 from x = bits + c on, as e > 2 and c < 2^c: the exp would be as long as x
    if numerator >= denominator * (bits + p.c):
        return 0
    precision = bits + 32
    while True:
        low, high = exp_bounds(numerator, denominator, bits=precision)
        top, base = p.c << (bits + precision), p.d << precision
        lower, upper = top // (base + high), top // (base + low)
        if lower == upper:
            return lower
        precision *= 2


def _threshold(c: int, d: int, j: int, scale: Scale) -> Threshold:
    """Return c / (d + exp(2^j / scale))."""
    odd, twos = _split(scale.numerator)
    times, halves = _split(scale.denominator)
    return Threshold(c=c, d=d, odd=odd, shift=j - twos + halves, times=times)


def _split(number: int) -> tuple[int, int]:
    """Return (odd, s) with number = odd 2^s."""
    twos = (number & -number).bit_length() - 1
    return number >> twos, twos


def digit(j: int, scale: Scale) -> Threshold:
    """P(binary digit j of G is 1) = 1 / (1 + exp(2^j / scale)), G geometric with ratio exp(-1/scale)."""
    return _threshold(1, 1, j, scale)


def nonzero(scale: Scale) -> Threshold:
    """P(X != 0) = 2 / (1 + exp(1 / scale)) for the discrete Laplace variate X of this scale."""
    return _threshold(2, 1, 0, scale)


def tail(j: int, scale: Scale) -> Threshold:
    """P(G >= 2^j) = exp(-2^j / scale), G geometric with ratio exp(-1/scale)."""
    return _threshold(1, 0, j, scale)


def variance_bounds(scale: int, *, bits: int = 80) -> tuple[Fraction, Fraction]:
    """Enclose the variance 2u / (1-u)^2 = 2E / (E-1)^2, u = exp(-1/scale), E = 1/u, of the discrete Laplace.

    Args:
        scale: integer >= 1.
        bits: the relative width of the enclosure is below 2^-bits.

    Returns:
        (lower, upper), exact rationals.

    Raises:
        ParameterError: if scale is not an integer >= 1.
    """
    scale = integer("scale", scale, minimum=1)
    precision = integer("bits", bits, minimum=1) + 2 * scale.bit_length() + 16
    low, high = exp_bounds(1, scale, bits=precision)
    one = 1 << precision
    # 2E/(E-1)^2 decreases in E, so the ends swap.
    return Fraction(2 * high * one, (high - one) ** 2), Fraction(2 * low * one, (low - one) ** 2)
