"""Released numbers: no bit is lost, whatever their size."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.counters.released import as_array, as_number, post_process

wide = st.integers(-(2**80), 2**80) | st.integers(-(2**54), 2**54)


@given(wide, st.integers(0, 256))
def test_numbers_are_exact(num: int, places: int) -> None:
    shown = as_number(num, places)
    assert Fraction(shown) == Fraction(num, 2**places)
    assert isinstance(shown, int) == (places == 0)


@given(st.lists(wide, max_size=5), st.integers(0, 256))
def test_arrays_are_exact(nums: list[int], places: int) -> None:
    held = np.array(nums, dtype=object if any(abs(n) >= 2**63 for n in nums) else np.int64)
    shown = as_array(held, places)
    assert shown.shape == held.shape
    assert [Fraction(x) for x in shown.tolist()] == [Fraction(n, 2**places) for n in nums]


def test_arrays_keep_their_shape() -> None:
    assert as_array(np.array([[1, 2], [3, 2**60 + 1]]), 3).shape == (2, 2)
    assert as_array(np.array([[1, 2]]), 3).dtype == np.float64


@pytest.mark.parametrize("dtype", [np.int64, object])
def test_post_processing(dtype: Any) -> None:
    nums, peak = np.array([[-3, 1], [5, -2], [4, 9]], dtype=dtype), np.array([0, 3])
    assert post_process(nums, None, peak) is nums
    assert post_process(nums, "nonnegative", peak).tolist() == [[0, 1], [5, 0], [4, 9]]
    assert post_process(nums, "monotone", peak).tolist() == [[0, 3], [5, 3], [5, 9]]
