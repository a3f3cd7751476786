"""Groups as bytes: no two values share an encoding, and equal ones of several types do."""

from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.counters.frames.groups import Codes, encode_group
from trilift.lift.errors import ParameterError

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.binary(max_size=5), st.dates()
)


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


@given(st.lists(VALUES, max_size=3), st.lists(VALUES, max_size=3))
def test_encodings_are_as_different_as_the_values(one: list[Any], other: list[Any]) -> None:
    equal = len(one) == len(other) and all(map(same, one, other))
    assert (encode_group(one) == encode_group(other)) is equal


COLLISIONS: list[list[Any]] = [
    ["1"],
    [1],
    [True],
    [b"1"],
    [None],
    [""],
    ["None"],
    ["null"],
    ["True"],
    [date(2013, 1, 1)],
    ["2013-01-01"],
    ["1", ""],
    ["", "1"],
    [1, 1],
    [11],
    [-1],
    [0],
    [False],
    ["é"],
    ["e\u0301"],
    ["a\x00"],
    ["a"],
    [10**30],
]


def test_no_collisions() -> None:
    assert len({encode_group(values) for values in COLLISIONS}) == len(COLLISIONS)


def test_types_of_one_value() -> None:
    assert encode_group([np.int8(5)]) == encode_group([5]) == encode_group([np.uint64(5)])
    assert encode_group([np.str_("a")]) == encode_group(["a"])
    assert encode_group([np.bool_(True)]) == encode_group([True])


BAD = [
    1.0,
    float("nan"),
    np.float32(2),
    1j,
    datetime(2013, 1, 1),
    pd.Timestamp("2013"),
    np.timedelta64(1, "D"),
    [1],
    {},
    object(),
    "\ud800",
    np.datetime64("2013"),
]


@pytest.mark.parametrize("value", BAD)
def test_values_that_are_no_groups(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"^(groups must be|a group's text)"):
        encode_group([value])


def test_codes_keep_equal_looking_values_apart() -> None:
    column = [1, True, "1", None, np.int64(1), 1, np.str_("1")]
    codes = Codes([column], len(column))
    assert len(codes.groups) == 4
    assert codes.codes[0] == codes.codes[4] == codes.codes[5]
    assert codes.codes[2] == codes.codes[6]
    encodings = [encoding for encoding, _ in codes.groups]
    assert encodings == sorted(encodings)
    assert [encodings[code] for code in codes.codes] == [encode_group([value]) for value in column]


def test_no_rows_and_no_columns() -> None:
    assert Codes([], 0).groups == []
    assert Codes([[]], 0).groups == []
    assert Codes([], 3).groups == [(b"", ())]
