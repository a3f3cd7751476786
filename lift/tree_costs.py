"""Exact costs of the tree mechanisms at any horizon, without building matrices.

These are the mechanisms that came before optimised factorisations; :mod:`trilift.lift.trees` holds the
same ones as explicit matrices. All work on levels: level j cuts the steps into blocks of k^j (k is the
arity), levels 0 to h-1 are stored, and the top level may have any number of blocks. Every stored block
that is part of at least one estimate costs its inputs one unit of sensitivity.

Each mechanism is given its best form at a finite horizon, so that comparisons are fair to it: no root
unless it is used, blocks cut off at the horizon, blocks that no estimate uses (or that hold nothing) not
stored, and the number of levels h with the least squared error. The count in the literature, the least h
for which h digits reach the horizon, is one of those tried, so the default is never worse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trilift.lift import tree_digits as digits
from trilift.lift.checks import choice, fail, flag, integer
from trilift.lift.errors import ParameterError
from trilift.lift.laplace_errors import laplace_se

__all__ = [
    "TreeCost",
    "averaged_kary_tree_cost",
    "binary_tree_cost",
    "kary_tree_cost",
    "kary_tree_subtraction_cost",
    "smooth_binary_tree_cost",
]

Steps = NDArray[np.int64]
# Steps are int64 in the vectorised forms, and the sum of a step and a block must fit too.
MAX_HORIZON = 2**60


@dataclass(frozen=True)
class TreeCost:
    """The exact cost of one tree mechanism.

    Attributes:
        name: what it is, in words.
        horizon: number of steps n.
        arity: children per node, k.
        levels: stored levels h (a stored total of the averaged tree is not counted).
        sensitivity: largest column l1 norm of R.
        max_row_norm_sq: largest squared row norm of L.
        mean_row_norm_sq: mean of the squared row norms of L over the n steps.
    """

    name: str
    horizon: int
    arity: int
    levels: int
    sensitivity: int
    max_row_norm_sq: Fraction
    mean_row_norm_sq: Fraction
    _quarters: Callable[[Steps], Steps] = field(repr=False, compare=False)

    def row_norms_sq(self, steps: Any = None) -> NDArray[np.float64]:
        """Return the squared row norms of L at the given steps (1 to n; all of them by default).

        They are multiples of 1/4, so the floats are exact.

        Raises:
            ParameterError: if a step is not an integer from 1 to the horizon.
        """
        if steps is None:
            t = np.arange(1, self.horizon + 1, dtype=np.int64)
        else:
            t = np.asarray(steps)
            if t.dtype.kind not in "iu":
                raise fail("steps", "integers", steps)
            if t.size and (int(t.min()) < 1 or int(t.max()) > self.horizon):
                raise fail("steps", f"from 1 to the horizon {self.horizon}", steps)
            t = t.astype(np.int64)
        return np.asarray(self._quarters(t) / 4.0, dtype=np.float64)

    def row_norm_sq(self, step: int) -> Fraction:
        """Return the squared row norm of L at one step."""
        t = integer("step", step, minimum=1, maximum=self.horizon)
        return Fraction(int(self._quarters(np.array([t], dtype=np.int64))[0]), 4)

    def max_se(self, epsilon: float = 1.0) -> float:
        """Largest squared error of a step, 2 max|L_t|^2 |R|^2 / epsilon^2 (the nearest float)."""
        return self._se(self.max_row_norm_sq, epsilon)

    def mean_se(self, epsilon: float = 1.0) -> float:
        """Squared error averaged over the steps (the nearest float)."""
        return self._se(self.mean_row_norm_sq, epsilon)

    def step_se(self, step: int, *, epsilon: float = 1.0) -> float:
        """Squared error at one step (the nearest float)."""
        return self._se(self.row_norm_sq(step), epsilon)

    def _se(self, row: Fraction, epsilon: float) -> float:
        return laplace_se(row, sensitivity=self.sensitivity, epsilon=epsilon)


def binary_tree_cost(horizon: int, *, levels: int | None = None, objective: str = "max") -> TreeCost:
    """Return the cost of the binary tree mechanism (Dwork et al. 2010; Chan, Shi and Song 2011).

    >>> cost = binary_tree_cost(7, levels=3)
    >>> cost.sensitivity, cost.max_row_norm_sq, cost.mean_row_norm_sq
    (3, Fraction(3, 1), Fraction(12, 7))
    """
    return _kary(horizon, 2, levels, objective, "binary tree")


def kary_tree_cost(
    horizon: int, *, arity: int = 17, levels: int | None = None, objective: str = "max"
) -> TreeCost:
    """Return the cost of the k-ary tree mechanism (Qardaji et al. 2013; Cardoso and Rogers 2022).

    A prefix is the sum of the blocks that its base-k digits name, so its squared row norm is its digit sum
    and last children are never used.

    Args:
        horizon: number of steps n.
        arity: children per node, at least 2.
        levels: stored levels; by default those with the least ``objective``.
        objective: "max" or "mean".

    Raises:
        ParameterError: if an argument is out of range.
    """
    k = integer("arity", arity, minimum=2)
    return _kary(horizon, k, levels, objective, f"{k}-ary tree")


def _kary(horizon: int, k: int, levels: int | None, objective: str, name: str) -> TreeCost:
    n = _horizon(horizon)

    def build(h: int) -> TreeCost:
        norm = partial(_times_four, digits.digit_sum, k, h)
        worst, mean = digits.digit_greatest(n, k, h), Fraction(digits.digit_total(n, k, h), n)
        return TreeCost(name, n, k, h, h, Fraction(worst), mean, norm)

    # A level is of use only if its first block ends by the horizon.
    useful = _count(lambda h: k ** (h - 1) <= n)
    return _choose(build, range(1, useful + 1), levels, objective)


def kary_tree_subtraction_cost(
    horizon: int, *, arity: int = 17, levels: int | None = None, objective: str = "max"
) -> TreeCost:
    """Return the cost of the k-ary tree with subtraction (Andersson, Pagh, Steiner and Torkamani 2025).

    A step is written with digits from -(k-1)/2 to (k-1)/2 (the top digit is only nonnegative); negative
    digits take blocks away. The squared row norm is the sum of the digits' absolute values.

    Args:
        horizon: number of steps n.
        arity: children per node, odd and at least 3.
        levels: stored levels; by default those with the least ``objective``.
        objective: "max" or "mean".

    Raises:
        ParameterError: if an argument is out of range.
    """
    n = _horizon(horizon)
    k = odd_arity(arity)

    name = f"{k}-ary tree with subtraction"

    def build(h: int) -> TreeCost:
        norm = partial(_times_four, digits.balanced_sum, k, h)
        worst, mean = digits.balanced_greatest(n, k, h), Fraction(digits.balanced_total(n, k, h), n)
        return TreeCost(name, n, k, h, h, Fraction(worst), mean, norm)

    # A level is of use only if some step is nearer to the end of its first block than to 0.
    useful = _count(lambda h: (k ** (h - 1) + 1) // 2 <= n)
    return _choose(build, range(1, useful + 1), levels, objective)


def averaged_kary_tree_cost(
    horizon: int, *, arity: int = 17, levels: int | None = None, objective: str = "max"
) -> TreeCost:
    """Return the cost of the averaged k-ary tree with subtraction (Arkhipov and Kalinin, appendix C.3).

    The mechanism is due to the code of Imola et al. 2025. An estimate is half of: the stored total, plus
    the blocks of the prefix, minus the blocks of the rest. The last step is the total itself.

    Args:
        horizon: number of steps n.
        arity: children per node, at least 2.
        levels: stored levels below the total; by default those with the least ``objective``.
        objective: "max" or "mean".

    Raises:
        ParameterError: if an argument is out of range.

    >>> cost = averaged_kary_tree_cost(16, arity=4, levels=2)
    >>> cost.sensitivity, cost.max_row_norm_sq
    (3, Fraction(2, 1))
    """
    n = _horizon(horizon)
    k = integer("arity", arity, minimum=2)
    name = f"averaged {k}-ary tree with subtraction"

    def build(h: int) -> TreeCost:
        norm = partial(digits.averaged_quarters, n=n, k=k, h=h)
        mean = Fraction(digits.averaged_total(n, k, h), 4 * n)
        # Step 1 is the worst one before the last: 1 block for the prefix, and no level's rest is longer.
        worst = max(4, int(norm(np.array([1], dtype=np.int64))[0]))
        return TreeCost(name, n, k, h, h + 1, Fraction(worst, 4), mean, norm)

    useful = _count(lambda h: k ** (h - 1) < n)
    return _choose(build, range(min(1, useful), useful + 1), levels, objective)


def smooth_binary_tree_cost(horizon: int, *, balanced: bool = True) -> TreeCost:
    """Return the cost of the smooth binary tree (Andersson and Pagh 2023).

    Steps 0 to n are leaves of a binary tree of height h: in order, the strings of h bits with exactly z
    zeros. Left children are stored; a prefix is the sum of the left siblings along the path of its leaf
    (those with leaves). The published form has as many zeros as ones. With ``balanced=False`` (new) z is
    chosen too: an input pays z, an estimate at most h-z squared norm. At large horizons z/h near 0.160 has
    the least product, 0.2903 log2(n)^(3/2) as a cost: the same constant as in the lower bound of Arkhipov
    and Kalinin for factors with entries 0 and 1. ``levels`` of the result is h, ``sensitivity`` is z.

    Args:
        horizon: number of steps n.
        balanced: whether z is h/2 (rounded down).

    Raises:
        ParameterError: if an argument is out of range.

    >>> cost = smooth_binary_tree_cost(5)
    >>> cost.levels, cost.sensitivity, cost.max_row_norm_sq
    (4, 2, Fraction(2, 1))
    """
    n = _horizon(horizon)
    h, z = smooth_shape(n, balanced=balanced)
    name = "smooth binary tree" if balanced else "unbalanced smooth binary tree"
    norm = partial(_times_four, digits.smooth_norm, h, z)
    return TreeCost(name, n, 2, h, z, Fraction(h - z), Fraction(digits.smooth_total(h, z, n + 1), n), norm)


def smooth_shape(n: int, *, balanced: bool) -> tuple[int, int]:
    """Return (height, zeros) of the smooth binary tree for leaves 0 to n.

    Balanced: the least height h for which h // 2 zeros give enough leaves. Else the pair with the least
    z^2 (h - z) and enough leaves.

    Raises:
        ParameterError: if ``balanced`` is not a boolean.
    """
    h = _count(lambda bits: comb(bits, bits // 2) <= n) + 1
    if flag("balanced", balanced):
        return h, h // 2
    # More zeros than half cannot pay.
    shapes = [(_least_height(n, zeros), zeros) for zeros in range(1, h // 2 + 1)]
    return min(shapes, key=lambda shape: shape[1] ** 2 * (shape[0] - shape[1]))


def _least_height(n: int, zeros: int) -> int:
    """Return the least height with more than ``n`` strings of that many zeros, by bisection."""
    low, high = zeros, 2 * zeros
    while comb(high, zeros) <= n:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if comb(middle, zeros) > n else (middle, high)
    return high


def odd_arity(arity: object) -> int:
    """Return the arity of a tree with balanced digits.

    Raises:
        ParameterError: if it is not an odd integer of at least 3.
    """
    k = integer("arity", arity, minimum=3)
    if k % 2 == 0:
        raise ParameterError(f"arity must be odd for balanced digits, got {k}")
    return k


def _times_four(function: Callable[[Steps, int, int], Steps], k: int, h: int, t: Steps) -> Steps:
    return 4 * function(t, k, h)


def _horizon(value: object) -> int:
    return integer("horizon", value, minimum=1, maximum=MAX_HORIZON)


def _count(useful: Callable[[int], bool]) -> int:
    """Return how many of 1, 2, 3, ... pass before the first that does not."""
    h = 0
    while useful(h + 1):
        h += 1
    return h


def _choose(build: Callable[[int], TreeCost], useful: range, levels: int | None, objective: str) -> TreeCost:
    """Build the tree with the asked number of levels, or the cheapest one."""
    by_mean = choice("objective", objective, ("max", "mean")) == "mean"
    if levels is not None:
        return build(integer("levels", levels, minimum=useful[0], maximum=useful[-1]))

    def cost(tree: TreeCost) -> Fraction:
        row = tree.mean_row_norm_sq if by_mean else tree.max_row_norm_sq
        return row * tree.sensitivity**2

    return min(map(build, useful), key=cost)
