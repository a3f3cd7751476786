"""TritsToBits and CountDistinct: exact properties."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.counters.neighbours import (
    all_streams,
    are_distinct_neighbours,
    are_prefix_neighbours,
    count_distinct,
    decode_sums,
    delete_item,
    difference_stream,
    prefix_sums,
    random_updates,
    trits_to_bits,
)
from trilift.lift.errors import ParameterError

TRITS = (-1, 0, 1)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
def test_trits_to_bits(steps: int) -> None:
    """Prefix(2i) = prefix_x(i) + i; neighbours stay neighbours; the decoder inverts without noise."""
    everything = list(all_streams(steps, alphabet=TRITS))
    bits = {x: trits_to_bits(x) for x in everything}
    sums = {x: prefix_sums(x) for x in everything}
    bit_sums = {x: prefix_sums(s) for x, s in bits.items()}
    for x in everything:
        assert len(bits[x]) == 2 * steps
        assert set(bits[x]) <= {0, 1}
        assert all(bit_sums[x][2 * i - 1] == sums[x][i - 1] + i for i in range(1, steps + 1))
        assert decode_sums(bit_sums[x]) == sums[x]
    pairs = 0
    for x, y in product(everything, repeat=2):
        near = {a - b for a, b in zip(sums[x], sums[y], strict=True)}
        if near <= {0, 1}:
            pairs += 1
            assert {a - b for a, b in zip(bit_sums[x], bit_sums[y], strict=True)} <= {0, 1}
    assert pairs > len(everything)


def test_decoding_passes_noise_on() -> None:
    assert decode_sums([0.25, 1.5, 2, 3.75]) == (0.5, 1.75)
    for bad in ([1], [1, None]):
        with pytest.raises(ParameterError, match="an even number of numbers"):
            decode_sums(bad)
    for trits in ([2], [None], [0.5]):
        with pytest.raises(ParameterError, match=r"trits\[0\] must be -1, 0 or 1"):
            trits_to_bits(trits)


def slow_count(updates: tuple[object, ...]) -> list[int]:
    items = {update[1] for update in updates if update is not None}  # type: ignore[index]
    return [
        sum(
            updates[:t].count(("+", item)) > updates[:t].count(("-", item))  # by definition
            for item in items
        )
        for t in range(1, len(updates) + 1)
    ]


@given(st.integers(0, 25), st.integers(1, 5), st.integers(0, 2**32))
def test_count_distinct(steps: int, items: int, seed: int) -> None:
    updates = random_updates(steps, items=items, seed=seed)
    assert updates == random_updates(steps, items=items, seed=seed)
    counts = count_distinct(updates)
    assert list(counts) == slow_count(updates)
    differences = difference_stream(updates)
    assert set(differences) <= {-1, 0, 1}
    assert prefix_sums(differences) == counts


@given(st.integers(1, 25), st.integers(1, 4), st.integers(0, 2**32))
def test_deleting_an_item_gives_a_neighbour(steps: int, items: int, seed: int) -> None:
    updates = random_updates(steps, items=items, seed=seed)
    d = difference_stream(updates)
    for item in range(items):
        rest = delete_item(updates, item=item)
        assert [u for u in rest if u is not None] == [u for u in updates if u is not None and u[1] != item]
        other = difference_stream(rest)
        assert are_prefix_neighbours(d, other=other)
        assert are_distinct_neighbours(d, other=other)


def test_interval_sums_are_prefix_sum_neighbours() -> None:
    """For integer streams: interval sums within [-1, 1], and being prefix-sum neighbours, is the same."""
    everything = list(all_streams(3, alphabet=TRITS))
    for x, y in product(everything, repeat=2):
        d = [a - b for a, b in zip(x, y, strict=True)]
        intervals = {sum(d[i:j]) for i in range(3) for j in range(i + 1, 4)}
        same = are_distinct_neighbours(x, other=y)
        assert same is (intervals <= {-1, 0, 1})
        assert same is are_prefix_neighbours(x, other=y)


@given(st.integers(1, 20), st.integers(0, 2**32), st.data())
def test_altering_some_updates_gives_two_steps(steps: int, seed: int, data: st.DataObject) -> None:
    updates = random_updates(steps, items=2, seed=seed)
    kept = data.draw(st.lists(st.booleans(), min_size=steps, max_size=steps))
    altered = tuple(
        None if update is not None and update[1] == 0 and not keep else update
        for update, keep in zip(updates, kept, strict=True)
    )
    between = difference_stream(delete_item(updates, item=0))
    assert between == difference_stream(delete_item(altered, item=0))
    assert are_prefix_neighbours(difference_stream(updates), other=between)
    assert are_prefix_neighbours(between, other=difference_stream(altered))


def test_altering_some_updates_can_need_two_steps() -> None:
    whole = (("+", "a"), ("-", "a"), ("-", "a"), ("+", "a"))
    some = (None, None, None, ("+", "a"))
    assert (count_distinct(whole), count_distinct(some)) == ((1, 0, 0, 0), (0, 0, 0, 1))
    assert not are_prefix_neighbours(difference_stream(whole), other=difference_stream(some))


@pytest.mark.parametrize("bad", [("*", "a"), "+a", ("+",), ["+", "a"]])
def test_refusals(bad: object) -> None:
    with pytest.raises(ParameterError, match=r"updates\[1\] must be None"):
        count_distinct([None, bad])  # type: ignore[list-item]
