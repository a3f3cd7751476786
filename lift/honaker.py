"""Trees read in the best way: the k-ary tree whose stored sums are weighted to the least variance.

R holds the sums of all blocks of k^j steps, levels j = 0 to h-1, blocks cut off at the horizon (a cut block
that equals its only child is a second measurement of it). L = T R^+ is the unbiased way to read prefixes from
them with the least squared error. The weights are those of Honaker (2015, "Efficient use of differentially
private binary trees"), there for k = 2; other k and the recursions below are new.

A block of height j is known from the sums in it with some variance a of its total; a prefix inside it with a
variance p and a covariance c with that total. Out of children, the total has variance s = sum of the a_i, and
a prefix that ends in child i has covariance A + c and variance A + p, with A the sum of a over the children
before it. The block's own measurement (variance 1) then takes the share K = c / (s + 1) of the difference:

    a <- s / (s + 1),        c <- c / (s + 1),        p <- p - c^2 / (s + 1).

All numbers are rational and all results exact. Means carry the sums of c, c^2 and p over a block's steps;
maxima carry the pairs (c, p) that no other beats (of two with the same p, the smaller c keeps more of it).

Neither a Chain nor a stream in O(log n) memory gives these weights: the best reading of a step uses every
block beside its path, those after it too. With gains rounded to binary places :func:`honaker_stage` still
factors T_n exactly, as one plain stage at small horizons. :func:`trilift.lift.tree_chains.interpolated_chain`
is the nearest thing that streams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from trilift.lift.checks import choice, integer
from trilift.lift.dyadic import Dyadic
from trilift.lift.laplace_errors import laplace_se
from trilift.lift.stage import Stage

__all__ = ["MAX_HORIZON", "HonakerCost", "honaker_cost", "honaker_stage", "honaker_tree"]

MAX_HORIZON = 2**60
MAX_DENSE_HORIZON = 1024

Pair = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class _Block:
    """What is known about the steps of one block.

    Attributes:
        steps: how many there are.
        total: a, the variance of the block's sum.
        c, c_sq, p: sums over its steps t (prefixes that end at t) of c, c^2 and p.
        worst: the pairs (c, p) that may lead to the largest p, by rising c.
    """

    steps: int
    total: Fraction
    c: Fraction
    c_sq: Fraction
    p: Fraction
    worst: tuple[Pair, ...]


_LEAF = _Block(1, Fraction(1), Fraction(1), Fraction(1), Fraction(1), ((Fraction(1), Fraction(1)),))


def _parent(children: list[_Block]) -> _Block:
    """Join children under a block that is measured itself."""
    before = Fraction(0)
    c = c_sq = p = Fraction(0)
    pairs: list[Pair] = []
    for child in children:
        c += child.c + child.steps * before
        c_sq += child.c_sq + 2 * before * child.c + child.steps * before**2
        p += child.p + child.steps * before
        pairs += [(before + x, before + y) for x, y in child.worst]
        before += child.total
    rest = before + 1
    worst = _undominated([(x / rest, y - x * x / rest) for x, y in pairs])
    steps = sum(child.steps for child in children)
    return _Block(steps, before / rest, c / rest, c_sq / rest**2, p - c_sq / rest, worst)


def _undominated(pairs: list[Pair]) -> tuple[Pair, ...]:
    """Keep the pairs with no other of at most their c and at least their p."""
    kept: list[Pair] = []
    for pair in sorted(pairs, key=lambda pair: (pair[0], -pair[1])):
        if not kept or pair[1] > kept[-1][1]:
            kept.append(pair)
    return tuple(kept)


@lru_cache(maxsize=256)
def _full(k: int, height: int) -> _Block:
    return _LEAF if height == 0 else _parent([_full(k, height - 1)] * k)


@lru_cache(maxsize=256)
def _last(n: int, k: int, height: int) -> _Block | None:
    """Return the block that the horizon cuts at this height, or None if it cuts none."""
    whole, rest = divmod(n % k**height, k ** (height - 1)) if height else (0, 0)
    if not whole and not rest:
        return None
    cut = _last(n, k, height - 1)
    return _parent([_full(k, height - 1)] * whole + ([cut] if cut else []))


@dataclass(frozen=True)
class HonakerCost:
    """The exact cost of a tree with optimal weights.

    Attributes:
        name: what it is, in words.
        horizon: number of steps n.
        arity: children per node, k.
        levels: stored levels h.
        sensitivity: largest column l1 norm of R, which is h.
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

    def row_norm_sq(self, step: int) -> Fraction:
        """Return the squared row norm of L at one step (1 to n)."""
        t = integer("step", step, minimum=1, maximum=self.horizon) - 1
        k, n = self.arity, self.horizon
        c, p = Fraction(1), Fraction(1)
        for height in range(1, self.levels):
            at = t // k ** (height - 1)
            first = at // k * k
            end = min(first + k, -(-n // k ** (height - 1)))
            totals = [_total(n, k, height - 1, block) for block in range(first, end)]
            before, rest = sum(totals[: at - first], Fraction(0)), sum(totals, Fraction(1))
            c, p = before + c, before + p
            c, p = c / rest, p - c * c / rest
        whole: int = t // k ** (self.levels - 1)
        return p + whole * _full(k, self.levels - 1).total

    def max_se(self, epsilon: float = 1.0) -> float:
        """Largest squared error of a step, 2 max|L_t|^2 |R|^2 / epsilon^2 (the nearest float)."""
        return self._se(self.max_row_norm_sq, epsilon)

    def mean_se(self, epsilon: float = 1.0) -> float:
        """Squared error averaged over the steps (the nearest float)."""
        return self._se(self.mean_row_norm_sq, epsilon)

    def _se(self, row: Fraction, epsilon: float) -> float:
        return laplace_se(row, sensitivity=self.sensitivity, epsilon=epsilon)


def _total(n: int, k: int, height: int, block: int) -> Fraction:
    if (block + 1) * k**height <= n:
        return _full(k, height).total
    cut = _last(n, k, height)
    return cut.total if cut else Fraction(0)


def honaker_cost(
    horizon: int, *, arity: int = 2, levels: int | None = None, objective: str = "max"
) -> HonakerCost:
    """Return the exact cost of the k-ary tree with optimal weights.

    At large horizons the squared error over log2(n)^3 tends to (k-1)^2 / (2 k log2(k)^3) for the worst step
    (k odd; 2/9 for k = 2) and to (k-1)^2 / (3 k log2(k)^3) for the mean (new): 1/6 for k = 2, and 0.0729 for
    k = 13, the best k.

    Args:
        horizon: number of steps n, at most 2^60.
        arity: children per node, 2 to 1024.
        levels: stored levels; by default those with the least ``objective``.
        objective: "max" or "mean".

    Raises:
        ParameterError: if an argument is out of range.

    >>> cost = honaker_cost(2, levels=2)
    >>> cost.sensitivity, cost.max_row_norm_sq, cost.mean_row_norm_sq
    (2, Fraction(2, 3), Fraction(2, 3))
    """
    n = integer("horizon", horizon, minimum=1, maximum=MAX_HORIZON)
    k = integer("arity", arity, minimum=2, maximum=1024)
    by_mean = choice("objective", objective, ("max", "mean")) == "mean"
    useful = 1
    while k ** (useful - 1) < n:  # up to a total of all steps
        useful += 1
    if levels is not None:
        return _cost(n, k, integer("levels", levels, minimum=1, maximum=useful))

    def price(cost: HonakerCost) -> Fraction:
        row = cost.mean_row_norm_sq if by_mean else cost.max_row_norm_sq
        return row * cost.sensitivity**2

    return min((_cost(n, k, h) for h in range(1, useful + 1)), key=price)


def _cost(n: int, k: int, h: int) -> HonakerCost:
    whole = n // k ** (h - 1)
    full, cut = _full(k, h - 1), _last(n, k, h - 1)
    worst, total = Fraction(0), Fraction(0)
    if whole:
        worst = (whole - 1) * full.total + full.worst[-1][1]
        total = whole * full.p + whole * (whole - 1) // 2 * full.steps * full.total
    if cut:
        worst = max(worst, whole * full.total + cut.worst[-1][1])
        total += cut.p + cut.steps * whole * full.total
    name = f"{k}-ary tree, optimal weights" if k > 2 else "binary tree, optimal weights"
    return HonakerCost(name, n, k, h, h, worst, total / n)


Vector = np.ndarray[Any, np.dtype[Any]]


def _factors(n: int, k: int, h: int, gain: Callable[[Fraction], Fraction]) -> tuple[Vector, Vector]:
    """Return L (n, r) of Fractions and R (r, n) of integers; any gains at all give L R = T_n."""
    counts = [-(-n // k**j) for j in range(h)]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    R = np.zeros((int(offsets[-1]), n), dtype=np.int64)
    for j in range(h):
        R[offsets[j] + np.arange(n) // k**j, np.arange(n)] = 1
    L = np.full((n, len(R)), Fraction(0), dtype=object)  # row t: the prefix up to t inside its block
    L[np.arange(n), np.arange(n)] = Fraction(1)
    totals = [L[t].copy() for t in range(n)]
    covariances, variances = [Fraction(1)] * n, [Fraction(1)] * n
    for j in range(1, h):
        joined, known = [], []
        for block in range(counts[j]):
            own = int(offsets[j]) + block
            before, sofar = Fraction(0), np.full(len(R), Fraction(0), dtype=object)
            for child in range(block * k, min((block + 1) * k, counts[j - 1])):
                for t in range(child * k ** (j - 1), min((child + 1) * k ** (j - 1), n)):
                    L[t] += sofar
                    covariances[t] += before
                before += variances[child]
                sofar = sofar + totals[child]
            for t in range(block * k**j, min((block + 1) * k**j, n)):
                share = gain(covariances[t] / (before + 1))
                L[t] -= share * sofar
                L[t, own] += share
                covariances[t] /= before + 1
            share = gain(before / (before + 1))
            total = (1 - share) * sofar
            total[own] += share
            joined.append(total)
            known.append(before / (before + 1))
        totals, variances = joined, known
    done = np.full(len(R), Fraction(0), dtype=object)
    for block in range(counts[h - 1]):
        for t in range(block * k ** (h - 1), min((block + 1) * k ** (h - 1), n)):
            L[t] += done
        done = done + totals[block]
    return L, R


def honaker_tree(
    horizon: int, *, arity: int = 2, levels: int | None = None, objective: str = "max"
) -> tuple[Vector, Vector]:
    """Return (L, R) with L = T_n R^+: L is n x r of Fractions (dtype object), R is r x n of integers.

    The arguments are those of :func:`honaker_cost`; the horizon is at most 1024.

    >>> L, R = honaker_tree(2, levels=2)
    >>> L.tolist()
    [[Fraction(2, 3), Fraction(-1, 3), Fraction(1, 3)], [Fraction(1, 3), Fraction(1, 3), Fraction(2, 3)]]
    """
    n = integer("horizon", horizon, minimum=1, maximum=MAX_DENSE_HORIZON)
    cost = honaker_cost(n, arity=arity, levels=levels, objective=objective)
    return _factors(n, cost.arity, cost.levels, lambda share: share)


def honaker_stage(
    horizon: int, *, arity: int = 2, levels: int | None = None, objective: str = "max", bits: int = 16
) -> Stage:
    """Return the mechanism as an exact plain stage, every gain rounded to ``bits`` binary places.

    The weights are optimal, so the rounding costs about 4^-bits, relatively. The other arguments are those of
    :func:`honaker_tree`.

    Raises:
        ParameterError: if an argument is out of range.
    """
    n = integer("horizon", horizon, minimum=1, maximum=MAX_DENSE_HORIZON)
    unit = 1 << integer("bits", bits, minimum=1, maximum=64)
    cost = honaker_cost(n, arity=arity, levels=levels, objective=objective)
    L, R = _factors(n, cost.arity, cost.levels, lambda share: Fraction(round(share * unit), unit))
    exp = max(entry.denominator for entry in L.flat).bit_length() - 1
    numerators = [entry.numerator * ((1 << exp) // entry.denominator) for entry in L.flat]
    return Stage.plain(Dyadic(np.array(numerators, dtype=object).reshape(L.shape), exp), Dyadic(R))
