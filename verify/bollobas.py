"""Factorisations of T_n into 0/1 matrices: their skew Bollobas systems, and exact lower bounds of their cost.

From L R = T_n with entries 0 and 1 let A_i be the rows of R with a 1 in column i+1 and B_i the columns of L
with a 1 in row i, for i = 1..n-1. Then |A_i & B_j| = T_{j,i+1}, so that A_i and B_i are disjoint while A_i
meets B_j for i < j. Such a system has n-1 <= C(a+b, a) members if |A_i| <= a and |B_i| <= b (Bollobas;
Frankl), and sum of 1 / ((1 + |A_i| + |B_i|) C(|A_i| + |B_i|, |A_i|)) <= 1 (Yue 2024). Source: Arkhipov and
Kalinin, section 4, which derives from this the bounds of
:func:`trilift.verify.lower_bounds.binary_lower_bound`. Here the inequalities are solved exactly for each n
instead (new), which gives larger bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from trilift.lift.checks import choice, fail, integer, numeric_array
from trilift.lift.errors import CertificateError, ParameterError

__all__ = ["SkewSystem", "binary_cost_sq_bound", "skew_system"]

Sets = tuple[frozenset[int], ...]


@dataclass(frozen=True)
class SkewSystem:
    """A checked skew Bollobas system of a 0/1 factorisation of T_n.

    Attributes:
        size: n.
        first: A_1, ..., A_{n-1}, sets of inner indices.
        second: B_1, ..., B_{n-1}.
        a: largest |A_i|, at most |R|_(1->1).
        b: largest |B_i|, at most |L|_(2->inf)^2.
        limit: C(a+b, a), at least n-1.
        weight: the sum of Yue's inequality, at most 1.
    """

    size: int
    first: Sets
    second: Sets
    a: int
    b: int
    limit: int
    weight: Fraction


def skew_system(left: Any, right: Any) -> SkewSystem:
    """Build the skew Bollobas system of L R = T_n with 0/1 entries, and check all that is said of it.

    Args:
        left: L, shape (n, r), n >= 2, entries 0 and 1.
        right: R, shape (r, n), likewise.

    Raises:
        ParameterError: other shapes or entries.
        CertificateError: L R is not T_n, or a property of the system fails (which no true factorisation can).

    >>> system = skew_system([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    >>> system.first, system.second, system.limit
    ((frozenset({1}),), (frozenset({0}),), 2)
    """
    L, R = _binary("left", left), _binary("right", right)
    n, r = L.shape
    if n < 2 or R.shape != (r, n):
        raise ParameterError(f"L must be n x r and R r x n with n >= 2, got {L.shape} and {R.shape}")
    wrong = np.argwhere(np.tri(n, dtype=np.int64) != L @ R)
    if len(wrong):
        raise CertificateError(f"L R is not T_n: entry {tuple(map(int, wrong[0]))} is wrong")
    first = tuple(frozenset(map(int, np.flatnonzero(R[:, i + 1]))) for i in range(n - 1))
    second = tuple(frozenset(map(int, np.flatnonzero(L[i]))) for i in range(n - 1))
    _check_skew(first, second)
    a, b = max(map(len, first)), max(map(len, second))
    limit = comb(a + b, a)
    if n - 1 > limit:
        raise CertificateError(f"{n - 1} pairs of sets, more than C({a} + {b}, {a}) = {limit}")
    weight = sum((_share(len(x), len(y)) for x, y in zip(first, second, strict=True)), Fraction(0))
    if weight > 1:
        raise CertificateError(f"the pairs of sets weigh {weight} together, more than 1")
    return SkewSystem(n, first, second, a, b, limit, weight)


def _binary(name: str, value: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    array = numeric_array(name, value, ndim=2)
    if not np.isin(array, (0, 1)).all():
        raise fail(name, "a matrix with entries 0 and 1", array[~np.isin(array, (0, 1))][0])
    return array.astype(np.int64)


def _check_skew(first: Sets, second: Sets) -> None:
    for j, other in enumerate(second):
        if first[j] & other:
            raise CertificateError(f"A_{j + 1} and B_{j + 1} are not disjoint")
        for i in range(j):
            if not first[i] & other:
                raise CertificateError(f"A_{i + 1} and B_{j + 1} are disjoint")


def _share(a: int, b: int) -> Fraction:
    """Return 1 / ((1 + a + b) C(a+b, a)), the integral of x^a (1-x)^b: convex and falling in a and in b."""
    return Fraction(1, (1 + a + b) * comb(a + b, a))


def binary_cost_sq_bound(size: int, *, objective: str) -> Fraction:
    """Return a lower bound of |L|_(2->inf)^2 |R|_(1->1)^2, or |L|_F^2 |R|^2 / n, for 0/1 factors of T_n.

    max: the least a^2 b with C(a+b, a) >= n-1. mean: for each a, the least sum of n-1 integers b_i >= 1 that
    keep Yue's sum within 1; that sum is convex in the b_i, so they may differ by at most 1. The last row of L
    has an entry too. New.

    Args:
        size: n >= 2.
        objective: "max" or "mean".

    Raises:
        ParameterError: an argument out of range.

    >>> [int(binary_cost_sq_bound(n, objective="max")) for n in (2, 3, 4, 1025)]
    [1, 1, 2, 153]
    """
    pairs = integer("size", size, minimum=2) - 1
    if choice("objective", objective, ("max", "mean")) == "max":
        return Fraction(_least(pairs, 1, lambda a: _sets_needed(pairs, a)))
    total = _least(pairs, pairs, lambda a: _total_needed(pairs, a))
    return Fraction(total, pairs + 1)


def _least(pairs: int, floor: int, need: Any) -> int:
    """Return the least a^2 need(a); need(a) >= floor, which ends the search."""
    best, a = need(1), 2
    while a * a * floor < best:
        best = min(best, a * a * need(a))
        a += 1
    return int(best)


def _first(holds: Any) -> int:
    """Return the least integer >= 1 from which a monotone condition holds."""
    high = 1
    while not holds(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _sets_needed(pairs: int, a: int) -> int:
    return _first(lambda b: comb(a + b, a) >= pairs)


def _total_needed(pairs: int, a: int) -> int:
    """Return 1 + the least sum of b_1, ..., b_pairs (the 1 is the last row of L)."""
    high = _first(lambda b: pairs * _share(a, b) <= 1)
    if high == 1:
        return pairs + 1
    more, less = _share(a, high - 1), _share(a, high)
    # x of them at ``high``, the others one lower: pairs * more - x (more - less) <= 1
    x = -(-(pairs * more - 1) // (more - less))
    return int(pairs * (high - 1) + x + 1)
