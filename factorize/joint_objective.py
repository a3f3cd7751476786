"""The objective of a joint search: a sparse rectangular B with the pseudo-inverse left factor (new).

A joint search moves the entries x of a right factor on a fixed support, and for a stage the weights v and w.
With every column of x divided by its l1 norm,

    B = x / n (r x m, r >= m),   G = B^T B,   Y = T_m - w (1 - v)^T,
    A = Y B^+ = Y G^-1 B^T,   g = (B^+)^T v = B G^-1 v,

so that T_m = A B + w (1 - v)^T and v = B^T g: every point is a valid stage of sensitivity 1. Among all A with
A B = Y this one has the shortest rows, each of them, and g is the shortest as well. Only G^-1 is ever formed,
an m x m matrix whatever r is:

    n_i = |A_i|^2 + (1 - w_i)^2 |g|^2 = (Y G^-1 Y^T)_ii + (1 - w_i)^2 v^T G^-1 v,
    c_i = (Y G^-1 Y^T)_{i-1,i} + (1 - w_{i-1}) (1 - w_i) v^T G^-1 v,   c_0 = (1 - w_0) Y_{m-1} G^-1 v,

the squared norms of the rows on the endless lattice of blocks, and the products of neighbours. The *plain*
cost is about q = n. The *interior* cost is about the rows as they are seen through the weights w' of a level
below, the same stage: x^2 n_i + (1-x)^2 n_{i-1} + 2 x (1-x) c_i for x in w'. For the mean that is averaged
over w'. For the maximum only the ends of a range [lo, hi] that holds w' count, because the expression is
convex in x; w is kept in this range, and a range shorter than [0, 1] blends every row.

The objective is the logarithm of the power mean of q with exponent p; |x| is smoothed to sqrt(x^2 + mu^2).
For the plain cost w is the best one, which minimises every q_i, and not moved by itself. The gradient is in
closed form: with the derivatives by Y and G^-1 it is one product of m x m matrices more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from trilift.factorize.support import Support
from trilift.lift.stage import FloatArray, Stage, lower_ones

__all__ = ["Point", "Problem", "gram_inverse", "has_full_column_rank", "stage_at"]

_UNIT = 2.0**-52
_SPARSE_PRODUCT = 0.05  # G is formed sparsely up to this fraction of the work of a dense product


class Point(NamedTuple):
    """Where a joint search is: x on the support, v (m,) and w (m,) in [0, 1]."""

    x: FloatArray
    v: FloatArray
    w: FloatArray


class _Rows(NamedTuple):
    """Squared row norms and what their derivatives need."""

    inverse: FloatArray  # G^-1
    Z: FloatArray  # Y G^-1
    h: FloatArray  # G^-1 v
    g_sq: float  # |g|^2 = v^T G^-1 v
    w: FloatArray
    norms: FloatArray  # n_i
    products: FloatArray  # c_i, only for the interior cost


@dataclass(frozen=True, eq=False)
class Problem:
    """What is searched: on which support, and which cost.

    Attributes:
        support: of B.
        plain: a plain factorisation of T_m: v = w = 0 throughout.
        interior: the interior cost instead of the plain one.
        ends: (lo, hi) for the largest interior cost; None: the mean.
    """

    support: Support
    plain: bool
    interior: bool
    ends: tuple[float, float] | None = None

    def value(self, point: Point, *, smoothing: float, exponent: float) -> float:
        """Return the objective (log of a squared error at sensitivity 1); NaN where G is singular."""
        rows = self._rows(point, self._right_factor(point.x, smoothing)[0])
        return np.nan if rows is None else _log_power_mean(self._q(rows), exponent)[0]

    def cost(self, point: Point, *, largest: bool) -> float:
        """Return (max or mean q) |B|^2 without smoothing; infinity where it is not a positive number."""
        rows = self._rows(point, self._right_factor(point.x, 0.0)[0])
        if rows is None:
            return np.inf
        q = self._q(rows)
        cost = float(q.max() if largest else q.mean())
        return cost if np.isfinite(q).all() and q.min() >= 0.0 and cost > 0.0 else np.inf

    def value_and_gradient(self, point: Point, *, smoothing: float, exponent: float) -> tuple[float, Point]:
        """Return the objective and its gradient by x, v and w (zero for what is not moved)."""
        B, slope, lengths = self._right_factor(point.x, smoothing)
        rows = self._rows(point, B)
        if rows is None:
            nothing = Point(*(np.full_like(part, np.nan) for part in point))
            return np.nan, nothing
        value, by_q = _log_power_mean(self._q(rows), exponent)
        by_G, by_v, by_w = self._pull_back(point, rows, by_q)
        product = self.support.matrix(B) @ by_G
        by_B = 2.0 * product[self.support.rows, self.support.columns]
        along = self.support.column_sums(by_B * B)
        by_x = (by_B - along[self.support.columns] * slope) / lengths[self.support.columns]
        return value, Point(by_x, by_v, by_w)

    def _right_factor(self, x: FloatArray, smoothing: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return B on the support, the derivative of the smoothed |x|, and the smoothed column norms."""
        absolute = np.hypot(x, smoothing)  # does not overflow
        lengths = self.support.column_sums(absolute)
        slope = np.divide(x, absolute, out=np.zeros_like(x), where=absolute > 0)
        with np.errstate(divide="ignore", invalid="ignore"):  # a column of zeros: refused as singular
            return x / lengths[self.support.columns], slope, lengths

    def _rows(self, point: Point, B: FloatArray) -> _Rows | None:
        inverse = gram_inverse(self.support, B)
        if inverse is None:
            return None
        sums = np.cumsum(inverse, axis=0)  # T G^-1
        if self.plain:
            zero = np.zeros(len(sums))
            return _Rows(inverse, sums, zero, 0.0, zero, _own_prefix(sums), zero)
        v = point.v
        h = inverse @ v
        g_sq = float(v @ h)
        ahead = inverse @ (1.0 - v)  # G^-1 (1 - v)
        along = np.cumsum(ahead)  # L_i . d
        length = float((1.0 - v) @ ahead)  # |d|^2
        w = point.w if self.interior else _best_w(along, length, g_sq)
        Z = sums - w[:, None] * ahead[None, :]
        YZ = _own_prefix(Z) - w * (Z @ (1.0 - v))
        rest = 1.0 - w
        norms = YZ + rest**2 * g_sq
        products = np.zeros(len(w))
        if self.interior:
            before = _own_prefix(Z[:-1], shift=1) - w[1:] * (Z[:-1] @ (1.0 - v))
            products[1:] = before + rest[1:] * rest[:-1] * g_sq
            products[0] = rest[0] * (Z[-1] @ v)
        return _Rows(inverse, Z, h, g_sq, w, norms, products)

    def _q(self, rows: _Rows) -> FloatArray:
        if not self.interior:
            return rows.norms
        seen = [
            own * rows.norms + before * np.roll(rows.norms, 1) + 2.0 * cross * rows.products
            for own, before, cross in self._blends(rows.w)
        ]
        return np.concatenate(seen)

    def _blends(self, w: FloatArray) -> list[tuple[float, float, float]]:
        """Return the factors of n_i, n_{i-1} and 2 c_i, for every way in which rows are seen."""
        if self.ends is not None:
            return [(x * x, (1.0 - x) ** 2, x * (1.0 - x)) for x in self.ends]
        rest = 1.0 - w
        return [(float(np.mean(w * w)), float(np.mean(rest * rest)), float(np.mean(w * rest)))]

    def _pull_back(
        self, point: Point, rows: _Rows, by_q: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the derivatives by G (symmetric), v and w from those by q."""
        zero = np.zeros(len(by_q))
        if not self.interior:
            WZ = by_q[:, None] * rows.Z
            half = np.sqrt(by_q)[:, None] * rows.Z
            by_G = -(half.T @ half)
            if self.plain:
                return by_G, zero, zero
            rest = 1.0 - rows.w
            by_g_sq = float(by_q @ rest**2)
            by_G -= by_g_sq * np.outer(rows.h, rows.h)
            by_v = 2.0 * (rows.w @ WZ) + 2.0 * by_g_sq * rows.h
            return by_G, by_v, zero
        by_n, by_c = np.zeros(len(rows.w)), np.zeros(len(rows.w))
        blends = self._blends(rows.w)
        for (own, before, cross), part in zip(blends, np.split(by_q, len(blends)), strict=True):
            by_n += own * part + before * np.roll(part, -1)
            by_c += 2.0 * cross * part
        by_G, by_v, by_w = _pull_back_interior(point, rows, by_n, by_c)
        if self.ends is None:
            by_w += _by_moments(rows, by_q)
        return by_G, by_v, by_w


def _by_moments(rows: _Rows, by_q: FloatArray) -> FloatArray:
    """Return the part of the derivative by w that comes from the averages over w."""
    by_own, by_before = float(by_q @ rows.norms), float(by_q @ np.roll(rows.norms, 1))
    by_cross = 2.0 * float(by_q @ rows.products)
    w, rest = rows.w, 1.0 - rows.w
    return (2.0 * w * by_own - 2.0 * rest * by_before + (rest - w) * by_cross) / len(w)


def _pull_back_interior(
    point: Point, rows: _Rows, by_n: FloatArray, by_c: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the derivatives by G, v and w from those by the norms and products."""
    w, Z, h = rows.w, rows.Z, rows.h
    rest = 1.0 - w
    half, first = 0.5 * by_c[1:], by_c[0] * rest[0]
    # W Z with W tridiagonal: the weights of n on the diagonal, those of c beside it, halved
    WZ = by_n[:, None] * Z
    WZ[1:] += half[:, None] * Z[:-1]
    WZ[:-1] += half[:, None] * Z[1:]
    by_g_sq = float(by_n @ rest**2 + by_c[1:] @ (rest[1:] * rest[:-1]))
    across = 0.5 * first * np.outer(Z[-1], h)
    by_G = -(Z.T @ WZ) - by_g_sq * np.outer(h, h) - across - across.T
    by_Y = 2.0 * WZ
    by_Y[-1] += first * h
    by_v = w @ by_Y + 2.0 * by_g_sq * h + first * Z[-1]
    by_rest = 2.0 * by_n * rest
    by_rest[1:] += by_c[1:] * rest[:-1]
    by_rest[:-1] += by_c[1:] * rest[1:]
    by_w = -(by_Y @ (1.0 - point.v)) - rows.g_sq * by_rest
    by_w[0] -= by_c[0] * float(Z[-1] @ point.v)
    return by_G, by_v, by_w


def gram_inverse(support: Support, B: FloatArray) -> FloatArray | None:
    """Return (B^T B)^-1 for B given on the support, shape (m, m); None where it is singular."""
    if not np.isfinite(B).all():
        return None
    matrix = support.matrix(B)
    counts = np.diff(support.starts).astype(np.float64)
    r, m = support.shape
    if counts @ counts < _SPARSE_PRODUCT * r * m * m:
        G = np.asarray((matrix.T @ matrix).toarray())
    else:
        full = matrix.toarray()
        G = full.T @ full
    factor, failed = dpotrf(G.T, lower=1, overwrite_a=1, clean=0)  # G is symmetric: no copy is made
    if failed:
        return None
    lower, failed = dpotri(factor, lower=1, overwrite_c=1)
    if failed:
        return None
    inverse = np.tril(lower)
    inverse += np.tril(lower, -1).T
    return np.ascontiguousarray(inverse)


def _own_prefix(Z: FloatArray, *, shift: int = 0) -> FloatArray:
    """Return the sums of Z[i, :i + 1 + shift]: the inner products of rows of Z with rows of T."""
    sums: FloatArray = np.cumsum(Z, axis=1)
    return np.ascontiguousarray(sums.diagonal(shift)[: len(Z)])


def _best_w(along: FloatArray, length: float, g_sq: float) -> FloatArray:
    norm = length + g_sq
    return np.clip((along + g_sq) / norm, 0.0, 1.0) if norm > 0 else np.zeros(len(along))


def _log_power_mean(q: FloatArray, exponent: float) -> tuple[float, FloatArray]:
    """Return the log of the power mean and its derivative by q."""
    top = float(q.max())
    with np.errstate(invalid="ignore", divide="ignore", under="ignore"):
        ratio = np.maximum(q, 0.0) / top
        powers = ratio**exponent
        value = np.log(top) + np.log(powers.mean()) / exponent
        return float(value), ratio ** (exponent - 1.0) / (top * powers.sum())


def has_full_column_rank(B: FloatArray) -> bool:
    """Tell whether the columns of B are independent beyond roundings.

    Singular values decide: whether a factorisation of a singular matrix fails depends on the processor.
    """
    return bool(np.isfinite(B).all()) and int(np.linalg.matrix_rank(B)) == B.shape[1]


def stage_at(B: FloatArray, v: FloatArray, w: FloatArray | None, *, plain: bool = False) -> Stage:
    """Return the float stage of a B of full column rank with A = Y B^+ and g = (B^+)^T v.

    Args:
        B: shape (r, m).
        v: shape (m,).
        w: shape (m,), or None for the best one.
        plain: w = 0 and g = 0.

    Raises:
        numpy.linalg.LinAlgError: B has not full column rank.
    """
    m = B.shape[1]
    Q, R = np.linalg.qr(B)  # B^+ = R^-1 Q^T, better conditioned than through G
    pivots = np.abs(np.diag(R))
    if pivots.min() <= m * _UNIT * pivots.max():  # solving by roundings may or may not fail
        raise np.linalg.LinAlgError("B has not full column rank")
    pseudo: Any = np.linalg.solve(R, Q.T)
    if plain:
        return Stage.plain(np.cumsum(pseudo, axis=0), B)
    g = v @ pseudo
    if w is None:
        L = np.cumsum(pseudo, axis=0)
        d = L[-1] - g
        w = _best_w(L @ d, float(d @ d), float(g @ g))
    Y = lower_ones(m) - np.outer(w, 1.0 - v)
    return Stage(Y @ pseudo, B, w, g)
