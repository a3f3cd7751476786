"""Calibration of Gaussian noise: figures known from elsewhere, other ways to compute them, and directions."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.errors import ParameterError
from trilift.stream import balls
from trilift.stream.gdp import (
    delta_upper,
    epsilon_of_rho,
    gaussian_sigma,
    ln_delta_bounds,
    ln_delta_float,
    ln_of,
    ln_sum,
    mu_for,
    rho_for,
)

EPSILONS = st.floats(math.log(1e-6), math.log(1e6)).map(lambda x: Fraction(math.exp(x)))
LN_DELTAS = st.floats(math.log(1e-5), math.log(1e6)).map(lambda x: -Fraction(math.exp(x)))


def ln(delta: object) -> Fraction:
    return ln_of(Fraction(str(delta)))[0]


def oracle(epsilon: Fraction, mu: Fraction, digits: int = 60) -> mpmath.mpf:
    """delta as the hockey-stick divergence of N(mu, 1) from N(0, 1), in its own arithmetic."""
    with mpmath.workdps(digits):
        e, m = (mpmath.mpf(x.numerator) / x.denominator for x in (epsilon, mu))
        start = e / m + m / 2  # where the densities' ratio is e^epsilon

        def excess(x):
            return mpmath.npdf(x, m) - mpmath.exp(e) * mpmath.npdf(x, 0)

        return mpmath.quad(excess, [start, start + 1, start + 4, start + 12, start + 30])


# -- known figures --------------------------------------------------------------------------------------


def test_standard_deviations_that_are_known() -> None:
    assert float(gaussian_sigma(Fraction("0.05"), ln_delta=ln("5e-6"))) == pytest.approx(61.3721, abs=5e-5)
    assert float(gaussian_sigma(75, ln_delta=ln("5e-6"))) == pytest.approx(0.115416, abs=5e-7)
    assert float(mu_for(10, ln_delta=ln("1e-5"))) == pytest.approx(2.00045, abs=5e-6)
    assert float(mu_for(150, ln_delta=ln("1e-5"))) == pytest.approx(13.6216, abs=5e-5)
    sigma = gaussian_sigma(Fraction(100, 9), ln_delta=Fraction("-120.534"))
    assert float(sigma) == pytest.approx(1.39014, abs=5e-6)


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [(Fraction(1), Fraction(1)), (Fraction(1, 10), Fraction(1, 4)), (Fraction(12), Fraction(3, 2))],
)
def test_the_curve_is_the_hockey_stick_divergence(epsilon, mu) -> None:
    """From the definition, by quadrature of the densities at 60 digits."""
    low, high = ln_delta_bounds(epsilon, mu=mu)
    assert low <= high
    with mpmath.workdps(60):
        expected = mpmath.log(oracle(epsilon, mu))
        assert abs(float(low) - expected) < 1e-14 * abs(expected)
        exact = [mpmath.mpf(end.numerator) / end.denominator for end in (low, high)]
        assert exact[0] - mpmath.mpf(10) ** -30 < expected < exact[1] + mpmath.mpf(10) ** -30


def test_dp_accounting_agrees() -> None:
    loss = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    for epsilon in (0.1, 1.0, 5.0):
        for delta in (1e-3, 1e-6, 1e-10):
            mu = float(mu_for(epsilon, ln_delta=ln_of(delta)[0]))
            theirs = loss.GaussianPrivacyLoss(1 / mu).get_delta_for_epsilon(epsilon)
            assert theirs == pytest.approx(delta, rel=1e-8)


# -- directions -----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(epsilon=EPSILONS, ln_delta=LN_DELTAS)
def test_mu_never_costs_more_than_asked_and_hardly_less(epsilon, ln_delta) -> None:
    mu = mu_for(epsilon, ln_delta=ln_delta)
    assert ln_delta_bounds(epsilon, mu=mu)[1] <= ln_delta + Fraction(1, 1 << 64) * max(1, abs(ln_delta))
    assert ln_delta_bounds(epsilon, mu=mu * (1 + Fraction(1, 1 << 46)))[0] > ln_delta
    assert mu.denominator.bit_length() + mu.numerator.bit_length() < 200
    assert gaussian_sigma(epsilon, ln_delta=ln_delta) * mu == 1


@settings(max_examples=40, deadline=None)
@given(epsilon=st.floats(1e-3, 30), mu=st.floats(0.05, 8))
def test_the_proof_of_mu_in_other_arithmetic(epsilon, mu) -> None:
    """mpmath's normal distribution at 80 digits puts the enclosure where it claims to be."""
    low, high = ln_delta_bounds(epsilon, mu=mu)
    with mpmath.workdps(200):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        delta = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        expected = mpmath.log(delta)
        assert mpmath.mpf(low.numerator) / low.denominator <= expected
        assert expected <= mpmath.mpf(high.numerator) / high.denominator
    assert high - low <= Fraction(1, 1 << 64) * max(1, abs(low), abs(high))


@settings(max_examples=80, deadline=None)
@given(epsilon=EPSILONS, ln_delta=LN_DELTAS)
def test_floats_are_as_near_as_they_say(epsilon, ln_delta) -> None:
    mu = float(mu_for(epsilon, ln_delta=ln_delta))
    expected = float(ln_delta_bounds(epsilon, mu=mu)[0])
    x = mu / 2 - float(epsilon) / mu
    slack = 2.0**-48 * (1 + abs(expected) + 1 / mu + float(epsilon) / mu**2 + mu * abs(x))
    assert abs(ln_delta_float(float(epsilon), mu) - expected) <= slack


def test_floats_where_nothing_is_left() -> None:
    assert ln_delta_float(1e6, 1e-6) < -1e20
    assert ln_delta_float(1e-3, 50.0) == pytest.approx(0.0, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(epsilon=EPSILONS, ln_delta=LN_DELTAS)
def test_rho_by_squares_alone(epsilon, ln_delta) -> None:
    """rho + 2 sqrt(rho L) <= epsilon is 4 rho L <= (epsilon - rho)^2: no root, no rounding."""
    large, rho = -ln_delta, rho_for(epsilon, ln_delta=ln_delta)
    assert 0 < rho < epsilon
    assert 4 * rho * large <= (epsilon - rho) ** 2
    above = rho * (1 + Fraction(1, 1 << 58))
    assert 4 * above * large > (epsilon - above) ** 2
    back = epsilon_of_rho(rho, ln_delta=ln_delta)
    assert 4 * rho * large <= (back - rho) ** 2
    assert back <= epsilon * (1 + Fraction(1, 1 << 50)) + Fraction(1, 1 << 60)


def test_zcdp_costs_more_than_the_curve_itself() -> None:
    for epsilon in (Fraction(1, 10), 1, 10):
        mu = mu_for(epsilon, ln_delta=ln("1e-6"))
        rho = rho_for(epsilon, ln_delta=ln("1e-6"))
        assert rho < mu**2 / 2


# -- logarithms -----------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(delta=st.fractions(min_value=Fraction(1, 10**30), max_value=10))
def test_logarithms_and_exponentials_enclose(delta) -> None:
    low, high = ln_of(delta)
    with mpmath.workdps(60):
        exact = mpmath.log(mpmath.mpf(delta.numerator) / delta.denominator)
        assert mpmath.mpf(low.numerator) / low.denominator <= exact + mpmath.mpf(10) ** -58
        assert exact <= mpmath.mpf(high.numerator) / high.denominator + mpmath.mpf(10) ** -58
    assert high - low <= Fraction(1, 1 << 64) * max(1, abs(low))
    assert delta <= delta_upper(high) <= delta * (1 + Fraction(1, 1 << 47))


@settings(max_examples=60, deadline=None)
@given(deltas=st.lists(st.fractions(min_value=Fraction(1, 10**12), max_value=1), min_size=1, max_size=6))
def test_sums_of_deltas_are_bounded_by_rationals(deltas) -> None:
    logs = [ln_of(delta) for delta in deltas]
    assert delta_upper(ln_sum([high for _, high in logs])[1]) >= sum(deltas)
    low, _ = ln_sum([low for low, _ in logs])
    assert delta_upper(low) <= sum(deltas) * (1 + Fraction(1, 1 << 47))
    total = sum((delta_upper(high) for _, high in logs), Fraction(0))
    assert sum(deltas) <= total <= sum(deltas) * (1 + Fraction(1, 1 << 46))


def test_sums_far_below_the_floats() -> None:
    low, high = ln_sum([-(10**6), -(10**6), Fraction(-(10**9))])
    assert low < high
    assert float(high + 10**6) == pytest.approx(math.log(2), rel=1e-9)
    tiny = delta_upper(-(10**5))
    assert 0 < tiny < Fraction(1, 10**43000)


@pytest.mark.parametrize(
    "call",
    [
        lambda: mu_for(1, ln_delta=Fraction(1, 10**5)),
        lambda: mu_for(1, ln_delta=0),
        lambda: mu_for(1, ln_delta=-(10**9)),
        lambda: mu_for(0, ln_delta=-1),
        lambda: mu_for(10**9, ln_delta=-1),
        lambda: mu_for("1", ln_delta=-1),
        lambda: mu_for(1, ln_delta=math.nan),
        lambda: ln_delta_bounds(1, mu=0),
        lambda: ln_delta_bounds(1, mu=1e9),
        lambda: ln_delta_float(1.0, math.inf),
        lambda: rho_for(-1, ln_delta=-1),
        lambda: epsilon_of_rho(0, ln_delta=-1),
        lambda: ln_of(0),
        lambda: ln_of(True),
        lambda: ln_sum([]),
        lambda: ln_sum([np.inf]),
        lambda: delta_upper(10**5),
    ],
)
def test_what_is_refused(call) -> None:
    with pytest.raises(ParameterError):
        call()


def test_an_undecided_comparison_is_no_proof() -> None:
    """A number that is exactly 0 is never told from 0: the answer must be the safe one."""
    assert not balls.decide(lambda: balls.ball(2).sqrt() ** 2 - balls.ball(2))
    assert balls.decide(lambda: balls.ball(Fraction(-1, 1 << 2000)))
    assert not balls.decide(lambda: balls.ball(Fraction(1, 1 << 2000)))


def test_a_width_that_cannot_be_had() -> None:
    with pytest.raises(ParameterError, match="could not be enclosed"):
        balls.narrow(lambda: balls.ball(0).log(), bits=10)


@pytest.mark.parametrize("epsilon", [4 * 10**6, 9999999, 10**7])
@pytest.mark.parametrize("ln_delta", [-1, Fraction(-13815, 1000), -(10**7)])
def test_the_largest_epsilons_are_calibrated_too(epsilon, ln_delta) -> None:
    """Their trial values of mu have a delta of e^-10^13 and less, of which balls know nothing."""
    mu = mu_for(epsilon, ln_delta=ln_delta)
    assert ln_delta_bounds(epsilon, mu=mu)[1] <= ln_delta
    above = mu * (1 + Fraction(1, 1 << 46))
    assert ln_delta_bounds(epsilon, mu=above)[0] > ln_delta
