"""floor(u + 1/2) of floats that are known with a bound on their error: integers where that decides them."""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.lift.errors import ParameterError
from trilift.stream.fast import calls
from trilift.stream.fast.switch import kernels

__all__ = ["round_floats"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

_UNIT = 2.0**-53
_SAFETY = 1.0 + 2.0**-30
_EXACT_LIMIT = 2.0**52


def round_floats(
    values: FloatArray, error: float, *, places: int, inflate: float = 0.0
) -> tuple[IntArray, IntArray]:
    """Return floor(2^places x + 1/2) for reals x known within ``error``, and where that leaves it open.

    Args:
        values: floats of any shape.
        error: bound on the absolute error of every value.
        places: >= 0, at most 256.
        inflate: added to the bound, in units of the result; to leave more open in tests.

    Returns:
        int64 of the same shape, 0 where undecided, and the flat indices of the undecided entries.

    Raises:
        ParameterError: a value (times 2^places) exceeds the range of floats.
    """
    factor = 2.0**places
    margin = error * factor * _SAFETY + inflate
    made = kernels(0)
    if made is not None:
        whole, unsure, count = calls.round_half_up(made, values, factor=factor, margin=margin)
        if not count:
            return whole, np.zeros(0, dtype=np.int64)
        with np.errstate(over="ignore"):
            _check_range(values[unsure] * factor)
        return whole, np.flatnonzero(unsure)
    with np.errstate(over="ignore"):
        scaled = values * factor  # exact, or infinite
    scaled += 0.5
    size = np.abs(scaled)
    floors = np.floor(scaled)
    with np.errstate(invalid="ignore"):
        part = scaled - floors
    np.minimum(part, 1.0 - part, out=part)  # the distance to the nearest integer
    size += 1.0
    near = size * (4.0 * _UNIT)
    near += margin
    decided = (part > near) & (size < _EXACT_LIMIT)
    if decided.all():
        return floors.astype(np.int64), np.zeros(0, dtype=np.int64)
    _check_range(scaled)
    return np.where(decided, floors, 0.0).astype(np.int64), np.flatnonzero(~decided)


def _check_range(scaled: FloatArray) -> None:
    if not np.all(np.isfinite(scaled)):
        raise ParameterError("epsilon is too small: the noise exceeds the range of floats")
