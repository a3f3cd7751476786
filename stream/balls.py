"""Rigorous real arithmetic for proofs: python-flint's balls (arb), loaded when a proof first needs them.

A ball is a midpoint with a radius, and every operation encloses the exact result whatever the precision in
force, so that the precision only decides how narrow an enclosure is. Rationals go in exactly, and come out as
the two ends of the enclosure.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

from trilift.lift.errors import ParameterError

__all__ = ["START_BITS", "at_precision", "ball", "bounds", "decide", "narrow"]

_T = TypeVar("_T")

START_BITS = 128
_MOST_BITS = 1 << 16
_lock = threading.RLock()  # flint keeps its precision for the whole process


def at_precision(bits: int, work: Callable[[], _T]) -> _T:
    """Return ``work()`` with balls of this many bits."""
    import flint

    with _lock, flint.ctx.workprec(bits):
        return work()


def ball(value: Fraction | int) -> Any:
    """Return the narrowest ball around a rational at the precision in force."""
    import flint

    exact = Fraction(value)
    return flint.arb(flint.fmpq(exact.numerator, exact.denominator))


def _exact(end: Any) -> Fraction:
    mantissa, exponent = (int(part) for part in end.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def bounds(value: Any) -> tuple[Fraction, Fraction] | None:
    """Return rationals that enclose everything in a ball; None for a ball without finite ends."""
    if not value.is_finite():
        return None
    low, high = _exact(value.lower()), _exact(value.upper())
    return min(low, high), max(low, high)


def narrow(work: Callable[[], Any], *, bits: int) -> tuple[Fraction, Fraction]:
    """Enclose a real number to within relative 2^-bits, or absolute where it is smaller than 1.

    Args:
        work: returns a ball of the number, at the precision in force.
        bits: > 0.

    Raises:
        ParameterError: if 2^16 bits of precision do not suffice.

    >>> low, high = narrow(lambda: ball(2).sqrt(), bits=60)
    >>> low < high < low + Fraction(1, 2**60) and low**2 < 2 < high**2
    True
    """
    precision = max(START_BITS, 2 * bits)
    while precision <= _MOST_BITS:
        ends = at_precision(precision, lambda: bounds(work()))
        if ends is not None:
            low, high = ends
            if (high - low) * (1 << bits) <= max(Fraction(1), abs(low), abs(high)):
                return ends
        precision *= 2
    raise ParameterError(f"a number could not be enclosed with {_MOST_BITS} bits")


def decide(work: Callable[[], Any]) -> bool:
    """Prove that a real number is <= 0 (True) or > 0 (False).

    Args:
        work: returns a ball of the number, at the precision in force.

    A number that 2^16 bits do not tell from 0 counts as > 0: True is a proof, False only a failed one.

    >>> decide(lambda: ball(2).sqrt() - ball(Fraction(99, 70)))
    True
    """
    precision = START_BITS
    while precision <= _MOST_BITS:
        ends = at_precision(precision, lambda: bounds(work()))
        if ends is not None and ends[1] <= 0:
            return True
        if ends is not None and ends[0] > 0:
            return False
        precision *= 2
    return False
