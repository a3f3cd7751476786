"""The largest row norm and the largest column charge against the dense matrices, at every horizon."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.chain import Chain
from trilift.lift.costs import column_norms, row_norms_sq
from trilift.lift.dense import materialise
from trilift.lift.errors import HorizonError, ParameterError
from trilift.lift.extremes import level_max_row_norms_sq, max_column_charge, max_row_norm_sq

shapes = st.one_of(
    st.tuples(st.lists(st.integers(2, 5), max_size=3), st.integers(1, 5)),
    st.tuples(st.lists(st.integers(2, 3), min_size=4, max_size=4), st.integers(1, 2)),
)
seeds = st.integers(0, 10**6)


def horizons(capacity: int) -> range:
    """All of them, or about 20 of a larger capacity."""
    return range(1, capacity + 1, 1 + capacity // 20)


def random_scales(seed: int, count: int) -> Any:
    return np.exp(np.random.default_rng(seed).normal(size=count))


@settings(max_examples=50, deadline=None)
@given(shape=shapes, seed=seeds)
def test_largest_rows_equal_the_matrices(make: Any, shape: tuple[list[int], int], seed: int) -> None:
    chain = make.chain(seed, *shape)
    levels = len(chain.levels)
    scales = random_scales(seed, levels)
    rows = make.level_rows(materialise(chain, chain.capacity), levels)
    expected = np.maximum.accumulate(scales**2 @ rows)
    by_level = np.maximum.accumulate(rows, axis=1)
    for n in horizons(chain.capacity):
        assert max_row_norm_sq(chain, n, scales=scales) == pytest.approx(expected[n - 1], rel=1e-9)
        np.testing.assert_allclose(
            level_max_row_norms_sq(chain, n), by_level[:, n - 1], rtol=1e-9, atol=1e-12
        )


@settings(max_examples=50, deadline=None)
@given(shape=shapes, seed=seeds)
def test_largest_charge_equals_the_matrices(make: Any, shape: tuple[list[int], int], seed: int) -> None:
    chain = make.chain(seed, *shape)
    levels, n = len(chain.levels), chain.capacity
    scales = random_scales(seed, levels)
    charges = (make.level_columns(materialise(chain, n), levels).T / scales).sum(axis=1)
    limit = np.sum(np.array(chain.level_sensitivities()) / scales)
    for horizon in horizons(n):
        charge = max_column_charge(chain, horizon, scales=scales)
        assert charge == pytest.approx(charges[:horizon].max(), rel=1e-9)
        assert charge <= limit * (1 + 1e-12)


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_searches_equal_a_scan_of_many_steps(make: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = Chain(make.float_top(rng, 5), [make.float_stage(rng, m, zeros=1) for m in (5, 2, 3, 4, 7)])
    scales = random_scales(seed, 6)
    for n in (3001, int(rng.integers(1000, 3000))):
        rows = scales**2 @ row_norms_sq(chain, np.arange(n))
        assert max_row_norm_sq(chain, n, scales=scales) == pytest.approx(rows.max(), rel=1e-9)
        columns = (1 / scales) @ column_norms(chain, np.arange(n))
        assert max_column_charge(chain, n, scales=scales) == pytest.approx(columns.max(), rel=1e-9)


def test_work_does_not_grow_with_the_horizon(make: Any) -> None:
    """A horizon past 10^10 is answered, and no smaller horizon gives more."""
    rng = np.random.default_rng(7)
    chain = Chain(make.float_top(rng, 4), [make.float_stage(rng, 9)] * 11)
    scales = random_scales(1, 12)
    steps = [10, 10**3, 10**10, chain.capacity]
    rows = [max_row_norm_sq(chain, n, scales=scales) for n in steps]
    charges = [max_column_charge(chain, n, scales=scales) for n in steps]
    assert rows == sorted(rows)
    assert charges == sorted(charges)
    assert charges[-1] <= np.sum(np.array(chain.level_sensitivities()) / scales) * (1 + 1e-12)


@pytest.mark.parametrize("function", [max_row_norm_sq, max_column_charge])
def test_arguments_that_are_refused(make: Any, function: Any) -> None:
    chain = make.chain(6, [3, 2], 3)
    wrong: list[Any] = [[1.0, 1.0], [1.0, 1.0, 0.0], [1.0, -1.0, 1.0], np.ones((3, 1)), "abc", [True] * 3]
    for scales in [*wrong, [1.0, np.nan, 1.0]]:
        with pytest.raises(ParameterError, match="scales must") as caught:
            function(chain, 5, scales=scales)
        assert "\n" not in str(caught.value)
    with pytest.raises(ParameterError, match="scales must") as long:
        function(chain, 5, scales=np.linspace(1, 2, 90))
    assert "\n" not in str(long.value)
    with pytest.raises(HorizonError):
        function(chain, chain.capacity + 1, scales=[1.0, 1.0, 1.0])
    with pytest.raises(ParameterError, match="horizon"):
        function(chain, 0, scales=[1.0, 1.0, 1.0])
