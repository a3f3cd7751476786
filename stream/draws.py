"""A batch of exact integers in packed form, and its conversions.

A draw is kept as its bits, packed little endian into 64-bit limbs: bit 0 "nonzero", bit 1 "negative", bit 2
"tail event", then the binary digits of |X| - 1. The few draws with a tail event, or an exception of their low
digits, have their value in a dictionary instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from trilift.lift.errors import StateError

__all__ = ["FLAGS", "NEGATIVE", "NONZERO", "TAIL_EVENT", "Draws", "Part", "to_float"]

NONZERO, NEGATIVE, TAIL_EVENT, FLAGS = 0, 1, 2, 3
_FACTOR = np.array([0, 1, 0, -1], dtype=np.int64)
_HALF = 32


@dataclass(frozen=True)
class Part:
    """The draws of consecutive rows with equally many limbs.

    Attributes:
        rows: the rows.
        packed: uint64 (nb, len(rows), limbs), the packed bits.
    """

    rows: range
    packed: NDArray[np.uint64]

    def factors(self) -> NDArray[np.int64]:
        """Return 0, 1 or -1 for every draw, (nb, rows)."""
        factors: NDArray[np.int64] = _FACTOR[(self.packed[..., 0] & np.uint64(3)).view(np.int64)]
        return factors

    def magnitudes(self) -> list[NDArray[np.uint64]]:
        """Return the limbs of |X| - 1 (of a nonzero draw that is not overridden), the lowest one first."""
        limbs = [self.packed[..., k] >> np.uint64(FLAGS) for k in range(self.packed.shape[-1])]
        for k in range(len(limbs) - 1):
            limbs[k] |= self.packed[..., k + 1] << np.uint64(64 - FLAGS)
        return limbs

    def exact(self, i: int, k: int) -> int:
        """Return one draw as a Python integer, as far as it is in the packed bits."""
        bits = sum(int(limb) << (64 * n) for n, limb in enumerate(self.packed[i, k]))
        return int(_FACTOR[bits & 3]) * ((bits >> FLAGS) + 1)


@dataclass
class Draws:
    """Exact integers of shape (nb, r): one row of the array per block, one column per row of the level.

    Attributes:
        shape: (nb, r).
        parts: packed draws, together all r rows, in order.
        overrides: exact values of the draws that are not in the parts, by (block index, row).
    """

    shape: tuple[int, int]
    parts: list[Part] = field(default_factory=list, repr=False)
    overrides: dict[tuple[int, int], int] = field(default_factory=dict, repr=False)

    @property
    def float_error(self) -> float:
        """Zero: :meth:`to_float` errs by no more than relative 2^-52."""
        return 0.0

    def to_float(self) -> NDArray[np.float64]:
        """Return float64 (nb, r), each within relative 2^-52 of the exact integer; exact below 2^53.

        One limb: one correct rounding, relative 2^-53. Several: |X| = R is 1 plus 32-bit halves h_k 2^(32k),
        each exact as a float, added from the lowest up. Let h_k be the last one that is not zero. The sum
        below it is at most 2^(32k) <= R/2, the one below that at most 2^-32 R, and so on, and every addition
        errs by at most 2^-53 of its sum: together below 2^-53 (1 + 1/2 + 2^-31) (1 + 2^-52) R < 2^-52 R.

        Raises:
            StateError: if a value exceeds the range of a float.
        """
        out = np.empty(self.shape, dtype=np.float64)
        for part in self.parts:
            out[:, part.rows.start : part.rows.stop] = _floats(part)
        for where, value in self.overrides.items():
            out[where] = to_float(value)
        if not np.isfinite(out).all():
            raise StateError("a draw exceeds the range of float64; use to_objects()")
        return out

    def to_int64(self) -> NDArray[np.int64]:
        """Return int64 (nb, r), exact.

        Raises:
            StateError: if a value does not fit (not to be expected below scales of 2^57); use ``to_objects``.
        """
        out = np.empty(self.shape, dtype=np.int64)
        for part in self.parts:
            low, *high = part.magnitudes()
            factors = part.factors()
            too_big = low >= np.uint64((1 << 63) - 1)
            for limb in high:
                too_big |= limb != 0
            if (too_big & (factors != 0)).any():
                raise StateError("a draw does not fit int64; use to_objects()")
            out[:, part.rows.start : part.rows.stop] = (low + np.uint64(1)).view(np.int64) * factors
        for where, value in self.overrides.items():
            if not -(1 << 63) <= value < 1 << 63:
                raise StateError("a draw does not fit int64; use to_objects()")
            out[where] = value
        return out

    def to_objects(self) -> NDArray[np.object_]:
        """Return the exact Python integers, an object array (nb, r)."""
        out = np.empty(self.shape, dtype=object)
        for part in self.parts:
            total = np.zeros(part.packed.shape[:2], dtype=object)
            for k, limb in enumerate(part.magnitudes()):
                total = total + (limb.astype(object) << (64 * k))
            out[:, part.rows.start : part.rows.stop] = (total + 1) * part.factors().astype(object)
        for where, value in self.overrides.items():
            out[where] = value
        return out

    def block(self, index: int) -> list[int]:
        """Return the exact integers of one block, given by its place in the batch."""
        values = [part.exact(index, k) for part in self.parts for k in range(len(part.rows))]
        for (i, row), value in self.overrides.items():
            if i == index:
                values[row] = value
        return values


def _floats(part: Part) -> NDArray[np.float64]:
    limbs = part.magnitudes()
    if len(limbs) == 1:
        total = (limbs[0] + np.uint64(1)).astype(np.float64)
    else:
        total = np.ones(limbs[0].shape, dtype=np.float64)
        mask = np.uint64((1 << _HALF) - 1)
        with np.errstate(over="ignore"):
            for k, limb in enumerate(limbs):
                total += np.ldexp((limb & mask).astype(np.float64), 64 * k)
                total += np.ldexp((limb >> np.uint64(_HALF)).astype(np.float64), 64 * k + _HALF)
    return total * part.factors()


def to_float(value: int) -> float:
    """Return the nearest float, infinity past the range of floats."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")
