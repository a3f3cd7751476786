"""Hostile and unusual values for parameters: what no number is, and numbers at the edges of their types.

A value of :data:`NO_NUMBERS` must be refused by every parameter that wants a number, a truth value or a word.
One of :data:`EDGES` is a number and must mean what the plain integer or fraction beside it means: both are
accepted with equal results, or both are refused.
"""

from __future__ import annotations

import enum
import numbers
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["EDGES", "NO_NUMBERS", "like"]


class Colour(enum.Enum):
    """An enumeration that is no number."""

    RED = 1


class Posing:
    """Says that it is an integer, and has none of what makes one."""

    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")


class Lying(float):
    """A NaN that claims to equal every number and to lie between any two."""

    def __eq__(self, other: object) -> bool:
        return True

    def __lt__(self, other: object) -> bool:
        return True

    __gt__ = __le__ = __ge__ = __lt__

    def __hash__(self) -> int:
        return 0


class Endless:
    """Converts to every kind of number, and is none."""

    def __int__(self) -> int:
        return 1

    def __index__(self) -> int:
        return 1

    def __float__(self) -> float:
        return 1.0


numbers.Integral.register(Posing)

NO_NUMBERS: dict[str, Any] = {
    "nan": float("nan"),
    "-nan": -float("nan"),
    "inf": float("inf"),
    "-inf": -float("inf"),
    "float16 nan": np.float16("nan"),
    "float32 inf": np.float32("inf"),
    "long double nan": np.longdouble("nan"),
    "decimal NaN": Decimal("NaN"),
    "decimal sNaN": Decimal("sNaN"),
    "decimal Infinity": Decimal("-Infinity"),
    "lying nan": Lying("nan"),
    "True": True,
    "numpy True": np.True_,
    "string of a number": "1",
    "string of nan": "nan",
    "empty string": "",
    "string of two lines": "a\nb",
    "numpy string": np.str_("1"),
    "bytes": b"1",
    "None": None,
    "complex": 1j,
    "complex 1": 1 + 0j,
    "numpy complex": np.complex64(1),
    "array of no dimensions": np.array(1),
    "array of one": np.array([1]),
    "array of nan": np.array([np.nan]),
    "array of objects": np.array([None, "x"], dtype=object),
    "masked array": np.ma.array([1], mask=[True]),
    "masked": np.ma.masked,
    "empty list": [],
    "list": [1],
    "nested list": [[1]],
    "tuple": (1,),
    "set": {1},
    "mapping": {"a": 1},
    "object": object(),
    "type": int,
    "function": abs,
    "date": np.datetime64("2020-01-01"),
    "duration": np.timedelta64(1, "s"),
    "enumeration": Colour.RED,
    "posing as an integer": Posing(),
    "converting to a number": Endless(),
}
"""No numbers, no truth values but True, no words of ours."""

EDGES: dict[str, Any] = {
    "-0.0": -0.0,
    "0": 0,
    "-1": -1,
    "1e-320": 1e-320,
    "1e308": 1e308,
    "-1e308": -1e308,
    "2^53 + 1": 2**53 + 1,
    "2^63": 2**63,
    "10^400": 10**400,
    "-10^400": -(10**400),
    "10^5000": 10**5000,
    "1/3": Fraction(1, 3),
    "1/10^400": Fraction(1, 10**400),
    "10^400/3": Fraction(10**400, 3),
    "decimal 1e-4000": Decimal("1e-4000"),
    "decimal 1e-999999": Decimal("1e-999999"),
    "decimal 1e999999": Decimal("1e999999"),
    "float16 largest": np.float16(65504),
    "float32 least": np.float32(1e-45),
    "uint64 largest": np.uint64(2**64 - 1),
    "int64 least": np.int64(-(2**63)),
    "int8 least": np.int8(-128),
    "long double least": np.finfo(np.longdouble).smallest_subnormal,
    "long double largest": np.finfo(np.longdouble).max,
    "long double 2^63 + 1": np.longdouble(2**63) + np.longdouble(1),
    "large subclass": type("Large", (int,), {})(2**70),
}
"""Numbers: accepted as what they are, or refused by name."""

_INTEGER_TYPES: tuple[Callable[[int], Any], ...] = (
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    type("Whole", (int,), {}),
)
_NUMBER_TYPES: tuple[Callable[[Any], Any], ...] = (
    Fraction,
    lambda value: Decimal(value.numerator) / Decimal(value.denominator),
    lambda value: np.float16(float(value)),
    lambda value: np.float32(float(value)),
    lambda value: np.longdouble(float(value)),
    float,
)


def like(value: Any, *, whole: bool) -> list[Any]:
    """Return a number in every type that holds it exactly: integers alone if ``whole``.

    >>> [type(x).__name__ for x in like(1000, whole=True)][:3]
    ['int16', 'uint16', 'int32']
    """
    exact = Fraction(value)
    found: list[Any] = []
    if exact.denominator == 1:
        for make in _INTEGER_TYPES:
            try:
                made = make(int(exact))
            except OverflowError:
                continue
            found.append(made)
    for make in () if whole else _NUMBER_TYPES:
        made = make(exact)
        if Fraction(*made.as_integer_ratio()) == exact:
            found.append(made)
    return found
