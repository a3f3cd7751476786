"""Positions: exact running sums and remembered steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.counters.position import Position, running_sums
from trilift.lift.errors import ReplayError

LIMIT = 2**63


@given(
    st.integers(-LIMIT, LIMIT - 1) | st.integers(-(2**90), 2**90),
    st.lists(st.integers(-LIMIT, LIMIT - 1), min_size=1, max_size=6),
)
def test_running_sums_never_wrap(start: int, inputs: list[int]) -> None:
    counts = np.array([start], dtype=np.int64 if -LIMIT <= start < LIMIT else object)
    sums = running_sums(counts, np.array(inputs, dtype=np.int64)[:, None])[:, 0].tolist()
    total, expected = start, []
    for x in inputs:
        total += x
        expected.append(total)
    assert sums == expected


def test_long_vectors_are_remembered_for_fewer_steps() -> None:
    wide = np.zeros((3, 1 << 19), dtype=np.int64)
    start = Position.start(1 << 19)
    moved = start.advanced(wide, counts=wide[0], peaks=wide[0], released=wide)
    assert [step.number for step in moved.recent] == [2, 3]
    assert start.step == 0
    with pytest.raises(ReplayError, match="no longer remembered"):
        moved.replayed(1, tuple(wide[0].tolist()))


def test_skipping_nothing_forgets_nothing() -> None:
    one = np.ones((1, 1), dtype=np.int64)
    moved = Position.start(1).advanced(one, counts=one[0], peaks=one[0], released=one)
    assert moved.skipped(0).replayed(1, (1,)).tolist() == [1]
    assert moved.skipped(2).step == 3
    with pytest.raises(ReplayError):
        moved.skipped(2).replayed(1, (1,))
