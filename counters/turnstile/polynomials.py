"""Families of hash functions over fingerprints: polynomials modulo the prime 2^61 - 1, evaluated by numpy.

A polynomial of degree d - 1 with independent uniform coefficients is d-wise independent on Z_p (Carter and
Wegman). Two of degree 1 serve the levels of MinHash copies; cubic ones give 4-wise independent signs, 61 at a
time: every bit of the value is one row of signs, fair up to 2^-61.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["PRIME", "ROWS_PER_VALUE", "Polynomials", "multiply"]

Words = np.ndarray[Any, np.dtype[np.uint64]]

PRIME = (1 << 61) - 1
ROWS_PER_VALUE = 61
_P = np.uint64(PRIME)
_LOW = np.uint64((1 << 32) - 1)
_THIRTY_TWO, _SIXTY_ONE, _TWENTY_NINE, _THREE = (np.uint64(k) for k in (32, 61, 29, 3))


def _fold(x: Words) -> Words:
    """Reduce values below 2^64 modulo p, to 0..p-1."""
    x = (x & _P) + (x >> _SIXTY_ONE)
    return np.where(x >= _P, x - _P, x)


def multiply(x: Words, y: Words) -> Words:
    """Return x y mod 2^61 - 1 for x, y in 0..p-1, elementwise.

    With x = a 2^32 + b and y = c 2^32 + d, a, c < 2^29: the product is a c 2^64 + (a d + b c) 2^32 + b d, and
    2^61 = 1 modulo p, so 2^64 = 8 and m 2^32 = (m >> 29) + (m mod 2^29) 2^32. No term exceeds 2^64: a d + b c
    is below 2^62, b d below 2^64, a c below 2^58.

    >>> int(multiply(np.uint64([PRIME - 1]), np.uint64([PRIME - 1]))[0])
    1
    """
    a, b = x >> _THIRTY_TWO, x & _LOW
    c, d = y >> _THIRTY_TWO, y & _LOW
    middle = a * d + b * c
    low = _fold(b * d)
    cross = (middle >> _TWENTY_NINE) + ((middle & np.uint64((1 << 29) - 1)) << _THIRTY_TWO)
    return _fold(_fold(cross) + low + _fold((a * c) << _THREE))


class Polynomials:
    """Independent random polynomials over Z_p, p = 2^61 - 1.

    Args:
        coefficients: uint64 of shape (polynomials, degree + 1), highest power first, each in 0..p-1.
    """

    def __init__(self, coefficients: Words) -> None:
        self._coefficients = coefficients

    @classmethod
    def drawn(cls, words: Words) -> Polynomials:
        """Take the coefficients from uniform 64-bit words of shape (polynomials, degree + 1).

        Their residues are uniform up to 2^-61, which is felt by accuracy alone.
        """
        return cls(_fold(words.astype(np.uint64)))

    def __len__(self) -> int:
        return len(self._coefficients)

    def values(self, points: Words) -> Words:
        """Return the values at fingerprints (any uint64), shape (points, polynomials)."""
        x = _fold(points.astype(np.uint64))[:, None]
        total = np.broadcast_to(self._coefficients[:, 0], (len(points), len(self))).copy()
        for column in self._coefficients.T[1:]:
            total = _fold(multiply(total, np.broadcast_to(x, total.shape)) + column)
        return total

    def signs(self, points: Words, *, rows: int) -> np.ndarray[Any, np.dtype[np.int8]]:
        """Return +1 or -1 for the first ``rows`` bits of the values, shape (points, rows)."""
        values = self.values(points)
        shifts = np.arange(ROWS_PER_VALUE, dtype=np.uint64)
        bits = ((values[:, :, None] >> shifts) & np.uint64(1)).astype(np.int8)
        return (1 - 2 * bits.reshape(len(points), -1)[:, :rows]).astype(np.int8)
