"""The guarantee of a counter as numbers: what it costs, exactly, and for which neighbours.

Every counter states its guarantee in words; accountants need it as numbers. Three forms suffice for all of
them, and each says what a larger difference costs:

- *pure*: (epsilon, 0). A change of d rows where c are accounted for costs epsilon d / c, in proportion: the
  cost of Laplace noise is linear in the change (l1 norm), whichever epochs or banks the rows are in.
- *gaussian*: mu-GDP. The same change costs mu d / c, so mu^2 grows with the square (l2 norm).
- *approximate*: (epsilon, delta). Group privacy: with g = ceil(d / c), (g epsilon, delta (1 + e^epsilon + ...
  + e^((g-1) epsilon))), the sum bounded by g e^((g-1) epsilon) (Dwork, Roth 2014, theorem 2.2 for delta = 0;
  triangle inequality for hockey-stick divergences).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

from trilift.counters.turnstile.budget import sqrt_down
from trilift.lift.checks import fail, integer
from trilift.lift.errors import ParameterError

__all__ = ["NEIGHBOURS", "Guarantee", "float_down", "float_up", "guarantee_of", "root_up"]

NEIGHBOURS = {
    "rows": "inputs (rows, events) of one person are other ones; nothing moves",
    "edit": "one input is inserted, and what follows moves one step",
    "extended edit": "one input is inserted, and the stream may become one step longer",
}
"""The kinds of neighbours that guarantees are about, in words."""

_ROWS = {"Counter", "GaussianCounter", "BiasedCounter", "PartitionCC", "DistinctCounter", "SecondMoment"}
_EDIT = {"SimECC", "ECC", "GaussianCC", "HorizonGaussian"}
_GAUSSIAN = {"GaussianCounter", "GaussianCC", "HorizonGaussian"}


def float_up(value: Fraction) -> float:
    """Return the least float >= a rational.

    >>> float_up(Fraction(1, 10)) >= Fraction(1, 10)
    True
    """
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """Return the largest float <= a rational."""
    return -float_up(-value)


def root_up(square: Fraction) -> Fraction:
    """Return a rational at least the square root: the root itself where it is rational.

    >>> root_up(Fraction(9, 4)), root_up(Fraction(2)) ** 2 > 2
    (Fraction(3, 2), True)
    """
    below = sqrt_down(square)
    return below if below * below == square else below * (1 + Fraction(1, 1 << 62))


@dataclass(frozen=True)
class Guarantee:
    """What a mechanism promises, in numbers.

    Attributes:
        form: "pure", "gaussian" or "approximate".
        neighbours: "rows", "edit" or "extended edit": see :data:`NEIGHBOURS`.
        contributions: how many rows (or edits) of a difference the numbers are for.
        epsilon: of pure and approximate guarantees; of a Gaussian one as asked for, None if it was mu or rho.
        delta: likewise; 0 for pure ones.
        mu_sq: the square of mu of a Gaussian guarantee, else None.
    """

    form: str
    neighbours: str
    contributions: int
    epsilon: Fraction | None
    delta: Fraction | None
    mu_sq: Fraction | None = None

    @property
    def rho(self) -> Fraction | None:
        """The rho of zCDP that it implies: epsilon^2/2 or mu^2/2 (Bun, Steinke 2016); None: there is none."""
        if self.form == "pure" and self.epsilon is not None:
            return self.epsilon**2 / 2
        return None if self.mu_sq is None else self.mu_sq / 2

    def scaled(self, contributions: int) -> Self:
        """Return what a difference of so many rows (or edits) costs.

        Raises:
            ParameterError: not an integer >= 1, or a delta of 1 or more.

        >>> one = Guarantee("pure", "rows", 2, Fraction(1), Fraction(0))
        >>> one.scaled(1).epsilon, one.scaled(6).epsilon
        (Fraction(1, 2), Fraction(3, 1))
        """
        wanted = integer("contributions", contributions, minimum=1)
        ratio = Fraction(wanted, self.contributions)
        if self.form == "pure" and self.epsilon is not None:
            return replace(self, contributions=wanted, epsilon=self.epsilon * ratio)
        if self.mu_sq is not None:
            # epsilon and delta belong to the mu that was asked for: a larger change has a curve, no pair
            same = ratio == 1
            pair = (self.epsilon, self.delta) if same else (None, None)
            return replace(
                self,
                contributions=wanted,
                epsilon=pair[0],
                delta=pair[1],
                mu_sq=self.mu_sq * ratio**2,
            )
        if self.epsilon is None or self.delta is None:
            raise ParameterError("the guarantee has no epsilon and delta")
        if ratio <= 1:
            return replace(self, contributions=wanted)
        groups = -(-wanted // self.contributions)
        delta = _group_delta(self.epsilon, self.delta, groups)
        return replace(self, contributions=wanted, epsilon=groups * self.epsilon, delta=delta)


def _group_delta(epsilon: Fraction, delta: Fraction, groups: int) -> Fraction:
    """Return a rational at least delta g e^((g - 1) epsilon), below 1."""
    from trilift.stream.gdp import delta_upper, ln_of

    ln_delta = ln_of(delta)[1] + ln_of(groups)[1] + (groups - 1) * epsilon
    if ln_delta >= 0:
        raise ParameterError(f"a change of {groups} times what delta is for leaves no privacy: delta is 1")
    return min(delta_upper(ln_delta), Fraction(1))


def guarantee_of(counter: Any) -> Guarantee:
    """Return the guarantee of a counter as numbers.

    Epsilon and delta are those that were asked for, which bound what is spent; mu^2 is what is spent at most.

    Args:
        counter: a counter of any kind, or a durable one.

    Raises:
        ParameterError: no counter, or a simulated one, which protects nobody.

    >>> from trilift import Counter, GaussianCounter
    >>> guarantee_of(Counter(Fraction(1, 3), horizon=10)).epsilon
    Fraction(1, 3)
    >>> guarantee_of(GaussianCounter(1, 1e-6, horizon=10)).form
    'gaussian'
    """
    inner = _within(counter)
    if _simulated(inner):
        raise ParameterError("the counter is simulated: its key is public, and it protects nobody")
    name = type(inner).__name__
    relation = "edit" if name in _EDIT else "rows" if name in _ROWS else "extended edit"
    if name in ("DistinctCounter", "SecondMoment"):
        return _of_turnstile(inner.budget)
    rows = inner.setup.max_contributions if name in ("Counter", "GaussianCounter", "BiasedCounter") else 1
    if name == "Counter":
        return Guarantee("pure", relation, rows, inner.epsilon, Fraction(0))
    if name in _GAUSSIAN:
        mu = inner.setup.mu
        return Guarantee("gaussian", relation, rows, inner.epsilon, inner.delta, mu * mu)
    return Guarantee("approximate", relation, rows, inner.epsilon, inner.delta)


def _of_turnstile(budget: Any) -> Guarantee:
    if budget.law == "laplace":
        return Guarantee("pure", "rows", 1, budget.epsilon, Fraction(0))
    return Guarantee("gaussian", "rows", 1, budget.epsilon, budget.delta, 2 * budget.amount)


def _within(counter: Any) -> Any:
    """Return the counter itself, or the one within a durable one."""
    kinds = {kind.__name__: kind.__module__ for kind in type(counter).__mro__}
    if kinds.get("DurableCounter", "").startswith("trilift."):
        counter = counter._counter
        kinds = {kind.__name__: kind.__module__ for kind in type(counter).__mro__}
    known = _ROWS | _EDIT | {"EndingCounter"}
    if type(counter).__name__ not in known or not kinds[type(counter).__name__].startswith("trilift."):
        raise fail("counter", "a counter of trilift", counter)
    return counter


def _simulated(counter: Any) -> bool:
    if hasattr(counter, "_blueprint"):
        return counter._seed is not None or counter.blueprint.simulated
    if type(counter).__name__ == "EndingCounter":
        return _simulated(counter.counter)
    return bool(counter._simulated)
