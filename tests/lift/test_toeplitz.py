"""The Toeplitz square root: exact where it is summed, within the stated error where it is a series."""

import math
from fractions import Fraction

import numpy as np
import pytest
from trilift.lift import toeplitz
from trilift.lift.errors import ParameterError
from trilift.lift.toeplitz import (
    RELATIVE_ERROR,
    toeplitz_coefficients,
    toeplitz_cost,
    toeplitz_exact,
    toeplitz_stage,
)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 64])
def test_the_stage_is_exact_and_has_these_norms(n: int) -> None:
    stage = toeplitz_stage(n)
    assert stage.residual() == 0
    rows = list(stage.row_norms_sq().fractions())
    S, G, mean = toeplitz_exact(n)
    assert stage.sensitivity() == S
    assert max(rows) == G
    assert sum(rows) / n == mean
    cost = toeplitz_cost(n)
    assert (cost.sensitivity, cost.max_row_norm_sq, cost.mean_row_norm_sq) == tuple(map(float, (S, G, mean)))


def test_coefficients_are_those_of_the_root() -> None:
    r = toeplitz_coefficients(12)
    assert r[0] == 1
    for n in range(1, 12):  # the square of the series is 1 + x + x^2 + ...
        assert sum(r[k] * r[n - k] for k in range(n + 1)) == 1


@pytest.mark.parametrize("n", [200, 1024])
def test_the_series_agree_with_the_exact_numbers(n: int) -> None:
    S, G, _ = toeplitz_exact(n)
    assert 2 * n * toeplitz._central(n) == pytest.approx(float(S), rel=RELATIVE_ERROR)
    assert toeplitz._landau(n) == pytest.approx(float(G), rel=RELATIVE_ERROR)


def test_the_first_omitted_terms_are_tiny() -> None:
    """Two series with one term less differ from the full ones by the last terms: below 2^-60 at 1024."""
    x = 1.0 / (toeplitz.EXACT_UP_TO + 0.25) ** 2
    assert 671.0 * x**3 / 524288.0 < 2.0**-60
    assert 63433.0 * x**3 / 8257536.0 < 2.0**-60


def test_long_horizons_against_direct_sums() -> None:
    n = 10**6
    k = np.arange(1, n)
    r = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])
    cost = toeplitz_cost(n)
    assert cost.sensitivity == pytest.approx(math.fsum(r), rel=1e-11)
    assert cost.max_row_norm_sq == pytest.approx(math.fsum(r * r), rel=1e-11)
    assert cost.mean_row_norm_sq == pytest.approx(math.fsum(r * r * (n - np.arange(n))) / n, rel=1e-11)


def test_growth_of_both_norms() -> None:
    cost = toeplitz_cost(2**30)
    assert cost.gamma_max == pytest.approx(math.log(2**30) / math.pi + 1.0663, abs=1e-4)
    assert cost.gamma_mean < cost.gamma_max
    assert cost.sensitivity == pytest.approx(2 * math.sqrt(2**30 / math.pi), rel=1e-8)
    assert cost.max_se(0.5) == pytest.approx(8 * cost.max_row_norm_sq * cost.sensitivity**2)


@pytest.mark.parametrize("n", [0, 513, True, 2.0])
def test_refusals(n: object) -> None:
    with pytest.raises(ParameterError):
        toeplitz_stage(n)
    with pytest.raises(ParameterError):
        toeplitz_exact(1025)
    with pytest.raises(ParameterError):
        toeplitz_cost(0)


def test_coefficients_start() -> None:
    assert toeplitz_coefficients(3) == [1, Fraction(1, 2), Fraction(3, 8)]
