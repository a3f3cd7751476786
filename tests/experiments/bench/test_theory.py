"""What theory says of the peers is what matrices say."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from trilift.experiments.bench.choices import averaged_choices, dpcrpy_choices, opendp_choices
from trilift.experiments.bench.theory import (
    block_tree,
    consistent_tree,
    discrete_laplace_variance,
    full_decomposition,
    summed_tree,
    tree_layers,
)


def nodes(n: int, branching: int) -> np.ndarray:
    """Return the 0/1 matrix of all nodes of a tree over n leaves, root among them."""
    rows = []
    for level in range(tree_layers(n, branching)):
        size = branching**level
        for first in range(0, n, size):
            rows.append([int(first <= leaf < first + size) for leaf in range(n)])
    return np.array(rows, dtype=float)


@pytest.mark.parametrize(("n", "branching"), [(1, 2), (2, 2), (16, 2), (23, 3), (27, 3), (20, 4), (10, 12)])
def test_consistent_tree_is_least_squares(n: int, branching: int) -> None:
    L = np.tri(n) @ np.linalg.pinv(nodes(n, branching))
    assert consistent_tree(n, branching=branching) == pytest.approx((L**2).sum(axis=1), rel=1e-9)
    summed = summed_tree(n, branching=branching)  # no reading has less variance than least squares
    assert (consistent_tree(n, branching=branching) <= summed + 1e-9).all()


@pytest.mark.parametrize(("arity", "order"), [(2, 3), (3, 2), (5, 1)])
def test_block_tree_takes_the_least_variance_of_every_node(arity: int, order: int) -> None:
    size = arity**order
    steps = block_tree(2 * size, arity=arity, order=order, least_variance=True)
    for level in range(order + 1):
        leaves = arity**level
        total = np.ones(leaves) @ np.linalg.pinv(nodes(leaves, arity))
        assert steps[leaves - 1] == pytest.approx((total**2).sum(), rel=1e-9)
    last = steps[size - 1]
    assert steps[size:] == pytest.approx(steps[:size] + last, rel=1e-12)


def test_block_tree_without_weights_counts_digits() -> None:
    steps = block_tree(40, arity=3, order=2, least_variance=False)
    assert steps[26] == 3  # three blocks of 9
    assert [int(x) for x in steps[:9]] == [1, 2, 1, 2, 3, 2, 3, 4, 1]


def test_full_decomposition_takes_the_best_share() -> None:
    def total(share: float) -> float:
        return (1 - share) ** -2 + share**-2 + share**-2 + 1

    best = minimize_scalar(total, bounds=(0.1, 0.9), method="bounded", options={"xatol": 1e-10})
    steps = full_decomposition(3, order=2)
    assert steps.sum() == pytest.approx(best.fun, rel=1e-9)
    twice = full_decomposition(6, order=2)
    assert twice[3:] == pytest.approx(steps + steps[-1])


def test_variance_of_the_discrete_laplace_distribution() -> None:
    for scale in (0.3, 1.0, 7.5):
        z = np.arange(-2000, 2001)
        weights = np.exp(-np.abs(z) / scale)
        assert discrete_laplace_variance(scale) == pytest.approx((z**2 * weights).sum() / weights.sum())


def test_choices_are_the_best_of_those_tried() -> None:
    n = 300
    chosen = [*dpcrpy_choices(n), *opendp_choices(n), *averaged_choices(n)]
    assert {choice.asked.get("name") for choice in chosen} == {"BinMech", "Honaker", "KTCR", "FDA", None}
    for choice in chosen:
        assert choice.max_se is not None
        assert choice.mean_se is not None
        assert 0 < choice.mean_se <= choice.max_se
    consistent = [c for c in opendp_choices(n) if c.asked["kind"] == "consistent" and c.best_for != "mean"]
    for branching in (2, 7, 16, 64):
        steps = consistent_tree(n, branching=branching)
        assert consistent[0].max_se <= steps.max() * discrete_laplace_variance(tree_layers(n, branching))
    assert any(choice.asked.get("name") == "AuBCR" for choice in dpcrpy_choices(256))
