"""Composite starts: by hand, against the exact composition of one-sided stages, and by their costs."""

import numpy as np
import pytest
from trilift.artifacts import load_stage
from trilift.factorize import composite_start
from trilift.lift import Stage, best_scales, compose
from trilift.lift.errors import ParameterError


@pytest.fixture
def pair():
    """The one-sided stage of size 2 that measures its first step: T_2 = [1; 0] [1 0] + [0; 1] [1 1]."""
    return Stage(np.array([[1.0], [0.0]]), np.array([[1.0, 0.0]]), np.array([0.0, 1.0]), np.zeros(1))


def full(stage):
    """Give a stage a square, invertible B: the same with the last step measured too."""
    B = np.eye(stage.size)
    A = np.tril(np.ones((stage.size, stage.size))) - np.outer(stage.w, np.ones(stage.size))
    return Stage(A, B, stage.w, np.zeros(stage.size))


def test_two_pairs_by_hand(pair):
    fine = full(pair)
    found = composite_start(fine, fine)
    # both levels cost the same, so both scales are 2
    np.testing.assert_allclose(
        found.B * 2,
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]],
        atol=1e-12,
    )
    np.testing.assert_allclose(found.w, [0, 0, 0, 1])
    np.testing.assert_allclose(found.v, 0, atol=1e-12)
    assert found.residual() < 1e-12


def two_sided(size, seed):
    rng = np.random.default_rng(seed)
    V = np.eye(size) + 0.3 * rng.normal(size=(size, size)) / np.sqrt(size)
    B = V / np.abs(V).sum(axis=0)
    v, w = rng.uniform(0, 0.8, size), rng.uniform(0.1, 1, size)
    inverse = np.linalg.inv(B)
    A = (np.tril(np.ones((size, size))) - np.outer(w, 1 - v)) @ inverse
    return Stage(A, B, w, v @ inverse)


def test_blending_by_hand():
    fine, coarse = two_sided(2, 0), two_sided(3, 1)
    found = composite_start(fine, coarse)
    s = 1 / found.B[:2, :2].sum() * fine.B.sum()  # scale of the fine level
    np.testing.assert_allclose(found.B[:6] * s, np.kron(np.eye(3), fine.B), atol=1e-12)
    t = 1 / (1 - 1 / s)
    D = np.column_stack([coarse.B, np.zeros(3)])
    v = np.append(coarse.v, 1.0)
    w = np.append(0.0, coarse.w)
    for j in range(3):
        for i in range(2):
            x, y = fine.v[i], fine.w[i]
            column = (1 - x) * D[:, j] + x * D[:, j + 1]
            np.testing.assert_allclose(found.B[6:, 2 * j + i] * t, column, atol=1e-12)
            assert found.v[2 * j + i] == pytest.approx((1 - x) * v[j] + x * v[j + 1])
            assert found.w[2 * j + i] == pytest.approx((1 - y) * w[j] + y * w[j + 1])


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2), (2, 2, 2), (4, 3, 2)])
def test_composites_are_valid_stages(sizes):
    levels = [two_sided(size, seed) for seed, size in enumerate(sizes)]
    found = composite_start(*levels)
    assert found.size == np.prod(sizes)
    assert found.residual() < 1e-10
    assert found.sensitivity() <= 1 + 1e-12
    assert found.v.min() >= -1e-12
    assert found.v.max() <= 1 + 1e-12


def test_one_sided_composites_cost_no_more_than_the_exact_composition(pair):
    """The composition of the same two stages has the same B up to scales, and longer rows of A."""
    rng = np.random.default_rng(4)
    one_sided = []
    for size in (3, 4):
        B = np.eye(size) + 0.3 * rng.normal(size=(size, size))
        B /= np.abs(B).sum(axis=0)
        L = np.cumsum(np.linalg.inv(B), axis=0)
        w = rng.uniform(0, 1, size)
        one_sided.append(Stage(L - np.outer(w, L[-1]), B, w, np.zeros(size)))
    fine, coarse = one_sided
    found = composite_start(fine, coarse, objective="mean")
    s, t = best_scales([1.0, 1.0], [1.0, 1.0])
    exact = compose(fine, coarse, ratio=float(t / s))
    np.testing.assert_allclose(found.w, exact.w, atol=1e-12)
    assert found.v == pytest.approx(0, abs=1e-12)
    assert found.cost_third("mean") < exact.cost_third("mean")
    assert found.cost_third("mean") <= fine.cost_third("mean") + coarse.cost_third("mean")


def test_a_shipped_pair_costs_about_what_its_chain_does():
    stage = load_stage("stage-mean-9").to_float()
    found = composite_start(stage, stage)
    assert found.kappa("mean") < 1.02 * stage.kappa("mean")
    assert np.count_nonzero(np.abs(found.B) > 1e-9) < 0.1 * found.B.size
    assert found.inner < 2 * 81 * 0.7  # rows that completion added are left out


def test_objective_changes_the_scales_only():
    fine, coarse = two_sided(3, 5), two_sided(3, 6)
    worst, mean = (composite_start(fine, coarse, objective=name) for name in ("max", "mean"))
    ratio = worst.B[:9] / np.where(mean.B[:9] == 0, 1, mean.B[:9])
    np.testing.assert_allclose(ratio[mean.B[:9] != 0], ratio[0, 0])
    assert ratio[0, 0] != pytest.approx(1.0)


def test_refusals(pair):
    with pytest.raises(ParameterError, match="full column rank"):
        composite_start(pair, pair)  # the second step of a pair is never measured
    with pytest.raises(ParameterError, match="plain"):
        composite_start(pair, Stage.plain(np.tril(np.ones((2, 2))), np.eye(2)))
    with pytest.raises(ParameterError, match="a Stage"):
        composite_start(pair, np.eye(2))
    with pytest.raises(ParameterError, match="objective"):
        composite_start(pair, pair, objective="median")
