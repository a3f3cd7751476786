"""What counters cost in the unit of a budget: one by one, and over disjoint parts of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trilift.counters.accounting.guarantee import Guarantee, guarantee_of
from trilift.counters.accounting.record import Limits
from trilift.lift.errors import ParameterError, StateError

__all__ = ["Item", "epsilon_of_mu", "items_of", "parallel_cost", "sequential_cost"]


@dataclass(frozen=True)
class Item:
    """A counter that is to be paid for.

    Attributes:
        counter: the counter.
        cost: its guarantee.
        what: the counter in words.
        identity: hexadecimal digits that no other counter has, public.
    """

    counter: Any
    cost: Guarantee
    what: str
    identity: str

    def check_unused(self) -> None:
        """Check that nothing was released yet.

        Raises:
            StateError: it has taken steps.
        """
        if self.counter.step:
            raise StateError(
                f"the {self.what} has taken {self.counter.step} steps: charge it before its first"
            )


def items_of(counters: Mapping[Any, Any]) -> list[Item]:
    """Return what is to be paid for.

    Raises:
        ParameterError: no counters, or a simulated one.
    """
    if not isinstance(counters, Mapping) or not counters:
        raise ParameterError("counters must be a mapping of at least one counter by the name of its part")
    return [
        Item(counter, guarantee_of(counter), _kind(counter), _identity(counter))
        for counter in counters.values()
    ]


def _kind(counter: Any) -> str:
    durable = type(counter).__name__ == "DurableCounter"
    return type(counter._counter if durable else counter).__name__


def _identity(counter: Any) -> str:
    inner = getattr(counter, "_counter", counter)
    while not hasattr(inner, "_stream_id"):
        inner = inner.counter
    return bytes(inner._stream_id).hex()


def sequential_cost(limits: Limits, guarantee: Guarantee) -> dict[str, Fraction]:
    """Return what one counter costs, for somebody with the budget's number of rows.

    A counter that was made for more rows costs what it was made for.

    Raises:
        ParameterError: its guarantee says nothing in this unit.
    """
    cost = guarantee.scaled(max(limits.max_contributions, guarantee.contributions))
    if limits.kind == "zcdp":
        if cost.rho is None:
            raise ParameterError(
                "an (epsilon, delta) guarantee implies no zCDP: it needs an approximate budget"
            )
        return {"rho": cost.rho}
    if limits.kind == "gdp":
        if cost.mu_sq is None:
            raise ParameterError("only counters with Gaussian noise have a mu: this one needs another budget")
        return {"mu_sq": cost.mu_sq}
    if limits.kind == "pure" and cost.form != "pure":
        raise ParameterError("a pure budget has no delta: this counter needs an approximate budget (delta=)")
    if cost.epsilon is None or cost.delta is None:
        raise ParameterError(
            "a counter of rho, or a larger change of a Gaussian one, has no single epsilon and delta: "
            "it needs a budget of rho or mu"
        )
    return {"epsilon": cost.epsilon} | ({"delta": cost.delta} if limits.kind == "approximate" else {})


def parallel_cost(
    limits: Limits, guarantees: Sequence[Guarantee], *, parts: int, moves: bool
) -> dict[str, Fraction]:
    """Return what counters over disjoint parts cost together.

    Raises:
        ParameterError: a guarantee says nothing in this unit, or ``moves`` with neighbours that do not shift.
    """
    if moves and any(guarantee.neighbours == "rows" for guarantee in guarantees):
        raise ParameterError(
            "a row that moves to another part shifts the rows behind it, which counters of unmoved rows do "
            "not protect: use counters of edit neighbours"
        )
    costs = [sequential_cost(limits, guarantee) for guarantee in guarantees]
    if limits.kind == "approximate" and not all(guarantee.form == "pure" for guarantee in guarantees):
        most = parts
    else:
        most = 1  # costs are in proportion to the rows
    if moves:  # a row leaves one part and enters another, each of them with one edit
        most *= 2
    return {
        name: sum(sorted((cost[name] for cost in costs), reverse=True)[:most], Fraction(0))
        for name in limits.amounts
    }


def epsilon_of_mu(mu: Fraction, *, ln_delta: Fraction) -> Fraction:
    """Return an epsilon with delta(epsilon, mu) <= delta, within 2^-20 of the least (Balle, Wang 2018).

    Raises:
        ParameterError: a mu or a delta out of range.
    """
    from trilift.stream.gdp import ln_delta_bounds

    unit = Fraction(1, 1 << 20)

    def private(steps: int) -> bool:
        return ln_delta_bounds(steps * unit, mu=mu)[1] <= ln_delta

    high = 1
    while not private(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if private(middle) else (middle, high)
    return high * unit
