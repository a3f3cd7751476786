"""The low digits of a geometric variate of large scale: fair bits, but for an exact correction.

G is geometric with P(G >= g) = u^g, u = exp(-1/t), and L = G mod M its digits below F, M = 2^F. So
P(L = l) = u^l (1-u) / (1-u^M) for l < M, which for M far below t is nearly the same for all l. Split off the
part that is the same:

    P(L = l) = c / M + (u^l - u^(M-1)) (1-u) / (1-u^M),    c = M u^(M-1) (1-u) / (1-u^M).

With probability c the digits are F fair bits; otherwise, in an *exception*, they have the law proportional to
u^l - u^(M-1). With E = 1/u = exp(1/t)

    P(exception) = 1 - c = 1 - M (E-1) / (E^M - 1),

which is below M / t: c is the least of the M values E^-(M-1) .. 1 over their mean, so c >= E^-(M-1). The law
in an exception is drawn by rejection: k uniform on 0 .. M-1 is kept with probability (u^(M-1-k) - u^(M-1)) /
(1 - u^(M-1)) = (E^k - 1) / (E^(M-1) - 1), about every other time, and then L = M-1-k.

A proposal takes ceil(F/32) words, and mostly one more to be kept or not; it is given up with probability at
most about 1/2. So 2^14 words are not enough with probability about 2^-(2^14 / (ceil(F/32) + 1)), and there
must be an exception first.

Both probabilities are rational functions of E, not constant for F >= 1 and 0 < k < M-1, and E is
transcendental: their expansions do not end, and enclosing them ends. No floating point is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from trilift.lift.errors import StateError
from trilift.stream.thresholds import WORD, Rule, Scale, exp_bounds

__all__ = ["LowException", "Proposal", "exceptional"]


@dataclass(frozen=True, slots=True)
class LowException(Rule):
    """The probability of an exception, 1 - M (E-1) / (E^M - 1), M = 2^low, E = exp(1 / scale); low >= 1."""

    low: int
    scale: Scale

    def floor(self, bits: int) -> int:
        """Return floor(p 2^bits), exactly."""
        return _exception_floor(self, bits)


@dataclass(frozen=True, slots=True)
class Proposal(Rule):
    """The probability (E^k - 1) / (E^(M-1) - 1) of keeping k, M = 2^low, E = exp(1 / scale); 0 < k < M-1."""

    k: int
    low: int
    scale: Scale

    def floor(self, bits: int) -> int:
        """Return floor(p 2^bits), exactly."""
        last = (1 << self.low) - 1

        def enclose(precision: int) -> tuple[int, int, int, int]:
            below, above = _grown(self.k, self.scale, precision)
            least, most = _grown(last, self.scale, precision)
            return below, most, above, least

        return _certified(bits, self.scale, enclose)


@lru_cache(maxsize=1 << 12)
def _exception_floor(rule: LowException, bits: int) -> int:
    size = 1 << rule.low

    def enclose(precision: int) -> tuple[int, int, int, int]:
        below, above = _grown(1, rule.scale, precision)
        least, most = _grown(size, rule.scale, precision)
        return least - size * above, least, most - size * below, most

    return _certified(bits, rule.scale, enclose)


def _grown(times: int, scale: Scale, precision: int) -> tuple[int, int]:
    """Return integers that enclose (E^times - 1) 2^precision, E = exp(1 / scale)."""
    low, high = exp_bounds(times * scale.denominator, scale.numerator, bits=precision)
    return low - (1 << precision), high - (1 << precision)


def _certified(bits: int, scale: Scale, enclose: Callable[[int], tuple[int, int, int, int]]) -> int:
    """Return floor(p 2^bits) from enclosures a / b <= p <= c / d, the precision raised until they agree."""
    precision = bits + 2 * scale.numerator.bit_length() + WORD
    while True:
        a, b, c, d = enclose(precision)
        if b > 0 and d > 0 and (a << bits) // b == (c << bits) // d:
            return (a << bits) // b
        precision *= 2


def exceptional(low: int, scale: Scale, words: Iterator[int]) -> int:
    """Draw the low digits of an exception.

    Args:
        low: F >= 1.
        scale: t.
        words: uniform 32-bit words.

    Raises:
        StateError: if the words end before a proposal is kept.
    """
    last = (1 << low) - 1
    while True:
        k = _uniform(low, words)
        if k == last or (k and Proposal(k, low, scale).decide(words)):
            return last - k


def _uniform(bits: int, words: Iterator[int]) -> int:
    """Return a uniform integer of some bits; of the last word the low bits are taken."""
    value = 0
    for place in range(0, bits, WORD):
        word = next(words, None)
        if word is None:
            raise StateError("the words ended before the low digits were drawn")
        value |= word << place
    return value & ((1 << bits) - 1)
