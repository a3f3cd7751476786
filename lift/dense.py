"""Chains as plain matrices: the oracle against which everything level-wise is tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.checks import integer, numeric_array
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage

__all__ = ["Dense", "bridge", "materialise"]


@dataclass(frozen=True)
class Dense:
    """A factorisation L R = T_n with the level that each inner coordinate belongs to.

    Attributes:
        L: shape (n, r), float64 or Dyadic.
        R: shape (r, n).
        level: shape (r,), 0 for the finest level; rows of a level come block by block.
    """

    L: Any
    R: Any
    level: np.ndarray[Any, np.dtype[np.int64]]

    def scaled(self, scales: Any) -> tuple[Any, Any]:
        """Return (L S, S^-1 R) in floats, with S the diagonal of each coordinate's level scale.

        Args:
            scales: one number > 0 a level, finest first.
        """
        given = numeric_array("scales", scales, ndim=1).astype(np.float64)
        if len(given) <= int(self.level.max()) or given.min() <= 0:
            raise ParameterError(f"scales must be {int(self.level.max()) + 1} numbers > 0")
        factors = given[self.level]
        L = self.L.to_float() if isinstance(self.L, Dyadic) else self.L
        R = self.R.to_float() if isinstance(self.R, Dyadic) else self.R
        return L * factors, R / factors[:, None]


def _stack(parts: list[Any], axis: int) -> Any:
    return Dyadic.concatenate(parts, axis) if isinstance(parts[0], Dyadic) else np.concatenate(parts, axis)


def _like(num: Any, stage: Stage) -> Any:
    return Dyadic(num) if stage.is_exact else num.astype(np.float64)


def _shifted(matrix: Any, axis: int, by: int) -> Any:
    """Append (by = 0) or prepend (by = 1) a zero row or column."""
    shape = list(matrix.shape)
    shape[axis] = 1
    zero = Dyadic.zeros(tuple(shape)) if isinstance(matrix, Dyadic) else np.zeros(shape)
    return _stack([zero, matrix] if by else [matrix, zero], axis)


def bridge(stage: Stage, C: Any, D: Any, *, steps: int | None = None) -> tuple[Any, Any]:
    """Return (L, R) with L R = T_n: the stage lifted by the factorisation C D = T_k (new: the bridge lift).

    Args:
        stage: of size m.
        C: shape (k, s), float64 or (for an exact stage) Dyadic.
        D: shape (s, k).
        steps: n <= k m + tail; all of them when left out. Rows and columns after the n-th are dropped.

    Row (j, i) of L is [e_j x A_i + (1 - w_i) e_{j-1} x g | (1 - w_i) C_{j-1} + w_i C_j]; column (j, i) of R
    is [e_j x B_i ; (1 - v_i) D_j + v_i D_{j+1}], with C_{-1} = 0 and D_k = 0.

    Raises:
        ParameterError: matrices of other shapes, steps that are not an integer in 1..km + tail.

    >>> pairs = Stage(Dyadic([[1], [0]]), Dyadic([[1, 0]]), Dyadic([0, 1]), Dyadic([0]))
    >>> L, R = bridge(pairs, Dyadic([[1]]), Dyadic([[1]]))
    >>> (L @ R).to_float().tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """
    if not isinstance(C, Dyadic):
        C = numeric_array("C", C, ndim=2)
    if not isinstance(D, Dyadic):
        D = numeric_array("D", D, ndim=2)
    if C.shape != D.shape[::-1]:
        raise ParameterError(f"C and D must have shapes (k, s) and (s, k), got {C.shape} and {D.shape}")
    m, k = stage.size, C.shape[0]
    capacity = k * m + stage.tail
    n = capacity if steps is None else integer("steps", steps, minimum=1, maximum=capacity)
    blocks = -(-n // m)
    own = _like(np.eye(blocks, dtype=np.int64), stage)
    before = _like(np.eye(blocks, k=-1, dtype=np.int64), stage)
    one = _like(np.ones(m, dtype=np.int64), stage)
    w, v = stage.w, stage.v
    local_L = _kron(own, stage.A) + _kron(before, (one - w)[:, None] * stage.g[None, :])
    local_R = _kron(own, stage.B)
    C_own = _shifted(C, 0, 0)[:blocks]
    C_before = _shifted(C, 0, 1)[:blocks]
    D_own = _shifted(D, 1, 0)[:, :blocks]
    D_after = _shifted(D[:, 1:], 1, 0)
    D_after = _shifted(D_after, 1, 0)[:, :blocks]
    coarse_L = _kron(C_before, (one - w)[:, None]) + _kron(C_own, w[:, None])
    coarse_R = _kron(D_own, (one - v)[None, :]) + _kron(D_after, v[None, :])
    L, R = _stack([local_L, coarse_L], 1), _stack([local_R, coarse_R], 0)
    return L[:n], R[:, :n]


def _kron(left: Any, right: Any) -> Any:
    """Kronecker product of two matrices, float or exact."""
    shape = (left.shape[0] * right.shape[0], left.shape[1] * right.shape[1])
    if not isinstance(left, Dyadic):
        return np.asarray((left[:, None, :, None] * right[None, :, None, :]).reshape(shape))
    product = Dyadic(left.num[:, None, :, None], left.exp) * Dyadic(right.num[None, :, None, :], right.exp)
    return Dyadic(product.num.reshape(shape), product.exp)


def materialise(chain: Chain, horizon: int) -> Dense:
    """Return the chain as matrices L (n, r) and R (r, n): exact when the chain is.

    R has the columns that inputs are charged by: those of the endless lattice of blocks, in which the top's
    columns after the last are zero. They depend on neither the horizon nor the capacity. (Leaving out the
    columns of an upper level past the horizon would give L R = T_n too, but its last columns can be longer,
    where a blend of two neighbours cancels.) A few last rows of R may meet only zeros of L.

    Meant for tests, pictures and small horizons: the matrices grow as n^2.

    Raises:
        HorizonError, ParameterError: as :meth:`Chain.check_horizon`.

    >>> dense = materialise(Chain(Stage.plain(Dyadic([[1, 0], [1, 1]]), Dyadic([[1, 0], [0, 1]]))), 2)
    >>> (dense.L @ dense.R).to_float().tolist(), dense.level.tolist()
    ([[1.0, 0.0], [1.0, 1.0]], [0, 0])
    """
    lengths = [chain.check_horizon(horizon)]
    for stage in chain.stages:  # positions of the level above that are touched: columns reach one further
        lengths.append(-(-lengths[-1] // stage.size) + 1)
    L, R, k = chain.top.A, chain.top.B, lengths[-1]
    for _ in range(L.shape[0], k):
        L, R = _shifted(L, 0, 0), _shifted(R, 1, 0)
    L, R = L[:k], R[:, :k]
    level = np.full(chain.top.inner, len(chain.stages), dtype=np.int64)
    for index in reversed(range(len(chain.stages))):
        stage = chain.stages[index]
        blocks = -(-lengths[index] // stage.size)
        L, R = bridge(stage, L, R, steps=lengths[index])
        level = np.concatenate([np.full(blocks * stage.inner, index, dtype=np.int64), level])
    return Dense(L, R, level)
