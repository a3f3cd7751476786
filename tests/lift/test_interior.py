"""The interior cost: exactly what a level inside a chain costs, and a bound for all deeper ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.chain import Chain
from trilift.lift.costs import mean_row_norms_sq
from trilift.lift.dense import materialise
from trilift.lift.errors import ParameterError
from trilift.lift.interior import interior_column_norms, interior_row_norms_sq, interior_sensitivity
from trilift.lift.stage import Stage, lower_ones

seeds = st.integers(0, 10**6)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, below=st.integers(2, 4), m=st.integers(2, 4), own=st.booleans())
def test_the_second_level_of_a_chain_costs_the_interior_cost(
    make: Any, seed: int, below: int, m: int, own: bool
) -> None:
    """Far enough from the stream's start, rows and columns of level 2 are the blended ones, step by step."""
    rng = np.random.default_rng(seed)
    stage = make.float_stage(rng, m, extra=1)
    fine = stage if own else make.float_stage(rng, below, extra=1)
    chain = Chain(make.float_top(rng, 4), [fine, stage])
    given_below = None if own else fine
    rows = interior_row_norms_sq(stage, below=given_below)
    columns = interior_column_norms(stage, below=given_below)
    assert rows.shape == columns.shape == (fine.size, m)
    dense = materialise(chain, chain.capacity)
    seen_rows, seen_columns = make.level_rows(dense, 3)[1], make.level_columns(dense, 3)[1]
    block = fine.size * m
    for start in (2 * block, 3 * block):  # steps (j, i') of a block, i' running fastest
        mine = seen_rows[start : start + block].reshape(m, fine.size).T
        np.testing.assert_allclose(mine, rows, rtol=1e-9, atol=1e-12)
        theirs = seen_columns[start : start + block].reshape(m, fine.size).T
        np.testing.assert_allclose(theirs[:, :-1], columns[:, :-1], rtol=1e-9, atol=1e-12)
        if start + block < 4 * block:
            np.testing.assert_allclose(theirs[:, -1], columns[:, -1], rtol=1e-9, atol=1e-12)
    assert interior_sensitivity(stage, below=given_below) == pytest.approx(columns.max(), rel=1e-12)


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("m", [2, 3])
def test_deeper_levels_of_a_repeated_stage_cost_no_more(make: Any, stages: int, m: int) -> None:
    """Chains of 3, 4 and 5 levels: max and mean of the blended rows, and the blended columns."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        stage = make.float_stage(rng, m, extra=seed % 2, one_sided=seed % 3 == 2)
        chain = Chain(make.float_top(rng, 2), [stage] * stages)
        n = 2 * m**stages  # whole blocks
        dense = materialise(chain, n)
        rows, columns = make.level_rows(dense, stages + 1), make.level_columns(dense, stages + 1)
        bounds = interior_row_norms_sq(stage)
        b_bar = interior_sensitivity(stage)
        plain = stage.row_norms_sq()
        assert bounds.max() <= plain.max() * (1 + 1e-12)
        assert bounds.mean() <= plain.mean() * (1 + 1e-12)
        assert b_bar <= stage.sensitivity() * (1 + 1e-12)
        for level in range(1, stages):
            assert rows[level].max() <= bounds.max() * (1 + 1e-12)
            assert rows[level].mean() <= bounds.mean() * (1 + 1e-12)
            assert columns[level].max() <= b_bar * (1 + 1e-12)


def test_the_mean_of_the_second_level_tends_to_the_interior_mean(make: Any) -> None:
    stage = make.float_stage(np.random.default_rng(5), 4)
    chain = Chain(Stage.plain(lower_ones(1000), np.eye(1000)), [stage, stage])
    mean = mean_row_norms_sq(chain, 16 * 1000)[1]
    assert mean == pytest.approx(interior_row_norms_sq(stage).mean(), rel=3e-3)
    assert mean < interior_row_norms_sq(stage).mean()  # the first block has nothing before it


@settings(max_examples=25, deadline=None)
@given(seed=seeds, below=st.integers(2, 4), m=st.integers(2, 4))
def test_exact_interior_costs(make: Any, seed: int, below: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    stage, fine = make.exact_stage(rng, m, extra=1), make.exact_stage(rng, below)
    floats = (stage.to_float(), fine.to_float())
    rows, columns = interior_row_norms_sq(stage, below=fine), interior_column_norms(stage, below=fine)
    np.testing.assert_allclose(rows.to_float(), interior_row_norms_sq(floats[0], below=floats[1]), rtol=1e-9)
    np.testing.assert_allclose(
        columns.to_float(), interior_column_norms(floats[0], below=floats[1]), rtol=1e-9
    )
    assert interior_sensitivity(stage, below=fine) == columns.max()
    # one blend of rows by hand, in fractions
    A, w, g = stage.A.fractions(), stage.w.fractions(), stage.g.fractions()
    weight = fine.w.fractions()[1]
    j, r = 1, stage.inner
    row, before = np.concatenate([(1 - w[j]) * g, A[j]]), np.concatenate([(1 - w[j - 1]) * g, A[j - 1]])
    blend = weight * row + (1 - weight) * before
    assert blend.shape == (2 * r,)
    assert rows[1, j].fraction() == (blend * blend).sum()


def test_one_sided_stages_are_blended_in_rows_only(make: Any) -> None:
    stage = make.float_stage(np.random.default_rng(2), 4, one_sided=True)
    np.testing.assert_allclose(interior_column_norms(stage), np.tile(stage.column_norms(), (4, 1)))
    assert interior_sensitivity(stage) == pytest.approx(stage.sensitivity())
    assert interior_row_norms_sq(stage).min() < stage.row_norms_sq().min()


def test_mixed_kinds_are_refused(make: Any) -> None:
    exact = make.exact_stage(np.random.default_rng(0), 3)
    floats = exact.to_float()
    for function in (interior_row_norms_sq, interior_column_norms, interior_sensitivity):
        for stage, below in ((exact, floats), (floats, exact)):
            with pytest.raises(ParameterError, match="both exact or both float"):
                function(stage, below=below)
