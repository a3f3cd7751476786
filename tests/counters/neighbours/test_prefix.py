"""Prefix-sum neighbours and exact sensitivity sets."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.counters.neighbours import (
    all_streams,
    are_edit_neighbours,
    are_prefix_neighbours,
    edit_neighbours,
    l1_sensitivity,
    l2_sensitivity_squared,
    prefix_neighbours,
    prefix_sums,
    random_prefix_neighbour,
    random_stream,
    running_sum_differences,
    sensitivity_set,
    witness,
)
from trilift.lift.errors import ParameterError


@pytest.mark.parametrize("alphabet", [(0, 1), (-1, 0, 1), (0, 1, None)])
def test_the_list_is_the_relation(alphabet: tuple[int | None, ...]) -> None:
    everything = list(all_streams(3, alphabet=alphabet))
    for stream in everything:
        near = list(prefix_neighbours(stream, alphabet=alphabet))
        assert len(near) == len(set(near))
        assert set(near) == {other for other in everything if are_prefix_neighbours(stream, other=other)}


def test_by_hand() -> None:
    assert are_prefix_neighbours([1, 0, 1], other=[0, 1, 1])
    assert not are_prefix_neighbours([1, 0, 0, 0], other=[0, 1, 1, 0])
    assert not are_prefix_neighbours([1, -2], other=[0, 0])  # up by one, then down by one
    assert not are_prefix_neighbours([0.5], other=[0])


@given(st.integers(0, 14), st.integers(0, 2**32))
def test_random_neighbours_are_neighbours(steps: int, seed: int) -> None:
    stream = random_stream(steps, seed=seed, alphabet=[0, 1, None])
    other = random_prefix_neighbour(stream, seed=seed)
    assert are_prefix_neighbours(stream, other=other)
    assert set(other) <= {0, 1, None}
    real = random_stream(steps, seed=seed)
    assert are_prefix_neighbours(real, other=random_prefix_neighbour(real, seed=seed, low=-1, high=2))


def test_random_neighbours_differ() -> None:
    stream = random_stream(30, seed=3, alphabet=[0, 1])
    assert any(random_prefix_neighbour(stream, seed=seed) != stream for seed in range(5))
    with pytest.raises(ParameterError, match=r"outside low\.\.high: \[0, 1\]"):
        random_prefix_neighbour([5], seed=0)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
def test_the_set_of_running_sums(steps: int) -> None:
    """Exactly {0,1}^T and {0,-1}^T: under edit over {0, 1, BOT}, and under prefix-sum over {0, 1}."""
    wanted = {z for sign in (1, -1) for z in product((0, sign), repeat=steps)}
    assert len(wanted) == 2 ** (steps + 1) - 1
    edit = sensitivity_set(steps)
    assert edit == running_sum_differences(steps) == wanted
    assert sensitivity_set(steps, relation="prefix", alphabet=[0, 1]) == wanted
    assert sensitivity_set(steps, alphabet=[0, 1]) == wanted  # the witnesses need no BOT
    assert l1_sensitivity(edit) == l2_sensitivity_squared(edit) == steps


def test_edit_neighbours_are_prefix_neighbours() -> None:
    for stream in all_streams(4):
        assert all(are_prefix_neighbours(stream, other=other) for other in edit_neighbours(stream))


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 6])
def test_witnesses(steps: int) -> None:
    for z in running_sum_differences(steps):
        x, other = witness(z)
        assert set(x) | set(other) <= {0, 1}
        assert are_edit_neighbours(x, other=other)
        assert tuple(a - b for a, b in zip(prefix_sums(x), prefix_sums(other), strict=True)) == z


@pytest.mark.parametrize("bad", [(), (2,), (1, -1), (None, 1), (0.5,)])
def test_no_witness_for_other_vectors(bad: tuple[object, ...]) -> None:
    with pytest.raises(ParameterError, match="difference must be a vector of zeros and ones"):
        witness(bad)


def test_other_functions_and_relations() -> None:
    swap = sensitivity_set(3, relation="swap", alphabet=[0, 1])
    assert swap == {(s,) * 3 for s in (1, -1)} | {(0, s, s) for s in (1, -1)} | {(0, 0, s) for s in (1, -1)}
    total = sensitivity_set(3, function=lambda x: [sum(item or 0 for item in x)])
    assert total == {(-1,), (0,), (1,)}
    halves = sensitivity_set(2, alphabet=[0, 0.5], relation="swap")
    assert l2_sensitivity_squared(halves) == Fraction(1, 2)
    assert l1_sensitivity(halves) == 1
    mine = sensitivity_set(2, relation=lambda stream, *, alphabet: [(0, 0)], alphabet=[0, 1])
    assert mine == {(0, 0), (0, 1), (1, 1), (1, 2)}
    with pytest.raises(ParameterError, match="relation must be one of 'edit', 'prefix', 'swap'"):
        sensitivity_set(2, relation="shift")
    with pytest.raises(ParameterError, match="values of"):
        sensitivity_set(2, function=lambda x: [0] * (1 + sum(i or 0 for i in x)))
