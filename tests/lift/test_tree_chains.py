"""Trees as chains: exact, of the right capacity, and at equal scales of exactly the trees' cost."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift import Chain, Dyadic, ParameterError, chain_cost, lower_ones, materialise
from trilift.lift.budget import ChainCost
from trilift.lift.tree_chains import (
    averaged_chain,
    binary_tree_chain,
    interpolated_chain,
    kary_tree_chain,
    kary_tree_subtraction_chain,
)
from trilift.lift.tree_costs import (
    averaged_kary_tree_cost,
    binary_tree_cost,
    kary_tree_cost,
    kary_tree_subtraction_cost,
)
from trilift.lift.trees import kary_tree, kary_tree_subtraction

MAKERS = [kary_tree_chain, kary_tree_subtraction_chain, averaged_chain, interpolated_chain]


def equal_scales(chain: Chain, horizon: int) -> ChainCost:
    return chain_cost(chain, horizon, objective="max", scales=np.ones(len(chain.levels)))


def with_all_levels(make: Callable[..., Chain], horizon: int, arity: int) -> list[tuple[int, Chain]]:
    found = []
    for levels in range(1, 12):
        try:
            found.append((levels, make(horizon, arity=arity, levels=levels)))
        except ParameterError:
            break
    return found


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("arity", [2, 3, 5])
@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 9, 16, 26, 27, 41])
def test_factors_t_exactly(make: Callable[..., Chain], arity: int, horizon: int) -> None:
    arity += make is kary_tree_subtraction_chain and arity == 2  # balanced digits need an odd one
    chains = with_all_levels(make, horizon, arity) or [(0, make(horizon, arity=arity))]
    for _, chain in chains:
        assert chain.capacity >= horizon
        dense = materialise(chain, horizon)
        assert (dense.L @ dense.R).equals(Dyadic(lower_ones(horizon)))


@pytest.mark.parametrize("make", [kary_tree_chain, kary_tree_subtraction_chain])
def test_the_matrices_are_those_of_the_trees(make: Callable[..., Chain]) -> None:
    """Up to the order of the inner coordinates: rows of R beside columns of L, each measured block once."""
    dense_tree = kary_tree if make is kary_tree_chain else kary_tree_subtraction
    for horizon in (5, 26, 60):
        L, R = dense_tree(horizon, arity=3)
        dense = materialise(make(horizon, arity=3), horizon)
        mine, theirs = (
            sorted(
                (*column, *row)
                for column, row in zip(left.T.tolist(), right.tolist(), strict=True)
                if any(column)
            )
            for left, right in ((dense.L.to_float(), dense.R.to_float()), (L, R))
        )
        assert mine == theirs


@settings(max_examples=30, deadline=None)
@given(horizon=st.integers(1, 500), arity=st.sampled_from([2, 3, 4, 5, 9, 17]))
def test_costs_at_equal_scales_are_those_of_the_trees(horizon: int, arity: int) -> None:
    pairs = [(kary_tree_chain, kary_tree_cost)]
    if arity % 2:
        pairs.append((kary_tree_subtraction_chain, kary_tree_subtraction_cost))
    for make, price in pairs:
        for levels, chain in with_all_levels(make, horizon, arity):
            tree, cost = price(horizon, arity=arity, levels=levels), equal_scales(chain, horizon)
            assert cost.max_se() == pytest.approx(tree.max_se(), rel=1e-12)
            assert cost.mean_se() == pytest.approx(tree.mean_se(), rel=1e-12)


def test_binary_is_two_ary() -> None:
    chain = binary_tree_chain(10**9, objective="mean")
    assert set(chain.sizes[:-1]) == {2}
    tree = binary_tree_cost(10**9, objective="mean")
    assert equal_scales(chain, 10**9).mean_se() == pytest.approx(tree.mean_se(), rel=1e-12)


@pytest.mark.parametrize("arity", [3, 4, 9, 17])
def test_averaged_relative_on_whole_trees(arity: int) -> None:
    for levels in (1, 2, 3, 4):
        n = arity**levels
        chain, tree = averaged_chain(n, arity=arity), averaged_kary_tree_cost(n, arity=arity, levels=levels)
        cost = equal_scales(chain, n)
        assert cost.max_se() == pytest.approx(tree.max_se(), rel=1e-12)
        if levels == 1:
            assert cost.mean_se() == pytest.approx(tree.mean_se(), rel=1e-12)
        else:
            assert cost.mean_se() < tree.mean_se()


def test_interpolated_limits() -> None:
    """Row norms grow by (k-1)/4 and (k-1)/6 per level, at one unit of sensitivity each."""
    for arity in (5, 17):
        low, high = (equal_scales(interpolated_chain(arity**h, arity=arity), arity**h) for h in (5, 7))
        rows = [
            (cost.max_row_sq / (h + 1) ** 2, cost.mean_row_sq / (h + 1) ** 2)
            for h, cost in ((5, low), (7, high))
        ]
        assert (rows[1][0] - rows[0][0]) / 2 == pytest.approx((arity - 1) / 4, rel=1e-3)
        assert (rows[1][1] - rows[0][1]) / 2 == pytest.approx((arity - 1) / 6, rel=1e-3)


def test_rounded_weights_cost_next_to_nothing() -> None:
    fine, coarse = (interpolated_chain(289, arity=17, bits=bits) for bits in (40, 20))
    assert equal_scales(coarse, 289).mean_se() == pytest.approx(equal_scales(fine, 289).mean_se(), rel=1e-6)


@pytest.mark.parametrize(
    "options", [{"arity": 1}, {"levels": 9}, {"objective": "worst"}, {"arity": 3.0}, {"levels": 0}]
)
@pytest.mark.parametrize("make", MAKERS)
def test_refusals(make: Callable[..., Chain], options: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        make(100, **options)


def test_refuses_a_huge_top() -> None:
    with pytest.raises(ParameterError, match="top level"):
        kary_tree_chain(10**6, arity=2, levels=1)
    with pytest.raises(ParameterError, match="bits"):
        interpolated_chain(10, bits=0)
