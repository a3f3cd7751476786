"""Edit neighbours: insertions by hand, lists against a second definition of the relation."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.counters.neighbours import (
    absorbing_step,
    all_streams,
    are_edit_neighbours,
    are_extended_neighbours,
    edit_neighbours,
    extended_neighbours,
    insert,
    insertion_neighbours,
    is_insertion_of,
    random_edit_neighbour,
    random_stream,
)
from trilift.lift.errors import ParameterError

B = None
Stream = tuple[Any, ...]


def by_definition(new: Stream, old: Stream) -> bool:
    """The definition, position by position, with steps from 1 (x is ``new``, x' is ``old``)."""
    T = len(new)
    x, other = {t + 1: v for t, v in enumerate(new)}, {t + 1: v for t, v in enumerate(old)}
    for i in range(1, T + 1):
        j = min((t for t in range(i, T + 1) if other[t] is B), default=T + 1)
        if (
            x[i] is not B
            and all(x[t] == other[t] for t in range(1, i))
            and all(x[t + 1] == other[t] for t in range(i, min(j, T)))
            and all(x[t] == other[t] for t in range(j + 1, T + 1))
        ):
            return True
    return False


@pytest.mark.parametrize(
    ("stream", "at", "plain", "extended"),
    [
        ((0, B, 3, 4), 0, (9, 0, 3, 4), (9, 0, 3, 4)),
        ((0, B, 3, 4), 1, (0, 9, 3, 4), (0, 9, 3, 4)),  # the empty place itself is filled, and nobody moves
        ((0, B, 3, 4), 2, (0, B, 9, 3), (0, B, 9, 3, 4)),  # nobody is silent: the last item is dropped
        ((0, B, 3, 4), 3, (0, B, 3, 9), (0, B, 3, 9, 4)),
        ((B, B), 0, (9, B), (9, B)),
        ((1, 2, B, 3, B), 1, (1, 9, 2, 3, B), (1, 9, 2, 3, B)),  # the second BOT does not move
        ((1,), 0, (9,), (9, 1)),
    ],
)
def test_insert_by_hand(stream: Stream, at: int, plain: Stream, extended: Stream) -> None:
    assert insert(stream, at=at, value=9) == plain
    assert insert(stream, at=at, value=9, extended=True) == extended
    assert is_insertion_of(plain, other=stream)
    assert is_insertion_of(extended, other=stream, extended=True)


def test_insert_after_the_end() -> None:
    assert insert([1, 2], at=2, value=3, extended=True) == (1, 2, 3)
    assert insert([], at=0, value=3, extended=True) == (3,)
    with pytest.raises(ParameterError, match="at must be an integer >= 0 and <= 1, got 2"):
        insert([1, 2], at=2, value=3)
    with pytest.raises(ParameterError, match="the stream has no steps"):
        insert([], at=0, value=3)
    with pytest.raises(ParameterError, match="value must be a finite number, got None"):
        insert([1], at=0, value=None)
    assert absorbing_step([1, B, 2, B], at=2) == 3


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_the_list_is_the_relation(steps: int) -> None:
    """All pairs over {0, 1, BOT}."""
    everything = list(all_streams(steps))
    for old in everything:
        listed = list(insertion_neighbours(old))
        assert len(listed) == len(set(listed))
        assert set(listed) == {new for new in everything if by_definition(new, old)}
        near = list(edit_neighbours(old))
        assert len(near) == len(set(near))
        assert set(near) == {new for new in everything if by_definition(new, old) or by_definition(old, new)}
    for x, y in product(everything if steps < 4 else everything[::3], everything):
        assert is_insertion_of(x, other=y) is by_definition(x, y)
        assert are_edit_neighbours(x, other=y) is (by_definition(x, y) or by_definition(y, x))


def test_without_bot_in_the_alphabet_none_comes_in() -> None:
    for stream in all_streams(4, alphabet=[0, 1]):
        found = set(edit_neighbours(stream, alphabet=[0, 1]))
        assert found == {y for y in all_streams(4, alphabet=[0, 1]) if are_edit_neighbours(stream, other=y)}
    with pytest.raises(ParameterError, match="nobody joins by a BOT"):
        insertion_neighbours([1], alphabet=[None])


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_extended_neighbours_are_those_of_the_padded_streams(steps: int) -> None:
    """With enough BOTs behind the end, extended neighbours are edit neighbours whose last BOT moves."""
    everything = [s for length in range(steps + 2) for s in all_streams(length)]
    for old in all_streams(steps):
        near = set(extended_neighbours(old))
        wanted = set()
        for new in everything:
            longer, shorter = (new, old) if len(new) > len(old) else (old, new)
            if len(longer) == len(shorter):
                # the shift was absorbed before the end: nothing may be dropped
                fits = any(
                    insert(y, at=at, value=v) == x and B in y[at:]
                    for x, y in ((new, old), (old, new))
                    for at in range(steps)
                    for v in (0, 1)
                )
            else:
                # `$` moved: the end itself, here a BOT, is what absorbs it
                fits = len(longer) == len(shorter) + 1 and any(
                    insert((*shorter, B), at=at, value=v) == longer and B not in shorter[at:]
                    for at in range(len(shorter) + 1)
                    for v in (0, 1)
                )
            assert are_extended_neighbours(old, other=new) is fits
            if fits:
                wanted.add(new)
        assert near == wanted


@given(st.integers(1, 12), st.integers(0, 2**32), st.booleans())
def test_random_neighbours_are_neighbours(steps: int, seed: int, alphabet: bool) -> None:
    stream = random_stream(steps, seed=seed, alphabet=[0, 1, None] if alphabet else None)
    other = random_edit_neighbour(stream, seed=seed)
    assert len(other) == steps
    assert are_edit_neighbours(stream, other=other)
    assert other == random_edit_neighbour(stream, seed=seed)
    longer = random_edit_neighbour(stream, seed=seed, extended=True)
    assert are_extended_neighbours(stream, other=longer)


def test_random_neighbours_go_both_ways() -> None:
    stream = (0.25, 0.5, None, 0.75)
    found = [random_edit_neighbour(stream, seed=seed) for seed in range(60)]
    assert any(is_insertion_of(new, other=stream) for new in found)
    assert any(is_insertion_of(stream, other=new) for new in found)
    lengths = {len(random_edit_neighbour((0.25, 0.5), seed=seed, extended=True)) for seed in range(60)}
    assert lengths == {1, 2, 3}
