"""The certificate of a right factor alone: bounds on the exact L = T R^-1 from an approximate one.

Source: Improved Error Bounds for Pure Differentially Private Continual Counting via Matrix Factorization,
Lemma 2.6. It serves matrices R that were published without an exact left factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.lift.checks import integer, numeric_array
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import CertificateError, ParameterError
from trilift.lift.stage import lower_ones
from trilift.verify.enclosures import kappa_up, sqrt_up
from trilift.verify.exact import product

__all__ = ["RightFactorBounds", "certify_right_factor"]


@dataclass(frozen=True)
class RightFactorBounds:
    """Rational upper bounds for R and the exact L = T_k R^-1.

    Attributes:
        R: the exact matrix that the bounds are about (the given one, rounded), shape (k, k).
        sensitivity: the largest l1 norm of a column of R (exact).
        row_norm: bound of the largest l2 norm of a row of L.
        frobenius: bound of the Frobenius norm of L.
        correction: bound of the Frobenius norm of L minus the approximate left factor.
        kappa_max: float >= 2 row_norm^2 sensitivity^2 / log2(k)^3.
        kappa_mean: float >= 2 frobenius^2 sensitivity^2 / (k log2(k)^3).
    """

    R: Dyadic
    sensitivity: Fraction
    row_norm: Fraction
    frobenius: Fraction
    correction: Fraction
    kappa_max: float
    kappa_mean: float


def certify_right_factor(R: Any, *, places: int = 32) -> RightFactorBounds:
    """Bound the norms of a factorisation T_k = L R given R only, in exact arithmetic.

    With an approximate left factor L~ and D = L~ R - T, the exact one is L = T (I + T^-1 D)^-1 T^-1 L~, so
    |L - L~|_F <= |T|_F |T^-1 L~|_F q / (1 - q) as soon as q = |T^-1 D|_F < 1, which also proves R invertible.

    Args:
        R: shape (k, k), k >= 2: floats, rounded to ``places`` binary places, or a Dyadic, taken as it is.
        places: binary places of R and of the approximate left factor.

    Raises:
        ParameterError: R is not square, or singular in floating point.
        CertificateError: q < 1 could not be proved.

    >>> certify_right_factor(np.eye(4)).sensitivity
    Fraction(1, 1)
    """
    integer("places", places, minimum=1, maximum=512)
    exact = R if isinstance(R, Dyadic) else Dyadic.round(numeric_array("R", R, ndim=2), places)
    if exact.ndim != 2 or exact.shape[0] != exact.shape[1] or exact.shape[0] < 2:
        raise ParameterError(f"R must be a square matrix of size at least 2, got shape {exact.shape}")
    k = exact.shape[0]
    L = Dyadic.round(_approximate(exact), places)
    defect = product(L, exact) - lower_ones(k)
    q = sqrt_up(_frobenius_sq(_differences(defect)))
    if q >= 1:
        raise CertificateError(f"|T^-1 (L R - T)|_F < 1 could not be proved: the bound is {float(q):.6g}")
    of_T = sqrt_up(Fraction(k * (k + 1), 2))
    correction = of_T * sqrt_up(_frobenius_sq(_differences(L))) * q / (1 - q)
    row_norm = sqrt_up((L * L).sum(axis=1).max()) + correction
    frobenius = sqrt_up(_frobenius_sq(L)) + correction
    sensitivity = exact.abs_sum(axis=0).max()
    return RightFactorBounds(
        R=exact,
        sensitivity=sensitivity,
        row_norm=row_norm,
        frobenius=frobenius,
        correction=correction,
        kappa_max=kappa_up(row_norm**2, sensitivity=sensitivity, size=k),
        kappa_mean=kappa_up(frobenius**2 / k, sensitivity=sensitivity, size=k),
    )


def _approximate(R: Dyadic) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        inverse = np.linalg.inv(R.to_float())
    except np.linalg.LinAlgError:
        raise ParameterError("R is singular") from None
    L = np.asarray(np.cumsum(inverse, axis=0), dtype=np.float64)
    if not np.isfinite(L).all():
        raise ParameterError("R is singular in floating point")
    return L


def _differences(values: Dyadic) -> Dyadic:
    """Return T^-1 values: every row minus the row before it."""
    return Dyadic.concatenate([values[:1], values[1:] - values[:-1]])


def _frobenius_sq(values: Dyadic) -> Fraction:
    return (values * values).sum().fraction()
