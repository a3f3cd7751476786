"""Completion: from a float matrix to a stage that holds exactly (new).

B, v, g, w and A are rounded to binary places one after the other, each recomputed for those before it. What
the rounding leaves over, D = T_m - w (1 - v)^T - A B and rho = v - B^T g, becomes rows of its own: with

    B' = [B; 2^e D; 2^f rho^T],   A' = [A | 2^-e I | 0],   g' = [g; 0; 2^-f]

A' B' + w (1 - v)^T = T_m and B'^T g' = v hold exactly. The extra rows cost a relative 1e-5 or less.

B may have more rows than columns. Its pseudo-inverse B^+ (B^+ B = I) then stands wherever a square B has its
inverse: L = T_m B^+, g = (B^+)^T v, and a residual D is taken off A by adding D B^+.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.lift.chain import NORMS
from trilift.lift.checks import choice, flag, integer, numeric_array
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.stage import FloatArray, Stage, lower_ones
from trilift.verify.coarse import coarse_weights

__all__ = ["COMPACT", "DEFAULT", "Bits", "best_stage", "complete", "loss"]

_REFINEMENTS = 4
_SHIFTS = range(25)  # candidates for e and f


@dataclass(frozen=True)
class Bits:
    """Binary places of the parts of a completed stage.

    Attributes:
        B: of B's searched rows.
        A: of A's searched columns.
        g: of g's searched entries.
        v: of v (coarse: it refines the lattice of every level above).
        w: of w.
        defect: e, the exponent by which D is scaled up; None takes the one with the least cost.
        rho: f, likewise for rho.
    """

    B: int = 20
    A: int = 32
    g: int = 32
    v: int = 10
    w: int = 12
    defect: int | None = None
    rho: int | None = None

    def __post_init__(self) -> None:
        for name in ("B", "A", "g", "v", "w"):
            integer(f"bits.{name}", getattr(self, name), minimum=1, maximum=200)
        for name in ("defect", "rho"):
            if getattr(self, name) is not None:
                integer(f"bits.{name}", getattr(self, name), minimum=0, maximum=200)


DEFAULT = Bits()
COMPACT = Bits(B=16, A=26, g=26, v=8, w=12, defect=6, rho=6)


def best_stage(B: Any, *, g: Any = None, plain: bool = False) -> Stage:
    """Return the float stage of B and g with the w that makes every q_i least.

    L = T_m B^+ (for a square B the inverse), d = (last row of L) - g, A = L - w d^T,
    w_i = (L_i . d + |g|^2) / (|d|^2 + |g|^2) clipped into [0, 1].

    Args:
        B: shape (r, m), r >= m, of full column rank.
        g: shape (r,); of those with the same v = B^T g the shortest is taken. None is g = 0, a one-sided
            stage.
        plain: take w = 0 (with g = 0: a plain factorisation of T_m).

    Raises:
        ParameterError: B is wide or not of full column rank, g does not fit, NaN or infinities.
    """
    B = _tall(B)
    r, m = B.shape
    inverse = _inverse(B)
    g = np.zeros(r) if g is None else _vector("g", g, r)
    if r > m:
        g = (g @ B) @ inverse
    L = np.cumsum(inverse, axis=0)
    d = L[-1] - g
    w = np.zeros(m) if flag("plain", plain) else _best_w(L, d, g)
    return Stage(L - np.outer(w, d), B, w, g)


def complete(
    B: Any,
    *,
    g: Any = None,
    w: Any = None,
    bits: Bits = DEFAULT,
    plain: bool = False,
    objective: str | None = None,
    norm: str = "l1",
) -> Stage:
    """Complete a float matrix to an exact stage with T_m = A B + w (1 - v)^T.

    Args:
        B: shape (r, m), r >= m, of full column rank, its columns scaled to l1 norms of about 1 (places are
            absolute).
        g: shape (r,); v = B^T g is clipped into [0, 1]. None: a one-sided stage or a plain factorisation.
        w: shape (m,), clipped into [0, 1]; None takes the best w.
        bits: binary places.
        plain: w = 0 and g = 0: a plain factorisation of T_m ("direct").
        objective: "max" or "mean": v is rounded to the lattice point that suits it; None: to the nearest.
        norm: "l1" or "l2": of the columns, for the choice of the exponents that the bits leave open.

    Returns:
        An exact stage of size m whose first r rows of B are ``B`` rounded.

    Raises:
        ParameterError: shapes that do not fit, NaN, a B that is singular, lacking full column rank (also
            after rounding).
    """
    B_given = _tall(B)
    r, m = B_given.shape
    if objective is not None:
        choice("objective", objective, ("max", "mean"))
    choice("norm", norm, NORMS)
    if flag("plain", plain) and (g is not None or w is not None):
        raise ParameterError("a plain factorisation has no g and no w")
    exact_B = Dyadic.round(B_given, bits.B)
    inverse = _inverse(exact_B.to_float())
    v = np.zeros(m) if g is None else np.clip(B_given.T @ _vector("g", g, r), 0.0, 1.0)
    if objective is not None and g is not None:
        v = coarse_weights(v, inverse, places=bits.v, objective=objective)
    exact_v = Dyadic.round(v, bits.v)
    exact_g = _solve_left(exact_v[None, :], exact_B, inverse, bits.g)[0]  # g^T B = v^T
    g_float = exact_g.to_float()
    if plain:
        exact_w = Dyadic.zeros(m)
    elif w is None:
        L = np.cumsum(inverse, axis=0)
        exact_w = Dyadic.round(_best_w(L, L[-1] - g_float, g_float), bits.w)
    else:
        exact_w = Dyadic.round(np.clip(_vector("w", w, m), 0.0, 1.0), bits.w)
    ones = Dyadic(np.ones(m, dtype=np.int64))
    target = Dyadic(lower_ones(m)) - exact_w[:, None] * (ones - exact_v)[None, :]
    exact_A = _solve_left(target, exact_B, inverse, bits.A)
    rounded = Stage(exact_A, exact_B, exact_w, exact_g)
    defect, rho = target - exact_A @ exact_B, exact_v - exact_B.T @ exact_g
    return _with_rest(rounded, defect, rho, _shifts(rounded, defect, rho, bits, norm))


def loss(stage: Stage, reference: Stage, *, objective: str, norm: str = "l1") -> float:
    """Return the relative loss in kappa of a completed stage against the float stage it came from.

    Under norm "l2" it is the loss in gamma^2.

    Args:
        stage: the completed stage.
        reference: the stage before completion, of the same size.
        objective: "max" or "mean".
        norm: "l1" or "l2".

    Raises:
        ParameterError: another objective or norm.
    """
    choice("objective", objective, ("max", "mean"))
    if choice("norm", norm, NORMS) == "l2":
        return (stage.gamma(objective) / reference.gamma(objective)) ** 2 - 1.0
    return (stage.cost_third(objective) / reference.cost_third(objective)) ** 3 - 1.0


def _tall(B: Any) -> FloatArray:
    array = numeric_array("B", B, ndim=2).astype(np.float64)
    if array.shape[0] < array.shape[1] or not array.size:
        raise ParameterError(f"B must have at least as many rows as columns, got shape {array.shape}")
    return array


def _vector(name: str, values: Any, size: int) -> FloatArray:
    array = numeric_array(name, values, ndim=1).astype(np.float64)
    if len(array) != size:
        raise ParameterError(f"{name} must have {size} entries, got {len(array)}")
    return array


def _inverse(B: FloatArray) -> FloatArray:
    """Return the inverse of a square B, or the pseudo-inverse of one with more rows, shape (m, r)."""
    square = B.shape[0] == B.shape[1]
    try:
        if square:
            inverse = np.asarray(np.linalg.inv(B), dtype=np.float64)
        else:
            Q, R = np.linalg.qr(B)
            inverse = np.asarray(np.linalg.solve(R, Q.T), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise ParameterError("B is singular (to the binary places asked for)") from None
    unit = B @ inverse if square else inverse @ B
    if not np.isfinite(inverse).all() or np.abs(unit - np.eye(len(unit))).max() > 1e-2:
        raise ParameterError("B is too close to singular for float64")
    return inverse


def _best_w(L: FloatArray, d: FloatArray, g: FloatArray) -> FloatArray:
    norm = d @ d + g @ g
    return np.clip((L @ d + g @ g) / norm, 0.0, 1.0) if norm > 0 else np.zeros(len(L))


def _solve_left(target: Dyadic, B: Dyadic, inverse: FloatArray, places: int) -> Dyadic:
    """Return X, rounded to ``places``, with X B = target as nearly as the rounding allows.

    Each round corrects by the exact residual, so the float inverse only has to contract.
    """
    best = Dyadic.round(target.to_float() @ inverse, places)
    rest = target - best @ B
    for _ in range(_REFINEMENTS):
        step = Dyadic.round(best + Dyadic.exact(rest.to_float() @ inverse), places)
        left = target - step @ B
        if abs(left).max() >= abs(rest).max():
            break
        best, rest = step, left
    return best


def _with_rest(rounded: Stage, defect: Dyadic, rho: Dyadic, shifts: tuple[int, int]) -> Stage:
    """Add the rows that make the rounded stage exact, leaving out those that are zero."""
    m = rounded.size
    e, f = shifts
    kept = np.flatnonzero(np.any(defect.num != 0, axis=1))
    A, B, g = [rounded.A], [rounded.B], [rounded.g]
    if kept.size:
        A.append(Dyadic(np.eye(m, dtype=np.int64)[:, kept], e))
        B.append(defect[kept].scaled(e))
        g.append(Dyadic.zeros(len(kept)))
    if np.any(rho.num):
        A.append(Dyadic.zeros((m, 1)))
        B.append(rho[None, :].scaled(f))
        g.append(Dyadic([1], f))
    parts = (Dyadic.concatenate(A, axis=1), Dyadic.concatenate(B), rounded.w, Dyadic.concatenate(g))
    return Stage(*(part.normalized() for part in parts))


def _shifts(rounded: Stage, defect: Dyadic, rho: Dyadic, bits: Bits, norm: str) -> tuple[int, int]:
    """Return e and f: those asked for, or those with the least (mean q) b^2."""
    power = 1 if norm == "l1" else 2
    columns = (rounded.column_norms() if norm == "l1" else rounded.column_norms_sq()).to_float()
    extra, single = (abs(defect).to_float() ** power).sum(axis=0), abs(rho).to_float() ** power
    q = rounded.row_norms_sq().to_float().mean()
    weight = float(((1.0 - rounded.w.to_float()) ** 2).mean())

    def cost(e: int, f: int) -> float:
        b = (columns + 2.0 ** (power * e) * extra + 2.0 ** (power * f) * single).max()
        more = (4.0**-e if extra.any() else 0.0) + (weight * 4.0**-f if single.any() else 0.0)
        return float((b * b if norm == "l1" else b) * (q + more))

    candidates_e = _SHIFTS if bits.defect is None else [bits.defect]
    candidates_f = _SHIFTS if bits.rho is None else [bits.rho]
    return min(((e, f) for e in candidates_e for f in candidates_f), key=lambda pair: cost(*pair))
