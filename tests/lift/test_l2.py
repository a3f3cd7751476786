"""The l2 norm of columns, for Gaussian noise: every level-wise number against the dense matrices."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.budget import best_scales, chain_cost, horizon_scales
from trilift.lift.chain import Chain
from trilift.lift.costs import column_norms_sq, mean_row_norms_sq
from trilift.lift.dense import materialise
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.extremes import level_max_row_norms_sq, max_column_charge
from trilift.lift.interior import interior_column_norms_sq, interior_sensitivity_sq
from trilift.lift.plan import plan, screen, shape_of
from trilift.lift.stage import Stage
from trilift.lift.toeplitz import toeplitz_cost, toeplitz_stage

Array = np.ndarray[Any, np.dtype[Any]]
shapes = st.tuples(st.lists(st.integers(2, 5), max_size=3), st.integers(1, 5))
seeds = st.integers(0, 10**6)


def level_columns_sq(dense: Any, levels: int) -> Array:
    return np.stack([(dense.R[dense.level == i] ** 2).sum(axis=0) for i in range(levels)])


@settings(max_examples=40, deadline=None)
@given(shape=shapes, seed=seeds)
def test_column_norms_and_charges_equal_the_matrices(
    make: Any, shape: tuple[list[int], int], seed: int
) -> None:
    chain = make.chain(seed, *shape)
    n, levels = chain.capacity, len(chain.levels)
    columns = level_columns_sq(materialise(chain, n), levels)
    np.testing.assert_allclose(column_norms_sq(chain, np.arange(n)), columns, rtol=1e-9, atol=1e-12)
    scales = np.random.default_rng(seed).uniform(0.5, 2.0, levels)
    totals = (columns / scales[:, None] ** 2).sum(axis=0)
    for horizon in {1, max(n // 2, 1), n}:
        charge = max_column_charge(chain, horizon, scales=scales, norm="l2")
        assert charge == pytest.approx(totals[:horizon].max(), rel=1e-9)
    bounds = np.array(chain.level_sensitivities_sq())
    assert (columns.max(axis=1) <= bounds * (1 + 1e-12)).all()
    assert totals.max() <= (bounds / scales**2).sum() * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(shape=shapes, seed=seeds)
def test_exact_sensitivities_are_fractions_and_bound_the_exact_columns(
    make: Any, shape: tuple[list[int], int], seed: int
) -> None:
    chain = make.chain(seed, *shape, exact=True)
    dense = materialise(chain, chain.capacity)
    floats = chain.to_float().level_sensitivities_sq()
    for level, bound in enumerate(chain.level_sensitivities_sq()):
        assert isinstance(bound, (Fraction, int))
        part = dense.R[np.flatnonzero(dense.level == level)]
        assert (part * part).sum(axis=0).max() <= bound
        assert bound <= chain.levels[level].sensitivity_sq()
        assert float(bound) == pytest.approx(floats[level], rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, below=st.integers(2, 4), m=st.integers(2, 4), exact=st.booleans())
def test_blended_columns_are_those_of_a_chain(make: Any, seed: int, below: int, m: int, exact: bool) -> None:
    """With blocks enough, the second level meets its interior norms step by step, the largest too."""
    rng = np.random.default_rng(seed)
    stage = (make.exact_stage if exact else make.float_stage)(rng, m, extra=1)
    fine = (make.exact_stage if exact else make.float_stage)(rng, below, extra=1)
    norms = interior_column_norms_sq(stage, below=fine)
    largest = interior_sensitivity_sq(stage, below=fine)
    if exact:
        assert isinstance(norms, Dyadic)
        assert norms.max() == largest
        stage, fine, norms = stage.to_float(), fine.to_float(), norms.to_float()
    chain = Chain(make.float_top(rng, 3), [fine, stage])
    seen = level_columns_sq(materialise(chain, chain.capacity), 3)[1]
    block = fine.size * m
    mine = seen[block : 2 * block].reshape(m, fine.size).T
    np.testing.assert_allclose(mine, norms, rtol=1e-9, atol=1e-12)
    assert float(largest) == pytest.approx(norms.max(), rel=1e-12)


def test_repeated_stages_attain_the_bound(make: Any) -> None:
    for seed in range(6):
        stage = make.float_stage(np.random.default_rng(seed), 3)
        chain = Chain(make.float_top(np.random.default_rng(seed + 1), 3), [stage, stage])
        columns = level_columns_sq(materialise(chain, chain.capacity), 3)
        bounds = chain.level_sensitivities_sq()
        assert columns[0].max() == pytest.approx(bounds[0], rel=1e-12)
        assert columns[1].max() == pytest.approx(bounds[1], rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(shape=shapes, seed=seeds, objective=st.sampled_from(["max", "mean"]))
def test_cost_of_a_chain_equals_the_matrices(
    make: Any, shape: tuple[list[int], int], seed: int, objective: str
) -> None:
    chain = make.chain(seed, *shape)
    n = chain.capacity
    cost = chain_cost(chain, n, objective=objective, norm="l2")
    L, R = materialise(chain, n).scaled(cost.scales)
    rows = (L**2).sum(axis=1)
    assert cost.max_row_sq == pytest.approx(rows.max(), rel=1e-9)
    assert cost.mean_row_sq == pytest.approx(rows.mean(), rel=1e-9)
    assert (R**2).sum(axis=0).max() <= 1 + 1e-9
    assert np.sum(cost.sensitivities / cost.scales**2) == pytest.approx(1, rel=1e-12)
    assert cost.max_row_sq <= cost.bound_max_row_sq * (1 + 1e-9)
    assert cost.mean_row_sq <= cost.bound_mean_row_sq * (1 + 1e-9)
    assert cost.gaussian_se(objective, rho=2.0) == pytest.approx(cost.gamma(objective) ** 2 / 4)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, levels=st.integers(1, 4))
def test_best_scales_are_best(seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    b, q = rng.uniform(0.1, 3.0, levels), rng.uniform(0.1, 3.0, levels)
    s = best_scales(b**2, q, norm="l2")
    assert np.sum(b**2 / s**2) == pytest.approx(1, rel=1e-12)
    least = np.sum(q * s**2)
    assert least == pytest.approx(np.sum(np.sqrt(q) * b) ** 2, rel=1e-12)
    for _ in range(5):
        other = s * rng.uniform(0.9, 1.1, levels)
        other = other * np.sqrt(np.sum(b**2 / other**2))
        assert np.sum(q * other**2) >= least * (1 - 1e-12)


def test_given_scales_are_stretched_to_a_charge_of_one(make: Any) -> None:
    chain = make.chain(5, [3, 2], 3)
    cost = chain_cost(chain, 18, objective="max", scales=[1.0, 2.0, 3.0], norm="l2")
    np.testing.assert_allclose(cost.scales / cost.scales[0], [1.0, 2.0, 3.0])
    assert np.sum(np.array(chain.level_sensitivities_sq()) / cost.scales**2) == pytest.approx(1)


def test_horizon_scales_follow_the_levels(make: Any) -> None:
    chain = make.chain(5, [3, 2], 3)
    for objective, q in (
        ("max", level_max_row_norms_sq(chain, 18)),
        ("mean", mean_row_norms_sq(chain, 18)),
    ):
        wanted = best_scales(chain.level_sensitivities_sq(), q, norm="l2")
        assert np.array_equal(horizon_scales(chain, 18, objective=objective, norm="l2"), wanted)


def test_the_toeplitz_square_root_has_its_own_cost() -> None:
    chain = Chain(toeplitz_stage(64))
    cost, wanted = chain_cost(chain, 64, objective="max", norm="l2"), toeplitz_cost(64)
    assert cost.gamma("max") == pytest.approx(wanted.gamma_max, rel=1e-12)
    assert cost.gamma("mean") == pytest.approx(wanted.gamma_mean, rel=1e-12)
    assert Fraction(toeplitz_stage(64).sensitivity_sq()) == toeplitz_stage(64).row_norms_sq().max()


def test_plan_judges_by_the_norm_it_is_given() -> None:
    """A top that is better under l2 and one that is better under l1: each is chosen under its norm."""
    k = 24
    spread = toeplitz_stage(k).to_float()  # l2: the columns are long but flat
    # two levels of sqrt(k): fewer nonzero entries, so a smaller l1 norm
    eye, step = np.eye(k), 6
    D = np.concatenate([eye, np.repeat(np.eye(k // step), step, axis=1)])
    C = np.concatenate([np.zeros((k, k)), np.zeros((k, k // step))], axis=1)
    for t in range(k):
        whole = (t + 1) // step
        C[t, k : k + whole] = 1.0
        C[t, whole * step : t + 1] = 1.0
    candidates = {"flat": spread, "tree": Stage.plain(C, D)}
    assert plan(candidates, k, norm="l1").names == ("tree",)
    found = plan(candidates, k, norm="l2")
    assert found.names == ("flat",)
    assert found.cost.norm == "l2"
    assert shape_of(spread, name="flat", norm="l2").finest["max"] == pytest.approx(spread.gamma("max"))


def test_screening_adds_the_costs_themselves(make: Any) -> None:
    rng = np.random.default_rng(2)
    stage, top = make.float_stage(rng, 3), make.float_top(rng, 4)
    shapes = [shape_of(x, name=n, norm="l2") for n, x in (("s", stage), ("t", top))]
    assert screen(shapes, 12, objective="mean") == [("s", "t")]
    whole = shapes[0].finest["mean"] + shapes[1].prefix["mean"][3]
    bound = chain_cost(Chain(top, [stage]), 12, objective="mean", norm="l2").bound_mean_row_sq
    assert np.sqrt(bound) == pytest.approx(whole, rel=0.2)  # averages of a prefix differ


def test_costs_of_one_norm_refuse_the_other(make: Any) -> None:
    chain = make.chain(1, [3], 2)
    with pytest.raises(ParameterError, match='Laplace noise needs a cost under norm "l1"'):
        chain_cost(chain, 6, objective="max", norm="l2").max_se()
    with pytest.raises(ParameterError, match='Gaussian noise needs a cost under norm "l2"'):
        chain_cost(chain, 6, objective="max").gamma("max")
    with pytest.raises(ParameterError, match="rho must be a finite number > 0"):
        chain_cost(chain, 6, objective="max", norm="l2").gaussian_se("max", rho=0.0)
    for call in (
        lambda: chain_cost(chain, 6, objective="max", norm="L2"),
        lambda: max_column_charge(chain, 6, scales=[1.0, 1.0], norm="2"),
        lambda: best_scales([1.0], [1.0], norm="linf"),
        lambda: chain.level_charges(norm=""),
        lambda: shape_of(chain.top, name="x", norm="l0"),
    ):
        with pytest.raises(ParameterError, match="norm must be"):
            call()
