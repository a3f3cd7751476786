"""The chain: capacities, what it refuses, and the sensitivities that its levels are charged with."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.chain import Chain
from trilift.lift.dense import materialise
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.lift.interior import interior_sensitivity
from trilift.lift.stage import Stage, lower_ones

shapes = st.tuples(st.lists(st.integers(2, 4), max_size=3), st.integers(1, 4))
seeds = st.integers(0, 10**6)


def test_capacities(make: Any) -> None:
    rng = np.random.default_rng(0)
    top = make.float_top(rng, 4)
    fine, coarse = make.float_stage(rng, 5, zeros=2), make.float_stage(rng, 3, zeros=1)
    chain = Chain(top, [fine, coarse])
    assert chain.sizes == (5, 3, 4)
    assert chain.capacities == (5 * (3 * 4 + 1) + 2, 3 * 4 + 1, 4)
    assert chain.capacity == 67
    assert Chain(top).capacity == 4
    assert chain.levels == (fine, coarse, top)
    assert Chain(top, iter([fine])).stages == (fine,)


def test_horizons(make: Any) -> None:
    chain = make.chain(2, [3], 3)
    assert chain.check_horizon(np.int64(1)) == 1
    assert chain.check_horizon(chain.capacity) == chain.capacity
    with pytest.raises(HorizonError) as caught:
        chain.check_horizon(chain.capacity + 1)
    n = chain.capacity
    assert str(caught.value) == f"horizon {n + 1} is past the capacity {n} of the chain"
    assert isinstance(caught.value, StateError)
    for bad in (0, -3, 1.0, float("nan"), True, "1", None):
        with pytest.raises(ParameterError, match="horizon must be an integer >= 1"):
            chain.check_horizon(bad)


def test_chains_that_are_refused(make: Any) -> None:
    rng = np.random.default_rng(0)
    top, stage = make.float_top(rng, 3), make.float_stage(rng, 3)
    exact = make.exact_stage(rng, 3)
    for bad_top, stages, words in (
        (stage, [], "the top of a chain must be a plain factorisation"),
        (top, [make.float_stage(rng, 1)], "size at least 2"),
        (top, [exact], "all exact or all float"),
        (top, [stage, "stage"], "made of Stage objects"),
        (np.eye(3), [], "made of Stage objects"),
    ):
        with pytest.raises(ParameterError, match=words):
            Chain(bad_top, stages)
    with pytest.raises(AttributeError):
        Chain(top).top = top  # type: ignore[misc]


def test_to_float(make: Any) -> None:
    chain = make.chain(3, [3, 2], 2, exact=True)
    rounded = chain.to_float()
    assert chain.is_exact
    assert not rounded.is_exact
    assert rounded.capacities == chain.capacities
    assert rounded.to_float() is rounded


@settings(max_examples=40, deadline=None)
@given(shape=shapes, seed=seeds, exact=st.booleans())
def test_level_sensitivities_bound_every_column(
    make: Any, shape: tuple[list[int], int], seed: int, exact: bool
) -> None:
    chain = make.chain(seed, *shape, exact=exact)
    charges = chain.level_sensitivities()
    dense = materialise(chain, chain.capacity)
    for level, charge in enumerate(charges):
        chosen = np.flatnonzero(dense.level == level)
        if exact:
            assert type(charge) is Fraction or isinstance(charge, int)
            assert dense.R[chosen].abs_sum(axis=0).max() <= charge
        else:
            assert np.abs(dense.R[chosen]).sum(axis=0).max() <= charge + 1e-12
        assert charge <= chain.levels[level].sensitivity() * (1 if exact else 1 + 1e-12)
    if exact:
        floats = chain.to_float().level_sensitivities()
        np.testing.assert_allclose([float(c) for c in charges], floats, rtol=1e-9)


def test_the_last_columns_of_a_tail_are_bounded_too(make: Any) -> None:
    """In a tail's block the next column is still there to cancel with; the bound needs it."""
    fine_B = np.eye(2)
    fine_g = np.full(2, 0.5)  # v = 1/2 throughout
    fine = Stage(lower_ones(2) - np.outer([0.0, 1.0], 1.0 - fine_g), fine_B, np.array([0.0, 1.0]), fine_g)
    B = np.array([[-0.3, 2.0, -2.0, 0.5], [0.1, 0.0, 0.1, 0.0], [0.0, 0.0, 0.1, 0.1], [0.0, 0.0, 0.0, 0.1]])
    w = np.array([0.0, 0.0, 1.0, 1.0])
    coarse = Stage((lower_ones(4) - np.outer(w, np.ones(4))) @ np.linalg.inv(B), B, w, np.zeros(4))
    chain = Chain(make.float_top(np.random.default_rng(1), 2), [fine, coarse])
    assert chain.capacities == (21, 10, 2)
    dense = materialise(chain, 21)
    np.testing.assert_allclose(dense.L @ dense.R, lower_ones(21), atol=1e-9)
    bound = chain.level_sensitivities()[1]
    assert make.level_columns(dense, 3)[1].max() == pytest.approx(bound)
    assert 0.5 * coarse.column_norms()[coarse.tail - 1] > 1.05 * bound  # the last blend, cut short


@settings(max_examples=40, deadline=None)
@given(seed=seeds, m=st.integers(2, 4), zeros=st.integers(0, 1), stages=st.integers(2, 3))
def test_repeated_stages_meet_their_level_sensitivities(
    make: Any, seed: int, m: int, zeros: int, stages: int
) -> None:
    """With enough blocks the bound of the second level is attained: it is not only a bound."""
    stage = make.float_stage(np.random.default_rng(seed), m, zeros=zeros)
    chain = Chain(make.float_top(np.random.default_rng(seed + 1), 3), [stage] * stages)
    charges = chain.level_sensitivities()
    assert charges[0] == stage.sensitivity()
    assert charges[1:stages] == [interior_sensitivity(stage)] * (stages - 1)
    columns = make.level_columns(materialise(chain, chain.capacity), stages + 1)
    assert columns[0].max() == pytest.approx(charges[0], rel=1e-12)
    assert columns[1].max() == pytest.approx(charges[1], rel=1e-12)


def test_a_top_beneath_which_nothing_is_two_sided_is_charged_whole(make: Any) -> None:
    rng = np.random.default_rng(1)
    top = make.float_top(rng, 4)
    chain = Chain(top, [make.float_stage(rng, 3, one_sided=True), make.float_stage(rng, 2, one_sided=True)])
    assert chain.level_sensitivities() == [level.sensitivity() for level in chain.levels]


def test_a_factorisation_may_serve_as_a_stage_and_as_the_top(make: Any) -> None:
    rng = np.random.default_rng(4)
    both, fine = make.float_top(rng, 3), make.float_stage(rng, 2)
    chain = Chain(both, [fine, both])
    columns = make.level_columns(materialise(chain, chain.capacity), 3)
    charges = chain.level_sensitivities()
    assert columns[1].max() == pytest.approx(charges[1])
    assert (columns.max(axis=1) <= np.array(charges) * (1 + 1e-12)).all()


def test_the_top_of_one_step(make: Any) -> None:
    exact = make.exact_stage(np.random.default_rng(2), 3)
    top = Stage.plain(Dyadic([[1]]), Dyadic([[1]]))
    rest = 1 - min(exact.v.fractions())
    assert Chain(top, [exact]).level_sensitivities()[1] == rest
    assert Chain(top.to_float(), [exact.to_float()]).level_sensitivities()[1] == pytest.approx(float(rest))
