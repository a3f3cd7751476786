"""Arithmetic behind the exact costs of tree mechanisms: digit sums of all steps up to a horizon.

The squared row norm of a tree mechanism at step t is a sum of digits of t. Each family below has its value
at given steps (vectorised), its total over steps 1 to n and its maximum, all exact; totals and maxima take
O(levels) operations, so that any horizon is cheap. New (closed forms by counting); checked in the tests
against the explicit matrices.

Digits are those of base k at levels 0 to h-1, the top one holding all that is left, however large.
"""

from __future__ import annotations

from itertools import pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "averaged_quarters",
    "averaged_total",
    "balanced_greatest",
    "balanced_sum",
    "balanced_total",
    "digit_greatest",
    "digit_sum",
    "digit_total",
    "smooth_norm",
    "smooth_total",
]

Steps = NDArray[np.int64]


def _digits(t: Steps, k: int, h: int) -> list[Steps]:
    cuts = [t // k**j for j in range(h)]
    return [*(low - k * high for low, high in pairwise(cuts)), *cuts[-1:]]


def _add(parts: list[Steps]) -> Steps:
    total = np.zeros_like(parts[0])
    for part in parts:
        total += part
    return total


def digit_sum(t: Steps, k: int, h: int) -> Steps:
    """Return the digit sums of the steps ``t``."""
    return _add(_digits(t, k, h))


def _floor_total(n: int, p: int) -> int:
    """Sum of t // p over t = 0 .. n (n >= -1)."""
    q, r = divmod(n + 1, p)
    return p * q * (q - 1) // 2 + q * r


def digit_total(n: int, k: int, h: int) -> int:
    """Return the sum of the digit sums of steps 1 to ``n``."""
    # Digit j is t // k^j - k (t // k^(j+1)), so all levels but the lowest appear twice.
    return _floor_total(n, 1) - (k - 1) * sum(_floor_total(n, k**j) for j in range(1, h))


def digit_greatest(n: int, k: int, h: int) -> int:
    """Return the largest digit sum among steps 1 to ``n``: n itself, or n cut at a digit that is lowered."""
    digits = [int(d[0]) for d in _digits(np.array([n], dtype=np.int64), k, h)]
    lowered = [sum(digits[j:]) - 1 + (k - 1) * j for j in range(h) if digits[j] > 0]
    return max(sum(digits), *lowered)


def _balanced_digits(t: Steps, k: int, h: int) -> list[Steps]:
    cuts = [(t + (k**j - 1) // 2) // k**j for j in range(h)]  # t / k^j to the nearest integer
    return [*(low - k * high for low, high in pairwise(cuts)), *cuts[-1:]]


def balanced_sum(t: Steps, k: int, h: int) -> Steps:
    """Return the sums of the absolute balanced digits of ``t`` (k odd, the top digit nonnegative)."""
    return _add([np.abs(digit) for digit in _balanced_digits(t, k, h)])


def balanced_total(n: int, k: int, h: int) -> int:
    """Return the sum of :func:`balanced_sum` over steps 1 to ``n``."""
    top = k ** (h - 1)
    lower = sum(_balanced_level(n, k, k**j) for j in range(h - 1))
    return lower + _floor_total(n + (top - 1) // 2, top)


def _balanced_level(n: int, k: int, p: int) -> int:
    """Sum over t = 0 .. n of the absolute balanced digit whose place value is p."""
    m = (k - 1) // 2
    shift = (k * p - 1) // 2  # digit + m is the usual digit of t + shift

    def below(x: int) -> int:
        periods, rest = divmod(x, k * p)
        q, r = divmod(rest, p)
        # |i - m| summed over i < q, in closed form on either side of m
        part = q * m - q * (q - 1) // 2 if q <= m else m * (m + 1) // 2 + (q - m) * (q - m - 1) // 2
        return int(periods * p * m * (m + 1) + p * part + r * abs(q - m))

    return below(shift + n + 1) - below(shift)


def balanced_greatest(n: int, k: int, h: int) -> int:
    """Return the largest :func:`balanced_sum` among steps 1 to ``n``."""
    m = (k - 1) // 2
    digits = [int(d[0]) for d in _balanced_digits(np.array([n], dtype=np.int64), k, h)]
    best = sum(map(abs, digits))
    for j, digit in enumerate(digits):
        above = sum(map(abs, digits[j + 1 :]))
        # A lowered digit may be anything from -m, or from 0 where nothing stands above it.
        if above and digit > -m:
            best = max(best, above + m + j * m)
        elif not above and digit > 0:
            best = max(best, digit - 1 + j * m)
    return best


def averaged_quarters(t: Steps, n: int, k: int, h: int) -> Steps:
    """Return 1 + (blocks of the prefix) + (blocks of the rest up to ``n``); 4 at the last step."""
    blocks = np.ones_like(t)
    if h:
        blocks += digit_sum(t, k, h) + _add(_rest_digits(t, n, k, h))
    return np.where(t == n, 4, blocks)


def _rest_digits(t: Steps, n: int, k: int, h: int) -> list[Steps]:
    """Blocks of each level in the sum of steps t+1 to n, the last block of a level cut off at n."""
    starts = [-(-t // k**j) for j in range(h)]
    ends = [np.minimum(k * high, -(-n // k**j)) for j, high in enumerate(starts[1:])]
    top = np.full_like(t, -(-n // k ** (h - 1)))
    return [end - start for start, end in zip(starts, [*ends, top], strict=True)]


def averaged_total(n: int, k: int, h: int) -> int:
    """Return the sum of :func:`averaged_quarters` over steps 1 to ``n``."""
    last = n - 1
    if not h:
        return last + 4

    def ceilings(j: int) -> int:
        return last + _floor_total(last - 1, k**j)  # ceil(t / p) = 1 + (t - 1) // p

    rest = last * -(-n // k ** (h - 1)) - ceilings(h - 1)
    for j in range(h - 1):
        here, above = -(-n // k**j), -(-n // k ** (j + 1))
        # Only in the last block above are there fewer than k blocks here.
        cut = (k * above - here) * (last - (above - 1) * k ** (j + 1))
        rest += k * ceilings(j + 1) - cut - ceilings(j)
    return int(last + digit_total(last, k, h) + rest + 4)


def smooth_norm(t: Steps, h: int, z: int) -> Steps:
    """Return how many ones stand before the last zero in the t-th string (from 0) of h bits with z zeros."""
    # ways[r, y]: strings of r bits with y - 1 zeros; never above the horizon for the shapes in use.
    ways = np.array([[comb(r, y - 1) if y else 0 for y in range(z + 1)] for r in range(h)], dtype=np.int64)
    rank, zeros = t.copy(), np.full_like(t, z)
    ones = np.zeros_like(t)
    for left in range(h - 1, -1, -1):
        with_zero = ways[left, zeros]
        one = rank >= with_zero
        ones += one & (zeros > 0)
        rank -= np.where(one, with_zero, 0)
        zeros -= ~one
    return ones


def smooth_total(h: int, z: int, count: int) -> int:
    """Return the sum of :func:`smooth_norm` over the first ``count`` strings."""
    total = 0
    while z and count:
        with_zero = comb(h - 1, z - 1)
        if count <= with_zero:
            z -= 1
        else:
            # All strings that begin with 0, then those that begin with 1 (which counts: a zero follows).
            # Among all strings of h bits, comb(h, z + 1) ones in total come after the last zero.
            if z > 1:
                total += with_zero * (h - z) - comb(h - 1, z)
            count -= with_zero
            total += count
        h -= 1
    return total
