"""What theory says that the peers' mechanisms cost, written down independently of their code.

All of them release T x + L z with Laplace noise z of one scale; a cost is the largest or mean squared row
norm of L over n steps, times the variance of z. Each function returns the squared row norms of L.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "block_tree",
    "consistent_tree",
    "discrete_laplace_variance",
    "full_decomposition",
    "summed_tree",
    "tree_layers",
]

FloatArray = NDArray[np.float64]


def discrete_laplace_variance(scale: float) -> float:
    """Return the variance of the discrete Laplace distribution, P(z) ~ exp(-|z| / scale).

    >>> round(discrete_laplace_variance(10.0), 3)  # 2 scale^2 - 1/6, nearly
    199.833
    """
    return 0.5 / math.sinh(0.5 / scale) ** 2


def block_tree(n: int, *, arity: int, order: int, least_variance: bool) -> FloatArray:
    """Return row norms of trees of k^h leaves, one after the other, each read by base-k digits.

    The estimate of a node is its own noisy value, or the one of least variance given all below it (Honaker):
    the variances are then v_0 = 1, v_j = 1 / (1 + 1 / (k v_(j-1))). A leaf's l1 sensitivity is h + 1.

    Args:
        n: steps.
        arity: children per node, k.
        order: levels above the leaves, h.
        least_variance: whether nodes below are used too.

    >>> block_tree(3, arity=2, order=1, least_variance=True).tolist()  # 1, 2/3, 5/3
    [1.0, 0.6666666666666666, 1.6666666666666665]
    """
    variances = [1.0]
    for _ in range(order):
        variances.append(1.0 / (1.0 + 1.0 / (arity * variances[-1])) if least_variance else 1.0)
    rest = np.arange(1, n + 1)
    norms = np.zeros(n)
    for variance in variances[:-1]:
        rest, digits = np.divmod(rest, arity)
        norms += variance * digits
    return np.asarray(norms + variances[-1] * rest, dtype=np.float64)


def full_decomposition(n: int, *, order: int) -> FloatArray:
    """Return row norms of dpcrpy's FDA, "full decomposition": blocks of 2^order - 1 steps, sensitivity 1.

    The middle step of a block of order j takes a share a_j of the budget for its whole prefix, the left half
    is a block of order j-1 with what remains, and so is the right half, which adds up with the middle; a_j is
    best for the mean: with H_j the least sum over the block, a / (1 - a) = (2^j / H)^(1/3) where H = H_(j-1).

    >>> full_decomposition(1, order=1).tolist()
    [1.0]
    """
    block, least = np.ones(1), 1.0
    for j in range(1, order):
        after = float(2**j)  # the middle and all steps after it
        share = after ** (1 / 3) / (after ** (1 / 3) + least ** (1 / 3))
        middle = 1.0 / share**2
        block = np.concatenate([block / (1.0 - share) ** 2, [middle], middle + block])
        least += (after ** (1 / 3) + least ** (1 / 3)) ** 3
    whole, place = np.divmod(np.arange(n), block.size)
    return np.asarray(whole * block[-1] + block[place], dtype=np.float64)


def tree_layers(n: int, branching: int) -> int:
    """Return the layers of a tree of n leaves, root and leaves among them.

    >>> tree_layers(16, 4), tree_layers(17, 4)
    (3, 4)
    """
    count, reach = 1, 1
    while reach < n:
        count, reach = count + 1, reach * branching
    return count


def summed_tree(n: int, *, branching: int) -> FloatArray:
    """Return row norms of one tree with its root, read by base-b digits: their sums."""
    return block_tree(n, arity=branching, order=tree_layers(n, branching) - 1, least_variance=False)


def consistent_tree(n: int, *, branching: int) -> FloatArray:
    """Return row norms of one tree read with least squares over all nodes, later ones too (Hay et al. 2010).

    For the block of a node, A = sum over its nodes of 1 1^T over their leaves; A of a node is A of its
    children, block by block, plus 1 1^T, so that by Sherman and Morrison u = 1^T A^-1 1, s = 1^T A^-1 c and
    q = c^T A^-1 c, with c the prefix's part of the block, follow from those of the children.

    >>> [round(float(x), 4) for x in consistent_tree(2, branching=2)]  # 2/3, 2/3
    [0.6667, 0.6667]
    """
    step = np.arange(n)
    u = np.ones(n)
    s, q = np.ones(n), np.ones(n)
    size = 1
    for _ in range(tree_layers(n, branching) - 1):
        sums = np.concatenate(([0.0], np.cumsum(u)))
        child = step // size
        parent = child // branching
        before = sums[child] - sums[parent * branching]
        firsts = np.arange(0, u.size, branching)
        whole = sums[np.minimum(firsts + branching, u.size)] - sums[firsts]
        s += before
        q += before - s**2 / (1.0 + whole[parent])
        s /= 1.0 + whole[parent]
        u = whole / (1.0 + whole)
        size *= branching
    return np.asarray(q, dtype=np.float64)
