"""Guarantees as numbers: those of every counter, and what larger differences cost."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from trilift import (
    ECC,
    BiasedCounter,
    Counter,
    DistinctCounter,
    EndingCounter,
    GaussianCC,
    GaussianCounter,
    HorizonGaussian,
    ParameterError,
    PartitionCC,
    SecondMoment,
    SimECC,
)
from trilift.counters.accounting import Guarantee, guarantee_of
from trilift.counters.accounting.guarantee import float_down, float_up, root_up
from trilift.counters.durable import DurableCounter
from trilift.stream.gdp import ln_delta_bounds, ln_of

DELTA = Fraction(1, 10**6)
MAKERS: dict[str, tuple[Any, str, str]] = {
    "Counter": (lambda **k: Counter(1, horizon=50, **k), "pure", "rows"),
    "endless Counter": (lambda **k: Counter(1, **k), "pure", "rows"),
    "GaussianCounter": (lambda **k: GaussianCounter(1, DELTA, horizon=50, **k), "gaussian", "rows"),
    "BiasedCounter": (lambda **k: BiasedCounter(1, DELTA, horizon=50, **k), "approximate", "rows"),
    "SimECC": (lambda **k: SimECC(1, DELTA, horizon=1000, rate=0.5, **k), "approximate", "edit"),
    "ECC": (lambda **k: ECC(1, DELTA, horizon=1000, rate=0.5, **k), "approximate", "edit"),
    "EndingCounter": (lambda **k: EndingCounter(1, DELTA, rate=0.5, **k), "approximate", "extended edit"),
    "GaussianCC": (lambda **k: GaussianCC(1, DELTA, **k), "gaussian", "edit"),
    "HorizonGaussian": (lambda **k: HorizonGaussian(1, DELTA, horizon=50, **k), "gaussian", "edit"),
    "PartitionCC": (lambda **k: PartitionCC(1, DELTA, horizon=1000, **k), "approximate", "rows"),
    "DistinctCounter": (lambda **k: DistinctCounter(1, horizon=100, every=10, **k), "pure", "rows"),
    "SecondMoment": (lambda **k: SecondMoment(rho=1, horizon=100, every=10, **k), "gaussian", "rows"),
}


@pytest.mark.parametrize("name", MAKERS)
def test_every_counter_has_numbers(name: str) -> None:
    make, form, relation = MAKERS[name]
    found = guarantee_of(make())
    assert (found.form, found.neighbours, found.contributions) == (form, relation, 1)
    if name == "SecondMoment":
        assert (found.epsilon, found.delta, found.mu_sq) == (None, None, 2)
        return
    assert found.epsilon == 1
    assert found.delta == (0 if form == "pure" else DELTA)
    if found.mu_sq is not None:  # the mu that the pair allows, and hardly less
        ln_delta = ln_of(DELTA)[0]
        assert ln_delta_bounds(1, mu=root_up(found.mu_sq))[1] <= ln_delta
        assert ln_delta_bounds(1, mu=root_up(found.mu_sq) * Fraction(1001, 1000))[0] > ln_delta


@pytest.mark.parametrize("name", MAKERS)
def test_simulated_counters_have_none(name: str) -> None:
    make, *_ = MAKERS[name]
    with pytest.raises(ParameterError, match="simulated"):
        guarantee_of(make(simulation_seed=1))


def test_durable_counters_have_that_of_the_counter_within(tmp_path: Path) -> None:
    with DurableCounter(tmp_path / "a", Counter(2, horizon=10, max_contributions=3)) as counter:
        found = guarantee_of(counter)
    assert found == Guarantee("pure", "rows", 3, Fraction(2), Fraction(0))


@pytest.mark.parametrize("wrong", [None, 1, "Counter", object(), Counter, [Counter]])
def test_what_is_no_counter(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="counter must be"):
        guarantee_of(wrong)


def test_a_class_that_only_has_the_name() -> None:
    fake = type("Counter", (), {"epsilon": Fraction(0)})
    with pytest.raises(ParameterError, match="counter must be"):
        guarantee_of(fake())


def test_pure_costs_are_in_proportion() -> None:
    one = guarantee_of(Counter(1, horizon=50, max_contributions=4))
    assert [one.scaled(d).epsilon for d in (1, 4, 6)] == [Fraction(1, 4), 1, Fraction(3, 2)]
    assert one.scaled(3).scaled(4) == one
    # which is what a counter with the same noise scales says itself
    wider = Counter(Fraction(3, 2), horizon=50, max_contributions=6)
    assert one.scaled(6) == guarantee_of(wider)


def test_gaussian_costs_grow_with_the_square() -> None:
    one = Guarantee("gaussian", "rows", 2, Fraction(1), DELTA, Fraction(1, 9))
    twice = one.scaled(4)
    assert (twice.mu_sq, twice.rho) == (Fraction(4, 9), Fraction(2, 9))
    assert (twice.epsilon, twice.delta) == (None, None)
    assert one.scaled(2) == one


def test_group_privacy_of_pairs() -> None:
    one = Guarantee("approximate", "edit", 1, Fraction(1, 2), DELTA)
    three = one.scaled(3)
    assert three.epsilon == Fraction(3, 2)
    assert three.delta is not None
    exact = DELTA * (1 + Fraction(math.exp(0.5)) + Fraction(math.exp(1.0)))  # the sum that is bounded
    assert exact < three.delta < 3 * math.exp(1.0) * float(DELTA) * (1 + 1e-9)
    with pytest.raises(ParameterError, match="leaves no privacy"):
        one.scaled(40)


def test_rho_of_each_form() -> None:
    assert Guarantee("pure", "rows", 1, Fraction(1, 3), Fraction(0)).rho == Fraction(1, 18)
    assert Guarantee("approximate", "rows", 1, Fraction(1, 3), DELTA).rho is None


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(1, 10), Fraction(7), Fraction(10**30 + 1)])
def test_roundings(value: Fraction) -> None:
    assert Fraction(float_down(value)) <= value <= Fraction(float_up(value))
    assert float_up(value) <= math.nextafter(float_down(value), math.inf)
    assert value <= root_up(value) ** 2 <= value * (1 + Fraction(1, 1 << 60))
