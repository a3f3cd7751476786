"""The dyadic Toeplitz square root: its shape, its norms, and the other factor, against definitions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.errors import ParameterError, StateError
from trilift.lift.toeplitz import toeplitz_coefficients, toeplitz_cost
from trilift.stream.toeplitz_factor import (
    MAX_SIZE,
    ROOT_PLACES,
    check_shape,
    left_exact,
    left_factor,
    left_floats,
    left_row_norms_sq,
    root_norm_sq,
    toeplitz_root,
)


def root(n: int) -> list[Fraction]:
    return [Fraction(int(c), 1 << ROOT_PLACES) for c in toeplitz_root(n)]


def lower(column: list[Fraction]) -> list[list[Fraction]]:
    n = len(column)
    return [[column[i - j] if i >= j else Fraction(0) for j in range(n)] for i in range(n)]


def convolved(left: list[Fraction], right: list[Fraction]) -> list[Fraction]:
    return [sum((left[j] * right[k - j] for j in range(k + 1)), Fraction(0)) for k in range(len(left))]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 20])
def test_the_factors_multiply_to_prefix_sums_exactly(n: int) -> None:
    L, R = lower(left_exact(n)), lower(root(n))
    product = [[sum(L[i][k] * R[k][j] for k in range(n)) for j in range(n)] for i in range(n)]
    assert product == [[Fraction(int(j <= i)) for j in range(n)] for i in range(n)]


def test_the_product_is_exact_at_the_largest_exact_size_and_not_without_correction() -> None:
    n = 200
    assert convolved(left_exact(n), root(n)) == [1] * n
    assert convolved(root(n), root(n)) != [1] * n  # R~ R~ is not T: L has to differ from R~


def test_decrements_are_those_of_the_square_root_rounded_once() -> None:
    n = 1000
    exact = toeplitz_coefficients(n)
    column = toeplitz_root(n).tolist()
    assert column[0] == 1 << ROOT_PLACES
    for k in range(n - 1):
        wanted = (exact[k] - exact[k + 1]) * (1 << ROOT_PLACES)
        assert abs(column[k] - column[k + 1] - wanted) <= Fraction(1, 2) + Fraction(1, 1 << 60)


def test_shape_at_the_largest_size() -> None:
    column = toeplitz_root(MAX_SIZE)
    steps = column[:-1] - column[1:]
    assert column.min() > 1 << 20
    assert (steps >= 0).all()
    assert (np.diff(steps) <= 0).all()


def test_entries_do_not_depend_on_the_size() -> None:
    assert (toeplitz_root(3000)[:77] == toeplitz_root(77)).all()


@pytest.mark.parametrize(
    "change", [(0, 1), (5, -(10**8)), (9, 10**9), (9, -(10**10))], ids=["unit", "convex", "order", "sign"]
)
def test_a_column_of_another_shape_is_refused(change: tuple[int, int]) -> None:
    column = toeplitz_root(10).copy()
    check_shape(column)
    column[change[0]] += change[1]
    with pytest.raises(StateError):
        check_shape(column)


@pytest.mark.parametrize("n", [4, 8, 60])
def test_inner_products_of_columns_are_positive_and_fall_with_distance(n: int) -> None:
    R = np.array(lower(root(n)), dtype=object)
    gram = R.T @ R
    for j in range(n):
        for i in range(j + 1):
            assert gram[i, j] > 0
            if i:
                assert gram[i, j] >= gram[i - 1, j]  # further apart, same second column
            if j + 1 < n:
                assert gram[i, j] >= gram[i, j + 1]
    assert max(gram[i, i] for i in range(n)) == gram[0, 0] == root_norm_sq(n)


def test_columns_differ_by_less_than_their_norm() -> None:
    n = 40
    R = np.array(lower(root(n)), dtype=object)
    for m in range(n - 1):
        difference = R[:, m + 1] - R[:, m]
        assert difference @ difference <= R[:, m] @ R[:, m]


@pytest.mark.parametrize(("n", "loss"), [(10, 1e-8), (1000, 3e-8), (10**4, 4e-7), (10**5, 2e-6)])
def test_norms_are_those_of_the_square_root(n: int, loss: float) -> None:
    cost = toeplitz_cost(n)
    assert float(root_norm_sq(n)) == pytest.approx(cost.l2_sensitivity_sq, rel=loss)
    if n <= 10**4:
        rows = left_row_norms_sq(n)
        assert rows[-1] == pytest.approx(cost.max_row_norm_sq, rel=loss)
        assert rows.mean() == pytest.approx(cost.mean_row_norm_sq, rel=loss)
        product = float(root_norm_sq(n)) * rows[-1]
        assert product == pytest.approx(cost.l2_sensitivity_sq * cost.max_row_norm_sq, rel=1e-10)


@pytest.mark.parametrize("n", [10**3, 10**4, 10**5])
def test_the_published_constant(n: int) -> None:
    """S_n = ln(n)/pi + 1.0663 + o(1) (Henzinger, Kalinin, Upadhyay)."""
    assert float(root_norm_sq(n)) == pytest.approx(math.log(n) / math.pi + 1.0663, abs=2e-4)


@pytest.mark.parametrize("bits", [64, 96, 200])
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_the_left_factor_is_enclosed(n: int, bits: int) -> None:
    factor, exact = left_factor(n, bits=bits), left_exact(n)
    g = [Fraction(x, 1 << bits) for x in factor.numerators]
    f = [b - a for a, b in zip([Fraction(0), *root(n)[:-1]], root(n), strict=True)]
    e = [Fraction(int(k == 0)) - c for k, c in enumerate(convolved(f, g))]
    assert sum(map(abs, e)) == factor.residual
    assert factor.residual <= Fraction(4 * n, 1 << bits)
    largest = max(map(abs, exact))
    assert all(abs(a - b) <= factor.residual * largest for a, b in zip(exact, g, strict=True))


@pytest.mark.parametrize("n", [2, 3, 7, 33])
def test_with_enough_bits_the_left_factor_is_exact(n: int) -> None:
    factor = left_factor(n, bits=max(64, ROOT_PLACES * (n - 1)))
    assert factor.residual == 0
    assert [Fraction(x, 1 << factor.bits) for x in factor.numerators] == left_exact(n)


@given(
    st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=40),
    st.sampled_from([64, 96]),
    st.integers(0, 10),
)
@settings(max_examples=60, deadline=None)
def test_applying_it_stays_within_its_bound(z: list[int], bits: int, spare: int) -> None:
    factor = left_factor(len(z) + spare, bits=bits)
    values, bound = factor.apply(z)
    exact = convolved(left_exact(len(z)), [Fraction(x) for x in z])
    worst = max(abs(v - x * (1 << bits)) for v, x in zip(values, exact, strict=True))
    assert worst <= bound
    assert bound <= 2 + (4 * len(z) + 4 * spare) * 3 * max(map(abs, exact))  # and it is not a vacuous one


def test_floats_are_nearest_up_to_the_stated_error() -> None:
    exact, floats = left_exact(300), left_floats(300)
    for a, b in zip(exact, floats.tolist(), strict=True):
        assert abs(a - Fraction(b)) <= abs(a) / (1 << 52) + Fraction(1, 1 << 70)


@pytest.mark.parametrize("size", [0, -1, MAX_SIZE + 1, 2.0, True])
def test_sizes_out_of_range_are_refused(size: object) -> None:
    for function in (toeplitz_root, root_norm_sq, left_floats):
        with pytest.raises(ParameterError):
            function(size)  # type: ignore[arg-type]


def test_more_inputs_than_coefficients_and_too_few_bits_are_refused() -> None:
    with pytest.raises(ParameterError):
        left_factor(3, bits=64).apply([1, 2, 3, 4])
    with pytest.raises(ParameterError):
        left_factor(3, bits=63)
