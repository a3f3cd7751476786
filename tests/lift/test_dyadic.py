"""Dyadic arrays against Fractions: nothing rounds but `round`, nothing wraps."""

import copy
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.dyadic import Dyadic, binary_places
from trilift.lift.errors import ParameterError

EDGES = [0, 1, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**62, 2**53 + 1, 2**64, 3**70]
numerators = st.one_of(st.sampled_from(EDGES), st.integers(-9, 9), st.integers(-(2**90), 2**90))
exponents = st.one_of(st.integers(0, 5), st.integers(0, 90))
finite_floats = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def dyadics(draw: st.DrawFn, shape: tuple[int, ...]) -> Dyadic:
    count = int(np.prod(shape))
    num = np.empty(count, dtype=object)
    num[:] = draw(st.lists(numerators, min_size=count, max_size=count))
    return Dyadic(num.reshape(shape), draw(exponents))


def assert_values(result: Dyadic, expected: Any) -> None:
    fractions = result.fractions()
    assert fractions.shape == np.shape(expected)
    assert list(fractions.flat) == list(np.asarray(expected, dtype=object).flat)
    assert result.num.dtype in (np.int64, object)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), shape=st.sampled_from([(), (3,), (2, 2), (1, 3), (0,)]), power=st.integers(-70, 70))
def test_arithmetic(data: st.DataObject, shape: tuple[int, ...], power: int) -> None:
    x, y = data.draw(dyadics(shape)), data.draw(dyadics(shape))
    p, q = x.fractions(), y.fractions()
    assert_values(x + y, p + q)
    assert_values(x - y, p - q)
    assert_values(x * y, p * q)
    assert_values(-x, -p)
    assert_values(abs(x), abs(p))
    assert_values(x.scaled(power), p * Fraction(2) ** power)
    assert_values(x.T, p.T)
    assert_values(x + 3, p + 3)
    assert_values(3 - x, 3 - p)
    assert_values(2**70 * x, p * 2**70)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), rows=st.integers(1, 3), inner=st.integers(1, 4), columns=st.integers(1, 3))
def test_matrix_products(data: st.DataObject, rows: int, inner: int, columns: int) -> None:
    x, y = data.draw(dyadics((rows, inner))), data.draw(dyadics((inner, columns)))
    p, q = x.fractions(), y.fractions()
    assert_values(x @ y, p @ q)
    assert_values(x[0] @ y, p[0] @ q)
    assert_values(x @ y[:, 0], p @ q[:, 0])
    assert (x[0] @ y[:, 0]).fraction() == sum(p[0] * q[:, 0])


@settings(max_examples=100, deadline=None)
@given(data=st.data(), rows=st.integers(1, 3), columns=st.integers(1, 4))
def test_sums_and_extremes(data: st.DataObject, rows: int, columns: int) -> None:
    x = data.draw(dyadics((rows, columns)))
    p = x.fractions()
    for axis in (0, 1):
        assert_values(x.sum(axis=axis), p.sum(axis=axis))
        assert_values(x.abs_sum(axis=axis), abs(p).sum(axis=axis))
    assert x.sum().fraction() == p.sum()
    assert x.abs_sum().fraction() == abs(p).sum()
    assert (x.max(), x.min()) == (p.max(), p.min())


def test_sums_that_leave_int64() -> None:
    x = Dyadic(np.full((4, 4), -(2**63)))
    assert x.num.dtype == np.int64
    assert x.sum(axis=0).fractions().tolist() == [-(2**65)] * 4
    assert x.abs_sum(axis=0).fractions().tolist() == [2**65] * 4
    assert (x @ x).fractions().tolist() == [[2**128] * 4] * 4
    assert (-x).min() == 2**63


@settings(max_examples=100, deadline=None)
@given(data=st.data(), shape=st.sampled_from([(), (4,), (2, 3)]), bits=st.integers(0, 80))
def test_rounding_is_floor_of_x_plus_a_half(data: st.DataObject, shape: tuple[int, ...], bits: int) -> None:
    x = data.draw(dyadics(shape))
    expected = [Fraction(math.floor(f * 2**bits + Fraction(1, 2)), 2**bits) for f in x.fractions().flat]
    rounded = Dyadic.round(x, bits)
    assert rounded.exp == bits
    assert list(rounded.fractions().flat) == expected
    assert rounded.shape == shape


@settings(max_examples=200, deadline=None)
@given(values=st.lists(finite_floats, min_size=1, max_size=4), bits=st.integers(0, 60))
def test_rounding_of_floats(values: list[float], bits: int) -> None:
    expected = [Fraction(math.floor(Fraction(x) * 2**bits + Fraction(1, 2)), 2**bits) for x in values]
    assert Dyadic.round(values, bits).fractions().tolist() == expected


def test_ties_go_up_on_both_sides_of_zero() -> None:
    assert Dyadic.round([-1.5, -0.5, 0.5, 1.5], 0).fractions().tolist() == [-1, 0, 1, 2]


@settings(max_examples=200, deadline=None)
@given(values=st.lists(finite_floats, max_size=4))
def test_floats_are_held_exactly(values: list[float]) -> None:
    exact = Dyadic.exact(values)
    assert exact.fractions().tolist() == [Fraction(x) for x in values]
    assert exact.to_float().tolist() == values


def test_floats_at_the_ends_of_the_range() -> None:
    largest, least = float(np.finfo(float).max), 5e-324
    values = [1e300, -largest, least, -3 * least, 2.2250738585072014e-308, 1e-320, 0.0, -0.0, 1.0]
    exact = Dyadic.exact(np.array(values).reshape(3, 3))
    assert exact.fractions().ravel().tolist() == [Fraction(x) for x in values]
    assert exact.to_float().ravel().tolist() == values
    assert exact.exp == 1074
    assert Dyadic.exact(0.1).fraction() == Fraction(0.1)
    assert Dyadic.exact([1, 2**62]).fractions().tolist() == [1, 2**62]


@settings(max_examples=200, deadline=None)
@given(num=st.integers(-(2**120), 2**120), exp=st.integers(0, 1300))
def test_to_float_is_the_nearest_float(num: int, exp: int) -> None:
    # Converting a Fraction is correctly rounded, subnormals included.
    assert Dyadic([num], exp).to_float()[0] == float(Fraction(num, 2**exp))


def test_to_float_never_turns_into_infinity() -> None:
    with pytest.raises(OverflowError):
        Dyadic([2**1024]).to_float()


@settings(max_examples=100, deadline=None)
@given(data=st.data(), shape=st.sampled_from([(), (4,), (2, 2)]))
def test_normalized_and_binary_places(data: st.DataObject, shape: tuple[int, ...]) -> None:
    x = data.draw(dyadics(shape))
    denominators = [f.denominator for f in x.fractions().flat]
    assert [2 ** int(p) for p in binary_places(x).flat] == denominators
    least = x.normalized()
    assert 2**least.exp == max(denominators)
    assert_values(least, x.fractions())
    assert least.equals(x)


def test_binary_places_at_the_edge_of_int64() -> None:
    x = Dyadic(np.array([-(2**63), 2**62, -1, 0, 12]), 65)
    assert x.num.dtype == np.int64
    assert binary_places(x).tolist() == [2, 3, 65, 0, 63]
    assert Dyadic([-(2**63)], 63).normalized().exp == 0
    assert Dyadic([0, 0], 9).normalized().exp == 0


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_equality_is_of_values(data: st.DataObject) -> None:
    x, y = data.draw(dyadics((2,))), data.draw(dyadics((2,)))
    assert x.equals(y) == (x.fractions().tolist() == y.fractions().tolist())
    assert x.equals(Dyadic(x.numerators(x.exp + 70), x.exp + 70))
    assert not x.equals(x[:1])


def test_indexing_and_joining() -> None:
    x = Dyadic(np.arange(6).reshape(2, 3), 1)
    assert x[1].fractions().tolist() == [Fraction(3, 2), 2, Fraction(5, 2)]
    assert x[::-1, 1:].fractions().tolist() == [[2, Fraction(5, 2)], [Fraction(1, 2), 1]]
    assert x[:, None].shape == (2, 1, 3)
    assert x[0, 1].fraction() == Fraction(1, 2)
    assert (len(x), x.ndim, x.T.shape) == (2, 2, (3, 2))
    joined = Dyadic.concatenate([x, Dyadic([[2**70, -(2**70), 1]], 3)])
    assert joined.fractions()[2].tolist() == [2**67, -(2**67), Fraction(1, 8)]
    assert joined[:2].equals(x)
    assert Dyadic.concatenate([x, x], axis=1).shape == (2, 6)


def test_instances_cannot_be_changed() -> None:
    source = np.array([1, 2, 3])
    x = Dyadic(source, 2)
    source[0] = 99
    with pytest.raises(ValueError, match="read-only"):
        x.num[0] = 5
    for name in ("exp", "num", "other"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(x, name, 0)
    _ = (x + x, x * x, x @ x, x.scaled(3), x.normalized())
    assert (x.num.tolist(), x.exp) == ([1, 2, 3], 2)
    huge = np.array([2**80, 1], dtype=object)
    y = Dyadic(huge)
    huge[0] = 0
    assert y.max() == 2**80
    with pytest.raises(TypeError):
        hash(x)


@pytest.mark.parametrize("num", [[[1, -2], [3, 4]], [2**70, -1], [], 5])
def test_copies_and_pickles(num: Any) -> None:
    x = Dyadic(num, 7)
    for again in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert again.equals(x)
        assert again.exp == 7
        assert not again.num.flags.writeable


@pytest.mark.parametrize("bad", [0.5, [0.5], [True], "1", [None], np.array([1.5]), [float("nan")]])
def test_numerators_must_be_integers(bad: Any) -> None:
    with pytest.raises(ParameterError, match="must be integers"):
        Dyadic(bad)
    with pytest.raises(ParameterError, match="must be integers"):
        Dyadic([1]) + bad


@pytest.mark.parametrize("exp", [-1, 1.0, True, "2", None])
def test_exponents_must_be_integers(exp: Any) -> None:
    with pytest.raises(ParameterError, match="exp must be an integer >= 0"):
        Dyadic([1], exp)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), [1.0, -float("inf")], "1", [True], [1j]])
def test_only_finite_floats_are_exact(bad: Any) -> None:
    with pytest.raises(ParameterError, match="values must be"):
        Dyadic.exact(bad)
    with pytest.raises(ParameterError, match="values must be"):
        Dyadic.round(bad, 4)


def test_shapes_and_exponents_that_do_not_fit() -> None:
    with pytest.raises(ParameterError, match="1 binary places"):
        Dyadic([1], 1).numerators(0)
    with pytest.raises(ParameterError, match="one entry expected"):
        Dyadic([1, 2]).fraction()
    with pytest.raises(ParameterError, match="do not fit"):
        Dyadic([[1, 2]]) @ Dyadic([[1, 2]])


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize <= 8, reason="no wider float on this platform")
def test_wider_floats_are_refused_instead_of_rounded() -> None:
    with pytest.raises(ParameterError, match="float64"):
        Dyadic.exact(np.array([1.0], dtype=np.longdouble))
