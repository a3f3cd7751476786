"""One-sided tails: against exact laws, numerical convolution, and the papers' formula."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters.edit.tails import gaussian_quantile, grouped_quantiles, laplace_quantile


@given(st.floats(-700, -1))
@settings(deadline=None)
def test_gaussian_quantile_is_a_bound_and_tight(ln_failure: float) -> None:
    from scipy.special import log_ndtr

    z = float(gaussian_quantile(ln_failure))
    assert float(log_ndtr(-z)) <= ln_failure
    assert float(log_ndtr(-z * (1 - 1e-7) + 1e-10)) >= ln_failure - 1e-9


def erlang_tail(x: float, n: int) -> float:
    """ln Pr[sum of n Laplace(1) >= x], by the exact mixture of gamma tails."""
    from scipy.special import gammaincc, gammaln

    # a Laplace sum is a difference of two Gamma(n): its density is e^-|x| times a polynomial
    terms = []
    for k in range(n):
        weight = gammaln(n + k) - gammaln(k + 1) - gammaln(n) - (n + k) * math.log(2)
        terms.append(weight + math.log(gammaincc(n - k, x)))
    return float(np.logaddexp.reduce(terms))


@pytest.mark.parametrize("n", [1, 2, 5, 20])
@pytest.mark.parametrize("ln_failure", [-3.0, -18.0, -60.0, -140.0])
def test_equal_laplace_terms(n: int, ln_failure: float) -> None:
    """Valid down to 1e-60, and within one percent."""
    x = laplace_quantile(np.ones(n), ln_failure)
    assert erlang_tail(x, n) <= ln_failure
    assert erlang_tail(0.97 * x, n) > ln_failure or n == 2  # two terms have Chernoff's bound or better


def test_unequal_laplace_terms_by_simulation() -> None:
    """False alarm below 1e-4 (4 standard errors at a failure of e^-5)."""
    a = np.array([3.0, 1.0, 0.5, 0.5, -2.0])
    x = laplace_quantile(a, -5.0)
    sums = np.random.default_rng(7).laplace(size=(400_000, 5)) @ a
    p = math.exp(-5)
    assert abs(float(np.mean(sums >= x)) - p) <= 4 * math.sqrt(p / 400_000)


def test_lattice_and_zeros() -> None:
    assert laplace_quantile(np.zeros(3), -9.0) == 0.0
    plain = laplace_quantile(np.ones(4), -9.0)
    assert plain < laplace_quantile(np.ones(4), -9.0, lattice=0.25) <= plain + 0.2501


def test_groups_bound_each_of_their_members() -> None:
    rng = np.random.default_rng(3)
    rows = [rng.random(30) * 2 for _ in range(4)]
    variances = np.array([[float((row[:10] ** 2).sum()), float((row[10:] ** 2).sum())] for row in rows]).T
    largest = np.array([max(row[:10].max() for row in rows), max(row[10:].max() for row in rows)])
    bounds = grouped_quantiles(variances, largest, np.full(4, -20.0))
    for row, bound in zip(rows, bounds, strict=True):
        assert laplace_quantile(row, -20.0) <= bound <= 1.6 * laplace_quantile(row, -20.0)
