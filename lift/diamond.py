"""The paper's lift: (A, B) diamond (C, D) factors T_{2kn+n+k} (paper section 2).

It is given as matrices, in the paper's own block order, and as a one-sided stage of size 2n+1 with
w = (0, ..., 0, 1, ..., 1), whose n leading zeros are the tail: k (2n+1) + n = 2kn + n + k. The two agree up
to the order and the signs of the inner coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.checks import choice, finite, integer
from trilift.lift.dyadic import Dyadic
from trilift.lift.stage import Stage

__all__ = ["best_alpha", "diamond", "diamond_chain", "diamond_power", "diamond_stage"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
Pair = tuple[FloatArray, FloatArray]


def _reversed_parts(A: Any, B: Any) -> tuple[Any, Any]:
    """Return (A-bar, B-bar), with A-bar B-bar the strictly upper ones of size n+1."""
    if isinstance(A, Dyadic):
        bottom, left = Dyadic.zeros((1, A.shape[1])), Dyadic.zeros((B.shape[0], 1))
        return Dyadic.concatenate([A[::-1], bottom]), Dyadic.concatenate([left, B[:, ::-1]], axis=1)
    return (
        np.concatenate([A[::-1], np.zeros((1, A.shape[1]))]),
        np.concatenate([np.zeros((len(B), 1)), B[:, ::-1]], axis=1),
    )


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
    left: Any
    right: Any
    w = np.concatenate([np.zeros(n, dtype=np.int64), np.ones(n + 1, dtype=np.int64)])
    if base.is_exact:
        upper = Dyadic.concatenate([A, Dyadic.zeros((n, r))], axis=1)
        lower = Dyadic.concatenate([Dyadic.zeros((n + 1, r)), -A_bar], axis=1)
        first = Dyadic.concatenate([B, Dyadic.zeros((r, n + 1))], axis=1)
        second = Dyadic.concatenate([Dyadic.zeros((r, n)), B_bar], axis=1)
        left, right = Dyadic.concatenate([upper, lower]), Dyadic.concatenate([first, second])
        return Stage(left, right, Dyadic(w), Dyadic.zeros(2 * r))
    left = np.block([[A, np.zeros((n, r))], [np.zeros((n + 1, r)), -A_bar]])
    right = np.block([[B, np.zeros((r, n + 1))], [np.zeros((r, n)), B_bar]])
    return Stage(left, right, w.astype(np.float64), np.zeros(2 * r))


def diamond_chain(base: Stage, power: int) -> Chain:
    """Return the p-fold diamond of a plain factorisation as a chain of capacity ((2k+1)^p - 1)/2.

    Unlike the matrices, the chain has a noise scale a level of its own choice in place of alpha.
    """
    count = integer("power", power, minimum=1)
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
        first: (A, B) with A B = T_n, shapes (n, r) and (r, n).
        second: (C, D) with C D = T_k, shapes (k, s) and (s, k).
        alpha: > 0; weighs the coarse part.

    Returns:
        L of shape (N, (2k+1) r + s) and R of shape ((2k+1) r + s, N), N = 2kn + n + k.
    """
    A, B, C, D = *first, *second
    weight = finite("alpha", alpha, above=0)
    n, k = len(A), len(C)
    A_bar, B_bar = _reversed_parts(A, B)
    lefts = [A, -A_bar] * k + [A]
    rights = [B, B_bar] * k + [B]
    coarse_L = np.concatenate([np.zeros((n, C.shape[1])), weight * np.repeat(C, 2 * n + 1, axis=0)])
    coarse_R = np.concatenate([np.repeat(D, 2 * n + 1, axis=1) / weight, np.zeros((len(D), n))], axis=1)
    L = np.concatenate([_block_diagonal(lefts), coarse_L], axis=1)
    R = np.concatenate([_block_diagonal(rights), coarse_R])
    return L, R


def _block_diagonal(blocks: list[FloatArray]) -> FloatArray:
    out = np.zeros((sum(len(b) for b in blocks), sum(b.shape[1] for b in blocks)))
    row = column = 0
    for block in blocks:
        out[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + len(block), column + block.shape[1]
    return out


def diamond_power(base: Pair, power: int, *, objective: str, steps: int | None = None) -> Pair:
    """Return the p-fold diamond of (A, B), taken left to right with the best alpha each time.

    Args:
        base: (A, B) with A B = T_k.
        power: p >= 1; the size is ((2k+1)^p - 1)/2.
        objective: "max" or "mean", for alpha.
        steps: keep the first ``steps`` rows of L and columns of R only (truncation keeps both bounds).
    """
    L, R = base
    for _ in range(integer("power", power, minimum=1) - 1):
        L, R = diamond((L, R), base, alpha=best_alpha((L, R), base, objective=objective))
    n = len(L) if steps is None else integer("steps", steps, minimum=1, maximum=len(L))
    return L[:n], R[:, :n]
