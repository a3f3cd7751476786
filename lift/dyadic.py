"""Dyadic arrays: integers over a power of two, the exact numbers in which all is proved and charged."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from trilift.lift import integers
from trilift.lift.checks import integer, numeric_array, show
from trilift.lift.errors import ParameterError
from trilift.lift.integers import IntArray

__all__ = ["Dyadic"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


class Dyadic:
    """An exact array ``num * 2**-exp`` (new).

    Args:
        num: integer array of any shape: int64, or Python integers (dtype object) where they do not fit.
        exp: number of binary places, >= 0.

    Operations never round and never wrap. Instances are immutable: the numerators are read-only.

    >>> half = Dyadic([1, 3], 1)
    >>> (half + half).fractions().tolist()
    [Fraction(1, 1), Fraction(3, 1)]
    """

    __slots__ = ("exp", "num")
    __array_ufunc__ = None  # numpy must not spread the operators over the entries
    __hash__ = None  # type: ignore[assignment]  # compared by value

    num: IntArray
    exp: int

    def __init__(self, num: Any, exp: int = 0) -> None:
        array = integers.as_integers(num)
        array = array.copy() if array is num else array
        array.flags.writeable = False
        object.__setattr__(self, "num", array)
        object.__setattr__(self, "exp", integer("exp", exp, minimum=0, maximum=_MOST_PLACES))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Dyadic is immutable: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Dyadic, (np.array(self.num), self.exp))

    # -- making ---------------------------------------------------------------------------------

    @classmethod
    def _wrap(cls, num: IntArray, exp: int) -> Dyadic:
        """Wrap the outcome of exact arithmetic as it is: its entries need no looking at one by one."""
        new = object.__new__(cls)
        num.flags.writeable = False
        object.__setattr__(new, "num", num)
        object.__setattr__(new, "exp", exp)
        return new

    @classmethod
    def _of(cls, num: IntArray, exp: int) -> Dyadic:
        """Wrap numerators whose exponent may be negative (then they are multiplied out)."""
        return cls._wrap(integers.shift_left(num, -exp), 0) if exp < 0 else cls._wrap(num, exp)

    @classmethod
    def exact(cls, values: Any) -> Dyadic:
        """Return finite floats (or integers) as the dyadic numbers that they are.

        Raises:
            ParameterError: NaN, infinities, or floats wider than float64 (they would be rounded).
        """
        array = numeric_array("values", values)
        if array.dtype.kind == "f" and array.dtype.itemsize > 8:
            raise ParameterError(f"values must be float64 or narrower, got {array.dtype}")
        if array.dtype.kind in "iu":
            return cls(array, 0)
        mantissas, exponents = np.frexp(array.astype(np.float64))
        whole = np.ldexp(mantissas, 53).astype(np.int64)
        shifts = np.where(whole == 0, 0, exponents - 53)
        lowest = int(min(shifts.min(initial=0), 0))
        num = (whole.astype(object) << (shifts - lowest).astype(object)) if array.size else whole
        return cls(integers.shrink(np.asarray(num, dtype=object)), -lowest).normalized()

    @classmethod
    def round(cls, values: Any, bits: int) -> Dyadic:
        """Round floats, or a Dyadic, to ``bits`` binary places: floor(x * 2**bits + 1/2)."""
        source = values if isinstance(values, Dyadic) else cls.exact(values)
        bits = integer("bits", bits, minimum=0, maximum=_MOST_PLACES)
        shift = source.exp - bits
        if shift <= 0:
            return cls._of(integers.shift_left(source.num, -shift), bits)
        half = np.asarray(1 << (shift - 1), dtype=object)
        num = np.asarray(source.num.astype(object) + half) >> shift
        return cls(integers.shrink(np.asarray(num, dtype=object)), bits)

    @classmethod
    def zeros(cls, shape: int | tuple[int, ...]) -> Dyadic:
        """Return zeros of the given shape."""
        sides = shape if isinstance(shape, tuple) else (shape,)
        lengths = tuple(integer("shape", side, minimum=0, maximum=_MOST_ENTRIES) for side in sides)
        if prod(lengths) > _MOST_ENTRIES:
            raise ParameterError(f"shape must be of at most {_MOST_ENTRIES} entries")
        return cls(np.zeros(lengths, dtype=np.int64), 0)

    @classmethod
    def concatenate(cls, parts: list[Dyadic], axis: int = 0) -> Dyadic:
        """Join along an axis, at the finest exponent of the parts."""
        axis = _checked_axis(axis, parts[0].ndim)
        exp = max(part.exp for part in parts)
        nums = [part.numerators(exp) for part in parts]
        if any(num.dtype == object for num in nums):
            nums = [num.astype(object) for num in nums]
        return cls(np.concatenate(nums, axis=axis), exp)

    # -- reading --------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return tuple(self.num.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.num.ndim

    @property
    def T(self) -> Dyadic:
        """The transpose."""
        return Dyadic._wrap(self.num.T, self.exp)

    def __len__(self) -> int:
        return len(self.num)

    def __getitem__(self, index: Any) -> Dyadic:
        return Dyadic._wrap(integers.shrink(np.asarray(self.num[index], dtype=self.num.dtype)), self.exp)

    def __repr__(self) -> str:
        return f"Dyadic(shape={self.shape}, exp={self.exp}, bits={integers.bit_width(self.num)})"

    def numerators(self, exp: int) -> IntArray:
        """Return the integer numerators over ``2**exp``; ``exp`` must not be below the own exponent."""
        exp = integer("exp", exp, maximum=max(_MOST_PLACES, self.exp))
        if exp < self.exp:
            raise ParameterError(
                f"an exponent (exp) of {show(exp)} cannot hold numbers with {self.exp} binary places"
            )
        return integers.shift_left(self.num, exp - self.exp)

    def fractions(self) -> IntArray:
        """Return the entries as Fractions (dtype object)."""
        out = np.empty(self.num.size, dtype=object)
        out[:] = [Fraction(int(entry), 1 << self.exp) for entry in self.num.flat]
        return out.reshape(self.shape)

    def fraction(self) -> Fraction:
        """Return the value of a one-entry array as a Fraction."""
        if self.num.size != 1:
            raise ParameterError(f"one entry expected, got shape {self.shape}")
        return Fraction(int(self.num.reshape(-1)[0]), 1 << self.exp)

    def to_float(self) -> FloatArray:
        """Return the nearest float64 of every entry (exact up to 53 bits; nothing overflows to infinity)."""
        if self.num.dtype != object and integers.bit_width(self.num) <= 53 and self.exp <= 1000:
            return np.ldexp(self.num.astype(np.float64), -self.exp)
        scale = 1 << self.exp
        flat = [int(entry) / scale for entry in self.num.flat]  # Python divides integers correctly rounded
        return np.array(flat, dtype=np.float64).reshape(self.shape)

    def normalized(self) -> Dyadic:
        """Return the same numbers with the least exponent."""
        places = binary_places(self)
        lowest = int(places.max(initial=0))
        if lowest == self.exp:
            return self
        return Dyadic._wrap(integers.shrink(self.num >> (self.exp - lowest)), lowest)

    def equals(self, other: Dyadic) -> bool:
        """Tell whether shape and every value agree."""
        exp = max(self.exp, other.exp)
        return self.shape == other.shape and bool(np.all(self.numerators(exp) == other.numerators(exp)))

    # -- arithmetic -----------------------------------------------------------------------------

    def _combine(self, other: Any, sign: int) -> Dyadic:
        right = other if isinstance(other, Dyadic) else Dyadic(other)
        exp = max(self.exp, right.exp)
        return Dyadic._wrap(integers.add(self.numerators(exp), right.numerators(exp), sign=sign), exp)

    def __add__(self, other: Any) -> Dyadic:
        return self._combine(other, 1)

    def __sub__(self, other: Any) -> Dyadic:
        return self._combine(other, -1)

    def __rsub__(self, other: Any) -> Dyadic:
        return Dyadic(other) - self

    def __neg__(self) -> Dyadic:
        return Dyadic.zeros(self.shape) - self

    def __mul__(self, other: Any) -> Dyadic:
        right = other if isinstance(other, Dyadic) else Dyadic(other)
        return Dyadic._wrap(integers.multiply(self.num, right.num), self.exp + right.exp)

    __radd__ = __add__
    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Dyadic:
        right = other if isinstance(other, Dyadic) else Dyadic(other)
        return Dyadic._wrap(integers.matmul(self.num, right.num), self.exp + right.exp)

    def __abs__(self) -> Dyadic:
        return Dyadic._wrap(integers.multiply(self.num, np.asarray(np.sign(self.num))), self.exp)

    def scaled(self, power: int) -> Dyadic:
        """Return the numbers times ``2**power`` (any sign)."""
        power = integer("power", power, minimum=-_MOST_PLACES, maximum=_MOST_PLACES)
        return Dyadic._of(self.num, self.exp - power)

    def sum(self, axis: int | None = None) -> Dyadic:
        """Return exact sums along an axis (or over everything)."""
        axis = None if axis is None else _checked_axis(axis, self.ndim)
        if integers.bit_width(self.num) + max(self.num.size, 1).bit_length() <= 63:
            return Dyadic(np.asarray(self.num.sum(axis=axis)), self.exp)
        total = np.asarray(self.num.astype(object).sum(axis=axis), dtype=object)
        return Dyadic(total, self.exp)

    def abs_sum(self, axis: int | None = None) -> Dyadic:
        """Return exact l1 norms along an axis."""
        return abs(self).sum(axis)

    def max(self) -> Fraction:
        """Return the largest entry."""
        return Fraction(int(self.num.max()), 1 << self.exp)

    def min(self) -> Fraction:
        """Return the smallest entry."""
        return Fraction(int(self.num.min()), 1 << self.exp)


_MOST_PLACES = 1 << 24
_MOST_ENTRIES = 1 << 30


def _checked_axis(axis: Any, ndim: int) -> int:
    return integer("axis", axis, minimum=-ndim, maximum=ndim - 1)


def binary_places(values: Dyadic) -> IntArray:
    """Return for every entry the least number of binary places that holds it (int64; 0 for zero)."""
    num = values.num
    if num.dtype == object:
        lowest = np.array([int(x) & -int(x) for x in num.flat], dtype=object).reshape(num.shape)
        trailing = np.array([int(x).bit_length() - 1 for x in lowest.flat], dtype=np.int64).reshape(num.shape)
    else:
        lowest = num & -num
        # lowest is a power of two (or -2**63, or 0): frexp reads its exponent exactly
        trailing = np.frexp(np.abs(lowest.astype(np.float64)))[1].astype(np.int64) - 1
    return np.where(num == 0, 0, np.maximum(values.exp - trailing, 0))
