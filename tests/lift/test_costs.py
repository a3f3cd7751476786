"""Level-wise exact costs against the dense matrices, at every step and every horizon."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.chain import Chain
from trilift.lift.costs import column_norms, mean_row_norms_sq, row_norms_sq
from trilift.lift.dense import materialise
from trilift.lift.errors import HorizonError, ParameterError

shapes = st.tuples(st.lists(st.integers(2, 5), max_size=3), st.integers(1, 5))
deep_shapes = st.tuples(st.lists(st.integers(2, 2), min_size=4, max_size=5), st.integers(1, 3))
seeds = st.integers(0, 10**6)


@settings(max_examples=60, deadline=None)
@given(shape=st.one_of(shapes, deep_shapes), seed=seeds)
def test_costs_equal_the_matrices(make: Any, shape: tuple[list[int], int], seed: int) -> None:
    chain = make.chain(seed, *shape)
    n, levels = chain.capacity, len(chain.levels)
    dense = materialise(chain, n)
    rows, columns = make.level_rows(dense, levels), make.level_columns(dense, levels)
    steps = np.arange(n)
    np.testing.assert_allclose(row_norms_sq(chain, steps), rows, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(column_norms(chain, steps), columns, rtol=1e-9, atol=1e-9)
    expected = np.cumsum(rows, axis=1) / np.arange(1, n + 1)
    means = np.stack([mean_row_norms_sq(chain, h) for h in range(1, n + 1)], axis=1)
    np.testing.assert_allclose(means, expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(shape=shapes, seed=seeds)
def test_exact_chains_cost_what_their_floats_cost(make: Any, shape: tuple[list[int], int], seed: int) -> None:
    chain = make.chain(seed, *shape, exact=True)
    n, levels = chain.capacity, len(chain.levels)
    dense = materialise(chain, n)
    rows = row_norms_sq(chain, np.arange(n))
    columns = column_norms(chain, np.arange(n))
    for level in range(levels):
        chosen = np.flatnonzero(dense.level == level)
        part = dense.L[:, chosen]
        np.testing.assert_allclose(rows[level], (part * part).sum(axis=1).to_float(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(columns[level], dense.R[chosen].abs_sum(axis=0).to_float(), rtol=1e-9)


@settings(max_examples=30, deadline=None)
@given(shape=shapes, seed=seeds)
def test_blending_never_costs_more(make: Any, shape: tuple[list[int], int], seed: int) -> None:
    chain = make.chain(seed, *shape)
    for n in range(1, chain.capacity + 1, 3):
        exact = mean_row_norms_sq(chain, n)
        bound = mean_row_norms_sq(chain, n, blended=False)
        assert (exact <= bound * (1 + 1e-12) + 1e-12).all()
        assert exact[0] == pytest.approx(bound[0])  # the finest level meets whole steps


def test_unblended_means_are_blends_of_norms(make: Any) -> None:
    """Two levels by hand: the coarse share is the blend of the top's squared row norms."""
    chain = make.chain(8, [3], 4)
    stage, top = chain.levels
    q = np.concatenate([[0.0], (top.A**2).sum(axis=1), [0.0]])
    j, i = np.divmod(np.arange(chain.capacity), 3)
    blends = (1 - stage.w[i]) * q[j] + stage.w[i] * q[j + 1]
    for n in range(1, chain.capacity + 1):
        assert mean_row_norms_sq(chain, n, blended=False)[1] == pytest.approx(blends[:n].mean())


def test_large_horizons_agree_with_the_steps(make: Any) -> None:
    """No matrix could be held here: the mean over 10^5 steps against the steps themselves."""
    rng = np.random.default_rng(3)
    stages = [make.float_stage(rng, m, zeros=1) for m in (7, 5, 6, 9)]
    chain = Chain(make.float_top(rng, 60), stages)
    n = 100_003
    assert n <= chain.capacity
    rows = row_norms_sq(chain, np.arange(n))
    np.testing.assert_allclose(mean_row_norms_sq(chain, n), rows.mean(axis=1), rtol=1e-10)
    columns = column_norms(chain, np.arange(n))
    assert (columns.max(axis=1) <= np.array(chain.level_sensitivities()) * (1 + 1e-12)).all()


def test_huge_horizons_are_only_a_few_sums(make: Any) -> None:
    rng = np.random.default_rng(4)
    stage = make.float_stage(rng, 9)
    chain = Chain(make.float_top(rng, 4), [stage] * 15)
    last = chain.capacity - 1
    assert last > 10**14
    assert row_norms_sq(chain, [0, last]).shape == (16, 2)
    # far inside, the mean of the finest level is the mean over one block
    assert mean_row_norms_sq(chain, chain.capacity)[0] == pytest.approx(stage.row_norms_sq().mean(), rel=1e-9)


def test_steps_in_any_order_and_shape(make: Any) -> None:
    chain = make.chain(6, [3, 2], 3)
    whole = row_norms_sq(chain, np.arange(chain.capacity))
    assert np.array_equal(row_norms_sq(chain, [5, 0, 5]), whole[:, [5, 0, 5]])
    assert np.array_equal(row_norms_sq(chain, 4), whole[:, [4]])
    assert row_norms_sq(chain, np.array([], dtype=np.int64)).shape == (3, 0)
    assert column_norms(chain, np.array([], dtype=np.int64)).shape == (3, 0)


@pytest.mark.parametrize("function", [row_norms_sq, column_norms])
def test_steps_that_are_refused(make: Any, function: Any) -> None:
    chain = make.chain(6, [3, 2], 3)
    n = chain.capacity
    for bad in ([n], [-1], [0, n + 7], -5):
        with pytest.raises(HorizonError, match=f"outside 0..{n - 1}"):
            function(chain, bad)
    for worse in ([0.0], [True], ["0"], [None], [float("nan")], 1.5):
        with pytest.raises(ParameterError, match="steps must be"):
            function(chain, worse)


def test_mean_checks_the_horizon(make: Any) -> None:
    chain = make.chain(6, [3], 3)
    with pytest.raises(HorizonError):
        mean_row_norms_sq(chain, chain.capacity + 1)
    with pytest.raises(ParameterError):
        mean_row_norms_sq(chain, 0)
