"""The deviations of Gaussian running sums: their proof, their predicted error, edit sensitivity itself."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters.edit.gaussian_laws import (
    calibrated_mu,
    flat_law,
    gaussian_rmse,
    growing_law,
    weight_sum,
    weights,
)
from trilift.counters.neighbours.edit import edit_neighbours
from trilift.lift.errors import ParameterError
from trilift.stream.gdp import ln_delta_bounds, ln_of

GRID = 0.1 * 1500 ** (8 / 11)


def exact_weight(t: int) -> float:
    flint.ctx.prec = 160
    return float(flint.arb(37) / 20 * flint.arb(t).sqrt() * flint.arb(t + 1).log())


@pytest.mark.parametrize("T", [1, 2, 3, 4])
def test_every_running_sum_has_edit_sensitivity_one(T: int) -> None:
    """By brute force, values 0, 1/2, 1 and BOT; all the signs in one vector agree only for 0 and 1."""
    letters = (0, Fraction(1, 2), 1, None)
    reached = set()
    for stream in product(letters, repeat=T):
        sums = np.cumsum([x or 0 for x in stream])
        for other in edit_neighbours(stream, alphabet=letters):
            difference = sums - np.cumsum([x or 0 for x in other])
            assert max(map(abs, difference)) <= 1
            reached |= {abs(d) for d in difference}
    assert 1 in reached  # the bound is met


@pytest.mark.parametrize("t", [1, 2, 3, 7, 1000, 2046, 2047, 2048, 5000, 10**6 + 7, 10**9, 2**51])
def test_weights_are_the_papers_from_below(t: int) -> None:
    weight = float(weights(np.array([t - 1]))[0])
    ratio = weight / exact_weight(t)
    assert 1 - 2.0**-25 <= ratio <= 1 + 2.0**-49
    if t < 2048:
        assert abs(ratio - 1) <= 2.0**-49  # t + 1 is a node of the table


def test_weights_grow_and_do_not_depend_on_the_batch() -> None:
    many = weights(np.arange(10**5))
    assert (np.diff(many) > 0).all()
    steps = np.array([3, 2047, 4095, 70000])
    assert (weights(steps) == many[steps]).all()


def test_weights_are_the_same_numbers_everywhere() -> None:
    found = [float(w).hex() for w in weights(np.array([0, 9, 9999, 10**12]))]
    assert found == GOLDEN


def test_the_sum_over_all_steps_is_below_one() -> None:
    """0.98984 as published; a factor of 1.83 instead of 1.85 would not do."""
    bound = weight_sum()
    count = 10**6
    t = np.arange(1, count + 1, dtype=np.float64)
    terms = 1 / (1.85**2 * t * np.log(t + 1) ** 2)
    rest = 1 / (1.85**2 * math.log(count + 1))  # a lower bound of the rest, by an integral
    low = math.fsum(terms) + rest * (1 - 1e-6)
    assert low - 1e-9 <= bound <= Fraction(98987, 100000)
    assert low == pytest.approx(0.98984, abs=5e-6)
    assert low * (1.85 / 1.83) ** 2 > 1


@given(
    st.fractions(min_value=Fraction(1, 10**4), max_value=10**4),
    st.fractions(min_value=Fraction(1, 100), max_value=100),
    st.integers(1, 10**9),
)
@settings(max_examples=60, deadline=None)
def test_the_laws_prove_their_mu(mu: Fraction, high: Fraction, horizon: int) -> None:
    growing, flat = growing_law(mu, high=high), flat_law(mu, high=high, horizon=horizon)
    assert Fraction(98, 100) * mu**2 <= growing.spent_mu_sq <= Fraction(98987, 100000) * mu**2
    assert horizon * high**2 / Fraction(flat.deviation) ** 2 == flat.spent_mu_sq <= mu**2
    assert flat.spent_mu_sq >= mu**2 * (1 - Fraction(1, 1 << 48))
    first = growing.deviations(np.arange(50)).tolist()
    spent = sum((high / Fraction(sd)) ** 2 for sd in first)
    known = sum(1 / Fraction(w) ** 2 for w in weights(np.arange(50)).tolist())
    assert spent <= known * mu**2 * (1 + Fraction(1, 1 << 50))


@given(st.floats(0.01, 500.0), st.floats(-400.0, -1.0))
@settings(max_examples=15, deadline=None)
def test_calibration_stays_within_delta(epsilon: float, log_delta: float) -> None:
    delta = Fraction(math.exp(log_delta))
    mu = calibrated_mu(epsilon, delta=delta)
    assert ln_delta_bounds(epsilon, mu=mu)[1] < ln_of(delta)[0]
    assert ln_delta_bounds(epsilon, mu=mu * (1 + Fraction(1, 1 << 30)))[0] > ln_of(delta)[1]


@pytest.mark.parametrize(
    ("epsilon", "mechanism", "wanted", "digits"),
    [
        (GRID, "growing", 325.97, 2),
        (150, "growing", 83.79, 2),
        (10, "flat", 50.0, 1),
        (10, "growing", 570.6, 1),
    ],
)
def test_reference_figures(epsilon: float, mechanism: str, wanted: float, digits: int) -> None:
    rmse = gaussian_rmse(epsilon, delta=1e-5, horizon=10**4, mechanism=mechanism, per_run=True)
    assert round(rmse, digits) == wanted


@pytest.mark.parametrize(("exponent", "wanted"), [(3, 133.0), (4, 570.6), (5, 2279.7), (6, 8713.5)])
def test_figure_1b(exponent: int, wanted: float) -> None:
    assert round(gaussian_rmse(10, delta=1e-5, horizon=10**exponent), 1) == wanted


def test_per_run_is_the_mean_of_runs() -> None:
    """4,000 runs of 40 steps: within five standard errors (6e-7), where the plain figure is not."""
    T, runs = 40, 4000
    law = growing_law(calibrated_mu(1, delta=1e-6), high=Fraction(1))
    noise = np.random.default_rng(4).standard_normal((runs, T)) * law.deviations(np.arange(T))
    single = np.sqrt((noise**2).mean(axis=1))
    error = single.std() / math.sqrt(runs)
    assert abs(single.mean() - gaussian_rmse(1, delta=1e-6, horizon=T, per_run=True)) < 5 * error
    assert abs(single.mean() - gaussian_rmse(1, delta=1e-6, horizon=T)) > 5 * error


@pytest.mark.parametrize(
    "options", [{"delta": 0}, {"delta": 1.5}, {"horizon": 0}, {"mechanism": "none"}, {"high": 0}], ids=str
)
def test_arguments_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        gaussian_rmse(1, **({"delta": 1e-5, "horizon": 10} | options))  # type: ignore[arg-type]


GOLDEN = ["0x1.484645f0ddbfdp+0", "0x1.c0e703129349cp+3", "0x1.a9fb9d105b99dp+10", "0x1.85fea6807132cp+25"]
