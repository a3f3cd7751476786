"""The tree mechanisms as exact chains, which stream at any length in O(log n) memory.

A k-ary tree is a chain of one-sided stages of size k with the tree's top level as the top. At equal scales
(``chain_cost(chain, n, objective=..., scales=[1.0] * len(chain.levels))``) a chain has exactly the cost of
the tree; scales chosen by level (the default of ``chain_cost``) usually lower it. Some are no chain:

- smooth binary tree: its levels follow Pascal's triangle, not blocks of one size; no chain.
- averaged k-ary tree: it reads the same sums in two ways, a chain reads a level in one way only;
  :func:`averaged_chain` is its relative with the same leading constant for the worst step, a smaller mean.
- optimal weights, Toeplitz square root: every row of L is dense; no chain.

Each of these is a plain stage at small horizons (:func:`trilift.lift.mechanisms.plain_stage`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.checks import choice, integer
from trilift.lift.diamond import diamond_stage
from trilift.lift.dyadic import Dyadic
from trilift.lift.stage import Stage, lower_ones
from trilift.lift.tree_costs import kary_tree_cost, kary_tree_subtraction_cost

__all__ = [
    "averaged_chain",
    "binary_tree_chain",
    "interpolated_chain",
    "kary_tree_chain",
    "kary_tree_subtraction_chain",
]

MAX_TOP = 8192
"""Largest top level: it is held as a dense matrix."""


def _identity(size: int) -> Dyadic:
    return Dyadic(np.eye(size, dtype=np.int64))


def _trivial(size: int) -> Stage:
    """T_m = T_m I, every step stored by itself."""
    integer("steps of the top level", size, minimum=1, maximum=MAX_TOP)
    return Stage.plain(Dyadic(lower_ones(size)), _identity(size))


def _stored(weights: Dyadic) -> Stage:
    """All steps of a block stored by themselves, and w: T_m = (T_m - w 1^T) I + w 1^T."""
    m = weights.shape[0]
    ones = Dyadic(np.ones((1, m), dtype=np.int64))
    return Stage(Dyadic(lower_ones(m)) - weights[:, None] * ones, _identity(m), weights, Dyadic.zeros(m))


def binary_tree_chain(horizon: int, *, levels: int | None = None, objective: str = "max") -> Chain:
    """Return the binary tree mechanism as an exact chain (see :func:`kary_tree_chain`)."""
    return kary_tree_chain(horizon, arity=2, levels=levels, objective=objective)


def kary_tree_chain(
    horizon: int, *, arity: int = 17, levels: int | None = None, objective: str = "max"
) -> Chain:
    """Return the k-ary tree mechanism as an exact chain.

    A stage stores the first k-1 steps of a block; step i < k sums the first i of them and asks the level
    above for the blocks before, step k for its own block too: w = (0, ..., 0, 1). Capacity: (c+1) k^(h-1) - 1
    steps for h levels with c blocks in the top one.

    The arguments and the source are those of :func:`trilift.lift.tree_costs.kary_tree_cost`.

    Raises:
        ParameterError: an argument out of range, or more than 8192 blocks in the top level.

    >>> kary_tree_chain(26, arity=3, levels=3).sizes
    (3, 3, 2)
    """
    cost = kary_tree_cost(horizon, arity=arity, levels=levels, objective=objective)
    k, h = cost.arity, cost.levels
    left = np.vstack([lower_ones(k - 1), np.zeros((1, k - 1), dtype=np.int64)])
    right = np.eye(k - 1, k, dtype=np.int64)
    w = np.eye(k, dtype=np.int64)[k - 1]
    stage = Stage(Dyadic(left), Dyadic(right), Dyadic(w), Dyadic.zeros(k - 1))
    return Chain(_trivial(cost.horizon // k ** (h - 1)), [stage] * (h - 1))


def kary_tree_subtraction_chain(
    horizon: int, *, arity: int = 17, levels: int | None = None, objective: str = "max"
) -> Chain:
    """Return the k-ary tree with subtraction as an exact chain: diamonds of the trivial T_(k-1)/2.

    Steps are rounded to the nearest block boundary: w = 0 in the first (k-1)/2 steps of a block, whose sums
    go forward, and 1 in the others, whose sums go back from the end.

    The arguments and the source are those of :func:`trilift.lift.tree_costs.kary_tree_subtraction_cost`.

    Raises:
        ParameterError: an argument out of range, or more than 8192 blocks in the top level.
    """
    cost = kary_tree_subtraction_cost(horizon, arity=arity, levels=levels, objective=objective)
    k, h = cost.arity, cost.levels
    size = k ** (h - 1)
    return Chain(
        _trivial((cost.horizon + (size - 1) // 2) // size), [diamond_stage(_trivial((k - 1) // 2))] * (h - 1)
    )


def averaged_chain(
    horizon: int, *, arity: int = 17, levels: int | None = None, objective: str = "max"
) -> Chain:
    """Return the averaged k-ary tree's relative that streams (new): w = 1/2, but 1 at the end of a block.

    A step is half the sum forward from its block's start and half the sum back from its end. Where the
    averaged tree goes on forward from the one and back from the other, here both ends are read alike. On one
    level below the total (n <= arity) the two are the same; on whole trees (n = arity^h, arity >= 3) the
    worst step is the same too, and the mean over the steps is smaller here.

    Args:
        horizon: number of steps n.
        arity: steps in a block, 2 to 8192.
        levels: stages below the total; by default the least that reach the horizon.
        objective: "max" or "mean"; here only checked, for the sake of one signature.

    Raises:
        ParameterError: an argument out of range.

    >>> averaged_chain(100, arity=5).sizes
    (5, 5, 4, 1)
    """
    choice("objective", objective, ("max", "mean"))

    def weights(k: int) -> Dyadic:
        return Dyadic([1] * (k - 1) + [2], 1)

    return _under_total(horizon, arity, levels, weights)


def interpolated_chain(
    horizon: int,
    *,
    arity: int = 17,
    levels: int | None = None,
    objective: str = "max",
    bits: int = 20,
) -> Chain:
    """Return the k-ary tree that interpolates between the boundaries of its blocks (new).

    w_i = i/k (rounded to ``bits`` binary places, which costs next to nothing and keeps all exact) is the best
    w for stored steps. Level by level the position in a block of k^j steps is interpolated linearly, so that
    at equal scales the squared error over log2(n)^3 tends to (k-1) / (3 log2(k)^3) for the mean, and to
    (k-1) / (2 log2(k)^3) for the worst step if k is odd, less if it is even: 0.0781 and 0.1171 for k = 17.

    The other arguments are those of :func:`averaged_chain`.
    """
    choice("objective", objective, ("max", "mean"))
    unit = 1 << integer("bits", bits, minimum=1, maximum=60)

    def weights(k: int) -> Dyadic:
        return Dyadic([(2 * i * unit + k) // (2 * k) for i in range(1, k + 1)], bits)

    return _under_total(horizon, arity, levels, weights)


def _under_total(horizon: int, arity: int, levels: int | None, weights: Any) -> Chain:
    """Stages of size k, the uppermost no larger than needed, below a stored total."""
    n = integer("horizon", horizon, minimum=1, maximum=2**60)
    k = integer("arity", arity, minimum=2, maximum=MAX_TOP)
    least = 0
    while k**least < n:
        least += 1
    h = least if levels is None else integer("levels", levels, minimum=min(1, least), maximum=least)
    if not h:
        return Chain(_trivial(1))
    blocks = integer("steps of the top level", -(-n // k ** (h - 1)), minimum=2, maximum=MAX_TOP)
    return Chain(_trivial(1), [_stored(weights(k))] * (h - 1) + [_stored(weights(blocks))])
