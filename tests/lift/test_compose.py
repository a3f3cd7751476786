"""Two one-sided stages as one: the same noise, the same columns, the same tail as the chain of the two."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.chain import Chain
from trilift.lift.compose import compose
from trilift.lift.dense import materialise
from trilift.lift.diamond import diamond_stage
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage, lower_ones

seeds = st.integers(0, 10**6)


def closed(coarse: Stage) -> Stage:
    """The stage with a last row that is the coarse prefix itself, as the last row of a diamond is."""
    m = coarse.size
    keep = np.arange(m) < m - 1
    if coarse.is_exact:
        w = Dyadic.concatenate([coarse.w[:-1], Dyadic([1])])
        return Stage(coarse.A * Dyadic(keep.astype(int))[:, None], coarse.B, w, coarse.g)
    return Stage(coarse.A * keep[:, None], coarse.B, np.where(keep, coarse.w, 1.0), coarse.g)


def parts(make: Any, seed: int, m1: int, m2: int, *, exact: bool) -> tuple[Stage, Stage, Stage]:
    rng = np.random.default_rng(seed)
    stage, top = (make.exact_stage, make.exact_top) if exact else (make.float_stage, make.float_top)
    fine = stage(rng, m1, extra=1, one_sided=True, zeros=int(rng.integers(0, m1)))
    coarse = stage(rng, m2, one_sided=True, zeros=int(rng.integers(0, m2)))
    return fine, coarse, top(rng, 3)


@settings(max_examples=40, deadline=None)
@given(
    seed=seeds,
    sizes=st.tuples(st.integers(2, 4), st.integers(2, 4)),
    ratio=st.floats(0.1, 10),
    prefix=st.booleans(),
)
def test_a_composed_stage_does_what_the_two_do(
    make: Any, seed: int, sizes: tuple[int, int], ratio: float, prefix: bool
) -> None:
    m1, m2 = sizes
    fine, coarse, top = parts(make, seed, m1, m2, exact=False)
    coarse = closed(coarse) if prefix else coarse
    both = compose(fine, coarse, ratio=ratio)
    assert both.size == m1 * m2
    assert both.one_sided
    assert both.residual() < 1e-9
    two, one = Chain(top, [fine, coarse]), Chain(top, [both])
    assert one.capacity == two.capacity
    n = two.capacity
    L, R = materialise(two, n).scaled([1.0, ratio, 1.0])
    dense = materialise(one, n)
    # without a closed coarse stage the first m1 rows of later blocks differ, by design
    step = np.arange(n)
    same = np.flatnonzero((step < m1 * m2) | (step % (m1 * m2) >= m1) | prefix)
    mine = dense.L[same]
    np.testing.assert_allclose(mine @ mine.T, L[same] @ L[same].T, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.abs(dense.R).sum(axis=0), np.abs(R).sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(dense.L @ dense.R, lower_ones(n), atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, m1=st.integers(2, 4), m2=st.integers(2, 4), power=st.integers(-3, 3))
def test_exact_stages_are_composed_exactly(make: Any, seed: int, m1: int, m2: int, power: int) -> None:
    fine, coarse, top = parts(make, seed, m1, m2, exact=True)
    assert compose(fine, coarse).residual() == 0
    coarse = closed(coarse)
    assert coarse.residual() == 0
    both = compose(fine, coarse, ratio=2.0**power)
    assert both.is_exact
    assert both.residual() == 0
    one, two = Chain(top, [both]), Chain(top, [fine, coarse])
    n = two.capacity
    assert one.capacity == n
    dense, apart = materialise(one, n), materialise(two, n)
    middle, rest = np.flatnonzero(apart.level == 1), np.flatnonzero(apart.level != 1)
    up, down = apart.L[:, middle].scaled(power), apart.R[middle].scaled(-power)
    others = apart.L[:, rest]
    assert (dense.L @ dense.L.T).equals(up @ up.T + others @ others.T)
    assert dense.R.abs_sum(axis=0).equals(down.abs_sum(axis=0) + apart.R[rest].abs_sum(axis=0))


def test_diamonds_are_associative(make: Any) -> None:
    """Composing the stages of two diamonds is the same as lifting twice, for every coordinate's scale."""
    rng = np.random.default_rng(3)
    fine, coarse = (diamond_stage(make.float_top(rng, k)) for k in (1, 2))
    top = make.float_top(rng, 2)
    both = Chain(top, [compose(fine, coarse, ratio=1.7)])
    apart = Chain(top, [fine, coarse])
    n = apart.capacity
    assert both.capacity == n == 37
    L, R = materialise(apart, n).scaled([1.0, 1.7, 1.0])
    dense = materialise(both, n)
    np.testing.assert_allclose(dense.L @ dense.L.T, L @ L.T, atol=1e-9)
    np.testing.assert_allclose(np.abs(dense.R).sum(axis=0), np.abs(R).sum(axis=0), rtol=1e-9)


def test_what_cannot_be_composed(make: Any) -> None:
    rng = np.random.default_rng(0)
    one_sided, two_sided = make.float_stage(rng, 3, one_sided=True), make.float_stage(rng, 3)
    exact = make.exact_stage(rng, 3, one_sided=True)
    for fine, coarse in ((two_sided, one_sided), (one_sided, two_sided), (two_sided, two_sided)):
        with pytest.raises(ParameterError, match="one-sided"):
            compose(fine, coarse)
    with pytest.raises(ParameterError, match="both exact or both float"):
        compose(one_sided, exact)
    for ratio in (0, -1.0, float("nan"), float("inf"), True, "1", None):
        with pytest.raises(ParameterError, match="ratio must be a finite number > 0"):
            compose(one_sided, one_sided, ratio=ratio)
    with pytest.raises(ParameterError, match="power of two"):
        compose(exact, exact, ratio=3.0)
