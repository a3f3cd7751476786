"""Somebody else's factors: what a right factor proves by itself, and certified artifacts made of them (new).

Factors are taken up to a power of two between L and R, which changes no kappa: R is brought to a largest
column l1 norm in (1/2, 1], because roundings here are to fixed binary places.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.artifacts.artifact import Artifact, Provenance
from trilift.artifacts.certificate import KINDS
from trilift.lift.checks import choice, numeric_array
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import CertificateError, ParameterError
from trilift.lift.stage import FloatArray, Stage, lower_ones
from trilift.verify.build import from_search
from trilift.verify.certification import certify
from trilift.verify.completion import best_stage
from trilift.verify.enclosures import float_up, kappa_up
from trilift.verify.right_factor import certify_right_factor

__all__ = ["from_factors", "right_factor_record"]

TOLERANCE = 1e-3
"""Largest entry of L R - T in a pair that is still taken for a rounded factorisation."""

_EXACT_PLACES = 64


def right_factor_record(R: Any) -> dict[str, Any]:
    """Return what a square right factor alone proves about T_k = L R, as ``trilift certify R.npy`` prints it.

    Source of the bounds: :func:`trilift.verify.certify_right_factor`. The lifted kappas are those of the
    paper's repeated lift of T_k, 2 C^2 / log2(2k+1)^3.

    Args:
        R: shape (k, k), k >= 2, floats.

    Raises:
        ParameterError: not a square matrix of finite numbers, or singular in floating point.
        CertificateError: the bounds could not be proved.

    >>> record = right_factor_record(np.eye(2))
    >>> record["sensitivity"], record["kappa_direct_max"] >= 4.0
    ('1/1', True)
    """
    scaled, power = _normalised(R)
    bounds = certify_right_factor(scaled)
    unit = Fraction(2) ** power
    k = len(scaled)
    b, row = bounds.sensitivity, bounds.row_norm**2
    mean = bounds.frobenius**2 / k
    rounding = abs(bounds.R - Dyadic.exact(scaled)).max()
    sensitivity = b * unit
    return {
        "kind": "right-factor",
        "size": k,
        "sensitivity": f"{sensitivity.numerator}/{sensitivity.denominator}",
        "row_norm": float_up(bounds.row_norm / unit),
        "frobenius": float_up(bounds.frobenius / unit),
        "correction": float_up(bounds.correction / unit),
        "rounding": float_up(rounding * unit),
        "kappa_direct_max": bounds.kappa_max,
        "kappa_direct_mean": bounds.kappa_mean,
        "kappa_lifted_max": kappa_up(row, sensitivity=b, size=2 * k + 1),
        "kappa_lifted_mean": kappa_up(mean, sensitivity=b, size=2 * k + 1),
    }


def from_factors(
    R: Any, *, left: Any = None, objective: str = "max", kind: str = "direct", provenance: Provenance
) -> Artifact:
    """Make a certified artifact of a right factor of T_k, or of a pair.

    A pair of short binary numbers whose product is exactly T_k is taken as it is. Otherwise the left factor
    is found anew, as T_k R^+, and the pair's own one only has to fit.

    Args:
        R: shape (r, k), r >= k, of full column rank.
        left: None, or L of shape (k, r).
        objective: "max" or "mean" (recorded; it decides between roundings).
        kind: "direct", a plain factorisation of T_k, or "stage", the best one-sided stage with this R.
        provenance: where the factors come from.

    Raises:
        ParameterError: shapes that do not fit, NaN, or an R that is not of full column rank.
        CertificateError: L R is not T_k, or completion lost more than a relative 1e-4 in kappa.

    >>> source = Provenance("max", 2, method="by hand")
    >>> from_factors(np.eye(2), provenance=source).name
    'direct-max-2'
    """
    choice("kind", kind, KINDS)
    scaled, power = _normalised(R)
    if left is not None:
        L = _left(left, scaled.shape)
        _check_product(L, scaled, power)
        if kind == "direct":
            exact = _exact(L, np.ldexp(scaled, power), objective, provenance)
            if exact is not None:
                return exact
    stage = best_stage(scaled, plain=kind == "direct")
    return from_search(stage, objective=objective, provenance=provenance)


def _normalised(R: Any) -> tuple[FloatArray, int]:
    """Return R 2^-p with a largest column l1 norm in (1/2, 1], and p."""
    array = numeric_array("R", R, ndim=2).astype(np.float64)
    with np.errstate(over="ignore"):
        widest = float(np.abs(array).sum(axis=0).max(initial=0.0))
    if not 0.0 < widest < math.inf:
        raise ParameterError(f"R must have a finite largest column l1 norm > 0, got {widest}")
    mantissa, power = math.frexp(widest)
    power -= mantissa == 0.5  # a power of two itself comes to 1
    return np.ldexp(array, -power), power


def _left(left: Any, shape: tuple[int, ...]) -> FloatArray:
    L = numeric_array("L", left, ndim=2).astype(np.float64)
    if L.shape != shape[::-1]:
        raise ParameterError(f"L must have the shape {shape[::-1]}, since R has {shape}, got {L.shape}")
    return L


def _check_product(L: FloatArray, R: FloatArray, power: int) -> None:
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is no factorisation
        defect = np.abs(np.ldexp(L, power) @ R - lower_ones(len(L)))
    if not defect.max() <= TOLERANCE:  # NaN too
        i, j = (int(x) for x in np.unravel_index(int(defect.argmax()), defect.shape))
        raise CertificateError(f"L R = T fails at ({i}, {j}): off by {defect[i, j]:.3g}")


def _exact(L: FloatArray, R: FloatArray, objective: str, provenance: Provenance) -> Artifact | None:
    """Return the pair as it is where its product is exactly T; None where it is not, or is hard to tell."""
    parts = [Dyadic.exact(L).normalized(), Dyadic.exact(R).normalized()]
    if any(part.num.dtype == object or part.exp > _EXACT_PLACES for part in parts):
        return None
    stage = Stage.plain(*parts)
    try:
        return Artifact(stage, certify(stage, objective=objective, kind="direct"), provenance)
    except CertificateError:
        return None
