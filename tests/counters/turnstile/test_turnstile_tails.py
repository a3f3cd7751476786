"""Tails of Laplace sums: never below the truth, close to it for many terms, also for the bases' own rows."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters.edit.tails import grouped_quantiles, laplace_quantile
from trilift.counters.turnstile.bases import make_base, normal_upper
from trilift.counters.turnstile.budget import make_budget
from trilift.counters.turnstile.tails import _table, ln_normal_tail, mixture_quantiles
from trilift.lift.rows import row_entries

coefficients = st.lists(st.floats(0.01, 3.0), min_size=1, max_size=40)


@given(coefficients, st.sampled_from([0.05, 0.05 / 18, 1e-4]), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_bounds_lie_above_the_quantile(values: list[float], failure: float, groups: int) -> None:
    """The quantile by inversion of the characteristic function, of the very coefficients."""
    a = np.array(values)
    parts = np.array_split(a, groups)
    squares = np.array([[float((part**2).sum())] for part in parts])
    largest = np.array([float(part.max(initial=0.1)) for part in parts])
    bound = float(mixture_quantiles(squares, largest, ln_failure=math.log(failure))[0])
    assert bound >= laplace_quantile(a, math.log(failure)) * (1 - 1e-5)


def test_bounds_are_tight_for_many_terms() -> None:
    for count, within in ((100, 1.08), (400, 1.03)):
        a = np.abs(np.random.default_rng(1).standard_normal(count)) + 0.5
        for failure in (0.05, 0.05 / 18):
            exact = laplace_quantile(a, math.log(failure))
            columns, tops = np.array([[float((a**2).sum())]]), np.array([float(a.max())])
            bound = float(mixture_quantiles(columns, tops, ln_failure=math.log(failure))[0])
            chernoff = float(grouped_quantiles(columns, tops, np.array([math.log(failure)]))[0])
            assert exact * (1 - 1e-5) <= bound <= exact * within
            assert bound < 0.9 * chernoff


def test_single_variates_are_bounded() -> None:
    """Pr[X >= x] = e^-x / 2, the worst case for a normal mixture."""
    for failure in (0.05, 1e-3):
        bound = float(mixture_quantiles(np.ones((1, 1)), np.ones(1), ln_failure=math.log(failure))[0])
        assert bound >= -math.log(2 * failure)
    assert mixture_quantiles(np.zeros((2, 3)), np.ones(2), ln_failure=-3.0).tolist() == [0.0] * 3


def test_the_table_is_monotone_and_is_the_maximum() -> None:
    t, ln_a = _table()
    assert np.all(np.diff(t) > 0)
    assert np.all(np.diff(ln_a) < 0)
    u = np.geomspace(1e-3, 1e5, 2000)
    logs = np.array([ln_normal_tail(float(x)) for x in u**-0.5])
    for k in range(0, len(t), 500):
        assert np.all(logs - t[k] * u <= ln_a[k] + 1e-9)
    assert math.isclose(ln_normal_tail(29.9), ln_normal_tail(30.1), rel_tol=0.02)
    assert math.isclose(ln_normal_tail(1.0), math.log(NormalDist().cdf(-1.0)), rel_tol=1e-12)


@pytest.mark.parametrize("kind", ["chain", "tree"])
def test_bases_bound_their_own_noise(kind: str) -> None:
    """Against the inversion for each step's own row; and no more than half above that."""
    base: Any = make_base(kind, budget=make_budget(1), ticks=200)
    scales = [float(scale) for scale in base.ledger.scales]
    ticks = np.array([0, 1, 7, 63, 64, 130, 199])
    for failure in (0.05, 0.05 / 18):
        bounds = base.upper(ticks, failure=failure)
        for tick, bound in zip(ticks.tolist(), bounds.tolist(), strict=True):
            row = row_entries(base.chain, tick)
            a = np.concatenate(
                [s * block for s, level in zip(scales, row, strict=True) for block in level.values()]
            )
            exact = laplace_quantile(a, math.log(failure))
            assert exact * (1 - 1e-5) <= bound <= 1.5 * exact


def test_gaussian_bases_use_the_quantile() -> None:
    base = make_base("tree", budget=make_budget(rho=1), ticks=20)
    ticks = np.arange(20)
    assert np.allclose(base.upper(ticks, failure=0.05), 1.6448536 * np.sqrt(base.variance(ticks)), rtol=1e-6)
    for failure in (0.3, 1e-3, 1e-15, 1e-300):
        assert math.isclose(math.log(failure), ln_normal_tail(normal_upper(failure)), rel_tol=1e-5)
