"""Inputs of a counter: bounds, clipping and the lattice, checked before anything changes.

Messages go to the caller, who has the data: they show the number that is refused and where it stands, and of
the data nothing else. They do not belong into logs that others read; the command line, whose messages do,
names lines instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.lift.checks import fail, flag, numeric_array, rational, show
from trilift.lift.errors import ParameterError
from trilift.lift.integers import shift_left, shrink
from trilift.stream.ledger import MAX_PLACES

__all__ = ["InputRule", "lattice_places"]

Integers = np.ndarray[Any, np.dtype[Any]]

Flags = np.ndarray[Any, np.dtype[np.bool_]]

_BOUND_BITS = 512  # with the places below 2^1000: floats can be compared with the bounds


def lattice_places(name: str, resolution: Any) -> int:
    """Return gamma for a resolution of 2^-gamma.

    Raises:
        ParameterError: not 1, 1/2, 1/4, ... (or finer than 2^-256).
    """
    step = rational(name, resolution, above=0)
    places = step.denominator.bit_length() - 1
    if step.numerator != 1 or step.denominator != 1 << places or places > MAX_PLACES:
        finer = Fraction(1, 1 << min((step.denominator // step.numerator).bit_length(), MAX_PLACES))
        near = "" if step > 1 else f", such as {finer}"
        raise fail(name, f"1, 1/2, 1/4 or another negative power of two{near}", resolution)
    return places


@dataclass(frozen=True)
class InputRule:
    """What one input may be: a multiple of 2^-places in [low, high], in units of 2^-places.

    Attributes:
        low: lower bound as an integer number of lattice steps.
        high: upper bound likewise; high > low.
        places: gamma.
        clip: whether inputs outside the bounds are moved to the nearest bound instead of refused.
    """

    low: int
    high: int
    places: int
    clip: bool

    @classmethod
    def make(cls, *, bounds: Any, resolution: Any, clip: Any, name: str = "bounds") -> InputRule:
        """Check the arguments of a counter.

        Args:
            bounds: a pair (low, high).
            resolution: of the lattice.
            clip: whether to clip.
            name: what the bounds are called: "high" if only the upper one was given.

        Raises:
            ParameterError: bounds that are not two finite numbers low < high on the lattice.
        """
        places = lattice_places("resolution", resolution)
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            raise fail("bounds", "a pair (low, high)", bounds)
        shown = tuple(bounds) if name == "bounds" else bounds[1]
        low, high = (rational(name, bound) * (1 << places) for bound in bounds)
        if low.denominator != 1 or high.denominator != 1:
            step = "integers" if places == 0 else f"multiples of the resolution 2^-{places}"
            raise fail(name, step, shown)
        if max(abs(low), abs(high)) >= 1 << (_BOUND_BITS + places):
            raise ParameterError(f"{name} must be smaller than 2^{_BOUND_BITS} in size")
        if high <= low:
            raise fail(name, "a pair with low < high" if name == "bounds" else "a number > 0", shown)
        return cls(int(low), int(high), places, flag("clip", clip))

    @property
    def width(self) -> Fraction:
        """The most by which one input can change: high - low."""
        return Fraction(self.high - self.low, 1 << self.places)

    def _bounds_text(self) -> str:
        unit = Fraction(1, 1 << self.places)
        return f"within [{self.low * unit}, {self.high * unit}] (or pass clip=True)"

    def one(self, value: Any) -> int:
        """Return one input in lattice steps, rounded by floor(u + 1/2).

        Raises:
            ParameterError: not a finite number, not an integer on the integer lattice, or out of bounds.
        """
        if isinstance(value, (Sized, Iterator)):  # perhaps the whole stream: not to be shown
            raise ParameterError(f"input must be a finite number, got a {type(value).__name__}")
        exact = rational("input", value) * (1 << self.places)
        if self.clip:
            exact = min(max(exact, Fraction(self.low)), Fraction(self.high))
        elif not self.low <= exact <= self.high:
            raise fail("input", self._bounds_text(), value)
        if exact.denominator == 1:
            return int(exact)
        if self.places == 0:
            raise fail("input", "an integer (or pass resolution=)", value)
        return int((exact + Fraction(1, 2)) // 1)

    def many(self, values: Any, *, ndim: int = 1) -> Integers:
        """Return an array of inputs in lattice steps: int64, or Python integers where they do not fit.

        Args:
            values: array (or what numpy makes one of, such as a column of a dataframe), or for ndim = 1 any
                iterable of numbers, for ndim = 2 of vectors.
            ndim: number of dimensions, 1 or 2.

        Raises:
            ParameterError: as :meth:`one`, naming the first index that is refused.
        """
        if not isinstance(values, (list, tuple, Iterator)):
            return self._array(numeric_array("inputs", values, ndim=ndim))
        items = list(values)
        if ndim == 1:
            return self._items(items)
        rows = [self._row(index, item) for index, item in enumerate(items)]
        if len({len(row) for row in rows}) > 1:
            raise ParameterError("inputs must be vectors of one length")
        if any(row.dtype == object for row in rows):
            rows = [row.astype(object) for row in rows]
        return np.stack(rows) if rows else np.zeros((0, 0), dtype=np.int64)

    def _row(self, index: int, item: Any) -> Integers:
        try:
            return self.many(item, ndim=1)
        except ParameterError as error:
            raise ParameterError(f"{error} of row {index}") from None

    def _items(self, items: list[Any]) -> Integers:
        """Numbers one by one, as numpy would not keep them apart: it turns True into 1, 2^64 into a float."""
        kinds = set(map(type, items))
        if kinds <= {int}:
            try:
                return self._array(np.array(items, dtype=np.int64))
            except OverflowError:
                pass
        elif kinds == {float}:
            return self._array(numeric_array("inputs", items))
        return self._one_by_one(items)

    def _one_by_one(self, items: list[Any]) -> Integers:
        steps = np.empty(len(items), dtype=object)
        for index, item in enumerate(items):
            try:
                steps[index] = self.one(item)
            except ParameterError as error:
                raise ParameterError(f"{error} at index {index}") from None
        return shrink(steps)

    def _array(self, array: Integers) -> Integers:
        if array.dtype.kind == "f":
            return self._floats(array)
        if array.dtype == np.uint64 and array.size and int(array.max()) >= 1 << 63:
            wide = array.astype(object)
        else:
            wide = array.astype(np.int64)
        steps = shift_left(wide, self.places)
        below, above = steps < self.low, steps > self.high
        return self._limited(steps, array, below, above)

    def _floats(self, array: Integers) -> Integers:
        """Floats: compared, rounded and clipped without losing a bit."""
        with np.errstate(over="ignore"):
            exact = array.astype(np.float64)
        if np.any(exact != array):  # long doubles
            items = self._one_by_one(array.ravel().tolist() if array.itemsize <= 8 else list(array.ravel()))
            return items.reshape(array.shape)
        with np.errstate(over="ignore"):  # infinite only if far outside the bounds
            scaled = np.ldexp(exact, self.places)
        below, above = scaled < _float_at_least(self.low), scaled > -_float_at_least(-self.high)
        inside = np.where(below | above, 0.0, scaled)
        broken = (inside != np.floor(inside)) if self.places == 0 else np.zeros_like(below)
        return self._limited(_round_floats(inside), array, below, above, broken)

    def _limited(
        self, steps: Integers, array: Integers, below: Flags, above: Flags, broken: Any = 0
    ) -> Integers:
        """Refuse what is broken or lies outside the bounds, or move the latter to the bounds."""
        outside = below | above
        bad = broken if self.clip else outside | broken
        if np.any(bad):
            where = tuple(np.argwhere(bad)[0])
            wanted = self._bounds_text() if outside[where] else "an integer (or pass resolution=)"
            raise self._refused(wanted, array, where)
        if not outside.any():
            return steps
        fits = self.low >= -(1 << 63) and self.high < 1 << 63
        moved = steps.copy() if fits else steps.astype(object)
        moved[below], moved[above] = self.low, self.high
        return shrink(moved)

    @staticmethod
    def _refused(wanted: str, array: Integers, where: tuple[Any, ...]) -> ParameterError:
        index = int(where[0]) if len(where) == 1 else tuple(int(i) for i in where)
        return ParameterError(f"inputs must be {wanted}, got {show(array[where].item())} at index {index}")


def _float_at_least(bound: int) -> float:
    """Return the least float >= bound."""
    nearest = float(bound)
    return nearest if int(nearest) >= bound else math.nextafter(nearest, math.inf)


def _round_floats(scaled: np.ndarray[Any, np.dtype[np.float64]]) -> Integers:
    """Return floor(x + 1/2) of floats exactly: x - floor(x) is exact, x + 1/2 would not always be."""
    floors = np.floor(scaled)
    whole = floors + (scaled - floors >= 0.5)
    if whole.size == 0 or float(np.abs(whole).max()) < 2.0**62:
        return np.asarray(whole, dtype=np.int64)
    out: Integers = np.empty(whole.shape, dtype=object)
    out[...] = np.vectorize(int, otypes=[object])(whole)
    return out
