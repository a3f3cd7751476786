"""The budget of turnstile counters: what an event can change, and what the shares of a budget spend.

Neighbours are streams that differ in one event: its pair (item, sign) is substituted, nothing shifts.
Whatever the hash functions are, one *bank* of counters, to which every event adds at most one +1 or -1, is
changed by +-1 in two counters (another item: l1 norm 2, squared l2 norm 2) or by at most 2 in one (+1 for -1:
l1 norm 2, squared l2 norm 4). So a bank is calibrated to a change of 2 - the one factor of 2 that there is -
and c banks that see the same stream compose: l1 norm 2 c, squared l2 norm 4 c (no factor is taken twice).

The law of the noise is Laplace for pure epsilon-DP, where the epsilons of banks add up, or Gaussian for
rho-zCDP (Bun, Steinke 2016), where the rhos do, equivalently the squares of mu of Gaussian DP (Dong, Roth, Su
2022): real Gaussians of sensitivity mu standard deviations are mu-GDP and mu^2/2-zCDP, and so is every
function of them, such as their rounding. All is rational; roots are rounded down, logarithms lie in balls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, Self

import numpy as np
from trilift.lift.checks import fail, integer, rational, written
from trilift.lift.errors import ParameterError

__all__ = [
    "BANK_CHANGE",
    "Budget",
    "LedgerPart",
    "Sensitivity",
    "TurnstileLedger",
    "exact_sensitivity",
    "make_budget",
    "sensitivity",
    "sqrt_down",
]

BANK_CHANGE = 2
"""By how much an event can change the inputs of one bank, in l1 norm, and in l2 norm too."""

_LEAST = Fraction(1, 10**6)
_MOST = 10**200
_ROOT_BITS = 64
_MOST_CELLS = 1 << 24


def sqrt_down(value: Fraction) -> Fraction:
    """Return a rational at most the square root, within relative 2^-64 of it.

    >>> sqrt_down(Fraction(9, 4)), sqrt_down(Fraction(2)) ** 2 < 2
    (Fraction(3, 2), True)
    """
    shift = max(0, _ROOT_BITS + (value.denominator.bit_length() - value.numerator.bit_length()) // 2 + 2)
    return Fraction(isqrt((value.numerator << (2 * shift)) // value.denominator), 1 << shift)


@dataclass(frozen=True)
class Sensitivity:
    """Largest change of all counters together between neighbours: l1 norm and squared l2 norm."""

    l1: int
    l2_sq: int


def sensitivity(banks: int) -> Sensitivity:
    """Return the sensitivity of a number of banks (or of released counts that an event changes by up to 2).

    One bank: a counter, one MinHash copy, grouped MinHash, its signed form. m banks: m MinHash copies, m rows
    or hash tables of the second moment, the P = I J maps of domain reduction, N releases of the count.

    >>> sensitivity(1), sensitivity(29)
    (Sensitivity(l1=2, l2_sq=4), Sensitivity(l1=58, l2_sq=116))
    """
    count = integer("banks", banks, minimum=1)
    return Sensitivity(BANK_CHANGE * count, BANK_CHANGE**2 * count)


def exact_sensitivity(columns: Any) -> Sensitivity:
    """Return the sensitivity of a linear sketch over a small universe, by trying every substitution.

    Args:
        columns: integers of shape (items, counters): what an insertion of each item adds to the counters.

    Raises:
        ParameterError: not such an array, or one of more than 2^24 entries per pair.

    >>> exact_sensitivity(np.array([[1, 0], [0, 1]]))
    Sensitivity(l1=2, l2_sq=4)
    """
    array = np.asarray(columns)
    if array.ndim != 2 or array.dtype.kind not in "iu" or not 0 < 3 * array.size <= _MOST_CELLS:
        raise ParameterError("columns must be integers of shape (items, counters), not too many")
    array = array.astype(np.int64)
    events = np.concatenate([array, -array, np.zeros((1, array.shape[1]), dtype=np.int64)])
    l1 = l2_sq = 0
    for event in events:
        change = np.abs(events - event)
        l1 = max(l1, int(change.sum(axis=1).max()))
        l2_sq = max(l2_sq, int((change * change).sum(axis=1).max()))
    return Sensitivity(l1, l2_sq)


@dataclass(frozen=True)
class Budget:
    """What may be spent, exactly: epsilon of pure differential privacy, or rho of zCDP.

    Attributes:
        law: "laplace" (pure) or "gaussian".
        epsilon: pure: the budget. Gaussian: as asked for together with delta, or None.
        delta: as asked for, or None.
        mu: Gaussian: the whole is mu-GDP (rounded down).
        rho: Gaussian: as asked for, or mu^2 / 2.
    """

    law: str
    epsilon: Fraction | None
    delta: Fraction | None
    mu: Fraction | None
    rho: Fraction | None

    @property
    def amount(self) -> Fraction:
        """What adds up over banks: epsilon, or rho."""
        value = self.epsilon if self.law == "laplace" else self.rho
        return value if value is not None else Fraction(0)

    def part(self, weight: Fraction | int) -> Budget:
        """Return the share ``weight`` of this budget, 0 < weight <= 1; shares with weights up to 1 compose.

        >>> make_budget(rho=Fraction(1, 2)).part(Fraction(1, 4)).mu
        Fraction(1, 2)
        """
        share = rational("weight", weight, above=0, maximum=1)
        if self.law == "laplace":
            return Budget("laplace", self.amount * share, None, None, None)
        rho = self.amount * share
        return Budget("gaussian", None, None, sqrt_down(2 * rho), rho)

    def record(self) -> dict[str, str | None]:
        """Return the arguments of :func:`make_budget`, exact numbers as strings."""
        if self.law == "gaussian" and self.epsilon is None:
            return {"epsilon": None, "delta": None, "rho": str(self.rho)}
        return {
            "epsilon": str(self.epsilon),
            "delta": None if self.delta is None else str(self.delta),
            "rho": None,
        }

    def as_text(self) -> str:
        """Return the guarantee in words, for statements."""
        if self.law == "laplace":
            return f"{self.epsilon}-differentially private (pure)"
        zcdp = f"{float(self.amount):.9g}-zCDP, as mu-GDP with mu = {float(self.mu or 0):.9g}"
        if self.epsilon is None:
            return zcdp
        pair = f"epsilon = {self.epsilon}, delta = {self.delta}"
        return f"(epsilon, delta)-differentially private with {pair}; {zcdp}"


def make_budget(epsilon: Any = None, *, delta: Any = None, rho: Any = None) -> Budget:
    """Check a budget: epsilon alone (pure), epsilon and delta, or rho.

    Epsilon and delta are turned into the largest mu whose Gaussian mechanism is private for both, rounded
    down (:func:`trilift.stream.gdp.mu_for`): the noises here are real Gaussians under one rounding, so the
    way over zCDP, which costs more, is not needed.

    Args:
        epsilon: at least 1e-6: with less, noise is in the millions, and its exact rounding takes for ever.
        delta: in (0, 1).
        rho: of zCDP, at least 1e-12.

    Raises:
        ParameterError: another combination, or numbers out of range.

    >>> make_budget(1).law, make_budget(rho=2).mu
    ('laplace', Fraction(2, 1))
    """
    if (epsilon is None) == (rho is None) or (delta is not None and epsilon is None):
        raise ParameterError("give epsilon (pure), or epsilon and delta, or rho")
    if rho is not None:
        asked = written("rho", rho, above=0)
        if asked < _LEAST**2:
            raise fail("rho", "at least 1e-12", rho)
        if asked > _MOST:
            raise fail("rho", "at most 1e200", rho)
        return Budget("gaussian", None, None, sqrt_down(2 * asked), asked)
    exact = written("epsilon", epsilon, above=0)
    if exact < _LEAST:
        raise fail("epsilon", "at least 1e-6", epsilon)
    if delta is None:
        return Budget("laplace", exact, None, None, None)
    from trilift.stream.gdp import ln_of, mu_for

    allowed = written("delta", delta, above=0)
    if allowed >= 1:
        raise fail("delta", "a number between 0 and 1", delta)
    mu = mu_for(exact, ln_delta=ln_of(allowed)[0])
    return Budget("gaussian", exact, allowed, mu, mu * mu / 2)


@dataclass(frozen=True)
class LedgerPart:
    """What one release spends.

    Attributes:
        name: of the release.
        banks: how many banks it is made of.
        change: of all of them together between neighbours.
        spent: what all of them spend, exact: epsilon or rho.
        proof: why, in words.
    """

    name: str
    banks: int
    change: Sensitivity
    spent: Fraction
    proof: str

    @classmethod
    def of(cls, name: str, *, banks: int, spent_by_one: Fraction, proof: str) -> Self:
        """Return the part of banks that spend the same each."""
        return cls(name, banks, sensitivity(banks), banks * spent_by_one, proof)


@dataclass(frozen=True)
class TurnstileLedger:
    """Where a budget goes, in rationals: the parts never spend more than it.

    Attributes:
        budget: what may be spent.
        parts: the releases, which compose (epsilons add up, rhos add up).

    Raises:
        ParameterError: parts that spend more than the budget.
    """

    budget: Budget
    parts: tuple[LedgerPart, ...]

    def __post_init__(self) -> None:
        if not self.parts or self.spent > self.budget.amount:
            raise ParameterError(f"the parts spend {float(self.spent):.9g}, more than {self.budget.amount}")

    @property
    def spent(self) -> Fraction:
        """What all parts spend together: epsilon (pure) or rho (Gaussian), exact."""
        return sum((part.spent for part in self.parts), Fraction(0))

    def ln_delta(self, epsilon: Any) -> tuple[Fraction, Fraction]:
        """Enclose ln delta at an epsilon, from the curve of Gaussian noise: mu^2 = 2 rho spent.

        The root of 2 rho is rounded up, so that the upper end holds.

        Raises:
            ParameterError: a pure budget, whose delta is 0, or an epsilon out of range.
        """
        if self.budget.law == "laplace":
            raise ParameterError("a pure budget has delta 0")
        from trilift.stream.gdp import ln_delta_bounds

        above = sqrt_down(2 * self.spent)
        above = above if above * above == 2 * self.spent else above * (1 + Fraction(1, 1 << 62))
        return ln_delta_bounds(epsilon, mu=above)

    def as_text(self) -> str:
        """Return the ledger as lines of text."""
        unit = "epsilon" if self.budget.law == "laplace" else "rho"
        lines: Sequence[str] = [
            f"  {part.name}: {part.banks} x change 2 (l1 {part.change.l1}, squared l2 {part.change.l2_sq}),"
            f" spends {unit} {float(part.spent):.9g}: {part.proof}"
            for part in self.parts
        ]
        sums = f"asked {float(self.budget.amount):.9g}, spent {float(self.spent):.9g}"
        head = f"{unit} {sums} (proved in rationals)"
        return "\n".join([head, *lines])
