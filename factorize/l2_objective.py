"""The l2 objective and its gradient, through G = B^T B alone (new).

Under the l2 norm of columns a stage depends on B only by G: the best A with A B = Y has squared row norms
Y_i G^-1 Y_i^T, the best g has |g|^2 = v^T G^-1 v, and the squared column norms are diag(G). So B may be taken
upper triangular, with columns of l2 norm 1. With S = G^-1, T the matrix of ones, Y = T - w (1 - v)^T,

    q_i = (Y S Y^T)_ii + (1 - w_i)^2 v^T S v,

which is jointly convex in (G, v) for given w: few local minima are met in practice. The objective is the log
of the power mean of q with exponent p (p = 1: the mean; p large: the maximum), and w is always the best one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack
from trilift.lift.stage import FloatArray

__all__ = ["Evaluation", "evaluate", "gradient"]


@dataclass(frozen=True)
class Evaluation:
    """The stage at a point, for B upper triangular with columns of l2 norm 1.

    Attributes:
        B: shape (m, m).
        S: (B^T B)^-1.
        C: T S, shape (m, m).
        v, w: the weights, shape (m,).
        q: squared row norms, shape (m,).
    """

    B: FloatArray
    S: FloatArray
    C: FloatArray
    v: FloatArray
    w: FloatArray
    q: FloatArray


def evaluate(U: FloatArray, v: FloatArray, *, plain: bool) -> Evaluation | None:
    """Return the stage at (U, v), B being U with columns scaled; None where B is not invertible.

    Args:
        U: upper triangular, shape (m, m).
        v: shape (m,), in [0, 1].
        plain: take w = 0 (with v = 0: a plain factorisation).
    """
    B = U / np.sqrt((U**2).sum(axis=0))
    upper, info = lapack.dpotri(
        B, lower=0
    )  # of B as the factor of B^T B; signs of the diagonal do not matter
    if info != 0 or not np.isfinite(upper).all():
        return None
    S = np.triu(upper) + np.triu(upper, 1).T
    C = np.cumsum(S, axis=0)
    own = np.cumsum(C, axis=1).diagonal()  # T_i S T_i^T
    gamma = float(v @ S @ v)
    if plain:
        return Evaluation(B, S, C, v, np.zeros(len(v)), own)
    u = 1.0 - v
    Su = S @ u
    along, square = np.cumsum(Su), float(u @ Su)
    w = np.clip((along + gamma) / (square + gamma), 0.0, 1.0)
    return Evaluation(B, S, C, v, w, own - 2.0 * w * along + w**2 * square + (1.0 - w) ** 2 * gamma)


def gradient(at: Evaluation, U: FloatArray, power: float) -> tuple[float, FloatArray, FloatArray]:
    """Return the log of the power mean of q, and its gradient by U (upper triangle) and by v.

    w minimises every q_i, so its own derivative never enters. From dS = -S dG S and z_i = S Y_i^T, the
    gradient by G is -(Z^T diag(o) Z + beta (S v)(S v)^T), with o the derivatives by q and
    beta = sum of o_i (1 - w_i)^2.
    """
    top = float(at.q.max())
    ratio = (at.q / top) ** power
    value = float(np.log(top) + np.log(ratio.mean()) / power)
    by_q = ratio / (at.q / top) / (top * ratio.sum())
    Sv = at.S @ at.v
    Z = at.C - at.w[:, None] * (at.S.sum(axis=0) - Sv)
    beta = float(np.sum(by_q * (1.0 - at.w) ** 2))
    weighted = np.sqrt(by_q)[:, None] * Z
    full = blas.dsyrk(1.0, weighted.T, lower=0)
    by_G = -(np.triu(full) + np.triu(full, 1).T + beta * np.outer(Sv, Sv))
    by_B = np.triu(2.0 * blas.dtrmm(1.0, at.B, by_G))
    by_U = (by_B - at.B * (by_B * at.B).sum(axis=0)) / np.sqrt((U**2).sum(axis=0))
    by_v = 2.0 * (Z.T @ (by_q * at.w) + beta * Sv)
    return value, by_U, by_v
