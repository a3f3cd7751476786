"""The Toeplitz square root with dyadic entries: R~ on a lattice, and L = T R~^-1 to any precision (new).

The square root of the matrix T of prefix sums (all ones on and below the diagonal) has the coefficients
r_0 = 1, r_k = r_(k-1) (1 - 1/(2k)) of (1 - x)^(-1/2) down its columns, and serves as both factors of T
(Fichtenberger, Henzinger, Upadhyay 2023; Henzinger, Kalinin, Upadhyay 2025). Exact r_k need 2k bits, so R is
rounded to the lattice 2^-p, p = 32, and the other factor is what makes the product exact again:

    R~ = Toeplitz matrix of c_k / 2^p,    c_0 = 2^p,    L = T R~^-1,    hence L R~ = T.

**Rounding keeps the shape.** Not c_k is rounded but its decrements d_k = c_k - c_(k+1) = 2^p r_k / (2k + 2):
rounding is monotone, so the integers d_0 >= d_1 >= ... >= 0 keep their order, and c is decreasing and convex
by construction; that it is positive up to the largest size is checked. Consequences, for the columns R_i of
any R~ with rows 1..n: the inner product of R_i and R_j, i <= j, is sum_k c_(k+j-i) c_k over k = 0..n-j. It is
positive, decreases when j - i grows with j fixed (c decreases) and when j grows with i fixed (fewer and
smaller terms): what the coupling lemma of edit-neighbouring streams asks for. The longest column is the
first, and its squared norm is an exact integer over 2^(2p).

**Why p = 32.** The squared norm of R~ and those of the rows of L = R - E + R (R^-1 E)^2 - ..., E = R~ - R,
stay within a relative 2e-6 of those of R for all sizes to 10^5, within 1e-4 to 2^20, and their product, which
is what an error is made of, much closer. More places would only cost the sampler, which draws integers on
this lattice.

**L.** Its coefficients l are those of 1 / f, f = (1 - x) c(x) / 2^p, and have p bits more in every row. They
are taken as integers g over 2^bits, from Newton's iteration, and proved afterwards: e = 1 - f g mod x^n is
computed exactly, and l = g + l e, since l f = 1. So for any input z, with N = l * z and M = g * z,

    N = M + e * N,    max over s <= t of |N_s - M_s|  <=  |e|_1 / (1 - |e|_1) * max over s <= t of |M_s|.

Nothing is assumed of how g was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from trilift.lift.checks import fail, integer
from trilift.lift.errors import ParameterError, StateError

__all__ = [
    "MAX_SIZE",
    "ROOT_PLACES",
    "LeftFactor",
    "check_shape",
    "left_exact",
    "left_factor",
    "left_floats",
    "left_row_norms_sq",
    "root_norm_sq",
    "toeplitz_root",
]

IntArray = np.ndarray[Any, np.dtype[np.int64]]
FloatArray = np.ndarray[Any, np.dtype[np.float64]]

ROOT_PLACES = 32
"""p: the entries of R~ are multiples of 2^-p."""

MAX_SIZE = 1 << 20
"""Most steps: there the smallest entry is still 2^20 lattice steps."""

MAX_EXACT = 512
_GUARD = 96  # bits of r_k below the lattice, while decrements are rounded
_FLOAT_BITS = 96
_ITERATIONS = 24


def toeplitz_root(size: int) -> IntArray:
    """Return c_0, ..., c_(size-1): the first column of R~ in units of 2^-32, read-only int64.

    The first entries do not depend on the size.

    Raises:
        ParameterError: not an integer from 1 to 2^20.

    >>> [float(c) / 2**ROOT_PLACES for c in toeplitz_root(4)]
    [1.0, 0.5, 0.375, 0.3125]
    """
    n = integer("size", size, minimum=1, maximum=MAX_SIZE)
    view = _root((n - 1).bit_length())[:n]
    view.flags.writeable = False
    return view


@lru_cache(maxsize=4)
def _root(log_size: int) -> IntArray:
    """The root for 2^log_size steps. Its fixed-point r_k are rounded down, which keeps them in order."""
    count = 1 << log_size
    out = np.empty(count, dtype=np.int64)
    r, value, half = 1 << (ROOT_PLACES + _GUARD), 1 << ROOT_PLACES, 1 << (_GUARD - 1)
    for k in range(count):
        out[k] = value
        step = r // (2 * k + 2)  # r_k - r_(k+1); r falls and 2k + 2 rises, so the steps fall
        value -= (step + half) >> _GUARD
        r -= step
    check_shape(out)
    out.flags.writeable = False
    return out


def check_shape(column: IntArray) -> None:
    """Check that a column is unit, positive, decreasing (weakly) and convex, in integers.

    Args:
        column: c_0, c_1, ... in units of 2^-32.

    Raises:
        StateError: it is not, so that no bound about this factor may be used.
    """
    steps = column[:-1] - column[1:]
    if int(column[0]) != 1 << ROOT_PLACES or int(column.min()) <= 0:
        raise StateError("the column is not positive with a unit diagonal")
    if (steps < 0).any() or (steps[1:] > steps[:-1]).any():
        raise StateError("the column is not decreasing and convex")


@lru_cache(maxsize=256)
def root_norm_sq(size: int) -> Fraction:
    """Return the squared l2 norm of the longest column of R~, exactly.

    Raises:
        ParameterError: not an integer from 1 to 2^20.

    >>> root_norm_sq(2)
    Fraction(5, 4)
    """
    column: list[int] = toeplitz_root(size).tolist()
    return Fraction(sum(c * c for c in column), 1 << (2 * ROOT_PLACES))


def left_exact(size: int) -> list[Fraction]:
    """Return l_0, ..., l_(size-1), the first column of L = T R~^-1, exactly (about 32 bits more in each).

    Raises:
        ParameterError: not an integer from 1 to 512.

    >>> [str(l) for l in left_exact(4)]
    ['1', '1/2', '3/8', '5/16']
    """
    n = integer("size", size, minimum=1, maximum=MAX_EXACT)
    return [Fraction(value, 1 << (ROOT_PLACES * k)) for k, value in enumerate(_exact_numerators(n))]


def _exact_numerators(size: int) -> list[int]:
    """Return l_k 2^(p k): from f l = 1, f_j = (c_j - c_(j-1)) / 2^p, f_0 = 1."""
    column: list[int] = toeplitz_root(size).tolist()
    f = [b - a for a, b in pairwise(column)]
    values = [1]
    for k in range(1, size):
        total = 0
        for j in range(1, k + 1):
            # -f_j l_(k-j) over 2^p 2^(p (k-j)), brought to 2^(p k)
            total -= (f[j - 1] * values[k - j]) << (ROOT_PLACES * (j - 1))
        values.append(total)
    return values


@dataclass(frozen=True, repr=False)
class LeftFactor:
    """The first column of L, enclosed: l = g + l e with g as integers over 2^bits and |e|_1 <= residual.

    Attributes:
        size: number of coefficients n.
        bits: places of the numerators.
        numerators: g_0, ..., g_(n-1), integers; about bits + 1 bits each.
        residual: |e|_1 <= 2^-10, an exact rational.
    """

    size: int
    bits: int
    numerators: tuple[int, ...]
    residual: Fraction

    def __repr__(self) -> str:
        return f"LeftFactor(size={self.size}, bits={self.bits}, residual={float(self.residual):.3g})"

    def apply(self, z: list[int]) -> tuple[list[int], int]:
        """Return M = g * z for z_0, ..., z_(k-1), k <= size, over 2^bits times the lattice of z.

        Returns:
            (M, bound): |M_t - N_t| <= bound for all t < k, N = L z exactly, in the same units.

        Raises:
            ParameterError: more inputs than coefficients.

        >>> left_factor(4, bits=64).apply([2, 0, 0, 0])[0] == [2 << 64, 1 << 64, 3 << 62, 5 << 61]
        True
        """
        from flint import fmpz_poly

        k = len(z)
        if k > self.size:
            raise fail("inputs", f"at most {self.size}", k)
        product = fmpz_poly(list(self.numerators[:k])) * fmpz_poly(z)
        values = _coefficients(product, k)
        largest = max(map(abs, values), default=0)
        share = self.residual / (1 - self.residual) * largest
        return values, -(-share.numerator // share.denominator)


def left_factor(size: int, *, bits: int) -> LeftFactor:
    """Return the coefficients of L = T R~^-1 with this many places and a proved residual.

    With bits >= 32 (size - 1) the enclosure is exact: every l_k lies on the lattice, and the residual is 0.
    Time grows as n log n: 0.1 s for 10^4 and 1 to 2 s for 10^5 coefficients of 96 bits; kept for reuse.

    Args:
        size: from 1 to 2^20.
        bits: at least 64.

    Raises:
        ParameterError: arguments out of range.

    >>> factor = left_factor(1000, bits=96)
    >>> factor.residual < Fraction(1, 2**84), len(factor.numerators)
    (True, 1000)
    """
    n = integer("size", size, minimum=1, maximum=MAX_SIZE)
    places = integer("bits", bits, minimum=64)
    return _left_factor(n, places)


@lru_cache(maxsize=16)
def _left_factor(n: int, bits: int) -> LeftFactor:
    from flint import fmpz_poly

    column: list[int] = toeplitz_root(n).tolist()
    f = fmpz_poly([column[0], *(b - a for a, b in pairwise(column))])
    one, half = 1 << (ROOT_PLACES + bits), 1 << (ROOT_PLACES + bits - 1)
    g = best = _first_guess(column, bits)
    previous = one
    limit = (2 * n) << ROOT_PLACES  # 2^-bits in each: as good as these bits can be, unless L fits them
    representable = bits >= ROOT_PLACES * (n - 1)  # then rounding ends at l itself, with residual 0
    for _ in range(_ITERATIONS):
        errors = _coefficients(one - f * fmpz_poly(g), n)  # e, over 2^(p + bits)
        size = sum(map(abs, errors))
        if size < previous:
            previous, best = size, g
        if size == 0 or (size <= limit and not representable):
            break
        correction = _coefficients(fmpz_poly(errors) * fmpz_poly(g), n)
        g = [a + ((c + half) >> (ROOT_PLACES + bits)) for a, c in zip(g, correction, strict=True)]
    residual = Fraction(previous, one)
    if residual > Fraction(1, 1 << 10):
        raise StateError("Newton's iteration for the left factor did not converge")
    return LeftFactor(n, bits, tuple(best), residual)


def _first_guess(column: list[int], bits: int) -> list[int]:
    """Return 2 r - c: as L = R - E + R (R^-1 E)^2 - ..., it is off by the square of a small number only."""
    guess, r = [], 1 << (bits + 1)
    for k, c in enumerate(column):
        guess.append(r - (c << bits >> ROOT_PLACES))
        r -= r // (2 * k + 2)
    return guess


def _coefficients(poly: Any, count: int) -> list[int]:
    values = [int(x) for x in poly.coeffs()[:count]]
    return values + [0] * (count - len(values))


def left_floats(size: int) -> FloatArray:
    """Return l_0, ..., l_(size-1) as floats, read-only, each within absolute 2^-52 |l_k| + 2^-70.

    |l_k - g_k| <= |e|_1 max|l|, which the residual proves to be below 2^-71; the rest is one rounding.
    The squared norm of row t of L (0-based) is l_0^2 + ... + l_t^2.

    Raises:
        ParameterError: not an integer from 1 to 2^20.

    >>> left_floats(3)
    array([1.   , 0.5  , 0.375])
    """
    return _left_floats(integer("size", size, minimum=1, maximum=MAX_SIZE))


@lru_cache(maxsize=8)
def _left_floats(size: int) -> FloatArray:
    factor = left_factor(size, bits=_FLOAT_BITS)
    largest = Fraction(max(map(abs, factor.numerators)), 1 << _FLOAT_BITS)
    if factor.residual / (1 - factor.residual) * largest > Fraction(1, 1 << 71):
        raise ParameterError("the left factor is not known well enough at this size")
    scale = 1 << _FLOAT_BITS
    out = np.array([g / scale for g in factor.numerators], dtype=np.float64)  # correctly rounded divisions
    out.flags.writeable = False
    return out


def left_row_norms_sq(size: int) -> FloatArray:
    """Return the squared l2 norms of the rows of L, for steps 0..size-1: what noise of unit scale becomes.

    Raises:
        ParameterError: not an integer from 1 to 2^20.

    >>> left_row_norms_sq(2)
    array([1.  , 1.25])
    """
    return np.asarray(np.cumsum(left_floats(size) ** 2))
