"""Directed rounding: rational enclosures of log2, rational square roots, floats rounded up or down (new)."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

from trilift.lift.checks import integer, rational

__all__ = ["float_down", "float_up", "kappa_up", "log2_enclosure", "sqrt_down", "sqrt_up"]

LOG2_BITS = 64
_GUARD_BITS = 64
_MOST_BITS = 1 << 16


def log2_enclosure(number: int, *, bits: int = LOG2_BITS) -> tuple[Fraction, Fraction]:
    """Return rationals lo <= log2(number) <= hi with hi - lo <= 2**(1-bits).

    The binary digits come one at a time: squaring doubles the logarithm, and a mantissa that reaches 2 gives
    a digit 1. One run rounds every square down, another up, so no rounding can leave the enclosure.

    Args:
        number: integer >= 1.
        bits: binary digits after the point.

    Raises:
        ParameterError: not an integer >= 1.

    >>> log2_enclosure(8)
    (Fraction(3, 1), Fraction(3, 1))
    """
    number = integer("number", number, minimum=1)
    bits = _checked_bits(bits)
    whole = number.bit_length() - 1
    if number == 1 << whole:
        return Fraction(whole), Fraction(whole)
    places = bits + _GUARD_BITS
    low = (number << places) >> whole
    high = -((-number << places) >> whole)
    below = _digits(low, places, bits, up=False)
    above = _digits(high, places, bits, up=True) + 1
    return whole + Fraction(below, 1 << bits), whole + Fraction(above, 1 << bits)


def _digits(mantissa: int, places: int, bits: int, *, up: bool) -> int:
    """Return the first ``bits`` binary digits of log2(mantissa / 2**places), 1 <= mantissa/2**places <= 2."""
    two, digits = 2 << places, 0
    for _ in range(bits):
        square = mantissa * mantissa
        mantissa = -(-square >> places) if up else square >> places
        digits <<= 1
        if mantissa >= two:
            mantissa = (mantissa + up) >> 1
            digits |= 1
    return digits


def _checked_bits(bits: int) -> int:
    return integer("bits", bits, minimum=0, maximum=_MOST_BITS)


def sqrt_up(value: Fraction, *, bits: int = 100) -> Fraction:
    """Return a rational >= sqrt(value), at most 2**-bits above it.

    Raises:
        ParameterError: a negative value.

    >>> sqrt_up(Fraction(9, 4))
    Fraction(3, 2)
    """
    value, bits = rational("value", value, minimum=0), _checked_bits(bits)
    low = sqrt_down(value, bits=bits)
    return low if low * low == value else low + Fraction(1, 1 << bits)


def sqrt_down(value: Fraction, *, bits: int = 100) -> Fraction:
    """Return a rational <= sqrt(value), less than 2**-bits below it.

    Raises:
        ParameterError: a negative value.

    >>> sqrt_down(Fraction(2), bits=2)
    Fraction(5, 4)
    """
    value, bits = rational("value", value, minimum=0), _checked_bits(bits)
    return Fraction(math.isqrt((value.numerator << 2 * bits) // value.denominator), 1 << bits)


def float_up(value: Fraction) -> float:
    """Return the least float >= value (infinity where no finite one is).

    >>> float_down(Fraction(1, 3)) < Fraction(1, 3) < float_up(Fraction(1, 3))
    True
    """
    value = rational("value", value)
    try:
        nearest = value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """Return the largest float <= value (minus infinity where no finite one is).

    >>> float_down(Fraction(1, 10)) == 0.1, float_down(Fraction(3, 10)) == 0.3
    (False, True)
    """
    return -float_up(-rational("value", value))


def kappa_up(row_norm_sq: Fraction, *, sensitivity: Fraction, size: int) -> float:
    """Return a float >= 2 q b^2 / log2(m)^3, the leading constant of the squared error.

    Args:
        row_norm_sq: q (or an upper bound of it).
        sensitivity: b (or an upper bound of it).
        size: m >= 2.

    Raises:
        ParameterError: m < 2.

    >>> kappa_up(Fraction(2), sensitivity=Fraction(1), size=2)
    4.0
    """
    low, _ = log2_enclosure(integer("size", size, minimum=2))
    q = rational("row_norm_sq", row_norm_sq, minimum=0)
    return float_up(2 * q * rational("sensitivity", sensitivity, minimum=0) ** 2 / low**3)
