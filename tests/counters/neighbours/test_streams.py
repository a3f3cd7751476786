"""Streams: what they hold, listing them, their sums."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.counters.neighbours import all_streams, as_stream, prefix_sums, random_stream, sparsity
from trilift.lift.errors import ParameterError


def test_bot_is_kept_and_adds_nothing() -> None:
    assert as_stream([None, 1, 0.25, np.int8(3)]) == (None, 1, Fraction(1, 4), 3)
    masked = np.ma.MaskedArray([1, 5, 1], mask=[False, True, False])
    assert as_stream(masked) == (1, None, 1)
    assert as_stream(np.array([1, None], dtype=object)) == (1, None)
    assert prefix_sums([None, 1, None, 0.5]) == (0, 1, 1, Fraction(3, 2))
    assert sparsity([None, 0, 1, None]) == 2
    assert prefix_sums([]) == ()


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ([1, float("nan")], r"stream\[1\] must be a finite number, got nan"),
        ([True], r"stream\[0\] must be a finite number, got True"),
        (["1"], r"stream\[0\] must be a finite number, got '1'"),
        ("101", "stream must be a sequence of numbers and None, got '101'"),
        (3, "stream must be a sequence of numbers and None, got 3"),
        (np.zeros((2, 2)), "stream must have 1 dimension"),
    ],
)
def test_what_is_no_stream(stream: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        as_stream(stream)


def test_every_stream_is_listed_once() -> None:
    found = list(all_streams(4, alphabet=[0, 1, None, 0]))
    assert len(found) == len(set(found)) == 81
    assert list(all_streams(0)) == [()]
    with pytest.raises(ParameterError, match=r"3\^40 streams are too many"):
        all_streams(40)
    with pytest.raises(ParameterError, match="at least one letter"):
        all_streams(2, alphabet=[])


@given(st.integers(0, 30), st.integers(0, 2**32))
def test_random_streams(steps: int, seed: int) -> None:
    stream = random_stream(steps, seed=seed)
    assert stream == random_stream(steps, seed=seed)
    assert len(stream) == steps
    assert all(item is None or (0 <= item <= 1 and (item * 2**20) % 1 == 0) for item in stream)
    assert set(random_stream(steps, seed=seed, alphabet=[0, None])) <= {0, None}


def test_silence() -> None:
    assert random_stream(50, seed=0, silence=1) == (None,) * 50
    assert None not in random_stream(50, seed=0, silence=0)
    # Binomial(10^4, 1/4): more than 6 standard deviations (43) away by chance: less than 10^-8
    assert abs(random_stream(10_000, seed=7).count(None) - 2500) < 260
