"""Compiled draws and rounding are those of the plain path, to the last bit."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.fast import calls, switch
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import TIE, Keystream
from trilift.stream.laplace import LaplaceBlocks, LaplaceRows
from trilift.stream.laplace_layout import TESTS, low_count
from trilift.stream.rounding import round_floats

SCALES = st.one_of(
    st.integers(1, 40),
    st.integers(1, 1 << 70),
    st.integers(0, 140).map(lambda bits: (1 << bits) + 1),
    st.fractions(min_value=Fraction(1, 1024), max_value=1000),
)
quick = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def identical(a, b) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@quick
@given(
    st.lists(SCALES, min_size=1, max_size=6),
    st.lists(st.one_of(st.integers(0, 50), st.integers(0, (1 << 63) - 1)), min_size=1, max_size=9),
    st.integers(0, 3),
)
def test_floats_of_draws_are_the_same(both, scales, blocks, level) -> None:
    """Widths of one and of many limbs, in any order, so that rows begin anywhere in a 64-byte piece."""
    rows, stream = LaplaceRows(scales), Keystream(simulation_key(5))
    plain, fast = both(lambda: rows.floats(stream, level, np.array(blocks)))
    assert identical(plain, fast)
    assert identical(plain, rows.sample(stream, level, np.array(blocks)).to_float())


@pytest.mark.parametrize(
    ("scales", "blocks"),
    [
        ([1000] * 4000, 9),  # several groups of pieces, several batches
        ([3] * 8 + [1 << 70] * 2500 + [5] * 8, 4),
        ([1 << 20] * 3, 5000),
        ([], 3),
        ([7], 0),
        ([1 << 530, 3], 4),  # too wide for the kernels
    ],
)
def test_groups_and_batches_do_not_matter(both, scales, blocks) -> None:
    rows, stream = LaplaceRows(scales), Keystream(simulation_key(6))
    plain, fast = both(lambda: rows.floats(stream, 1, np.arange(blocks)))
    assert identical(plain, fast)


class Rigged(Keystream):
    """A keystream some of whose primary words, of 16 bits, equal their limits, or give rare events."""

    def __init__(self, seed: int, changes: dict[tuple[int, int], int]) -> None:
        super().__init__(simulation_key(seed))
        self.changes = changes

    def batches(self, level, blocks, count, *, start=0, most):
        for first, words in super().batches(level, blocks, count, start=start, most=most):
            halves = words.view(np.uint16)
            for i in range(len(words)):
                for (block, q), word in self.changes.items():
                    if int(blocks[first + i]) == block and 2 * start <= q < 2 * (start + count):
                        halves[i, q - 2 * start] = word
            yield first, words


class RiggedFurther(Rigged):
    """And whose ties of exceptions and tail events are all won."""

    def further(self, region, level, block, address):
        return itertools.repeat(0) if region == TIE else super().further(region, level, block, address)


def test_undecided_words_and_rare_events_are_the_same(both) -> None:
    """Ties of every kind of test, rare events of nonzero draws, of both together and of zeros."""
    scales = [30000, 1 << 40, 50000, 1 << 90]
    rows = LaplaceRows(scales)
    (group,) = rows._groups
    ties, rare = {}, {}
    for row in range(4):
        for test in (0, 1, 2, 5):
            place = TESTS * row + test
            ties[10 * row + test, place] = int(group.limits[place])
        for block, tests in ((7, (1,)), (8, (2,)), (9, (1, 2))):
            rare |= {(10 * row + block, TESTS * row + test): 0 for test in (0, *tests)}
        rare[10 * row + 6, TESTS * row], rare[10 * row + 6, TESTS * row + 2] = 0xFFFF, 0  # mostly zero
    blocks = np.arange(40)
    for stream in (Rigged(7, ties), RiggedFurther(7, rare)):
        plain, fast = both(lambda stream=stream: rows.floats(stream, 0, blocks))
        assert identical(plain, fast)
    for row, scale in enumerate(scales):
        assert np.abs(plain[[10 * row + 8, 10 * row + 9], row]).min() >= 16 * scale  # there were tail events
        high, low = low_count(scale), (1 << low_count(scale)) - 1
        exact = rows.sample(stream, 0, blocks).to_objects()[10 * row + 7, row]
        same = rows.sample(Rigged(7, {}), 0, blocks).to_objects()[10 * row + 7, row]
        assert ((abs(exact) - 1) & low == (abs(same) - 1) & low) == (high == 0)  # of 19 bits or more


def test_more_ties_than_there_is_room_for(both, monkeypatch) -> None:
    both(lambda: None)
    monkeypatch.setattr(calls, "_ROOM", 3)
    rows = LaplaceRows([1 << 40] * 4)
    limits = rows._groups[0].limits
    stream = Rigged(9, {(block, q): int(limits[q]) for block in (0, 2) for q in range(2, 60, 7)})
    plain, fast = both(lambda: rows.floats(stream, 0, np.arange(3)))
    assert identical(plain, fast)


def test_errors_are_the_same(both) -> None:
    """A stuck keystream, and a level that has no address."""

    class Stuck(Rigged):
        def further(self, region, level, block, address):
            return iter(())

    rows = LaplaceRows([5])
    limit = int(rows._groups[0].limits[0])
    stuck = Stuck(8, {(3, 0): limit})
    stream = Keystream(simulation_key(8))

    def failures() -> list[str]:
        texts = []
        for source, level, blocks, kind in (
            (stuck, 0, [3], StateError),
            (stream, 1 << 20, [3], ParameterError),
            (stream, 0, [-1], ParameterError),
        ):
            with pytest.raises(kind) as caught:
                rows.floats(source, level, np.array(blocks))
            texts.append(str(caught.value))
        return texts

    plain, fast = both(failures)
    assert plain == fast


def test_blocks_give_the_exact_integers_behind_the_floats(both) -> None:
    rows, stream = LaplaceRows([3, 1 << 80, 9]), Keystream(simulation_key(9))
    draws = LaplaceBlocks(rows, stream, 2, np.array([4, 1 << 40]))
    plain, fast = both(lambda: (draws.to_float().tolist(), draws.block(0), draws.block(1)))
    assert plain == fast
    for floats, exact in zip(fast[0], fast[1:], strict=True):
        assert floats == pytest.approx([float(x) for x in exact], rel=2.0**-52)


VALUES = st.one_of(
    st.floats(-1e6, 1e6),
    st.integers(-(1 << 52), 1 << 52).map(lambda n: n / 2),
    st.integers(-1000, 1000).map(lambda n: math.nextafter(n + 0.5, math.inf)),
    st.floats(-1e30, 1e30),
)


@quick
@given(
    st.lists(VALUES, min_size=1, max_size=30), st.sampled_from([0, 1, 20]), st.sampled_from([0, 1e-9, 0.3])
)
def test_rounding_is_the_same_and_right_where_it_decides(both, values, places, error) -> None:
    """What is decided is floor(u + 1/2) of every real within the error."""
    array = np.array(values)
    (plain, open_plain), (fast, open_fast) = both(lambda: round_floats(array, error, places=places))
    assert identical(plain, fast)
    assert open_plain.tolist() == open_fast.tolist()
    for i in set(range(len(values))) - set(open_fast.tolist()):
        ends = (Fraction(values[i]) + Fraction(sign * error) for sign in (-1, 1))
        assert {math.floor(end * (1 << places) + Fraction(1, 2)) for end in ends} == {int(fast[i])}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308])
def test_values_past_the_floats_are_refused_by_both(both, value) -> None:
    def refusal() -> str:
        with pytest.raises(ParameterError) as caught:
            round_floats(np.array([0.25, value]), 1e-9, places=10)
        return str(caught.value)

    plain, fast = both(refusal)
    assert plain == fast


def test_shapes_are_kept(both) -> None:
    values = np.linspace(-3, 3, 24).reshape(4, 6)[:, ::2]  # not contiguous
    (plain, _), (fast, _) = both(lambda: round_floats(values, 0.0, places=3))
    assert identical(plain, fast)


def test_calls_refuse_what_the_kernels_could_not_take(both) -> None:
    both(lambda: None)
    made, rows = switch.kernels(0), LaplaceRows([3, 3])
    stream, numbers = Keystream(simulation_key(1)), np.arange(3, dtype=np.uint64)
    for out in (np.empty((2, 2)), np.empty((3, 1)), np.empty((3, 4))[:, ::2], np.empty((3, 2), np.float32)):
        with pytest.raises(ValueError, match="contiguous float64"):
            calls.laplace_floats(made, rows._groups[0], stream, 0, numbers, out)
    wide = LaplaceRows([1 << 530])
    with pytest.raises(ValueError, match="width"):
        calls.laplace_floats(made, wide._groups[0], stream, 0, numbers, np.empty((3, 1)))
