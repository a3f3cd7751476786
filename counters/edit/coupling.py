"""What edit neighbours cost a counter of bucket sums and a counter of bucket lengths: exact suprema.

Let x be the insertion of x' at step i, and j the step of the BOT that absorbs the shift (or T+1). Bucket p
holds i, bucket q holds j. The coupling moves the ends of buckets p+1 .. q-2 by one step (later in x) and
keeps all others; it needs q >= p+3, else nothing moves. With X the inserted number (0 for BOT), a =
x'_(t_p) and b = x'_(t_(q-1)) the numbers that cross the ends of buckets p and q-1, all of them in [0, 1],
the bucket sums of x and x' differ by

    X e_p + a (e_(p+1) - e_p) + b (e_q - e_(q-1)),

by X e_p alone if p = q, without the last term if q = p+1. The bucket lengths differ by e_(p+1) - e_(q-1),
or not at all. The same with all signs changed for the other direction.

A counter that releases R d + z, R with columns r_1, r_2, ..., is charged a norm of these differences. The
norm is convex, so only corners X, a, b in {0, 1} matter:

    counts:   sup over p, q of  |f + s|,   f in {r_p, r_(p+1) - r_p, r_(p+1)},  s in {0, r_q - r_(q-1)},  q
    >= p+2, times:    sup over u < v of |r_u - r_v|.

Inputs of buckets past the last one that is released reach nothing that is released, so they may be thought
to be fed (then column K+1 is the chain's own) or not (then it counts as 0), as is convenient: the same in x
and x'.

Results are over R = max |r_m|: they multiply the budget of a change of one input by 1 (``lambda_counts``,
``lambda_times``; for Gaussian noise these are lambda^2, which multiply mu^2). All are upper bounds, rounded
up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from trilift.lift import Chain, materialise
from trilift.lift.checks import choice, integer
from trilift.stream.toeplitz_factor import ROOT_PLACES, toeplitz_root

__all__ = ["EPOCH_FACTORS", "Factors", "chain_factors", "column_factors", "plain_factors", "toeplitz_factors"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_UP = 1.0 + 2.0**-30
_UNIT = 1 << 40
_EXHAUSTIVE = 16
_EVERY = 512
_PAIRS_L1, _PAIRS_L2 = 64, 1024
_WALKED, _CHUNK = 1 << 17, 1 << 13


@dataclass(frozen=True)
class Factors:
    """What edit neighbours cost, in units of what a change of one input by 1 costs.

    Attributes:
        counts: lambda of the counter of bucket sums (Gaussian: lambda^2).
        times: lambda of the counter of bucket lengths (Gaussian: lambda^2).
    """

    counts: Fraction
    times: Fraction


def plain_factors(*, norm: str) -> Factors:
    """Return what holds for any counter: at most 4 and 2 changes of one input by 1 (group privacy).

    Args:
        norm: "l1" (pure privacy): 4 and 2. "l2": the squares, 16 and 4.
    """
    return (
        Factors(Fraction(4), Fraction(2))
        if choice("norm", norm, ("l1", "l2")) == "l1"
        else Factors(Fraction(16), Fraction(4))
    )


EPOCH_FACTORS = Factors(Fraction(4), Fraction(2))
"""lambda^2 of Gaussian epochs that are Toeplitz, totals included, against mu^2 of one input.

At a corner the difference is an alternating sum of at most four columns in increasing order, + or - first:
two for times. Let an epoch hold n of them. *Its counter:* inner products of its columns are >= 0, and <r_u,
r_v> falls as v grows and as u falls (u <= v; true of the dyadic square root), so in the square of an
alternating sum of columns 1 .. n the products add up to at most 0: -<12> for two; -<12> - <23> + <13> for
three; and for four -<12> + <13> <= 0, -<34> + <24> <= 0, -<23> <= 0, -<14> <= 0. So it is at most n R^2: n
(1 - a) mu^2, where the counter has 1 - a of mu^2. *Its total:* an alternating sum of n ones is at most 1 in
size: a mu^2. Together at most n mu^2, and over all epochs 4 mu^2 and 2 mu^2. For the paper's halves, each
with noise C: 8/C^2 and 4/C^2.
"""


def _fraction_up(value: float) -> Fraction:
    return Fraction(math.ceil(value * _UP * _UNIT), _UNIT)


@lru_cache(maxsize=64)
def toeplitz_factors(size: int) -> Factors:
    """Return lambda^2 of the dyadic Toeplitz square root of K columns, rounded up.

    With c_0 = 1 >= c_1 >= ... > 0 convex (:func:`trilift.stream.toeplitz_factor.check_shape`), S = sum
    c_k^2 = R^2 and D = 1 + sum (c_k - c_(k+1))^2, which bounds |r_q - r_(q-1)|^2, the last column being
    followed by 0:

    - f = r_p or r_(p+1), q >= p+2: |f + s|^2 = |f|^2 + |s|^2 + 2 (<f, r_q> - <f, r_(q-1)>) <= S + D,
      because inner products decrease with distance (q - 1 >= p + 1, and for f = r_(p+1), q = p+2, f + s =
      r_q itself).
    - f = r_(p+1) - r_p: |f|^2 <= D, |s|^2 <= D, and <f, s> <= sum_k d_k d_(k+1) <= D - 1 with d_k = c_k -
      c_(k+1) >= 0: both have one entry -1, which meets nothing or a d >= 0, and else entries d, shifted. If
      the shift is 0 (q = p+2: f + s = r_(p+2) - r_p) the bound holds as well: the overlap is -c_0 d_0 +
      sum_k d_k d_(k+1). So |f + s|^2 <= 4 D - 2, and the larger of S + D and 4 D - 2 is returned.

    Below 16 columns everything is tried out in rationals instead. Times: |r_u - r_v|^2 over u < v <= K+1 is
    largest at u = 1 (columns of a later start are shorter copies), and then is S + S_(K-v+1) - 2 <r_1,
    r_v>. All v are tried up to 1024 columns; beyond, some of them: for v <= w < v' it is at most S +
    S_(K-v+1) - 2 <r_1, r_v'>, since <r_1, r_w> falls. Sums of at most 2^20 floats of one sign, each exact
    before it is squared, err by less than a relative 2^-31; results are raised by 2^-30.

    Raises:
        ParameterError: a size outside 1..2^20.

    >>> [round(float(x), 4) for x in (toeplitz_factors(500).counts, toeplitz_factors(500).times)]
    [1.4182, 1.6314]
    """
    column = toeplitz_root(integer("size", size, minimum=1))
    if size < _EXHAUSTIVE:
        return _exhaustive(column.tolist())
    c = column.astype(np.float64) / (1 << ROOT_PLACES)
    partial = np.cumsum(c * c)  # S_1 .. S_K
    S = float(partial[-1])
    D = 1.0 + float((np.diff(c) ** 2).sum())
    starts = np.arange(1, size)
    if size > _EVERY:
        starts = np.unique(np.concatenate([starts[:32], np.geomspace(32, size - 1, 96).astype(np.int64)]))
    times = S  # v = K+1: a column 0
    for lag, following in zip(starts, np.append(starts[1:], size), strict=True):
        nearest = lag if following == lag + 1 else following  # lags lag .. following - 1
        product = float(c[: size - nearest] @ c[nearest:])
        times = max(times, S + float(partial[size - lag - 1]) - 2.0 * product)
    return Factors(_fraction_up(max(S + D, 4.0 * D - 2.0) / S), _fraction_up(times / S))


def _exhaustive(column: list[int]) -> Factors:
    n = len(column)
    rows = np.zeros((n, n + 1), dtype=object)
    for i in range(n):
        rows[i:, i] = column[: n - i]
    counts, times = (
        max(int((v * v).sum()) for v in vectors) for vectors in (_count_corners(rows), _time_corners(rows))
    )
    S = sum(c * c for c in column)
    return Factors(Fraction(counts, S), Fraction(times, S))


def _count_corners(columns: Any) -> Any:
    """Yield every corner of the difference of bucket sums, as vectors; the last column is 0."""
    K = columns.shape[1] - 1
    for p in range(K):
        here, after = columns[:, p], columns[:, p + 1]
        for f in (here, after - here, after):
            yield f
            for q in range(p + 2, K + 1):
                yield f + columns[:, q] - columns[:, q - 1]


def _time_corners(columns: Any) -> Any:
    K = columns.shape[1] - 1
    for u in range(K):
        for v in range(u + 1, K + 1):
            yield columns[:, u] - columns[:, v]


def column_factors(columns: FloatArray, *, norm: str) -> Factors:
    """Return the suprema for a strategy given as its columns, rounded up (l2: lambda^2).

    Up to 64 columns (l2: 1024) all pairs and corners are tried. Beyond, |f + s| <= |f| + |s| <= max(R, D) +
    D, D the largest norm of a difference of neighbours (the notes' bound; under l1 it is close, because far
    columns share few rows), and |r_u - r_v| <= 2 R.

    Args:
        columns: r_1 .. r_K, shape (rows, K), in units of the noise of each row.
        norm: "l1" or "l2".

    >>> float(round(column_factors(np.eye(40), norm="l1").counts, 6))
    4.0
    """
    l1 = choice("norm", norm, ("l1", "l2")) == "l1"
    padded = np.concatenate([columns, np.zeros((len(columns), 1))], axis=1)
    steps = np.diff(padded, axis=1)
    R = _root_of(_norms(columns, l1).max(), l1)
    if columns.shape[1] > (_PAIRS_L1 if l1 else _PAIRS_L2):
        return _triangle(R, _root_of(_norms(steps, l1).max(), l1), l1)
    counts, times = _pairs_l1(padded, steps) if l1 else _pairs_l2(padded)
    return _over(counts, times, R, l1)


def _root_of(value: float, l1: bool) -> float:
    return float(value) if l1 else math.sqrt(float(value))


def _over(counts: float, times: float, R: float, l1: bool) -> Factors:
    power = 1 if l1 else 2
    return Factors(_fraction_up((counts / R) ** power), _fraction_up((times / R) ** power))


def _triangle(R: float, D: float, l1: bool) -> Factors:
    return _over(max(R, D) + D, 2.0 * R, R, l1)


def _norms(vectors: FloatArray, l1: bool) -> FloatArray:
    """Norms of columns; squared ones for l2."""
    return np.asarray(np.abs(vectors).sum(axis=0) if l1 else (vectors**2).sum(axis=0))


def _pairs_l1(padded: FloatArray, steps: FloatArray) -> tuple[float, float]:
    counts = times = 0.0
    for p in range(steps.shape[1]):
        here, after, step = padded[:, p : p + 1], padded[:, p + 1 : p + 2], steps[:, p : p + 1]
        times = max(times, float(np.abs(here - padded[:, p + 1 :]).sum(axis=0).max()))
        later = steps[:, p + 1 :]
        for f in (here, step, after):
            counts = max(counts, float(np.abs(f).sum()))
            if later.shape[1]:
                counts = max(counts, float(np.abs(f + later).sum(axis=0).max()))
    return counts, times


def _pairs_l2(padded: FloatArray) -> tuple[float, float]:
    """Return the suprema from inner products alone (not squared)."""
    gram = padded.T @ padded
    norms = np.diagonal(gram)
    across = np.diff(gram, axis=1)  # <r_p, r_(q+1) - r_q>
    step_sq = norms[1:] + norms[:-1] - 2.0 * np.diagonal(gram, offset=1)
    counts = 0.0
    for f_sq, with_steps in (
        (norms[:-1], across[:-1]),
        (step_sq, np.diff(across, axis=0)),
        (norms[1:], across[1:]),
    ):
        both = f_sq[:, None] + step_sq[None, :] + 2.0 * with_steps
        counts = max(counts, float(f_sq.max()), float(np.triu(both, 1).max()))
    times = float((norms[:, None] + norms[None, :] - 2.0 * gram).max())
    return math.sqrt(max(counts, 0.0)), math.sqrt(max(times, 0.0))


@lru_cache(maxsize=64)
def chain_factors(chain: Chain, size: int, scales: tuple[float, ...], *, norm: str) -> Factors:
    """Return the suprema for the first K columns of a chain under its level scales.

    Columns are those of the endless lattice of blocks, blends at every level included
    (:func:`trilift.lift.materialise`). Floats: sums of at most a few thousand products, each within
    relative 2^-52, so within the relative 2^-30 by which the results are rounded up. A chain charges the
    sum over levels of its levels' largest columns, which is at least max |r_m|, so that lambda * (charge of
    one input) bounds the cost. From 2^17 columns on the bounds of :func:`plain_factors` are returned.

    Args:
        chain: the chain.
        size: K, at most the capacity.
        scales: noise scale of every level, finest first (standard deviations for "l2").
        norm: "l1" or "l2".
    """
    l1 = choice("norm", norm, ("l1", "l2")) == "l1"
    if size > _WALKED:
        return plain_factors(norm=norm)
    inverse = 1.0 / np.asarray(scales, dtype=np.float64)
    if size <= (_PAIRS_L1 if l1 else _PAIRS_L2):
        dense = materialise(chain.to_float(), size)
        return column_factors(dense.R * inverse[dense.level][:, None], norm=norm)
    R, D = 0.0, 0.0
    for start in range(0, size + 1, _CHUNK):  # column K+1 belongs to the lattice of blocks
        t = np.arange(start, min(start + _CHUNK, size + 1))
        R = max(R, float(_walk(chain.to_float(), t, np.array([1.0, 0.0, 0.0, 0.0]), inverse, l1).max()))
        D = max(D, float(_walk(chain.to_float(), t, np.array([-1.0, 1.0, 0.0, 0.0]), inverse, l1).max()))
    R = _root_of(R, l1)
    return _triangle(R, min(max(_root_of(D, l1), 0.0), 2.0 * R), l1)


def _walk(chain: Chain, t: Any, weights: FloatArray, inverse: FloatArray, l1: bool) -> FloatArray:
    """Return |sum_a weights_a r_(t+a)| (l2: squared) for steps t, going up the levels with windows of four.

    Position p of a level counts in its block with weight 1 - v and in the next with v; four neighbouring
    positions lie in at most three blocks (sizes are at least 2), so four blocks are enough.
    """
    position, window = np.asarray(t), np.repeat(weights[None, :], len(t), axis=0)
    total = np.zeros(len(t))
    for level, stage in enumerate(chain.levels):
        is_top = level == len(chain.stages)
        m, B, v = stage.size, stage.B, stage.v
        block, raised = position // m, np.zeros_like(window)
        for offset in range(4):  # of the block within the window
            local = np.zeros((len(position), len(B)))
            for a in range(4):
                place = position + a
                inside = (place // m - block == offset) & (window[:, a] != 0.0)
                if not inside.any() or (is_top and offset > 0):
                    continue
                digit = place[inside] % m
                local[inside] += window[inside, a][:, None] * B.T[digit]
                raised[inside, offset] += window[inside, a] * (1.0 - v[digit])
                if offset < 3:
                    raised[inside, offset + 1] += window[inside, a] * v[digit]
            norms = np.abs(local).sum(axis=1) if l1 else (local**2).sum(axis=1)
            total += norms * (inverse[level] if l1 else inverse[level] ** 2)
        if is_top:
            break
        position, window = block, raised
    return total
