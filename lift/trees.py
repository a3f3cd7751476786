"""The tree mechanisms as explicit factorisations T_n = L R, for small horizons.

They are what optimised factorisations are compared with. :mod:`trilift.lift.tree_costs` has the conventions
(levels, what is stored) and the exact costs at any horizon. Here each estimate is spelled out as a signed
sum of intervals of steps; every interval that occurs is one row of R.

All matrices are float64 with entries 0, 1, -1 or halves, so products of them are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from trilift.lift.checks import integer
from trilift.lift.tree_costs import (
    averaged_kary_tree_cost,
    binary_tree_cost,
    kary_tree_cost,
    kary_tree_subtraction_cost,
    smooth_binary_tree_cost,
)

__all__ = [
    "averaged_kary_tree",
    "binary_tree",
    "kary_tree",
    "kary_tree_subtraction",
    "smooth_binary_tree",
]

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]
# A stored block: (level, start, end) is the sum of the steps start+1 .. end.
Block = tuple[int, int, int]
Estimate = dict[Block, float]

MAX_DENSE_HORIZON = 8192


def binary_tree(horizon: int, *, levels: int | None = None, objective: str = "max") -> Pair:
    """Return (L, R) of the binary tree mechanism: L is n x r, R is r x n, L R = T_n.

    The arguments and the source are those of :func:`~trilift.lift.tree_costs.binary_tree_cost`.

    Raises:
        ParameterError: if an argument is out of range, or the horizon is above 8192.

    >>> L, R = binary_tree(3, levels=2)
    >>> R.tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    >>> L.tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """
    n = _dense_horizon(horizon)
    h = binary_tree_cost(n, levels=levels, objective=objective).levels
    return _matrices(n, [_prefix(t, 2, h) for t in range(1, n + 1)])


def kary_tree(horizon: int, *, arity: int = 17, levels: int | None = None, objective: str = "max") -> Pair:
    """Return (L, R) of the k-ary tree mechanism: L is n x r, R is r x n, L R = T_n.

    The arguments and the source are those of :func:`~trilift.lift.tree_costs.kary_tree_cost`.

    Raises:
        ParameterError: if an argument is out of range, or the horizon is above 8192.
    """
    n = _dense_horizon(horizon)
    h = kary_tree_cost(n, arity=arity, levels=levels, objective=objective).levels
    return _matrices(n, [_prefix(t, arity, h) for t in range(1, n + 1)])


def kary_tree_subtraction(
    horizon: int, *, arity: int = 17, levels: int | None = None, objective: str = "max"
) -> Pair:
    """Return (L, R) of the k-ary tree with subtraction: L is n x r, R is r x n, L R = T_n.

    The arguments and the source are those of :func:`~trilift.lift.tree_costs.kary_tree_subtraction_cost`.

    Raises:
        ParameterError: if an argument is out of range, or the horizon is above 8192.
    """
    n = _dense_horizon(horizon)
    h = kary_tree_subtraction_cost(n, arity=arity, levels=levels, objective=objective).levels
    return _matrices(n, [_nearest(t, arity, h) for t in range(1, n + 1)])


def averaged_kary_tree(
    horizon: int, *, arity: int = 17, levels: int | None = None, objective: str = "max"
) -> Pair:
    """Return (L, R) of the averaged k-ary tree with subtraction: L is n x r, R is r x n, L R = T_n.

    The arguments and the source are those of :func:`~trilift.lift.tree_costs.averaged_kary_tree_cost`.

    Raises:
        ParameterError: if an argument is out of range, or the horizon is above 8192.
    """
    n = _dense_horizon(horizon)
    h = averaged_kary_tree_cost(n, arity=arity, levels=levels, objective=objective).levels
    root: Block = (h, 0, n)
    estimates = []
    for t in range(1, n):
        half = {root: 0.5}
        half.update((block, 0.5) for block in _prefix(t, arity, h))
        half.update((block, -0.5) for block in _rest(t, n, arity, h))
        estimates.append(half)
    return _matrices(n, [*estimates, {root: 1.0}])


def smooth_binary_tree(horizon: int, *, balanced: bool = True) -> Pair:
    """Return (L, R) of the smooth binary tree: L is n x r, R is r x n, L R = T_n.

    The arguments and the source are those of :func:`~trilift.lift.tree_costs.smooth_binary_tree_cost`.

    Raises:
        ParameterError: if an argument is out of range, or the horizon is above 8192.
    """
    n = _dense_horizon(horizon)
    cost = smooth_binary_tree_cost(n, balanced=balanced)
    h, z = cost.levels, cost.sensitivity
    leaves = _strings(h, z, n + 1)
    below: dict[str, list[int]] = {}  # node (a prefix of strings) -> its leaves, in order
    for index, leaf in enumerate(leaves):
        for length in range(1, h + 1):
            below.setdefault(leaf[:length], []).append(index)
    estimates = []
    for leaf in leaves[1:]:
        siblings = (leaf[:i] + "0" for i in range(h) if leaf[i] == "1")
        # Input t sits at leaf t-1, the estimate of step t belongs to leaf t: siblings hold earlier inputs.
        kept = [below[sibling] for sibling in siblings if sibling in below]
        estimates.append({(0, inside[0], inside[-1] + 1): 1.0 for inside in kept})
    return _matrices(n, estimates)


def _dense_horizon(horizon: object) -> int:
    return integer("horizon", horizon, minimum=1, maximum=MAX_DENSE_HORIZON)


def _matrices(n: int, estimates: list[Estimate]) -> Pair:
    """Write the estimates of the steps 1 to n as matrices, one row of R for each block that occurs."""
    blocks = sorted({block for estimate in estimates for block in estimate})
    index = {block: row for row, block in enumerate(blocks)}
    L = np.zeros((n, len(blocks)))
    R = np.zeros((len(blocks), n))
    for row, (_, start, end) in enumerate(blocks):
        R[row, start:end] = 1
    for t, estimate in enumerate(estimates):
        for block, weight in estimate.items():
            L[t, index[block]] = weight
    return L, R


def _prefix(t: int, k: int, h: int) -> Estimate:
    """Cover the steps 1 to t by the largest blocks, from the left."""
    estimate: Estimate = {}
    start = 0
    for level in range(h - 1, -1, -1):
        while start + k**level <= t:
            estimate[level, start, start + k**level] = 1.0
            start += k**level
    return estimate


def _nearest(t: int, k: int, h: int) -> Estimate:
    """Go to t from 0 by blocks of falling size, each time to the nearest end of a block."""
    estimate: Estimate = {}
    at = 0
    for level in range(h - 1, -1, -1):
        size = k**level
        while 2 * abs(t - at) > size:
            after = at + size if t > at else at - size
            estimate[level, min(at, after), max(at, after)] = 1.0 if t > at else -1.0
            at = after
    return estimate


def _rest(t: int, n: int, k: int, h: int) -> Iterator[Block]:
    """Cover the steps t+1 to n by the largest blocks, those at the end of the tree cut off at n."""
    start = t
    while start < n:
        level = max(level for level in range(h) if start % k**level == 0)
        end = min(start + k**level, n)
        yield level, start, end
        start = end


def _strings(h: int, z: int, count: int) -> list[str]:
    """Return the first ``count`` strings of h bits with z zeros, in order."""
    found: list[str] = []
    for zeros in combinations(range(h), z):  # zeros as far left as they go come first
        if len(found) == count:
            break
        found.append("".join("0" if i in zeros else "1" for i in range(h)))
    return found
