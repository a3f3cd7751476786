"""Inputs with BOT: what stands for it, what does not, and that numbers keep the counters' rules."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.counters.edit.inputs import BOT, BotRule, is_bot
from trilift.lift.errors import ParameterError

try:
    import pandas as pd
except ImportError:  # it comes with the flight data of the experiments only
    MISSING, COLUMNS, BROKEN = [], [], []
else:
    MISSING = [pd.NA, pd.NaT]
    COLUMNS = [
        pd.Series([1, None, 0], dtype="Int64"),
        pd.array([1.0, None, 0.0], dtype="Float64"),
        [Fraction(1), pd.NA, np.int8(0)],
    ]
    BROKEN = [pd.Series([1.0, float("nan")])]

RULE = BotRule.make()
NAN = float("nan")


@pytest.mark.parametrize("value", [None, BOT, np.ma.masked, *MISSING])
def test_what_stands_for_bot(value) -> None:
    assert is_bot(value)
    assert RULE.one(value) == (0, True)
    numbers, bots = RULE.many([1, value, 0, value])
    assert numbers.tolist() == [1, 0, 0, 0]
    assert bots.tolist() == [False, True, False, True]


@pytest.mark.parametrize("value", [0, 0.0, NAN, False, "", np.nan, Fraction(0)])
def test_what_does_not(value) -> None:
    assert not is_bot(value)


@pytest.mark.parametrize(
    "values",
    [
        [1, None, 0],
        (1.0, None, 0.0),
        (x for x in (1, None, 0)),
        np.array([1, None, 0], dtype=object),
        np.ma.array([1, 7, 0], mask=[0, 1, 0]),
        np.ma.array([1.0, NAN, 0.0], mask=[0, 1, 0]),
        np.ma.array([1, "junk", 0], mask=[0, 1, 0], dtype=object),
        *COLUMNS,
    ],
)
def test_every_form_of_a_stream_reads_alike(values) -> None:
    numbers, bots = RULE.many(values)
    assert numbers.dtype == np.int64
    assert numbers.tolist() == [1, 0, 0]
    assert bots.tolist() == [False, True, False]


@pytest.mark.parametrize("values", [[1, NAN], np.array([1.0, NAN]), [None, NAN], *BROKEN])
def test_nan_is_refused_with_what_to_write(values) -> None:
    with pytest.raises(ParameterError, match=r"nan, at index 1: write None \(or a masked entry\)"):
        RULE.many(values)
    with pytest.raises(ParameterError, match="write None"):
        RULE.one(NAN)


def test_a_masked_array_without_a_mask_has_no_bot() -> None:
    numbers, bots = RULE.many(np.ma.array([1, 0]))
    assert numbers.tolist() == [1, 0]
    assert not bots.any()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([None, 2], "at index 1"),
        ([None, -1, None], "at index 1"),
        ([None, True], "at index 1"),
        ([0.5, None], "at index 0"),
        (np.array([True]), "dtype bool"),
        (np.zeros((2, 2)), "1 dimension"),
        (np.ma.zeros((2, 2)), "1 dimension"),
        (1, "1 dimension"),
    ],
)
def test_what_is_refused(values, message) -> None:
    with pytest.raises(ParameterError, match=message):
        RULE.many(values)


def test_inputs_are_rounded_one_by_one_and_may_be_clipped() -> None:
    rule = BotRule.make(high=2, resolution=0.5, clip=True)
    assert rule.largest == 2
    numbers, bots = rule.many([0.25, 0.24, None, 9, -1, 1.75])
    assert numbers.tolist() == [1, 0, 0, 4, 0, 4]
    assert bots.tolist() == [False, False, True, False, False, False]


@pytest.mark.parametrize("options", [{"high": 0}, {"high": 0.3}, {"resolution": 0.3}, {"clip": 1}])
def test_arguments_are_checked(options) -> None:
    with pytest.raises(ParameterError):
        BotRule.make(**options)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1), st.integers(0, 1), st.fractions(0, 1))))
def test_many_is_one_for_each(values) -> None:
    rule = BotRule.make(resolution=2**-10)
    numbers, bots = rule.many(values)
    assert list(zip(numbers.tolist(), bots.tolist(), strict=True)) == [rule.one(value) for value in values]
