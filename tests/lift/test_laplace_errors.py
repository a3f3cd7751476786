"""Squared errors under Laplace noise: one formula; budgets at which it fits no float are refused by name."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from trilift import artifacts
from trilift.lift import Chain, chain_cost
from trilift.lift.errors import ParameterError
from trilift.lift.honaker import honaker_cost
from trilift.lift.laplace_errors import laplace_se
from trilift.lift.mechanisms import price
from trilift.lift.toeplitz import toeplitz_cost
from trilift.lift.tree_costs import binary_tree_cost

COSTS: dict[str, Callable[[], Any]] = {
    "chain": lambda: chain_cost(Chain(artifacts.load_stage("direct-max-4")), 4, objective="max"),
    "tree": lambda: binary_tree_cost(7),
    "honaker": lambda: honaker_cost(7),
    "toeplitz": lambda: toeplitz_cost(7),
    "priced": lambda: price("binary-tree", 7, objective="max"),
}


def test_the_formula() -> None:
    assert laplace_se(Fraction(3, 4), sensitivity=3, epsilon=Fraction(1, 3)) == 2 * 0.75 * 9 * 9


@pytest.mark.parametrize("kind", COSTS)
def test_errors_scale_with_the_budget(kind: str) -> None:
    cost = COSTS[kind]()
    assert cost.max_se(0.25) == 16 * cost.max_se()
    assert cost.mean_se(1e100) == pytest.approx(cost.mean_se() * 1e-200, rel=1e-14)


@pytest.mark.parametrize(("epsilon", "asked"), [(1e-320, "larger"), (1e-160, "larger"), (1e200, "smaller")])
@pytest.mark.parametrize("kind", COSTS)
def test_a_budget_whose_errors_fit_no_float_is_refused_by_name(kind: str, epsilon: float, asked: str) -> None:
    cost = COSTS[kind]()
    for error in (cost.max_se, cost.mean_se):
        with pytest.raises(
            ParameterError, match=f"epsilon must be {asked}, so that squared errors fit floats"
        ):
            error(epsilon)
