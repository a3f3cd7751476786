"""The theorem of the bridge lift in integers: L R = T_n, at every truncation, tails included."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.chain import Chain
from trilift.lift.dense import bridge, materialise
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import HorizonError, ParameterError
from trilift.lift.stage import lower_ones

shapes = st.tuples(st.lists(st.integers(2, 4), max_size=3), st.integers(1, 4))
seeds = st.integers(0, 10**6)


def assert_exact(chain: Chain, horizon: int) -> None:
    dense = materialise(chain, horizon)
    assert (dense.L @ dense.R).equals(Dyadic(lower_ones(horizon)))


@settings(max_examples=25, deadline=None)
@given(shape=shapes, seed=seeds)
def test_exact_chains_multiply_to_the_lower_ones_at_every_truncation(
    make: Any, shape: tuple[list[int], int], seed: int
) -> None:
    chain = make.chain(seed, *shape, exact=True)
    for horizon in range(1, min(chain.capacity, 40) + 1):
        assert_exact(chain, horizon)
    assert_exact(chain, chain.capacity)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "top"), [((), 600), ((24,), 25), ((12, 7), 7), ((5, 6, 4), 5), ((5, 4, 3, 2), 5)]
)
def test_exact_product_near_600(make: Any, sizes: tuple[int, ...], top: int) -> None:
    rng = np.random.default_rng(11)
    stages = [make.exact_stage(rng, m, extra=1, zeros=min(1, m - 2)) for m in sizes]
    chain = Chain(make.exact_top(rng, top), stages)
    assert 588 <= chain.capacity <= 770
    assert_exact(chain, min(chain.capacity, 600))


@settings(max_examples=25, deadline=None)
@given(shape=shapes, seed=seeds)
def test_float_chains(make: Any, shape: tuple[list[int], int], seed: int) -> None:
    chain = make.chain(seed, *shape)
    dense = materialise(chain, chain.capacity)
    np.testing.assert_allclose(dense.L @ dense.R, lower_ones(chain.capacity), atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(shape=shapes, seed=seeds)
def test_a_truncated_chain_is_the_beginning_of_the_whole(
    make: Any, shape: tuple[list[int], int], seed: int
) -> None:
    chain = make.chain(seed, *shape)
    levels = len(chain.levels)
    whole = materialise(chain, chain.capacity)
    columns = make.level_columns(whole, levels)
    for horizon in range(1, chain.capacity + 1, 3):
        part = materialise(chain, horizon)
        np.testing.assert_allclose(part.L @ part.L.T, (whole.L @ whole.L.T)[:horizon, :horizon], atol=1e-9)
        np.testing.assert_allclose(make.level_columns(part, levels), columns[:, :horizon], atol=1e-12)


def test_entries_are_those_of_the_theorem(make: Any) -> None:
    stage = make.exact_stage(np.random.default_rng(3), 3, extra=1, zeros=1)
    top = make.exact_top(np.random.default_rng(4), 2)
    L, R = (x.fractions() for x in bridge(stage, top.A, top.B))
    A, B, w, g, v, C, D = (x.fractions() for x in (stage.A, stage.B, stage.w, stage.g, stage.v, top.A, top.B))
    r, none = stage.inner, np.array([Fraction(0)] * top.inner, dtype=object)
    assert L.shape == (7, 3 * r + top.inner)  # two blocks of three steps and a tail of one
    C_at = {-1: none, 0: C[0], 1: C[1], 2: none}
    D_at = {0: D[:, 0], 1: D[:, 1], 2: none, 3: none}
    for t in range(7):
        j, i = divmod(t, 3)
        row = np.full(L.shape[1], Fraction(0), dtype=object)
        row[j * r : (j + 1) * r] = A[i]
        if j > 0:
            row[(j - 1) * r : j * r] = (1 - w[i]) * g
        row[3 * r :] = (1 - w[i]) * C_at[j - 1] + w[i] * C_at[j]
        assert L[t].tolist() == row.tolist()
        column = np.full(R.shape[0], Fraction(0), dtype=object)
        column[j * r : (j + 1) * r] = B[:, i]
        column[3 * r :] = (1 - v[i]) * D_at[j] + v[i] * D_at[j + 1]
        assert R[:, t].tolist() == column.tolist()


def test_levels_name_the_inner_coordinates(make: Any) -> None:
    chain = make.chain(7, [2, 3], 2, exact=True)
    dense = materialise(chain, 12)
    assert dense.level.shape == (dense.L.shape[1],)
    assert (np.diff(dense.level) >= 0).all()
    fine, middle, top = chain.levels
    counts = np.bincount(dense.level).tolist()
    # the six blocks touch seven positions of the middle level, because columns reach one further
    assert counts == [6 * fine.inner, 3 * middle.inner, top.inner]
    unseen = np.flatnonzero(~(dense.L.num != 0).any(axis=0))
    assert (dense.level[unseen] == 1).all()


def test_scaling_moves_noise_between_the_levels(make: Any) -> None:
    for exact in (False, True):
        chain = make.chain(5, [3, 2], 2, exact=exact)
        dense = materialise(chain, 10)
        L, R = dense.scaled([2.0, 0.5, 3.0])
        np.testing.assert_allclose(L @ R, lower_ones(10), atol=1e-9)
        plain = dense.L.to_float() if exact else dense.L
        np.testing.assert_allclose(L[:, dense.level == 2], 3.0 * plain[:, dense.level == 2])


def test_horizons_that_are_refused(make: Any) -> None:
    chain = make.chain(1, [3], 2)
    with pytest.raises(HorizonError, match="past the capacity"):
        materialise(chain, chain.capacity + 1)
    for bad in (0, -1, 2.0, True, "3", None):
        with pytest.raises(ParameterError, match="horizon must be an integer >= 1"):
            materialise(chain, bad)


def test_bridge_refuses_more_steps_than_it_can_serve(make: Any) -> None:
    rng = np.random.default_rng(0)
    stage, top = make.float_stage(rng, 3, zeros=1), make.float_top(rng, 2)
    assert bridge(stage, top.A, top.B, steps=7)[0].shape[0] == 7
    for bad in (0, 8, 2.0, True):
        with pytest.raises(ParameterError, match="steps must be an integer >= 1 and <= 7"):
            bridge(stage, top.A, top.B, steps=bad)
