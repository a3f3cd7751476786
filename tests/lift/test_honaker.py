"""Optimally weighted trees against their pseudo-inverse, in exact numbers."""

from fractions import Fraction
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.errors import ParameterError
from trilift.lift.honaker import honaker_cost, honaker_stage, honaker_tree
from trilift.lift.mechanisms import leading_constants
from trilift.lift.tree_costs import kary_tree_cost


def most_levels(horizon: int, arity: int) -> int:
    levels = 1
    while arity ** (levels - 1) < horizon:
        levels += 1
    return levels


@pytest.mark.parametrize("arity", [2, 3, 4])
@pytest.mark.parametrize("horizon", [1, 2, 3, 5, 8, 9, 13, 16, 23])
def test_the_factors_are_optimal_and_the_costs_theirs(arity: int, horizon: int) -> None:
    for levels in range(1, most_levels(horizon, arity) + 1):
        cost = honaker_cost(horizon, arity=arity, levels=levels)
        L, R = honaker_tree(horizon, arity=arity, levels=levels)
        assert np.array_equal(L @ R, np.tri(horizon, dtype=int))
        # T R^+ is the only L with L R = T whose rows lie in the row space of R^T: those are R's columns.
        floats, inverse = L.astype(float), np.linalg.pinv(R.astype(float))
        assert np.allclose(floats @ R @ inverse, floats, atol=1e-9)
        norms = [sum(x * x for x in row) for row in L]
        assert (max(norms), sum(norms) / horizon) == (cost.max_row_norm_sq, cost.mean_row_norm_sq)
        assert [cost.row_norm_sq(t) for t in range(1, horizon + 1)] == norms
        assert R.sum(axis=0).max() == cost.sensitivity == levels


@settings(max_examples=60, deadline=None)
@given(horizon=st.integers(1, 3000), arity=st.integers(2, 7), data=st.data())
def test_extremes_and_means_are_those_of_the_steps(horizon: int, arity: int, data: st.DataObject) -> None:
    levels = data.draw(st.integers(1, most_levels(horizon, arity)))
    cost = honaker_cost(horizon, arity=arity, levels=levels)
    steps = (
        range(1, horizon + 1) if horizon <= 60 else data.draw(st.lists(st.integers(1, horizon), min_size=9))
    )
    norms = [cost.row_norm_sq(t) for t in steps]
    assert max(norms) <= cost.max_row_norm_sq
    if horizon <= 60:
        assert (max(norms), sum(norms) / horizon) == (cost.max_row_norm_sq, cost.mean_row_norm_sq)


def test_default_levels_are_the_best() -> None:
    for horizon in (1, 7, 100, 729):
        costs = [honaker_cost(horizon, arity=3, levels=h) for h in range(1, most_levels(horizon, 3) + 1)]
        assert honaker_cost(horizon, arity=3).max_se() == min(cost.max_se() for cost in costs)
        by_mean = honaker_cost(horizon, arity=3, objective="mean")
        assert by_mean.mean_se() == min(cost.mean_se() for cost in costs)


@pytest.mark.parametrize("arity", [2, 5, 16])
def test_never_worse_than_the_same_tree_read_plainly(arity: int) -> None:
    for horizon in (10, 1000, 12345, 10**9):
        plain = kary_tree_cost(horizon, arity=arity)
        assert honaker_cost(horizon, arity=arity, levels=plain.levels).max_se() <= plain.max_se()


@pytest.mark.parametrize("arity", [2, 3, 4, 7, 12])
def test_limits_are_the_growth_per_level(arity: int) -> None:
    # Row norms grow linearly in the levels, up to terms that vanish geometrically.
    low, high = (honaker_cost(arity**h, arity=arity, levels=h + 1) for h in (8, 10))
    limits = leading_constants("honaker", arity=arity)
    assert limits is not None
    for name, limit in zip(("max_row_norm_sq", "mean_row_norm_sq"), limits, strict=True):
        growth = (getattr(high, name) - getattr(low, name)) / 2
        assert 2 * float(growth) / log2(arity) ** 3 == pytest.approx(limit, rel=2e-2 if arity == 2 else 1e-3)


def test_known_limits() -> None:
    assert leading_constants("honaker") == pytest.approx((2 / 9, 1 / 6))
    best = min(range(2, 40), key=lambda k: leading_constants("honaker", arity=k)[1])
    assert best == 13


def test_rounded_gains_keep_the_factorisation_exact() -> None:
    stage, cost = honaker_stage(45, arity=3, bits=12), honaker_cost(45, arity=3)
    assert stage.residual() == 0
    assert stage.is_plain
    assert stage.sensitivity() == cost.sensitivity
    excess = max(stage.row_norms_sq().fractions()) / cost.max_row_norm_sq - 1
    assert 0 < excess < Fraction(1, 10**6)


def test_large_horizons_are_cheap_and_in_order() -> None:
    costs = [honaker_cost(2**h, objective="mean").mean_se() for h in (10, 30, 60)]
    assert costs == sorted(costs)


@pytest.mark.parametrize(
    ("horizon", "options"),
    [
        (0, {}),
        (2**60 + 1, {}),
        (5, {"arity": 1}),
        (5, {"levels": 5}),
        (5, {"levels": 0}),
        (5, {"objective": 1}),
    ],
)
def test_refusals(horizon: int, options: dict[str, int]) -> None:
    with pytest.raises(ParameterError):
        honaker_cost(horizon, **options)


def test_refuses_large_matrices() -> None:
    with pytest.raises(ParameterError):
        honaker_tree(1025)
    with pytest.raises(ParameterError):
        honaker_stage(10, bits=0)
    with pytest.raises(ParameterError):
        honaker_cost(10).row_norm_sq(11)
