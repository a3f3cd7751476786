"""The tree mechanisms as matrices, and their exact costs against those matrices."""

from fractions import Fraction
from math import comb, log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift import tree_costs, trees
from trilift.lift.errors import ParameterError
from trilift.lift.tree_costs import (
    TreeCost,
    averaged_kary_tree_cost,
    binary_tree_cost,
    kary_tree_cost,
    kary_tree_subtraction_cost,
    smooth_binary_tree_cost,
)

NAMES = ["binary_tree", "kary_tree", "kary_tree_subtraction", "averaged_kary_tree", "smooth_binary_tree"]
HORIZONS = [*range(1, 40), 63, 64, 65, 81, 82, 121, 125, 126, 243, 256, 257]


def assert_costs_match(name: str, horizon: int, **options: Any) -> TreeCost:
    """L R = T_n exactly, and every exact cost is the one of the matrices."""
    L, R = getattr(trees, name)(horizon, **options)
    cost: TreeCost = getattr(tree_costs, f"{name}_cost")(horizon, **options)
    assert np.array_equal(L @ R, np.tri(horizon))
    assert np.abs(R).sum(axis=0).max() == cost.sensitivity
    quarters = (4 * (L**2).sum(axis=1)).astype(np.int64)  # entries are halves or integers: exact
    assert Fraction(int(quarters.max()), 4) == cost.max_row_norm_sq
    assert Fraction(int(quarters.sum()), 4 * horizon) == cost.mean_row_norm_sq
    assert np.array_equal(cost.row_norms_sq(), quarters / 4)
    return cost


@pytest.mark.parametrize("name", NAMES)
def test_costs_are_those_of_the_matrices(name: str) -> None:
    arities = [{"arity": k} for k in (3, 5, 17)] if "kary" in name else [{}]
    for horizon in HORIZONS:
        for options in arities:
            assert_costs_match(name, horizon, **options)


@pytest.mark.parametrize("name", ["kary_tree", "averaged_kary_tree"])
@pytest.mark.parametrize("arity", [2, 4])
def test_costs_at_even_arity(name: str, arity: int) -> None:
    for horizon in HORIZONS:
        assert_costs_match(name, horizon, arity=arity)


def test_costs_of_unbalanced_smooth_trees() -> None:
    for horizon in HORIZONS:
        free = assert_costs_match("smooth_binary_tree", horizon, balanced=False)
        assert free.max_se(1) <= smooth_binary_tree_cost(horizon).max_se(1)


@settings(max_examples=100, deadline=None)
@given(
    name=st.sampled_from(["kary_tree", "kary_tree_subtraction", "averaged_kary_tree"]),
    horizon=st.integers(2, 300),
    half=st.integers(1, 8),
    data=st.data(),
)
def test_costs_with_any_number_of_levels(name: str, horizon: int, half: int, data: st.DataObject) -> None:
    cost_of = getattr(tree_costs, f"{name}_cost")
    arity = 2 * half + 1
    useful = []
    for levels in range(1, 11):
        try:
            useful.append(cost_of(horizon, arity=arity, levels=levels))
        except ParameterError:
            break
    levels = data.draw(st.integers(1, len(useful)))
    assert_costs_match(name, horizon, arity=arity, levels=levels)
    # The default is the best of them.
    assert cost_of(horizon, arity=arity).max_se(1) == min(cost.max_se(1) for cost in useful)
    by_mean = cost_of(horizon, arity=arity, objective="mean")
    assert by_mean.mean_se(1) == min(cost.mean_se(1) for cost in useful)


def test_binary_tree_by_hand() -> None:
    L, R = trees.binary_tree(4, levels=3)
    assert R.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]]
    assert L.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    # Without the root, step 4 is two blocks: less sensitivity for the same largest row.
    with_root, without = binary_tree_cost(4, levels=3), binary_tree_cost(4, levels=2)
    assert (with_root.sensitivity, with_root.max_row_norm_sq) == (3, 2)
    assert (without.sensitivity, without.max_row_norm_sq) == (2, 2)


def test_averaged_tree_by_hand() -> None:
    L, R = trees.averaged_kary_tree(3, arity=3, levels=1)
    assert R.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]
    assert (2 * L).tolist() == [[1, -1, -1, 1], [1, 1, -1, 1], [0, 0, 0, 2]]


def test_subtraction_by_hand() -> None:
    L, R = trees.kary_tree_subtraction(2, arity=3, levels=2)
    assert R.tolist() == [[1, 0], [0, 0], [1, 1]]  # the block of step 3 is empty at horizon 2
    assert L.tolist() == [[1, 0, 0], [0, -1, 1]]


def test_smooth_tree_by_hand() -> None:
    # Leaves 0011, 0101, 0110, 1001, 1010, 1100: the left siblings with leaves on each path, as intervals.
    L, R = trees.smooth_binary_tree(5)
    intervals = [(0, 1), (0, 3), (1, 2), (3, 4), (3, 5)]
    assert [(int(row.argmax()), int(row.sum() + row.argmax())) for row in R] == intervals
    assert L.sum(axis=1).tolist() == [1, 2, 1, 2, 2]
    assert np.isin(L, (0, 1)).all()


@pytest.mark.parametrize("arity", [3, 5])
@pytest.mark.parametrize("levels", [2, 3, 4])
def test_full_trees_have_the_textbook_norms(arity: int, levels: int) -> None:
    full = arity**levels
    plain = kary_tree_cost(full - 1, arity=arity, levels=levels)
    assert (plain.sensitivity, plain.max_row_norm_sq) == (levels, (arity - 1) * levels)
    assert plain.mean_row_norm_sq * (full - 1) == Fraction(arity - 1, 2) * levels * full
    subtracted = kary_tree_subtraction_cost((full - 1) // 2, arity=arity, levels=levels)
    assert (subtracted.sensitivity, subtracted.max_row_norm_sq) == (levels, (arity - 1) // 2 * levels)
    averaged = averaged_kary_tree_cost(full, arity=arity, levels=levels)
    assert averaged.sensitivity == levels + 1
    assert averaged.max_row_norm_sq == Fraction((arity - 1) * levels + 2, 4)


def test_full_smooth_trees_have_the_textbook_norms() -> None:
    for half in (2, 5, 9):
        cost = smooth_binary_tree_cost(comb(2 * half, half) - 1)
        assert (cost.levels, cost.sensitivity, cost.max_row_norm_sq) == (2 * half, half, half)


@pytest.mark.parametrize(
    ("cost", "kappa_max", "kappa_mean"),
    [
        (binary_tree_cost, 2.0, 1.0),
        (smooth_binary_tree_cost, 0.25, 0.25),
        (kary_tree_cost, 32 / log2(17) ** 3, 16 / log2(17) ** 3),
        (kary_tree_subtraction_cost, 16 / log2(17) ** 3, None),
        (averaged_kary_tree_cost, 8 / log2(17) ** 3, 8 / log2(17) ** 3),
    ],
)
def test_costs_approach_the_published_constants(cost: Any, kappa_max: float, kappa_mean: float) -> None:
    """Lower powers of log n remain: within 22 % at 2^60 (full trees are compared exactly above)."""
    tree = cost(2**60)
    assert float(tree.max_se(1)) / 60**3 == pytest.approx(kappa_max, rel=0.22)
    if kappa_mean is not None:
        assert float(tree.mean_se(1)) / 60**3 == pytest.approx(kappa_mean, rel=0.22)


def test_mean_constant_of_subtraction_at_its_best_arity() -> None:
    n = (19**13 - 1) // 2
    cost = kary_tree_subtraction_cost(n, arity=19, levels=13)
    assert cost.mean_row_norm_sq * n == Fraction(19**2 - 1, 4 * 19) * 13 * Fraction(19**13, 2)
    assert float(cost.mean_se(1)) / log2(2 * n + 1) ** 3 == pytest.approx(180 / (19 * log2(19) ** 3))


def test_unbalanced_smooth_constant() -> None:
    """Strings with zeros in proportion p: kappa(p) = 2 p^2 (1-p) / H(p)^3, least near p = 0.160."""
    p = np.linspace(0.01, 0.5, 10_000)
    entropy = -p * np.log2(p) - (1 - p) * np.log2(1 - p)
    best = float(np.min(2 * p**2 * (1 - p) / entropy**3))
    assert best == pytest.approx(2 * 0.29027**2, rel=1e-4)
    cost = smooth_binary_tree_cost(2**60, balanced=False)
    assert best < float(cost.max_se(1)) / 60**3 < 1.2 * best


def test_a_million_steps() -> None:
    for cost in (binary_tree_cost(10**6), averaged_kary_tree_cost(10**6), smooth_binary_tree_cost(10**6)):
        norms = cost.row_norms_sq()
        assert norms.max() == cost.max_row_norm_sq
        assert Fraction(norms.sum()) == cost.mean_row_norm_sq * 10**6
        assert norms[776_160] == cost.row_norm_sq(776_161)
        assert cost.row_norms_sq([776_161, 1]).tolist() == [norms[776_160], norms[0]]


def test_squared_errors_are_the_exact_ones_rounded() -> None:
    cost = averaged_kary_tree_cost(1000)
    unit = 2 * cost.sensitivity**2
    assert cost.max_se(0.5) == float(4 * unit * cost.max_row_norm_sq)
    assert cost.mean_se() == float(unit * cost.mean_row_norm_sq)
    assert cost.step_se(7, epsilon=2) == float(unit * cost.row_norm_sq(7) / 4)
    assert max(cost.step_se(t) for t in range(1, 1001)) == cost.max_se()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: binary_tree_cost(0), "horizon must be an integer >= 1"),
        (lambda: binary_tree_cost(True), "horizon must be an integer"),
        (lambda: trees.binary_tree(10_000), "horizon must be an integer >= 1 and <= 8192"),
        (lambda: kary_tree_cost(10, arity=1), "arity must be an integer >= 2, got 1"),
        (lambda: kary_tree_subtraction_cost(10, arity=4), "arity must be odd"),
        (lambda: kary_tree_cost(10, arity=3, levels=4), "levels must be an integer >= 1 and <= 3, got 4"),
        (lambda: kary_tree_cost(10, objective="median"), "objective must be one of 'max', 'mean'"),
        (lambda: smooth_binary_tree_cost(10, balanced=1), "balanced must be True or False"),
        (lambda: binary_tree_cost(10).row_norm_sq(11), "step must be an integer >= 1 and <= 10, got 11"),
        (lambda: binary_tree_cost(10).row_norms_sq([0, 1]), "steps must be from 1 to the horizon 10"),
        (lambda: binary_tree_cost(10).row_norms_sq([1.0]), "steps must be integers"),
        (lambda: binary_tree_cost(10).max_se(float("nan")), "epsilon must be a finite number > 0, got nan"),
    ],
)
def test_bad_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    assert str(caught.value).startswith(message)
