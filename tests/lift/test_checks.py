"""Every kind of value that is refused, everywhere in the same words, on one line."""

import numbers
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.lift import checks
from trilift.lift.checks import choices, finite, integer, numeric_array, rational, show, written
from trilift.lift.errors import ParameterError, TriliftError

NOT_NUMBERS = [
    float("nan"),
    float("inf"),
    -float("inf"),
    np.float64("nan"),
    np.float32("inf"),
    np.longdouble("inf"),
    Decimal("nan"),
    Decimal("sNaN"),
    Decimal("-Infinity"),
    True,
    False,
    np.True_,
    np.False_,
    "1",
    b"1",
    "",
    None,
    1j,
    np.complex128(1),
    [1],
    (1.0,),
    {},
    np.array(1.0),
    np.array([1.0]),
    np.array([[1.0, 2.0], [3.0, 4.0]]),
    ...,  # not object(): its name would differ between two test processes
]
NUMBERS: list[tuple[Any, Fraction]] = [
    (1, Fraction(1)),
    (0.5, Fraction(1, 2)),
    (0.1, Fraction(0.1)),
    (1e-320, Fraction(1e-320)),
    (5e-324, Fraction(1, 2**1074)),
    (1.7976931348623157e308, Fraction(1.7976931348623157e308)),
    (Fraction(1, 3), Fraction(1, 3)),
    (Fraction(1, 10**400), Fraction(1, 10**400)),
    (Decimal("0.1"), Fraction(1, 10)),
    (10**400, Fraction(10**400)),
    (np.int8(7), Fraction(7)),
    (np.uint64(2**64 - 1), Fraction(2**64 - 1)),
    (np.float64(0.25), Fraction(1, 4)),
    (np.float32(0.1), Fraction(float(np.float32(0.1)))),
    (np.longdouble(1) + np.longdouble(2) ** -60, 1 + Fraction(1, 2**60)),
]


def message(call: Callable[[], Any]) -> str:
    with pytest.raises(ParameterError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TriliftError)
    return text


@pytest.mark.parametrize("check", [checks.rational, checks.finite])
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_what_is_not_a_finite_number_is_refused(check: Any, value: Any) -> None:
    assert message(lambda: check("epsilon", value)).startswith("epsilon must be a finite number, got ")
    assert "> 0, got " in message(lambda: check("epsilon", value, above=0))


@pytest.mark.parametrize(("value", "exact"), NUMBERS)
def test_numbers_keep_their_exact_value(value: Any, exact: Fraction) -> None:
    if isinstance(value, np.longdouble) and np.finfo(np.longdouble).nmant <= 52:
        pytest.skip("no long double wider than a double here")
    result = checks.rational("x", value, above=0)
    assert type(result) is Fraction
    assert result == exact


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_is_its_binary_value(value: float) -> None:
    assert checks.rational("x", value) == Fraction(value)
    assert checks.finite("x", value) == value


@pytest.mark.parametrize(
    "value", [0, 0.0, -0.0, -1, -5e-324, Fraction(0), Fraction(-1, 3), Decimal("-1e-9"), np.int64(0)]
)
def test_an_open_bound(value: Any) -> None:
    text = message(lambda: checks.rational("epsilon", value, above=0))
    assert text == f"epsilon must be a finite number > 0, got {checks.show(value)}"
    assert message(lambda: checks.finite("epsilon", value, above=0)) == text


def test_closed_bounds_include_their_ends() -> None:
    assert checks.rational("p", 0, minimum=0, maximum=1) == 0
    assert checks.finite("p", 1, minimum=0, maximum=1) == 1.0
    for value in (-1e-300, Fraction(10**30 + 1, 10**30)):
        text = message(lambda v=value: checks.rational("p", v, minimum=0, maximum=1))  # type: ignore[misc]
        assert text.startswith("p must be a finite number >= 0 and <= 1, got ")


def test_the_message_of_the_house() -> None:
    text = message(lambda: checks.finite("epsilon", float("nan"), above=0))
    assert text == "epsilon must be a finite number > 0, got nan"


def test_finite_refuses_what_a_float_cannot_hold() -> None:
    for value in (10**400, Fraction(-(10**400)), Fraction(1, 10**400), Decimal("1e-400")):
        assert "the range of a float" in message(lambda v=value: checks.finite("x", v))  # type: ignore[misc]
    assert checks.finite("x", 1e-320) == 1e-320
    assert checks.finite("x", Fraction(0)) == 0.0


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 1.0, 2.5, Fraction(2), Decimal(2), np.float64(3)], ids=repr)
def test_what_is_not_an_integer_is_refused(value: Any) -> None:
    text = message(lambda: checks.integer("horizon", value, minimum=1))
    assert text.startswith("horizon must be an integer >= 1, got ")


def test_integers() -> None:
    for value in (1, np.int8(1), np.uint64(1)):
        result = checks.integer("n", value, minimum=1, maximum=1)
        assert type(result) is int
        assert result == 1
    assert checks.integer("n", 10**30) == 10**30
    assert message(lambda: checks.integer("n", 0, minimum=1)) == "n must be an integer >= 1, got 0"
    text = message(lambda: checks.integer("n", 2, minimum=0, maximum=1))
    assert text == "n must be an integer >= 0 and <= 1, got 2"


def test_choices_and_flags() -> None:
    assert checks.choice("objective", "max", ("max", "mean")) == "max"
    for value in ("Max", "", None, 1, ["max"], np.array(["max"])):
        text = message(lambda v=value: checks.choice("objective", v, ("max", "mean")))  # type: ignore[misc]
        assert text.startswith("objective must be one of 'max', 'mean', got ")
    assert checks.flag("clip", np.True_) is True
    assert checks.flag("clip", False) is False
    for other in (0, 1, "True", None, 1.0):
        assert message(lambda v=other: checks.flag("clip", v)).startswith("clip must be True or False")  # type: ignore[misc]


@pytest.mark.parametrize(
    "value",
    [
        ["a"],
        [True, False],
        [1j],
        [None],
        [Fraction(1, 2)],
        [2**70],
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.ma.masked_array([1, 2], mask=[0, 1]),
        [[1, 2], [3]],
        "abc",
        None,
        [float("nan")],
        [[0.0, 1.0], [2.0, -float("inf")]],
    ],
    ids=repr,
)
def test_arrays_that_are_refused(value: Any) -> None:
    assert message(lambda: checks.numeric_array("x", value)).startswith("x must be ")


def test_arrays() -> None:
    text = message(lambda: checks.numeric_array("x", [0.0, float("nan")]))
    assert text == "x must be finite, got nan at index 1"
    assert "at index (1, 0)" in message(lambda: checks.numeric_array("x", [[0.0], [float("inf")]]))
    assert message(lambda: checks.numeric_array("x", [1], ndim=2)) == "x must have 2 dimension(s), got 1"
    assert checks.numeric_array("x", [1, 2]).dtype.kind == "i"
    assert checks.numeric_array("x", np.float32([1.5]), ndim=1).dtype == np.float32
    assert checks.numeric_array("x", []).shape == (0,)


def test_shown_values_are_short_and_on_one_line() -> None:
    for value in ("a\nb", np.zeros((30, 30)), "x" * 500, object()):
        text = checks.show(value)
        assert len(text) <= 60
        assert "\n" not in text


@pytest.mark.parametrize("text", ["1e999999999", "-1e999999999", "1e-999999999", "1e5000"])
def test_decimals_of_absurd_size_are_refused_at_once(text: str) -> None:
    with pytest.raises(ParameterError, match="x must be"):
        checks.rational("x", Decimal(text))


def test_zero_decimals_with_large_exponents_are_zero() -> None:
    assert checks.rational("x", Decimal("0e999")) == 0


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Fraction(1, 100), "1/100"),
        (Fraction(3), "3"),
        ((Fraction(1, 2), Fraction(-1)), "(1/2, -1)"),
        ((Fraction(1),) * 10**6, "(1, 1, 1, ...)"),
        ((1, 2), "(1, 2)"),
    ],
)
def test_fractions_are_shown_as_they_are_written(value: object, shown: str) -> None:
    assert checks.show(value) == shown


@pytest.mark.parametrize(
    ("value", "end"),
    [
        ("1/128", "got '1/128' (a string; Fraction('1/128') is a number)"),
        ("0.1", "got '0.1' (a string; Fraction('0.1') is a number)"),
        ("007", "got '007' (a string; 7 is a number)"),
        ("many", "got 'many'"),
        ("1/0", "got '1/0'"),
        ("1e999999999", "got '1e999999999'"),
        (True, "got True (a truth value; 1 is a number)"),
        (np.False_, "got np.False_ (a truth value; 0 is a number)"),
        (float("nan"), "got nan"),
    ],
)
def test_what_reads_as_a_number_is_told_how_to_become_one(value: object, end: str) -> None:
    with pytest.raises(ParameterError) as error:
        checks.rational("x", value)
    assert str(error.value) == f"x must be a finite number, {end}"


@pytest.mark.parametrize(
    ("value", "end"),
    [
        (1e6, "got 1000000.0 (a float; write 1000000)"),
        (1.5, "got 1.5"),
        (1e300, "got 1e+300"),
        (float("inf"), "got inf"),
        ("365", "got '365' (a string; 365 is a number)"),
    ],
)
def test_integers_that_are_none(value: object, end: str) -> None:
    with pytest.raises(ParameterError) as error:
        checks.integer("n", value, minimum=1)
    assert str(error.value) == f"n must be an integer >= 1, {end}"


def test_truth_values_in_arrays() -> None:
    with pytest.raises(ParameterError, match=r"got dtype bool \(astype\(int\) makes them 0 and 1\)"):
        checks.numeric_array("inputs", np.array([True]))


class _Posing:
    """Registered as an integer, without being one; not even its repr works."""

    def __repr__(self) -> str:
        raise RuntimeError("shown")


numbers.Integral.register(_Posing)


@pytest.mark.parametrize("check", [rational, finite, integer, written])
def test_what_only_poses_as_a_number_is_refused(check: Any) -> None:
    with pytest.raises(ParameterError, match=r"^x must be an? .*, got a _Posing$"):
        check("x", _Posing())


def test_messages_stay_short_whatever_is_shown() -> None:
    for value in (
        [0] * 10**6,
        "a" * 10**6,
        {i: i for i in range(10**5)},
        np.zeros(10**6),
        _Posing(),
        10**5000,
    ):
        assert len(show(value)) <= 60
        assert "\n" not in show(value)


def test_integers_that_cannot_be_written_are_refused() -> None:
    assert integer("x", 10**3999) == 10**3999
    with pytest.raises(
        ParameterError, match=r"^x must be an integer >= 1, of at most 4000 digits, got a int of"
    ):
        integer("x", 10**4300, minimum=1)
    with pytest.raises(ParameterError, match=r"^x must be a fraction of numbers of at most 2048 bits$"):
        written("x", Fraction(1, 2**2048))
    assert written("x", Fraction(1, 2**2047)) == Fraction(1, 2**2047)


def test_decimals_of_huge_exponents_are_refused_as_such_and_at_once() -> None:
    with pytest.raises(ParameterError, match=r"^x must be between 1e-4000 and 1e4000 in size, got Decimal"):
        rational("x", Decimal("1e999999999"))


@pytest.mark.parametrize(
    "bad",
    [
        [1.0, True],
        [[1.0], [np.True_]],
        [2**53 + 1, 0.5],
        [2**63 + 1, -1],
        [1.0, np.ma.masked],
        [np.ma.array([1, 2], mask=[False, True])],
        [10**400, 0.5],
    ],
)
def test_lists_that_numpy_would_bend_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError, match=r"^x must "):
        numeric_array("x", bad)


def test_lists_of_words() -> None:
    assert choices("x", ("a", "b"), ["a", "b", "c"]) == ["a", "b"]
    for bad in ("a", None, {"a"}, 1):
        with pytest.raises(ParameterError, match=r"^x must be a list of some of 'a', got "):
            choices("x", bad, ["a"])
    with pytest.raises(ParameterError, match=r"^each of x must be one of 'a', got 'b'$"):
        choices("x", ["a", "b"], ["a"])
