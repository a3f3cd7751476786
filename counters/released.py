"""Released values: integers on the output lattice, shown as numbers without losing a bit."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from trilift.lift.integers import bit_width

__all__ = ["as_array", "as_number", "post_process"]

Integers = np.ndarray[Any, np.dtype[Any]]


def as_number(num: int, places: int) -> int | float | Fraction:
    """Return num / 2^places: an int on the integer lattice, else the exact float, else a Fraction."""
    if places == 0:
        return num
    exact = Fraction(num, 1 << places)
    if num.bit_length() <= 53 and places <= 1000:
        return float(exact)
    return exact


def as_array(nums: Integers, places: int) -> Integers:
    """Return nums / 2^places: integers, floats where all are exact, else Fractions (dtype object)."""
    if places == 0:
        return nums
    if bit_width(nums) <= 53 and places <= 1000:
        return np.ldexp(nums.astype(np.float64), -places)
    out = np.empty(nums.size, dtype=object)
    out[:] = [Fraction(int(num), 1 << places) for num in nums.flat]
    return out.reshape(nums.shape)


def post_process(nums: Integers, kind: str | None, peak: Integers) -> Integers:
    """Apply the post-processing along axis 0; ``peak`` holds the largest values released so far."""
    if kind is None:
        return nums
    if kind == "nonnegative":
        return np.maximum(nums, 0)
    return np.maximum(np.maximum.accumulate(nums, axis=0), peak)
