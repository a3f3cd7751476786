"""Exact integer arrays against Python integers, at the edges of int64 and of the limbs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift import integers
from trilift.lift.errors import ParameterError

EDGE = 2**63
EDGES = [
    0,
    1,
    -1,
    EDGE - 1,
    -EDGE,
    EDGE,
    -EDGE - 1,
    2**62,
    -(2**62),
    2**53,
    2**53 + 1,
    2**64,
    3**100,
    -(3**100),
]
entries = st.one_of(st.sampled_from(EDGES), st.integers(-9, 9), st.integers(-(2**80), 2**80))


def exact(values: Any, shape: tuple[int, ...]) -> Any:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out.reshape(shape)


def arrays(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    count = int(np.prod(shape))
    return st.lists(entries, min_size=count, max_size=count).map(lambda values: exact(values, shape))


def same(result: Any, expected: Any) -> bool:
    """Entries agree as Python integers, and the type is int64 unless an entry needs more."""
    assert isinstance(result, np.ndarray)
    assert result.dtype in (np.int64, object)
    flat, wanted = list(result.flat), list(np.asarray(expected, dtype=object).flat)
    return result.shape == np.shape(expected) and [int(x) for x in flat] == [int(x) for x in wanted]


@pytest.mark.parametrize("value", EDGES)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_as_integers_keeps_every_value(value: int, shape: tuple[int, ...]) -> None:
    array = integers.as_integers(exact([value], shape))
    assert same(array, exact([value], shape))
    assert integers.bit_width(array) == abs(value).bit_length()


def test_as_integers_takes_numpy_integers_of_all_widths() -> None:
    for dtype in (np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64):
        top = np.iinfo(dtype).max
        assert same(integers.as_integers(np.array([0, top], dtype=dtype)), [0, int(top)])
    assert integers.as_integers([[1, 2], [3, 4]]).dtype == np.int64
    assert integers.as_integers([]).shape == (0,)


@pytest.mark.parametrize(
    "bad",
    [1.0, [1, 2.5], "1", ["1"], None, True, [True], np.array([True]), np.array([1.0]), 1j, [[1], [None]]],
)
def test_as_integers_refuses(bad: Any) -> None:
    with pytest.raises(ParameterError, match="must be integers") as caught:
        integers.as_integers(bad)
    assert "\n" not in str(caught.value)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), shape=st.sampled_from([(), (3,), (2, 2), (0,)]), bits=st.integers(0, 70))
def test_sums_products_and_shifts(data: st.DataObject, shape: tuple[int, ...], bits: int) -> None:
    left, right = data.draw(arrays(shape)), data.draw(arrays(shape))
    a, b = integers.as_integers(left), integers.as_integers(right)
    assert same(integers.add(a, b), exact([x + y for x, y in zip(left.flat, right.flat, strict=True)], shape))
    difference = [x - y for x, y in zip(left.flat, right.flat, strict=True)]
    assert same(integers.add(a, b, sign=-1), exact(difference, shape))
    assert same(
        integers.multiply(a, b), exact([x * y for x, y in zip(left.flat, right.flat, strict=True)], shape)
    )
    assert same(integers.shift_left(a, bits), exact([x << bits for x in left.flat], shape))


def test_broadcasting() -> None:
    column, row = np.array([[EDGE - 1], [-EDGE]]), np.array([1, -1])
    assert same(integers.add(column, row), [[EDGE, EDGE - 2], [1 - EDGE, -EDGE - 1]])
    assert same(integers.multiply(column, row), [[EDGE - 1, 1 - EDGE], [-EDGE, EDGE]])


def python_product(left: Any, right: Any) -> Any:
    return np.dot(left.astype(object), right.astype(object))


@settings(max_examples=150, deadline=None)
@given(data=st.data(), rows=st.integers(1, 3), inner=st.integers(1, 5), columns=st.integers(1, 3))
def test_matrix_product(data: st.DataObject, rows: int, inner: int, columns: int) -> None:
    left, right = data.draw(arrays((rows, inner))), data.draw(arrays((inner, columns)))
    a, b = integers.as_integers(left), integers.as_integers(right)
    expected = python_product(left, right)
    assert same(integers.matmul(a, b), expected)
    assert same(integers.matmul(a[0], b), expected[0])
    assert same(integers.matmul(a, b[:, 0]), expected[:, 0])
    assert same(integers.matmul(a[0], b[:, 0]), expected[0, 0])


@pytest.mark.parametrize("inner", [1, 2, 3, 4, 7, 8, 31, 32, 1023, 1024, 4096])
def test_matrix_product_at_the_limb_edges(inner: int) -> None:
    # The largest limbs everywhere: a limb one bit too wide would lose the lowest bits of the sum.
    bits = (53 - inner.bit_length()) // 2
    for width in {bits - 1, bits, bits + 1, 2 * bits - 1, 2 * bits, 2 * bits + 1, 62, 63}:
        for value in (2**width - 1, -(2**width) + 1, -(2**width), 2**width):
            left = integers.as_integers(exact([value] * inner, (1, inner)))
            right = integers.as_integers(exact([2**bits - 1] * inner, (inner, 1)))
            assert same(integers.matmul(left, right), [[inner * value * (2**bits - 1)]])
            assert same(integers.matmul(left, left.T), [[inner * value * value]])


def test_matrix_product_of_random_widths() -> None:
    rng = np.random.default_rng(5)
    for width in (10, 24, 25, 26, 31, 32, 50, 62, 63):
        left = rng.integers(-(2 ** (width - 1)), 2 ** (width - 1), size=(7, 40))
        right = rng.integers(-(2 ** (width - 1)), 2 ** (width - 1), size=(40, 5))
        assert same(integers.matmul(left, right), python_product(left, right))


def test_matrix_product_of_empty_and_ill_fitting_matrices() -> None:
    assert same(
        integers.matmul(np.zeros((2, 0), np.int64), np.zeros((0, 3), np.int64)), np.zeros((2, 3), int)
    )
    with pytest.raises(ParameterError, match="do not fit"):
        integers.matmul(np.zeros((2, 3), np.int64), np.zeros((2, 3), np.int64))


def test_results_do_not_share_memory_with_read_only_inputs() -> None:
    array = np.array([1, 2, 3])
    array.flags.writeable = False
    for result in (
        integers.add(array, array),
        integers.multiply(array, array),
        integers.matmul(array, array),
    ):
        assert not np.shares_memory(result, array)
    assert array.tolist() == [1, 2, 3]
