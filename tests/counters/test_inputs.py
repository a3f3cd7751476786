"""Inputs: every kind of number and array, exactly; everything else refused before anything changes."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from trilift.counters import Counter
from trilift.counters.inputs import InputRule, lattice_places
from trilift.lift.checks import show
from trilift.lift.errors import ParameterError

Make = Callable[..., Counter]

BAD_EVERYWHERE: list[Any] = [
    np.nan,
    np.inf,
    -np.inf,
    np.float32("nan"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    True,
    False,
    np.True_,
    "1",
    b"1",
    None,
    1j,
    np.complex64(1),
    object(),
    np.ma.masked,
    np.datetime64("2020-01-01"),
    np.timedelta64(1),
    np.array(1),
    np.array([1]),
    [1],
    (1,),
    {1},
    lambda: 1,
]
OUTSIDE: list[Any] = [
    2,
    -1,
    0.5,
    1.0000001,
    Fraction(1, 3),
    2**70,
    np.uint64(2**64 - 1),
    np.int8(-128),
    10**5000,
]


def refused(counter: Counter, call: Callable[[], Any]) -> None:
    now = counter._now
    with pytest.raises(ParameterError) as caught:
        call()
    text = str(caught.value)
    assert text.startswith("input")
    assert "\n" not in text
    assert len(text) < 250
    assert counter._now is now


@pytest.mark.parametrize("bad", BAD_EVERYWHERE + OUTSIDE, ids=lambda bad: type(bad).__name__)
def test_single_inputs_refused(small: Make, bad: Any) -> None:
    counter = small()
    counter.update(1)
    refused(counter, lambda: counter.update(bad))
    refused(counter, lambda: counter.update(bad, step=1))
    refused(counter, lambda: counter.extend([0, bad]))
    refused(counter, lambda: counter.extend(x for x in (0, bad)))
    assert counter.update(0) == small().extend([1, 0])[-1]


@pytest.mark.parametrize("bad", BAD_EVERYWHERE, ids=lambda bad: type(bad).__name__)
def test_clipping_does_not_make_a_number_of_anything(small: Make, bad: Any) -> None:
    counter = small(clip=True)
    refused(counter, lambda: counter.update(bad))
    refused(counter, lambda: counter.extend([0, bad]))
    vectors = small(dimension=2, clip=True)
    refused(vectors, lambda: vectors.update([0, bad]))
    refused(vectors, lambda: vectors.extend([[0, 0], [0, bad]]))


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, np.float32(-0.0), Fraction(0), Decimal("-0"), np.uint8(0)])
def test_zeros_of_all_kinds(small: Make, zero: Any) -> None:
    expected = small().update(0)
    assert small().update(zero) == expected
    assert small().extend([zero]).tolist() == [expected]
    assert small().extend(np.array([float(zero)])).tolist() == [expected]


BAD_ARRAYS: dict[str, Any] = {
    "nan": np.array([0, np.nan]),
    "inf": np.array([0, np.inf]),
    "nan in float16": np.array([0, np.nan], dtype=np.float16),
    "booleans": np.array([True, False]),
    "strings": np.array(["0", "1"]),
    "bytes": np.array([b"0"]),
    "objects": np.array([0, 1], dtype=object),
    "big objects": np.array([0, 2**70]),
    "masked": np.ma.array([0, 1], mask=[False, True]),
    "masked nowhere": np.ma.array([0, 1]),
    "complex": np.array([0j]),
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "records": np.zeros(2, dtype=[("a", int)]),
    "two dimensions": np.zeros((2, 1), dtype=int),
    "no dimensions": np.array(0),
    "ragged": [[0], [0, 1]],
    "nested": [[0, 1]],
    "string": "01",
    "bytes string": b"01",
    "mapping": {0: 1},
    "set": {0, 1},
    "number": 1,
    "none": None,
    "uint64": np.array([0, 2**64 - 1], dtype=np.uint64),
    "negative": np.array([0, -1], dtype=np.int8),
    "fraction": np.array([0, 0.5]),
    "long double": np.array([np.longdouble(1) - np.finfo(np.longdouble).epsneg]),
    "hidden boolean": [0, 1, True],
    "hidden numpy boolean": [0.0, np.True_],
    "hidden none": (0, None),
    "hidden string": [1, "1"],
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_arrays_refused(small: Make, name: str) -> None:
    counter = small()
    counter.update(1)
    refused(counter, lambda: counter.extend(BAD_ARRAYS[name]))
    assert counter.update(0) == small().extend([1, 0])[-1]


@pytest.mark.parametrize(
    "bad",
    [
        [0, 1],
        np.zeros(2, dtype=int),
        np.zeros((1, 3), dtype=int),
        np.zeros((2, 2, 1), dtype=int),
        np.zeros((0, 3), dtype=int),
        [[0, 1], [0]],
        [[0, 1], [0, 2]],
        [[0, 1], [0, np.nan]],
        [[0, 1], 0],
        [[0, 1], [0, True]],
        np.array([[0, 1], [0, 1]], dtype=object),
        np.ma.array([[0, 1]]),
    ],
)
def test_arrays_of_vectors_refused(small: Make, bad: Any) -> None:
    counter = small(dimension=2)
    refused(counter, lambda: counter.extend(bad))


@pytest.mark.parametrize("bad", [1, [1], [1, 1, 1], [[1, 1]], [0, 2], [0.0, 0.5], "01", None, [0, np.nan]])
def test_vectors_refused(small: Make, bad: Any) -> None:
    counter = small(dimension=2)
    refused(counter, lambda: counter.update(bad))


def test_the_first_bad_index_is_named(small: Make) -> None:
    for values, index in (
        (np.array([0, 1, 0.5, 7, np.pi]), 2),
        (np.array([0, 1, 7, 0.5]), 2),
        (np.array([0, 9, -1]), 1),
        ([0, 1, 2, 3], 2),
        ([0, Fraction(1, 2)], 1),
    ):
        with pytest.raises(ParameterError, match=f"at index {index}$"):
            small().extend(values)
    with pytest.raises(ParameterError, match=r"at index \(1, 0\)$"):
        small(dimension=2).extend(np.array([[0, 1], [2, 0]]))
    with pytest.raises(ParameterError, match=r"at index 0 of row 1$"):
        small(dimension=2).extend([[0, 1], [2, 0]])


def test_an_error_of_a_generator_changes_nothing(small: Make) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise RuntimeError("source broke")

    counter = small()
    with pytest.raises(RuntimeError, match="source broke"):
        counter.extend(broken())
    assert counter.step == 0


class _Column:
    """What a column of a dataframe looks like to numpy."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self._values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return self._values

    def __len__(self) -> int:
        return len(self._values)


def test_arrays_of_every_width_and_layout(small: Make) -> None:
    values = [0, 100, 7, 127, 3]
    expected = small(bounds=(0, 127)).extend(values).tolist()
    wide = np.array(values)
    shapes: list[Any] = [wide.astype(kind) for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")]
    shapes += [wide.astype(kind) for kind in ("f2", "f4", "f8", "g", ">i4", ">f8")]
    shapes += [np.repeat(wide, 3)[::3], wide[::-1].copy()[::-1], np.stack([wide, wide], axis=1)[:, 0]]
    shapes += [tuple(values), iter(values), (x for x in values), map(float, values), _Column(wide)]
    shapes += [[np.int8(x) for x in values], [Fraction(x) for x in values], memoryview(bytes(values))]
    for shape in shapes:
        assert small(bounds=(0, 127)).extend(shape).tolist() == expected
    rows = np.array([values, values[::-1]]).T
    expected = small(bounds=(0, 127), dimension=2).extend(rows).tolist()
    for form in (np.asfortranarray(rows), rows.tolist(), list(rows), map(tuple, rows), rows.astype("u1")):
        assert small(bounds=(0, 127), dimension=2).extend(form).tolist() == expected


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8", "f4", "f8"])
def test_narrow_arrays_do_not_wrap(small: Make, dtype: str) -> None:
    """Sums, clipped values and lattice steps of int8 and uint8 arrays are those of Python integers."""
    values = [127, 100, 0, 127, 5]
    for options in (
        {"bounds": (0, 127)},
        {"clip": True, "bounds": (1, 101)},
        {"clip": True, "bounds": (0, 10**6)},
    ):
        for resolution in (1, 2.0**-30):
            made = {**options, "resolution": resolution}
            one = small(**made)
            expected = [one.update(x) for x in values]
            assert small(**made).extend(np.array(values, dtype=dtype)).tolist() == expected


def test_inputs_are_not_kept_or_changed(small: Make) -> None:
    values = np.array([0, 9, 1])
    counter = small(clip=True)
    released = counter.extend(values)
    assert values.tolist() == [0, 9, 1]
    kept = released.copy()
    released[:] = 0
    values[:] = 0
    assert [counter.update(x, step=i + 1) for i, x in enumerate([0, 1, 1])] == kept.tolist()


# -- the rule itself, against fractions ----------------------------------------------------------------


def reference(rule: InputRule, value: Any) -> int | None:
    """What one input counts as, or None: straight from the definition."""
    exact = Fraction(*value.as_integer_ratio()) * 2**rule.places
    if rule.clip:
        exact = min(max(exact, Fraction(rule.low)), Fraction(rule.high))
    elif not rule.low <= exact <= rule.high:
        return None
    if rule.places == 0 and exact.denominator != 1:
        return None
    return (2 * exact + 1).__floor__() // 2 if exact.denominator != 1 else int(exact)


EDGES = [2**31, 2**53, 2**53 + 1, 2**53 + 3, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**80]
bounds_ = st.integers(-(2**70), 2**70) | st.sampled_from([0, *EDGES, *(-x for x in EDGES)])
floats_ = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    ends=st.tuples(bounds_, bounds_).filter(lambda pair: pair[0] != pair[1]),
    places=st.sampled_from([0, 0, 1, 20, 60, 256]),
    clip=st.booleans(),
    near=st.lists(st.sampled_from([-1, -0.5, 0, 0.25, 0.5, 1]), min_size=1, max_size=4),
    wild=st.lists(floats_, max_size=3),
    dtype=st.sampled_from(["f2", "f4", "f8", "g", "i1", "u1", "i4", "u8", "i8", "list"]),
)
@example(ends=(0, 2**53 + 3), places=0, clip=False, near=[1], wild=[], dtype="f8")
@example(ends=(0, 2**53 + 3), places=0, clip=True, near=[1], wild=[], dtype="f8")
@example(ends=(0, 2**64), places=0, clip=True, near=[0], wild=[], dtype="u8")
def test_arrays_agree_with_the_definition(
    ends: tuple[int, int], places: int, clip: bool, near: list[float], wild: list[float], dtype: str
) -> None:
    rule = InputRule(min(ends), max(ends), places, clip)
    raw = [float(end) * 2.0**-places + x for end in ends for x in near] + wild
    if dtype == "list":
        array: Any = [int(x) if x == int(x) else x for x in raw]
    else:
        with np.errstate(all="ignore"):
            info: Any = np.iinfo(dtype) if dtype[0] in "iu" else np.finfo(dtype)
            array = np.array([min(max(x, info.min), info.max) for x in map(np.longdouble, raw)]).astype(dtype)
    scalars = array if dtype in ("list", "g") else array.tolist()
    expected = [reference(rule, x) for x in scalars]
    singles = []
    for x in scalars:
        try:
            singles.append(rule.one(x))
        except ParameterError:
            singles.append(None)
    assert singles == expected
    if None in expected:
        with pytest.raises(ParameterError):
            rule.many(array)
    else:
        got = rule.many(array)
        assert got.tolist() == expected
        assert got.dtype in (np.int64, object)


def test_rounding_is_floor_of_half_above(small: Make) -> None:
    rule = InputRule.make(bounds=(-2, 2), resolution=0.5, clip=False)
    values = [0.25, -0.25, 0.75, -0.75, 0.24, -0.26, 1.99]
    assert [rule.one(x) for x in values] == [1, 0, 2, -1, 0, -1, 4]
    assert rule.many(np.array(values)).tolist() == [1, 0, 2, -1, 0, -1, 4]
    largest = np.nextafter(0.25, 0)
    assert rule.many(np.array([largest])).tolist() == [0]  # adding 1/2 in floats would round up to 1


def test_resolutions() -> None:
    assert [lattice_places("r", x) for x in (1, 0.5, Fraction(1, 8), Decimal("0.25"), 2.0**-60)] == [
        0,
        1,
        3,
        2,
        60,
    ]
    assert lattice_places("r", 2.0**-256) == 256
    for bad in (2, 0, -0.5, 0.3, Fraction(1, 3), True, "1", None, np.nan, 2.0**-257):
        with pytest.raises(ParameterError, match=r"^r must be"):
            lattice_places("r", bad)


class Unshown(float):
    """A number that is acceptable and must not be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("shown")


@pytest.mark.parametrize("bad", [7, 2.5, float("nan"), True, None, Fraction(22, 7)])
def test_messages_show_what_is_refused_and_nothing_else(bad: Any) -> None:
    rule = InputRule.make(bounds=(0, 5), resolution=0.5 if bad == 2.5 else 1, clip=False)
    if bad == 2.5:
        bad = 5.5
    with pytest.raises(ParameterError) as caught:
        rule.many([Unshown(3), Unshown(4), bad, Unshown(2)])
    shown = {True: "True (a truth value; 1 is a number)"}.get(bad, show(bad))
    assert f"got {shown} at index 2" in str(caught.value)


@pytest.mark.parametrize(
    "stream", [[3, 4, 9], (3, 4, 9), "3 4 9", {3: 4}, np.array([3, 4, 9]), iter([3, 4, 9])]
)
def test_a_stream_in_the_place_of_a_number_is_not_shown(stream: Any) -> None:
    rule = InputRule.make(bounds=(0, 5), resolution=1, clip=True)
    for refused in (lambda: rule.one(stream), lambda: rule.many([1, stream])):
        with pytest.raises(ParameterError) as caught:
            refused()
        assert f"input must be a finite number, got a {type(stream).__name__}" in str(caught.value)
        assert "9" not in str(caught.value)


@pytest.mark.parametrize(
    ("resolution", "near"),
    [
        (Fraction(1, 100), ", such as 1/128, got 1/100"),
        (Fraction(3, 10), ", such as 1/4, got 3/10"),
        (Fraction(2, 3), ", such as 1/2, got 2/3"),
        (Fraction(1, 1 << 300), f", such as 1/{1 << 256}"),
        (3, " power of two, got 3"),
    ],
)
def test_a_resolution_near_the_refused_one_is_named(resolution: Any, near: str) -> None:
    with pytest.raises(ParameterError) as error:
        lattice_places("resolution", resolution)
    assert near in str(error.value)
