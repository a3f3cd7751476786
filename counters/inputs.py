"""Inputs of a counter: bounds, clipping and the lattice, checked before anything changes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.lift.checks import fail, flag, numeric_array, rational, show
from trilift.lift.errors import ParameterError
from trilift.lift.integers import shrink

__all__ = ["InputRule", "lattice_places"]

Integers = np.ndarray[Any, np.dtype[Any]]

_MAX_PLACES = 1000


def lattice_places(name: str, resolution: Any) -> int:
    """Return gamma for a resolution of 2^-gamma.

    Raises:
        ParameterError: not 1, 1/2, 1/4, ... (or finer than 2^-1000).
    """
    step = rational(name, resolution, above=0)
    places = step.denominator.bit_length() - 1
    if step.numerator != 1 or step.denominator != 1 << places or places > _MAX_PLACES:
        raise fail(name, "1, 1/2, 1/4 or another negative power of two", resolution)
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
    def make(cls, *, bounds: Any, resolution: Any, clip: Any) -> InputRule:
        """Check the arguments of a counter.

        Raises:
            ParameterError: bounds that are not two finite numbers low < high on the lattice.
        """
        places = lattice_places("resolution", resolution)
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            raise fail("bounds", "a pair (low, high)", bounds)
        low, high = (rational("bounds", bound) * (1 << places) for bound in bounds)
        if low.denominator != 1 or high.denominator != 1:
            step = "integers" if places == 0 else f"multiples of the resolution 2^-{places}"
            raise fail("bounds", step, tuple(bounds))
        if high <= low:
            raise fail("bounds", "a pair with low < high", tuple(bounds))
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
        """Return an array of inputs in lattice steps: int64, or Python integers where needed.

        Raises:
            ParameterError: as :meth:`one`, naming the first bad index; nothing else is said of the data.
        """
        array = numeric_array("inputs", values, ndim=ndim)
        if array.dtype.kind in "iu" and self.places == 0:
            return self._integers(array)
        if array.dtype.kind in "iu":
            return self._bounded(shrink(array.astype(object) << self.places), array)
        scaled = np.ldexp(array.astype(np.float64), self.places)
        if self.clip:
            scaled = np.clip(scaled, float(self.low), float(self.high))
        if self.places == 0 and np.any(scaled != np.floor(scaled)):
            where = tuple(np.argwhere(scaled != np.floor(scaled))[0])
            raise self._refused("an integer (or pass resolution=)", array, where)
        return self._bounded(_round_floats(scaled), array, scaled)

    def _integers(self, array: Integers) -> Integers:
        """Integer arrays on the integer lattice: compare without any conversion."""
        if self.clip:
            array = np.clip(array.astype(object) if array.dtype == np.uint64 else array, self.low, self.high)
            return shrink(np.asarray(array))
        return self._bounded(array, array)

    def _bounded(self, steps: Integers, array: Integers, before: Integers | None = None) -> Integers:
        compared = steps if before is None else before
        if self.clip:
            steps = np.clip(steps, self.low, self.high)
        else:
            outside = (compared < self.low) | (compared > self.high)
            if outside.any():
                raise self._refused(self._bounds_text(), array, tuple(np.argwhere(outside)[0]))
        if steps.dtype == np.uint64:
            return shrink(steps.astype(object))
        return steps if steps.dtype == object else np.asarray(steps, dtype=np.int64)

    @staticmethod
    def _refused(wanted: str, array: Integers, where: tuple[Any, ...]) -> ParameterError:
        index = int(where[0]) if len(where) == 1 else tuple(int(i) for i in where)
        return ParameterError(f"inputs must be {wanted}, got {show(array[where].item())} at index {index}")


def _round_floats(scaled: np.ndarray[Any, np.dtype[np.float64]]) -> Integers:
    """Return floor(x + 1/2) of floats exactly: x - floor(x) is exact, x + 1/2 would not always be."""
    floors = np.floor(scaled)
    whole = floors + (scaled - floors >= 0.5)
    if whole.size == 0 or float(np.abs(whole).max()) < 2.0**62:
        small: Integers = whole.astype(np.int64)
        return small
    out = np.empty(whole.shape, dtype=object)
    out[...] = np.vectorize(int, otypes=[object])(whole)
    return out
