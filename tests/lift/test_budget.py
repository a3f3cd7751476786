"""Best scales and chain costs: optimal, equal to the dense matrices, and never above the additive bounds."""

from math import prod, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.budget import best_scales, chain_cost, horizon_scales
from trilift.lift.chain import Chain
from trilift.lift.costs import row_norms_sq
from trilift.lift.dense import materialise
from trilift.lift.errors import HorizonError, ParameterError
from trilift.lift.stage import Stage, lower_ones

shapes = st.tuples(st.lists(st.integers(2, 4), max_size=3), st.integers(1, 4))
seeds = st.integers(0, 10**6)
objectives = st.sampled_from(["max", "mean"])
positive = st.floats(1e-3, 1e3)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), count=st.integers(1, 5), seed=seeds)
def test_best_scales_are_best(data: st.DataObject, count: int, seed: int) -> None:
    b = np.array(data.draw(st.lists(positive, min_size=count, max_size=count)))
    q = np.array(data.draw(st.lists(positive, min_size=count, max_size=count)))
    s = best_scales(b, q)
    assert np.sum(b / s) == pytest.approx(1.0)
    least = np.sum(q * s**2)
    assert least == pytest.approx(np.sum((b * b * q) ** (1 / 3)) ** 3)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 0.1, 1.0):
        other = s * np.exp(size * rng.normal(size=count))
        other *= np.sum(b / other)  # spends the same budget
        assert np.sum(q * other**2) >= least * (1 - 1e-12)
    if count > 1:
        other = s * np.where(np.arange(count) == 0, 1.1, 1.0)
        other *= np.sum(b / other)
        assert np.sum(q * other**2) > least  # the optimum is strict


def test_a_level_without_noise_is_given_next_to_nothing() -> None:
    s = best_scales([1.0, 1.0], [1.0, 0.0])
    assert np.isfinite(s).all()
    assert np.sum(1.0 / s) == pytest.approx(1.0)
    assert s[0] == pytest.approx(1.0, rel=2e-3)


def test_two_steps_by_hand() -> None:
    """T_2: the trivial factorisation costs sqrt 2 and sqrt(3/2), and no other costs less."""
    trivial = Chain(Stage.plain(lower_ones(2), np.eye(2)))
    largest = chain_cost(trivial, 2, objective="max")
    assert sqrt(largest.max_row_sq) == pytest.approx(sqrt(2))
    assert sqrt(chain_cost(trivial, 2, objective="mean").mean_row_sq) == pytest.approx(sqrt(3 / 2))
    assert largest.max_se() == pytest.approx(4.0)
    assert largest.max_se(0.5) == pytest.approx(16.0)
    assert largest.scales.tolist() == [1.0]
    assert largest.sensitivities.tolist() == [1.0]
    rng = np.random.default_rng(0)
    for _ in range(300):
        B = rng.normal(size=(2, 2))
        cost = chain_cost(Chain(Stage.plain(lower_ones(2) @ np.linalg.inv(B), B)), 2, objective="max")
        assert sqrt(cost.max_row_sq) >= sqrt(2) * (1 - 1e-12)
        assert sqrt(cost.mean_row_sq) >= sqrt(3 / 2) * (1 - 1e-12)


@settings(max_examples=40, deadline=None)
@given(shape=shapes, seed=seeds, objective=objectives, data=st.data())
def test_costs_equal_the_matrices_and_keep_the_bounds(
    make: Any, shape: tuple[list[int], int], seed: int, objective: str, data: st.DataObject
) -> None:
    chain = make.chain(seed, *shape)
    n = data.draw(st.integers(1, chain.capacity))
    cost = chain_cost(chain, n, objective=objective)
    assert (cost.horizon, cost.objective) == (n, objective)
    np.testing.assert_allclose(cost.sensitivities, chain.level_sensitivities())
    assert np.sum(cost.sensitivities / cost.scales) == pytest.approx(1.0)
    L, R = materialise(chain, n).scaled(cost.scales)
    rows = (L**2).sum(axis=1)
    assert cost.max_row_sq == pytest.approx(rows.max(), rel=1e-9)
    assert cost.mean_row_sq == pytest.approx(rows.mean(), rel=1e-9)
    assert np.abs(R).sum(axis=0).max() <= 1 + 1e-9  # an input of size 1 costs at most epsilon
    assert cost.max_row_sq <= cost.bound_max_row_sq * (1 + 1e-12)
    assert cost.mean_row_sq <= cost.bound_mean_row_sq * (1 + 1e-12)
    assert cost.objective_row_sq == (cost.max_row_sq if objective == "max" else cost.mean_row_sq)
    assert cost.mean_row_sq <= cost.max_row_sq * (1 + 1e-12)
    np.testing.assert_allclose(cost.scales, horizon_scales(chain, n, objective=objective))


@settings(max_examples=40, deadline=None)
@given(shape=shapes, seed=seeds, objective=objectives)
def test_the_additive_law(make: Any, shape: tuple[list[int], int], seed: int, objective: str) -> None:
    """cost^(2/3) of the chain is at most the sum over its levels (the mean: over whole blocks)."""
    chain = make.chain(seed, *shape)
    n = int(np.prod(chain.sizes))
    cost = chain_cost(chain, n, objective=objective)
    limit = sum(level.cost_third(objective) for level in chain.levels)
    assert cost.objective_row_sq ** (1 / 3) <= limit * (1 + 1e-12)
    if objective == "max":  # which holds at every horizon
        for horizon in range(1, chain.capacity + 1, 7):
            part = chain_cost(chain, horizon, objective="max")
            assert part.max_row_sq ** (1 / 3) <= limit * (1 + 1e-12)
            assert part.bound_max_row_sq == pytest.approx(limit**3)


@settings(max_examples=25, deadline=None)
@given(shape=shapes, seed=seeds, objective=objectives)
def test_other_scales_are_stretched_and_cost_no_less(
    make: Any, shape: tuple[list[int], int], seed: int, objective: str
) -> None:
    chain = make.chain(seed, *shape)
    n = chain.capacity
    rng = np.random.default_rng(seed)
    scales = np.exp(rng.normal(size=len(chain.levels)))
    cost = chain_cost(chain, n, objective=objective, scales=scales)
    assert np.sum(cost.sensitivities / cost.scales) == pytest.approx(1.0)
    np.testing.assert_allclose(cost.scales / cost.scales[0], scales / scales[0])
    L, _ = materialise(chain, n).scaled(cost.scales)
    assert cost.max_row_sq == pytest.approx((L**2).sum(axis=1).max(), rel=1e-9)
    assert cost.max_row_sq <= cost.bound_max_row_sq * (1 + 1e-12)
    assert cost.mean_row_sq <= cost.bound_mean_row_sq * (1 + 1e-12)
    if objective == "mean":  # for the mean the best scales are exactly best
        best = chain_cost(chain, n, objective="mean")
        assert best.mean_row_sq <= cost.mean_row_sq * (1 + 1e-9)


def test_exact_chains_cost_what_their_floats_cost(make: Any) -> None:
    chain = make.chain(5, [3, 2], 3, exact=True)
    for objective in ("max", "mean"):
        exact = chain_cost(chain, chain.capacity, objective=objective)
        rounded = chain_cost(chain.to_float(), chain.capacity, objective=objective)
        assert exact.max_row_sq == pytest.approx(rounded.max_row_sq, rel=1e-12)
        assert exact.mean_row_sq == pytest.approx(rounded.mean_row_sq, rel=1e-12)


def test_squared_errors_and_kappa(make: Any) -> None:
    chain = make.chain(9, [3], 4)
    cost = chain_cost(chain, 10, objective="mean")
    assert cost.max_se() == 2 * cost.max_row_sq
    assert cost.mean_se(2) == pytest.approx(cost.mean_row_sq / 2)
    assert cost.bound_max_se(0.1) == pytest.approx(200 * cost.bound_max_row_sq)
    assert cost.bound_mean_se() == 2 * cost.bound_mean_row_sq
    assert cost.kappa("max") == pytest.approx(cost.max_se() / np.log2(10) ** 3)
    assert cost.kappa("mean") == pytest.approx(cost.mean_se() / np.log2(10) ** 3)
    assert cost.max_se(1e-150) > 1e299
    assert 0 < cost.max_se(1e150) < 1e-297
    for epsilon in (0, -1, float("nan"), float("inf"), True, "1", None):
        for method in (cost.max_se, cost.mean_se, cost.bound_max_se, cost.bound_mean_se):
            with pytest.raises(ParameterError, match="epsilon must be a finite number > 0"):
                method(epsilon)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="objective must be"):
        cost.kappa("median")
    with pytest.raises(ParameterError, match="at least 2"):
        chain_cost(chain, 1, objective="max").kappa("max")


def test_arguments_that_are_refused(make: Any) -> None:
    chain = make.chain(9, [3], 4)
    with pytest.raises(HorizonError):
        chain_cost(chain, chain.capacity + 1, objective="max")
    for objective in ("median", "", None, 3):
        with pytest.raises(ParameterError, match="objective must be one of 'max', 'mean'"):
            chain_cost(chain, 5, objective=objective)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="objective must be one of 'max', 'mean'"):
            horizon_scales(chain, 5, objective=objective)  # type: ignore[arg-type]
    for scales in ([1.0], [1.0, 0.0], [1.0, -1.0], [1.0, float("nan")], "ab", [[1.0, 1.0]]):
        with pytest.raises(ParameterError, match="scales must"):
            chain_cost(chain, 5, objective="max", scales=scales)


@pytest.mark.parametrize("sizes", [(3,), (3, 2), (2, 3, 2)])
def test_interior_cost_is_what_blocks_far_from_the_start_cost(make: Any, sizes: tuple[int, ...]) -> None:
    """Blocks far inside the stream cost at most the interior maximum, and never more than plain norms."""
    for seed in range(4):
        chain = make.chain(seed, sizes, 9)
        n = prod(sizes) * 9
        cost = chain_cost(chain, n, objective="max")
        late = cost.scales**2 @ row_norms_sq(chain, np.arange(n // 3, n))
        assert late.max() <= cost.interior_max_row_sq * (1 + 1e-9)
        plain = cost.scales**2 @ [level.row_norms_sq().max() for level in chain.levels]
        assert cost.interior_mean_row_sq <= cost.interior_max_row_sq <= plain * (1 + 1e-9)


def test_interior_cost_of_a_top_alone_is_its_plain_cost(make: Any) -> None:
    chain = make.chain(1, (), 5)
    cost = chain_cost(chain, 5, objective="mean")
    assert cost.interior_mean_row_sq == pytest.approx(cost.mean_row_sq)
    assert cost.interior_max_row_sq == pytest.approx(cost.max_row_sq)
