"""What epochs of chains are made of: which artifacts, which budgets, and what a saved state keeps of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from trilift.counters.defaults import default_names
from trilift.counters.levels import SavedLevel
from trilift.lift.chain import Chain
from trilift.lift.dyadic import Dyadic
from trilift.lift.stage import Stage

__all__ = ["EpochRecord", "epoch_names", "mu_parts", "single_step"]

_LONGEST = 10**15  # the planner's own limit; longer epochs take levels of one size
_ROOT_BITS = 60


@lru_cache(maxsize=512)  # shipped artifacts alone, which do not change
def epoch_names(length: int, *, objective: str, norm: str = "l1") -> tuple[str, ...]:
    """Return names of shipped artifacts whose chain serves an epoch of this length, up to 2^62.

    >>> epoch_names(64, objective="max")
    ('direct-max-64',)
    >>> len(epoch_names(1 << 61, objective="max"))
    9
    """
    if length <= _LONGEST:
        return default_names(length, objective=objective, norm=norm)
    kind = "" if norm == "l1" else "l2-"
    size = 128 if norm == "l1" else 129
    below = [f"stage-{kind}{objective}-{size}"]
    while size ** len(below) * 128 < length:
        below.append(below[0])
    return (*below, f"direct-{kind}{objective}-128")


def single_step() -> Chain:
    """Return the chain of one step, T_1 = 1 * 1: a total with noise of its own."""
    return Chain(Stage.plain(Dyadic([[1]]), Dyadic([[1]])))


def mu_parts(mu: Fraction, share: Fraction) -> tuple[Fraction, Fraction]:
    """Return (counter's mu, total's mu) with squares that add up to at most mu^2, the share to the total.

    >>> a, b = mu_parts(Fraction(1), Fraction(1, 2))
    >>> a == b, a * a + b * b <= 1, float(a)
    (True, True, 0.7071067811865476)
    """

    def root(part: Fraction) -> Fraction:  # rounded down
        if part == 1:
            return mu
        scaled = part.numerator * (1 << 2 * _ROOT_BITS) // part.denominator
        return mu * Fraction(isqrt(scaled), 1 << _ROOT_BITS)

    return root(1 - share), root(share)


@dataclass(frozen=True)
class EpochRecord:
    """What a saved state keeps of an epoch's counter: nothing that floats chose is chosen again.

    Attributes:
        names: artifacts, finest first.
        levels: their hashes and noise scales.
        digest: hexadecimal digest of the epoch's mechanism.
    """

    names: tuple[str, ...]
    levels: tuple[SavedLevel, ...]
    digest: str
