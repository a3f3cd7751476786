"""Where the words of a block lie."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.lift.errors import ParameterError
from trilift.stream import laplace_layout
from trilift.stream.laplace_layout import TESTS, checked_scales, low_count, make_groups, rule
from trilift.stream.thresholds import Threshold, tail

SCALES = st.one_of(
    st.integers(1, 1 << 20), st.integers(1, 1 << 70), st.integers(0, 300).map(lambda n: (1 << n) + 1)
)


def test_the_last_digit_lies_where_more_is_rare() -> None:
    for scale in [*range(1, 300), 1 << 17, (1 << 17) + 1, (1 << 55) - 1, 1 << 55, (1 << 55) + 1, 3 << 90]:
        low = low_count(scale)
        assert 16 * scale <= 1 << low + 21
        assert low == 0 or 1 << low + 21 < 32 * scale
        assert tail(low + 21, scale).floor(16) == 0


@given(st.lists(SCALES, min_size=1, max_size=40), st.sampled_from([1, 3, 64]))
def test_every_word_serves_one_purpose(scales, rows) -> None:
    """Groups and their parts follow each other; between groups less than a piece of 64 bytes is left out."""
    whole, laplace_layout._GROUP_ROWS = laplace_layout._GROUP_ROWS, rows
    try:
        groups = make_groups(checked_scales(scales))
    finally:
        laplace_layout._GROUP_ROWS = whole
    assert [row for group in groups for row in group.rows] == list(range(len(scales)))
    end = 0
    for group in groups:
        assert group.start % 16 == 0
        assert 0 <= group.start - end < 16
        place = TESTS * len(group.rows)
        assert group.limits.size == place
        for run in group.runs:
            assert run.begin == place
            place += run.width * run.count
            for k in range(run.count):
                low = low_count(group.scales[run.first + k])
                assert low == run.low[k]
                assert 16 * (run.width - 1) < low + 3 <= 16 * run.width
        assert sum(run.count for run in group.runs) == len(group.rows)
        assert group.words == -(-place // 2)
        end = group.start + group.words


def test_equal_groups_share_what_they_are_compared_with() -> None:
    groups = make_groups((5,) * 4096)
    assert all(group.limits is groups[0].limits for group in groups)


def test_limits_are_the_probabilities_of_the_tests() -> None:
    scales = (3, Fraction(7, 5), 1 << 40)
    (group,) = make_groups(scales)
    for place, limit in enumerate(group.limits.tolist()):
        k, test = divmod(place, TESTS)
        probability = rule(scales[k], test)
        assert limit == (0 if probability is None else probability.floor(16))
    assert [rule(scale, 1) is None for scale in scales] == [True, True, False]
    assert isinstance(rule(3, 2), Threshold)


@pytest.mark.parametrize("bad", [[True], ["3"], [0], [Fraction(1, 1025)], [[3]], 3, None, np.array([[1]])])
def test_other_scales_are_refused(bad) -> None:
    with pytest.raises(ParameterError, match="scale"):
        checked_scales(bad)


def test_a_block_that_is_too_long_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(laplace_layout, "_MAX_WORDS", 24 * 1024)
    make_groups((3,) * 1900)
    with pytest.raises(ParameterError, match=r"2\^31 words"):
        make_groups((3,) * 2100)
