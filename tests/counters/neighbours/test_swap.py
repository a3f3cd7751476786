"""Neighbours in place: predicates against the definitions, lists against the predicates."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.counters.neighbours import (
    all_streams,
    are_all_step_neighbours,
    are_step_neighbours,
    follows_consecutively,
    random_all_step_neighbour,
    random_consecutive_neighbour,
    random_step_neighbour,
    random_stream,
    step_neighbours,
)
from trilift.lift.errors import ParameterError

ALPHABET = (0, 1, 2, None)


@pytest.mark.parametrize(("k", "change"), [(0, 1), (1, 1), (1, 2), (2, 1), (3, 2)])
def test_the_list_is_what_the_predicate_says(k: int, change: int) -> None:
    for stream in all_streams(3, alphabet=ALPHABET):
        found = list(step_neighbours(stream, alphabet=ALPHABET, k=k, change=change))
        assert len(found) == len(set(found))
        # BOT and 0 are the same number: changing one into the other changes no step
        wanted = {
            other
            for other in all_streams(3, alphabet=ALPHABET)
            if are_step_neighbours(stream, other=other, k=k, change=change)
        }
        assert set(found) <= wanted - {stream}
        as_numbers = {tuple(item or 0 for item in other) for other in (*found, stream)}
        assert as_numbers == {tuple(item or 0 for item in other) for other in wanted}


def test_predicates_by_hand() -> None:
    assert are_step_neighbours([1, 2, 3], other=[1, 2, 3], k=0, change=0)
    assert not are_step_neighbours([1, 2, 3], other=[1, 4, 3])
    assert are_step_neighbours([1, 2, 3], other=[1, 4, 3], change=2)
    assert are_all_step_neighbours([1, 2, None], other=[0, 3, 1])
    assert not are_all_step_neighbours([1, 2, None], other=[0, 3, 2])
    assert are_all_step_neighbours([0.5, 0], other=[0, 0.5], change=Fraction(1, 2))
    assert follows_consecutively([1, 5, 6, 7], other=[4, 7, 7, 100])
    assert not follows_consecutively([2, 5, 6, 7], other=[4, 7, 7, 100])  # the first item is more than Delta
    assert not follows_consecutively([1, 5, 6, 9], other=[4, 7, 7, 100])
    assert follows_consecutively([0, 0, 9], other=[9, 5, 5], k=2, change=0)
    assert follows_consecutively([0, 1], other=[7, 7], k=5)  # the streams do not overlap any more


@pytest.mark.parametrize("relation", [are_step_neighbours, are_all_step_neighbours])
def test_relations_are_symmetric(relation: object) -> None:
    for x, y in product(all_streams(2, alphabet=ALPHABET), repeat=2):
        assert relation(x, other=y) == relation(y, other=x)  # type: ignore[operator]


@given(st.integers(1, 12), st.integers(0, 2**32), st.integers(0, 4), st.sampled_from([0, Fraction(1, 3), 1]))
def test_random_neighbours_are_neighbours(steps: int, seed: int, k: int, change: Fraction) -> None:
    stream = random_stream(steps, seed=seed)
    other = random_step_neighbour(stream, seed=seed, k=k, change=change)
    assert are_step_neighbours(stream, other=other, k=k, change=change)
    every = random_all_step_neighbour(stream, seed=seed, change=change)
    assert are_all_step_neighbours(stream, other=every, change=change)
    later = random_consecutive_neighbour(stream, seed=seed, change=change)
    assert follows_consecutively(later, other=stream, change=change)
    assert all(0 <= (item or 0) <= 1 for item in (*other, *every, *later))
    assert other == random_step_neighbour(stream, seed=seed, k=k, change=change)


def test_random_neighbours_do_change_something() -> None:
    stream = random_stream(40, seed=1)
    changed = random_step_neighbour(stream, seed=1, k=7)
    assert sum(x != y for x, y in zip(stream, changed, strict=True)) == 7
    assert not are_step_neighbours(stream, other=random_all_step_neighbour(stream, seed=1), k=30)


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="the streams must have one length, got 1 and 2"):
        are_step_neighbours([1], other=[1, 2])
    with pytest.raises(ParameterError, match="change must be a finite number >= 0"):
        are_all_step_neighbours([1], other=[1], change=-1)
    with pytest.raises(ParameterError, match=r"outside low\.\.high: \[0, 1\]"):
        random_step_neighbour([7], seed=1)
