"""Samplers at scales far from the usual, against the exact law, by balls that share no code with them.

Three things are checked at every scale: that each comparison is made against the exact probability (Laplace)
or each integer is the one that the words stand for (Gaussian); that many draws follow the law (chi-square);
and that at large scales the lowest bits are fair, so that no lattice is coarser than it should be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from trilift.lift.errors import ParameterError
from trilift.stream.balls import at_precision, ball
from trilift.stream.gaussian import WORDS, GaussianRows
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import TIE, Keystream
from trilift.stream.laplace import LaplaceRows
from trilift.stream.laplace_layout import DIGITS, EXCEPTION, low_count, rule

__all__ = [
    "ALPHA",
    "GAUSSIAN_SCALES",
    "LAPLACE_SCALES",
    "REFUSED_GAUSSIAN",
    "REFUSED_LAPLACE",
    "comparisons",
    "gaussian_integers",
    "law",
    "refused",
]

Scale = int | Fraction

ALPHA = 1e-9
"""False-alarm probability of every chi-square test, for a random seed."""

_MIDDLE: tuple[Scale, ...] = (1, Fraction(3, 2), 2, 10, (1 << 16) + 1, (1 << 31) - 1, 1 << 32, (1 << 36) - 1)
_LARGE: tuple[Scale, ...] = (
    (1 << 53) + 1,
    1 << 62,
    (1 << 63) - 1,
    1 << 63,
    (1 << 63) + 1,
    1 << 64,
    1 << 70,
    Fraction((1 << 70) + 1, 3),
    3**50,
    1 << 100,
    1 << 200,
    1 << 480,
    1 << 1000,
)

LAPLACE_SCALES: tuple[Scale, ...] = (
    *(Fraction(1, n) for n in (1024, 1000, 100, 20, 7, 3)),
    Fraction(2, 3),
    *_MIDDLE,
    *_LARGE,
)
REFUSED_LAPLACE: tuple[Any, ...] = (
    *(0, -1, -(1 << 70), Fraction(1, 1025), Fraction(1, 10**300), Fraction(-1, 2), Fraction(0)),
    *(0.5, 5e-324, 1e300, math.nan, math.inf, -math.inf, -0.0, True, "1", None, 1j),
)
GAUSSIAN_SCALES: tuple[Scale, ...] = (
    *(Fraction(1, n) for n in (1 << 64, 1 << 40, 1000, 100, 10, 7, 3, 2)),
    *_MIDDLE,
    1 << 36,
    *_LARGE,
    1 << 1022,
)
REFUSED_GAUSSIAN: tuple[Any, ...] = (
    *(0, -1, Fraction(1, (1 << 64) + 1), Fraction(1, 10**300), Fraction(-1, 2), (1 << 1022) + 1, 10**400),
    *(5e-324, 1e-320, 1.7e308, math.nan, math.inf, -math.inf, -0.0, True, "1", None, 1j),
)
_CELLS = (0.3, 0.75, 1.0, 1.5, 2.25, 3.0, 4.5, 7.0)  # ends of cells, in units of the scale
_FAIR_FROM = 1 << 31


def _floor(probability: Callable[[], Any], digits: int) -> int:
    """Return the floor of an irrational number times a power of two."""
    bits = 256
    while True:
        value = at_precision(bits, lambda: (probability() * (1 << digits)).floor().unique_fmpz())
        if value is not None:
            return int(value)
        bits *= 2


def _digit(scale: Scale, j: int) -> Any:
    return 1 / (1 + _one_over(scale, 1 << j))


def _one_over(scale: Scale, times: int = 1) -> Any:
    return (ball(times) / ball(scale)).exp()


def _exception(scale: Scale, low: int) -> Any:
    return 1 - (1 << low) * (_one_over(scale) - 1) / (_one_over(scale, 1 << low) - 1)


def comparisons(scale: Scale) -> Iterator[tuple[str, bool]]:
    """Yield, for every test of a row, whether its first 16, 48 and 128 digits are those of the law."""
    low = low_count(scale)
    wanted: dict[str, Callable[[], Any]] = {
        "zero": lambda: ball(2) / (1 + _one_over(scale)),
        "exception": partial(_exception, scale, low),  # test number EXCEPTION
        "tail": lambda: 1 / _one_over(scale, 1 << low + DIGITS),
    }
    wanted |= {f"digit {j}": partial(_digit, scale, j) for j in range(low, low + DIGITS)}
    for test, (name, probability) in enumerate(wanted.items()):
        p = rule(scale, test)
        for bits in (16, 48, 128):
            if low == 0 and test == EXCEPTION:  # of probability zero, whose floor no ball could tell
                yield name, p is None
            else:
                yield name, p is not None and p.floor(bits) == _floor(probability, bits)


def _below(edge: Fraction, scale: Scale, words: Callable[[int], Fraction], bits: int) -> bool:
    """Decide whether sigma |N| >= edge: V <= erfc(edge / (sigma sqrt 2)), by as many digits as needed."""
    while True:
        low = words(bits)
        high = low + Fraction(1, 1 << bits)

        def probability() -> Any:
            return (ball(edge) / (ball(scale) * ball(2).sqrt())).erfc()

        def compared(low: Fraction = low, high: Fraction = high) -> bool | None:
            p = probability()
            if ball(high) < p:
                return True
            return False if ball(low) > p else None

        found = at_precision(4 * bits + 256, compared)
        if found is not None:
            return found
        bits *= 2


def gaussian_integers(scale: Scale, *, blocks: int, seed: int) -> Iterator[bool]:
    """Yield, draw by draw, whether an integer is the one that its words stand for."""
    stream = Keystream(simulation_key(seed))
    drawn = GaussianRows([scale, scale]).sample(stream, 1, range(blocks)).to_objects()
    raw = stream.words(1, range(blocks), 2 * WORDS).copy()
    for block in range(blocks):
        for row in range(2):
            first, second = (int(word) for word in raw[block, 2 * row : 2 * row + 2])
            whole = second << 32 | first

            def words(bits: int, block: int = block, row: int = row, whole: int = whole) -> Fraction:
                value, known = whole & ((1 << 63) - 1), 63
                further = stream.further(TIE, 1, block, WORDS * row)
                while known < bits:
                    value, known = value << 32 | next(further), known + 32
                return Fraction(value >> (known - bits), 1 << bits)

            value = int(drawn[block, row])
            size = abs(value)
            half = Fraction(1, 2)
            above = size == 0 or _below(size - half, scale, words, 63)
            inside = not _below(size + half, scale, words, 63)
            yield above and inside and (value == 0 or (value < 0) == bool(whole >> 63))


def _survival(kind: str, scale: Scale, k: int) -> float:
    """Return P(X >= k), k >= 1."""

    def laplace() -> Any:
        return 1 / (ball(k) / ball(scale)).exp() / (1 + 1 / _one_over(scale))

    def gaussian() -> Any:
        return (ball(k - Fraction(1, 2)) / (ball(scale) * ball(2).sqrt())).erfc() / 2

    bits = 256 + 2 * max(k.bit_length(), 1)
    return float(at_precision(bits, laplace if kind == "laplace" else gaussian))


def _draws(kind: str, scale: Scale, count: int, seed: int) -> Any:
    rows = (LaplaceRows if kind == "laplace" else GaussianRows)([scale] * 50)
    return rows.sample(Keystream(simulation_key(seed)), 0, range(-(-count // 50))).to_objects().ravel()


def law(kind: str, scale: Scale, *, count: int, seed: int) -> tuple[float, float | None]:
    """Return the p-values of two tests of many draws.

    The first is chi-square over cells between quantiles, or where hardly any draw is not zero, the binomial
    test of how many are not. The second is chi-square of the lowest three bits of |X| against fair ones; None
    for small scales, which need not have fair bits.

    Args:
        kind: "laplace" or "gaussian".
        scale: of the draws.
        count: number of draws, rounded up to a multiple of 50.
        seed: of the keystream.
    """
    from scipy import stats

    values = _draws(kind, scale, count, seed)
    least = 20 / len(values)
    edges = sorted({max(1, math.ceil(Fraction(x) * scale)) for x in _CELLS})
    kept = [(k, s) for k, s in ((k, _survival(kind, scale, k)) for k in edges) if s >= least]
    if not kept:
        rate = 2 * _survival(kind, scale, 1)
        return float(stats.binomtest(int(np.count_nonzero(values)), len(values), rate).pvalue), None
    survivals = np.array([s for _, s in kept])
    outer = survivals - np.append(survivals[1:], 0.0)
    expected = np.concatenate([outer[::-1], [1 - 2 * survivals[0]], outer]) * len(values)
    thresholds = [k for k, _ in kept]
    counts = np.zeros(len(expected))
    for value in values.tolist():
        place = sum(abs(value) >= k for k in thresholds)
        counts[len(thresholds) + (place if value > 0 else -place)] += 1
    enough = expected >= 5
    pooled = [np.append(part[enough], part[~enough].sum()) for part in (counts, expected)]
    if pooled[1][-1] == 0:
        pooled = [part[:-1] for part in pooled]
    p = float(stats.chisquare(pooled[0], pooled[1], sum_check=False).pvalue)
    if scale < _FAIR_FROM:
        return p, None
    lowest = np.bincount([abs(value) & 7 for value in values.tolist()], minlength=8)
    return p, float(stats.chisquare(lowest).pvalue)


def refused(kind: str, scales: Iterable[Any]) -> Iterator[tuple[Any, bool]]:
    """Yield the scales, and whether they are refused by name."""
    make: Any = LaplaceRows if kind == "laplace" else GaussianRows
    for scale in scales:
        try:
            make([scale])
            yield scale, False
        except ParameterError as error:
            yield scale, str(error).startswith("scale must be") and "\n" not in str(error)
