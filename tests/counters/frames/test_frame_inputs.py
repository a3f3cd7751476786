"""What frames and arguments are refused: in one line, with nothing remembered."""

import decimal
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from trilift import ParameterError, TriliftError
from trilift.counters.accounting import Budget
from trilift.counters.frames import PrivateCumsum, private_cumsum

Make = Callable[[dict[str, list[Any]]], Any]
GOOD: dict[str, Any] = {"by": "g", "groups": ["a"], "order": "t", "epsilon": 1}

ARGUMENTS: list[dict[str, Any]] = [
    {"epsilon": 0},
    {"epsilon": "1"},
    {"epsilon": float("nan")},
    {"delta": 2},
    {"by": 3},
    {"by": []},
    {"by": ["g", "g"]},
    {"by": "x"},
    {"order": "x"},
    {"order": [None]},
    {"groups": []},
    {"groups": "a"},
    {"groups": ["a", "a"]},
    {"groups": [1.5]},
    {"groups": [("a", "b")]},
    {"groups": {"a": 1}},
    {"groups": 5},
    {"by": None},
    {"horizon": 0},
    {"horizon": {"a": 5, "b": 5}},
    {"horizon": {}},
    {"horizon": 1.5},
    {"groups": "observed", "horizon": {"a": 3}},
    {"bounds": (1, 0)},
    {"max_contributions": 0},
    {"ties": "any"},
    {"nulls": "drop"},
    {"excess": "zero"},
    {"person": 3},
    {"person": "x"},
    {"name": 3},
    {"keep": "x", "name": "t"},
    {"key": b"short", "version": "1"},
    {"key": bytes(32)},
    {"version": 3},
    {"version": "a\nb"},
    {"budget": 1},
    {"simulation_seed": 1, "key": bytes(32), "version": "1"},
    {"simulation_seed": 1, "budget": Budget(1)},
    {"simulation_seed": "x"},
    {"objective": "least"},
    {"postprocess": "round"},
    {"resolution": 3},
    {"clip": 1},
    {"state": ""},
    {"epsilons": 1},
]


@pytest.mark.parametrize("wrong", ARGUMENTS, ids=str)
def test_arguments_that_are_refused(wrong: dict[str, Any]) -> None:
    frame = pd.DataFrame({"g": ["a"], "t": [1], "x": [1]})
    with pytest.raises((TriliftError, OSError)) as raised:
        private_cumsum(frame, "x", **GOOD | wrong)
    assert "\n" not in str(raised.value)


def test_epsilon_must_be_given() -> None:
    with pytest.raises(ParameterError, match="epsilon must be given"):
        private_cumsum(pd.DataFrame({"x": [1]}), "x")  # type: ignore[call-arg]


COLUMNS: list[tuple[str, list[Any], str]] = [
    ("x", [1, 2], "within"),
    ("x", [0, -1], "within"),
    ("x", [0.5, 1.0], "an integer"),
    ("x", ["1", "0"], "number"),
    ("x", [True, False], "truth values|numbers"),
    ("x", [float("inf"), 0.0], "finite"),
    ("x", [datetime(2013, 1, 1)] * 2, "numbers"),
    ("g", ["a", "b"], "'b' is not among the declared"),
    ("g", [1.5, 2.5], "groups must be"),
    ("g", [datetime(2013, 1, 1)] * 2, "groups must be"),
    ("g", [["a"], ["b"]], "groups must be"),
    ("t", [1, 1], "same place"),
    ("t", [1, None], "nulls"),
    ("t", [1.0, float("nan")], "nulls"),
    ("t", [[1], [2]], "no order"),
]


@pytest.mark.parametrize(("name", "values", "words"), COLUMNS, ids=lambda value: str(value)[:30])
def test_columns_that_are_refused(name: str, values: list[Any], words: str, make: Make) -> None:
    frame = make({"g": ["a", "a"], "t": [1, 2], "x": [0, 1]} | {name: values})
    sums = PrivateCumsum("x", **GOOD)
    with pytest.raises(ParameterError, match=words) as raised:
        sums.apply(frame)
    assert "\n" not in str(raised.value)
    good = make({"g": ["a", "a"], "t": [1, 2], "x": [0, 1]})  # nothing was remembered of the bad one
    assert sums.apply(good)["x_private"].to_list() == sums.counter("a").extend([0, 1]).tolist()


def test_persons_that_are_nobody(make: Make) -> None:
    """NaN is unequal to itself: every row would be another person's."""
    for nobody in (float("nan"), None):
        frame = make({"p": [1.0, nobody], "x": [0, 1]})
        with pytest.raises(ParameterError, match="row 1 is nobody's"):
            private_cumsum(frame, "x", epsilon=1, horizon=2, person="p")


def test_columns_that_are_missing_twice_or_in_the_way() -> None:
    with pytest.raises(ParameterError, match="column 't' is not in the frame"):
        private_cumsum(pd.DataFrame({"g": ["a"], "x": [1]}), "x", **GOOD)
    twice = pd.DataFrame([["a", 1, 1, 1]], columns=["g", "t", "x", "x"])
    with pytest.raises(ParameterError, match="column 'x' is in the frame more than once"):
        private_cumsum(twice, "x", **GOOD)
    with pytest.raises(ParameterError, match="has a column 'x' already"):
        private_cumsum(pd.DataFrame({"g": ["a"], "t": [1], "x": [1]}), "x", **GOOD, keep="x", name="x")


@pytest.mark.parametrize(
    "frame", [None, [1], {"x": [1]}, np.zeros(3), pd.Series([1]), pl.Series([1])], ids=type
)
def test_what_is_no_frame(frame: Any) -> None:
    with pytest.raises(ParameterError, match="df must be a DataFrame"):
        private_cumsum(frame, "x", epsilon=1)


def test_decimals_are_refused_by_polars_and_exact_in_pandas() -> None:
    values = [decimal.Decimal("0.5"), decimal.Decimal("1")]
    with pytest.raises(ParameterError, match="must be numbers, got Decimal"):
        private_cumsum(pl.DataFrame({"x": values}), "x", epsilon=1, resolution=0.5)
    sums = PrivateCumsum("x", epsilon=1, resolution=0.5)
    out = sums.apply(pd.DataFrame({"x": values}))["x_private"].tolist()
    assert out == sums.counter().extend([0.5, 1.0]).tolist()


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 0, None], dtype="Int64"),
        pd.Series([1, 0, None], dtype="Float32"),
        pd.Series([1, 0, None], dtype="float64"),
        pd.Series([1, 0, None], dtype=object),
        pl.Series([1, 0, None], dtype=pl.UInt8),
        pl.Series([1, 0, None], dtype=pl.Float32),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]}-{column.dtype}",
)
def test_kinds_of_columns_of_numbers(column: Any) -> None:
    frame = (pd.DataFrame if isinstance(column, pd.Series) else pl.DataFrame)({"x": column})
    sums = PrivateCumsum("x", epsilon=1, nulls="zero")
    assert sums.apply(frame)["x_private"].to_list() == sums.counter().extend([1, 0, 0]).tolist()


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", "a", None], dtype="category"),
        pd.Series(["b", "a", None], dtype=object),
        pd.Series(["b", "a", None], dtype="str"),
        pl.Series(["b", "a", None], dtype=pl.Categorical),
        pl.Series(["b", "a", None], dtype=pl.Enum(["b", "a"])),
        pl.Series(["b", "a", None]),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]}-{column.dtype}"[:40],
)
def test_kinds_of_columns_of_texts(column: Any) -> None:
    """A category is the text that it shows: the same group, with the same key."""
    frame = (pd.DataFrame if isinstance(column, pd.Series) else pl.DataFrame)({"g": column, "x": [1, 1, 1]})
    sums = PrivateCumsum("x", by="g", groups=["a", "b", None], epsilon=1)
    out = sums.apply(frame)["x_private"].to_list()
    assert out == [int(sums.counter(group).update(1)) for group in ("b", "a", None)]


def test_times_order_rows_to_the_nanosecond(make: Make) -> None:
    stamps = pd.to_datetime([3, 1, 2], unit="ns")
    sums = PrivateCumsum("x", order="t", epsilon=1)
    wanted = None
    for frame in (
        pd.DataFrame({"t": stamps, "x": [1, 0, 0]}),
        pl.DataFrame({"t": pl.Series([3, 1, 2]).cast(pl.Datetime("ns")), "x": [1, 0, 0]}),
    ):
        out = sums.apply(frame)["x_private"].to_list()
        assert [out[1], out[2], out[0]] == (wanted := wanted or sums.counter().extend([0, 0, 1]).tolist())


def test_a_frame_is_not_changed(make: Make) -> None:
    frame = make({"g": ["a", "a"], "t": [2, 1], "x": [0, 1]})
    before = frame.copy() if isinstance(frame, pd.DataFrame) else frame.clone()
    private_cumsum(frame, "x", **GOOD)
    assert frame.equals(before)
