"""Bounds of second moments: against the notes' numbers, exact enumeration, and laws that they must cover."""

import itertools
import math

import numpy as np
import pytest
from trilift.counters.turnstile.moment_bounds import (
    _ln_sketch_failure,
    chebyshev_interval,
    mean_interval,
    median_failure,
    row_plan,
    row_share,
    square_tails,
    table_shape,
)
from trilift.lift.errors import ParameterError


def test_published_numbers() -> None:
    """m = 375, 430 at alpha = 1/2; medians of 29 and 35 rows that fail with 0.1125."""
    plans = [row_plan(10**k, failure=0.01, accuracy=0.5) for k in (4, 5)]
    assert [plan.rows for plan in plans] == [375, 430]
    assert all(plan.coefficients == 2 * plan.moment and plan.moment % 2 == 0 for plan in plans)
    assert 10**4 * median_failure(29, 0.1125) == pytest.approx(9.6e-4, rel=0.01)
    assert 10**5 * median_failure(35, 0.1125) == pytest.approx(5.6e-4, rel=0.01)
    assert table_shape("gaussian", reads=10**5, failure=0.01, accuracy=0.5) == (35, 128)


def test_fewer_independent_signs_would_prove_less() -> None:
    """Two moments less, and the failure is no longer a third of what is allowed: the least one is taken."""
    for reads in (100, 10**4, 10**6):
        plan = row_plan(reads, failure=0.01, accuracy=0.5)
        assert _ln_sketch_failure(plan.rows, 0.5, plan.moment) <= plan.ln_failure
        assert _ln_sketch_failure(plan.rows, 0.5, plan.moment - 2) > plan.ln_failure


@pytest.mark.parametrize("frequencies", [(1,), (1, 1), (3, -1, 2), (1, 1, 1, 1, 1)])
@pytest.mark.parametrize("moment", [2, 4])
def test_moment_bound_by_enumeration(frequencies: tuple[int, ...], moment: int) -> None:
    """Two rows, all sign patterns: E X^q / alpha^q lies below the bound, for alpha = 0.9."""
    f2 = sum(x * x for x in frequencies)
    signs = list(itertools.product((-1, 1), repeat=len(frequencies)))
    squares = [sum(s * x for s, x in zip(pattern, frequencies, strict=True)) ** 2 / f2 for pattern in signs]
    deviations = [((a + b) / 2 - 1) ** moment for a in squares for b in squares]
    exact = sum(deviations) / len(deviations) / 0.9**moment
    assert exact <= math.exp(_ln_sketch_failure(2, 0.9, moment))


def test_product_bound_is_khintchine() -> None:
    """t^(2p) delta = (2p - 1)!! for some p: normal tails bound it from below, and it is not far off."""
    plan = row_plan(10**4, failure=0.01, accuracy=0.5)
    normal = math.sqrt(2 * (math.log(2) - plan.ln_failure))
    assert 0.9 * normal < plan.product < 1.15 * normal


def test_given_rows_choose_the_accuracy() -> None:
    plan = row_plan(10**4, failure=0.01, accuracy=0.9, rows=1199)
    assert plan.accuracy == pytest.approx(0.25, abs=0.001)
    with pytest.raises(ParameterError):
        row_plan(10**4, failure=0.01, accuracy=0.5, rows=100)


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_square_tails_cover(law: str) -> None:
    """Failure 0.02, 2000 means of 40 squares: at most 70 outside (binomial tail below 1e-5)."""
    rng = np.random.default_rng(5)
    noise = rng.normal(0, 100, (2000, 40)) if law == "normal" else rng.laplace(0, 100 / 2**0.5, (2000, 40))
    fourth, cut = None, None
    if law == "laplace":
        fourth = np.array([6.0 * 100**4])
        cut = np.array([100 / 2**0.5 * math.log(6 * 40 / 0.02 / 2)])
    v = np.array([100.0**2])
    down, up = square_tails(v, rows=40, ln_failure=math.log(0.02), fourth=fourth, cut=cut)
    means = (np.floor(noise + 0.5) ** 2).mean(axis=1)
    assert np.count_nonzero((means < v - down) | (means > v + up)) <= 70
    assert up[0] < 4 * v[0]  # not vacuous
    assert np.count_nonzero((means < v - down / 4) | (means > v + up / 4)) > 70  # a quarter is too little


def test_intervals_invert_their_inequalities() -> None:
    plan = row_plan(100, failure=0.01, accuracy=0.5)
    v, down, up = (np.array([x]) for x in (50.0, 20.0, 30.0))
    for true in (0.0, 1.0, 100.0, 1e6):
        c = 2 * plan.product * math.sqrt((50 + 30) / plan.rows)
        most = np.array([true * 1.5 + c * math.sqrt(true) + 30])
        least = np.array([true * 0.5 - c * math.sqrt(true) - 20])
        assert mean_interval(most, v, down, up, plan=plan)[0][0] == pytest.approx(true, rel=1e-6, abs=1e-6)
        assert mean_interval(least, v, down, up, plan=plan)[1][0] >= true * (1 - 1e-9)
        if true > 100:
            assert mean_interval(least, v, down, up, plan=plan)[1][0] == pytest.approx(true, rel=1e-6)


def test_chebyshev_interval_inverts() -> None:
    a, p, w = 2 / (64 * 0.1), 0.1, 64
    v, n = np.array([30.0]), np.array([2000.0])
    for true in (0.0, 5.0, 1e3, 1e8):
        off = math.sqrt(a * true * true + 4 * 30 / p * true + w * 2000 / p)
        low, _ = chebyshev_interval(np.array([true + off]), v, n, buckets=w, share=p)
        _, high = chebyshev_interval(np.array([true - off]), v, n, buckets=w, share=p)
        assert low[0] == pytest.approx(true, rel=1e-6, abs=1e-3)
        assert high[0] >= true * (1 - 1e-9)
    low, high = chebyshev_interval(np.array([-1e9]), v, n, buckets=w, share=p)
    assert low[0] == 0.0
    assert np.isfinite(high[0])


def test_shares_are_the_largest() -> None:
    share = row_share(29, reads=10**4, failure=0.01)
    assert 0.1125 < share < 0.2
    assert 10**4 * median_failure(29, share) <= 0.01 < 10**4 * median_failure(29, share * 1.001)


def test_laplace_tables_have_fewer_rows() -> None:
    rows, buckets = table_shape("laplace", reads=10**4, failure=0.01, accuracy=0.5)
    assert rows < 29
    share = row_share(rows, reads=10**4, failure=0.01)
    assert 2 / (buckets * share) <= 0.25
