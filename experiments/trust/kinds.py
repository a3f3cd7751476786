"""One counter of every kind, small, made from a budget: what the parts of the trust page try things with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trilift.counters import BiasedCounter, Counter, GaussianCounter
from trilift.counters.edit import ECC, GaussianCC, PartitionCC, SimECC
from trilift.counters.turnstile import DistinctCounter, SecondMoment

__all__ = ["KINDS", "Kind"]

STEPS = 40
_DELTA = 1e-6


@dataclass(frozen=True)
class Kind:
    """How a counter is made and fed.

    Attributes:
        name: of the kind, for people.
        make: returns a new counter of a budget, with a seed of its noise or None for a secret key.
        budget: what the budget is called: "epsilon" or "rho".
        events: it takes items and signs, not numbers.
        dimension: of vectors, or None for plain numbers.
    """

    name: str
    make: Callable[[Any, int | None], Any]
    budget: str = "epsilon"
    events: bool = False
    dimension: int | None = None

    def feed(self, counter: Any, steps: int = STEPS) -> list[Any]:
        """Let a counter take steps at once, and return what it releases, one entry a value."""
        if self.events:
            return list(counter.extend(self.items(steps), [1] * steps))
        released: list[Any] = counter.extend(self.numbers(steps)).tolist()
        return released

    def one(self, counter: Any) -> Any:
        """Let a counter take one step, and return what it releases."""
        return counter.update("item", 1) if self.events else counter.update(self.numbers(2)[1])

    def numbers(self, steps: int) -> list[Any]:
        """Return inputs."""
        one = [step % 3 % 2 for step in range(steps)]
        return one if self.dimension is None else [[x, 0, 1][: self.dimension] for x in one]

    @staticmethod
    def items(steps: int) -> list[str]:
        """Return items."""
        return [f"item {step % 7}" for step in range(steps)]


def _kinds() -> tuple[Kind, ...]:
    horizon: dict[str, Any] = {"horizon": 100}
    few: dict[str, Any] = {"horizon": STEPS}

    def kind(name: str, make: Callable[[Any], Any], options: dict[str, Any], **more: Any) -> Kind:
        def made(budget: Any, seed: int | None) -> Any:
            return make(budget)(simulation_seed=seed, **options)

        return Kind(name, made, **more)

    def pure(cls: Any) -> Callable[[Any], Any]:
        return lambda budget: lambda **options: cls(budget, **options)

    def approximate(cls: Any) -> Callable[[Any], Any]:
        return lambda budget: lambda **options: cls(budget, _DELTA, **options)

    def zcdp(cls: Any) -> Callable[[Any], Any]:
        return lambda budget: lambda **options: cls(rho=budget, **options)

    toeplitz = horizon | {"mechanism": "toeplitz"}
    return (
        kind("Counter", pure(Counter), horizon),
        kind("Counter, 3 coordinates", pure(Counter), horizon | {"dimension": 3}, dimension=3),
        kind("Counter without horizon", pure(Counter), {}),
        kind("BiasedCounter", approximate(BiasedCounter), horizon),
        kind("GaussianCounter", approximate(GaussianCounter), horizon),
        kind("GaussianCounter, Toeplitz", approximate(GaussianCounter), toeplitz),
        kind("GaussianCounter without horizon", approximate(GaussianCounter), {}),
        kind("SimECC", approximate(SimECC), horizon),
        kind("ECC", approximate(ECC), horizon),
        kind("GaussianCC", approximate(GaussianCC), horizon),
        kind("PartitionCC", approximate(PartitionCC), horizon),
        kind("DistinctCounter", pure(DistinctCounter), few, events=True),
        kind("DistinctCounter, zCDP", zcdp(DistinctCounter), few, events=True, budget="rho"),
        kind("DistinctCounter, min-hash", pure(DistinctCounter), few | {"method": "minhash"}, events=True),
        kind("DistinctCounter, hybrid", pure(DistinctCounter), few | {"method": "hybrid"}, events=True),
        kind("SecondMoment", pure(SecondMoment), few | {"every": STEPS}, events=True),
    )


KINDS = _kinds()
"""One entry a kind of counter and mechanism."""
