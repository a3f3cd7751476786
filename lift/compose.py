"""Two one-sided stages as one (new): the chain's associativity, made explicit."""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.lift.checks import fail, finite
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage

__all__ = ["compose"]


_LEAST = 2.0**-256  # beyond, products overflow


def compose(fine: Stage, coarse: Stage, *, ratio: float = 1.0) -> Stage:
    """Return the one-sided stage of size m1 m2 that does what ``fine`` below ``coarse`` does.

    Args:
        fine: one-sided stage of size m1, the lower one.
        coarse: one-sided stage of size m2, above it; both exact or both float.
        ratio: scale of the coarse measurements' noise over that of the fine ones (alpha): the coarse
            part of A is multiplied and that of B divided by it. A power of two for exact stages.

    Row (j, i) is [e_j x A1_i | ratio ((1 - w1_i) A2_{j-1} + w1_i A2_j)] with weight
    w = (1 - w1_i) w2_{j-1} + w1_i w2_j; the row before the first is the
    coarse prefix itself, with A2 = 0 and w2 = 0.

    Raises:
        ParameterError: a two-sided stage, mixed kinds, or a ratio that is not usable.

    >>> pairs = Stage(Dyadic([[1], [0]]), Dyadic([[1, 0]]), Dyadic([0, 1]), Dyadic([0]))
    >>> quads = compose(pairs, pairs)
    >>> quads.size, quads.inner, quads.residual()
    (4, 3, Fraction(0, 1))
    """
    if not (fine.one_sided and coarse.one_sided):
        raise ParameterError("compose needs one-sided stages (g = 0)")
    if fine.is_exact != coarse.is_exact:
        raise ParameterError("fine and coarse must be both exact or both float")
    alpha = finite("ratio", ratio, above=0)
    if not _LEAST <= alpha <= 1 / _LEAST:
        raise fail("ratio", f"between {_LEAST:g} and {1 / _LEAST:g}", ratio)
    if not fine.is_exact:
        return _compose(fine, coarse, alpha, 1.0 / alpha)
    power = int(np.frexp(alpha)[1]) - 1
    if alpha != 2.0**power:
        raise ParameterError(f"ratio must be a power of two for exact stages, got {alpha}")
    one = Dyadic([1])
    return _compose(fine, coarse, one.scaled(power), one.scaled(-power))


def _compose(fine: Stage, coarse: Stage, up: Any, down: Any) -> Stage:
    exact = fine.is_exact
    m1, m2 = fine.size, coarse.size
    eye = np.eye(m2, dtype=np.int64)
    one = Dyadic(np.ones(m1, dtype=np.int64)) if exact else np.ones(m1)
    own, rest = fine.w, one - fine.w
    before_A, before_w = _before(coarse.A), _before(coarse.w)
    coarse_A = _outer(own, coarse.A) + _outer(rest, before_A)
    w = _outer(own, coarse.w[:, None]) + _outer(rest, before_w[:, None])
    fine_A = _blocks(eye, fine.A)
    fine_B = _blocks(eye, fine.B)
    coarse_B = coarse.B[:, np.repeat(np.arange(m2), m1)]
    join = Dyadic.concatenate if exact else np.concatenate
    A = join([fine_A, coarse_A * up], 1)
    B = join([fine_B, coarse_B * down], 0)
    size = m1 * m2
    g = Dyadic.zeros(A.shape[1]) if exact else np.zeros(A.shape[1])
    return Stage(A, B, w[:, 0] if w.shape == (size, 1) else w, g)


def _before(values: Any) -> Any:
    if isinstance(values, Dyadic):
        return Dyadic.concatenate([Dyadic.zeros((1, *values.shape[1:])), values[:-1]])
    return np.concatenate([np.zeros_like(values[:1]), values[:-1]])


def _outer(weights: Any, rows: Any) -> Any:
    """Return rows (j, i) = weights_i rows_j, shape (m2 m1, columns)."""
    shape = (rows.shape[0] * weights.shape[0], rows.shape[1])
    if isinstance(rows, Dyadic):
        product = rows[:, None, :] * weights[None, :, None]
        return Dyadic(product.num.reshape(shape), product.exp)
    return (rows[:, None, :] * weights[None, :, None]).reshape(shape)


def _blocks(eye: Any, block: Any) -> Any:
    if isinstance(block, Dyadic):
        return Dyadic(np.kron(eye.astype(block.num.dtype), block.num), block.exp)
    return np.kron(eye, block)
