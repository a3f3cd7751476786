"""The paper's lift: (A, B) diamond (C, D) factors T_{2kn+n+k} (paper section 2).

It is given as matrices, in the paper's own block order, and as a one-sided stage of size 2n+1 with
w = (0, ..., 0, 1, ..., 1), whose n leading zeros are the tail: k (2n+1) + n = 2kn + n + k. The two agree up
to the order and the signs of the inner coordinates.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.checks import choice, fail, finite, integer
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage

__all__ = ["best_alpha", "diamond", "diamond_chain", "diamond_power", "diamond_stage"]

_LEAST = 2.0**-256  # beyond, products overflow
_LARGEST = 1 << 14  # rows of a matrix: 2 GiB
_MOST_LEVELS = 4096

Matrix = Any
"""A float64 array or a Dyadic matrix."""
Pair = tuple[Matrix, Matrix]


def _join(parts: list[Matrix], axis: int) -> Matrix:
    return Dyadic.concatenate(parts, axis) if isinstance(parts[0], Dyadic) else np.concatenate(parts, axis)


def _zeros(rows: int, columns: int, like: Matrix) -> Matrix:
    return Dyadic.zeros((rows, columns)) if isinstance(like, Dyadic) else np.zeros((rows, columns))


def _reversed_parts(A: Matrix, B: Matrix) -> Pair:
    """Return (A-bar, B-bar), with A-bar B-bar the strictly upper ones of size n+1."""
    A_bar = _join([A[::-1], _zeros(1, A.shape[1], A)], 0)
    return A_bar, _join([_zeros(B.shape[0], 1, B), B[:, ::-1]], 1)


def _block_diagonal(blocks: list[Matrix]) -> Matrix:
    total = sum(block.shape[1] for block in blocks)
    bands, before = [], 0
    for block in blocks:
        rows, columns = block.shape
        left, right = _zeros(rows, before, block), _zeros(rows, total - before - columns, block)
        bands.append(_join([left, block, right], 1))
        before += columns
    return _join(bands, 0)


def diamond_stage(base: Stage) -> Stage:
    """Return the diamond of a plain factorisation A B = T_n as a one-sided stage of size 2n+1.

    Args:
        base: plain stage of size n, exact or float (the result is of the same kind).

    Raises:
        ParameterError: a base that is not plain (through the checks of Chain).
    """
    Chain(base)  # refuses what is not a plain factorisation
    A, B, n, r = base.A, base.B, base.size, base.inner
    A_bar, B_bar = _reversed_parts(A, B)
    w = np.concatenate([np.zeros(n, dtype=np.int64), np.ones(n + 1, dtype=np.int64)])
    left, right = _block_diagonal([A, -A_bar]), _block_diagonal([B, B_bar])
    if base.is_exact:
        return Stage(left, right, Dyadic(w), Dyadic.zeros(2 * r))
    return Stage(left, right, w.astype(np.float64), np.zeros(2 * r))


def diamond_chain(base: Stage, power: int) -> Chain:
    """Return the p-fold diamond of a plain factorisation as a chain of capacity ((2k+1)^p - 1)/2.

    Unlike the matrices, the chain has a noise scale a level of its own choice in place of alpha.
    """
    count = integer("power", power, minimum=1, maximum=_MOST_LEVELS)
    return Chain(base, [diamond_stage(base)] * (count - 1))


def best_alpha(first: Pair, second: Pair, *, objective: str) -> float:
    """Return the alpha that minimises the bound on the cost of the diamond.

    alpha^3 = |A|^2 ||D|| / (|C|^2 ||B||), with |.|^2 the largest or the mean squared row norm.
    """
    A, B, C, D = *first, *second
    pick = np.max if choice("objective", objective, ("max", "mean")) == "max" else np.mean
    a, c = pick((A**2).sum(axis=1)), pick((C**2).sum(axis=1))
    b, d = np.abs(B).sum(axis=0).max(), np.abs(D).sum(axis=0).max()
    return float((a * d / (c * b)) ** (1 / 3))


def diamond(first: Pair, second: Pair, *, alpha: float) -> Pair:
    """Return (L, R) = (A, B) diamond_alpha (C, D), with L R = T_{2kn+n+k} (paper section 2).

    Args:
        first: (A, B) with A B = T_n, shapes (n, r) and (r, n), float64 or Dyadic.
        second: (C, D) with C D = T_k, shapes (k, s) and (s, k), of the same kind.
        alpha: > 0; weighs the coarse part. A power of two for Dyadic matrices, so that L R = T exactly.

    Returns:
        L of shape (N, (2k+1) r + s) and R of shape ((2k+1) r + s, N), N = 2kn + n + k.

    Raises:
        ParameterError: an alpha that is not usable.

    >>> L, R = diamond((Dyadic([[1]]), Dyadic([[1]])), (Dyadic([[1]]), Dyadic([[1]])), alpha=2.0)
    >>> (L @ R).to_float().tolist()
    [[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]
    """
    A, B, C, D = *first, *second
    up, down = _weights(alpha, exact=isinstance(A, Dyadic))
    n, k = A.shape[0], C.shape[0]
    A_bar, B_bar = _reversed_parts(A, B)
    repeated = np.repeat(np.arange(k), 2 * n + 1)
    coarse_L = _join([_zeros(n, C.shape[1], C), C[repeated] * up], 0)
    coarse_R = _join([D[:, repeated] * down, _zeros(D.shape[0], n, D)], 1)
    L = _join([_block_diagonal([A, -A_bar] * k + [A]), coarse_L], 1)
    R = _join([_block_diagonal([B, B_bar] * k + [B]), coarse_R], 0)
    return L, R


def _weights(alpha: float, *, exact: bool) -> tuple[Any, Any]:
    """Return alpha and 1 / alpha as what the matrices are multiplied by."""
    weight = finite("alpha", alpha, above=0)
    if not _LEAST <= weight <= 1 / _LEAST:
        raise fail("alpha", f"between {_LEAST:g} and {1 / _LEAST:g}", alpha)
    if not exact:
        return weight, 1.0 / weight
    power = int(np.frexp(weight)[1]) - 1
    if weight != 2.0**power:
        raise ParameterError(f"alpha must be a power of two for exact matrices, got {weight}")
    return Dyadic([1]).scaled(power), Dyadic([1]).scaled(-power)


def diamond_power(base: Pair, power: int, *, objective: str, steps: int | None = None) -> Pair:
    """Return the p-fold diamond of (A, B), taken left to right with the best alpha each time.

    Args:
        base: (A, B) with A B = T_k, float64.
        power: p >= 1; the size is ((2k+1)^p - 1)/2.
        objective: "max" or "mean", for alpha.
        steps: keep the first ``steps`` rows of L and columns of R only (truncation keeps both bounds).
    """
    L, R = base
    count = integer("power", power, minimum=1)
    choice("objective", objective, ("max", "mean"))
    if min(count, _MOST_LEVELS) * math.log2(2 * len(L) + 1) > math.log2(2 * _LARGEST + 1):
        raise fail("power", f"such that the size stays below {_LARGEST}", power)
    for _ in range(count - 1):
        L, R = diamond((L, R), base, alpha=best_alpha((L, R), base, objective=objective))
    n = len(L) if steps is None else integer("steps", steps, minimum=1, maximum=len(L))
    return L[:n], R[:, :n]
