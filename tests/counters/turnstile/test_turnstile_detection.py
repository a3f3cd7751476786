"""Thresholds, the means that they detect, and how many groups and copies intervals need."""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from trilift.counters.turnstile.blueprint import Common, check_common
from trilift.counters.turnstile.detection import (
    copies_failure,
    detected_mean,
    divergence,
    group_failure,
    least_groups,
    threshold_of,
)
from trilift.counters.turnstile.general import (
    SCATTER,
    binomial_upper,
    default_maps,
    map_tail,
    signed_mean,
    signed_rates,
)
from trilift.counters.turnstile.grouped import default_groups
from trilift.counters.turnstile.minhash import default_copies, level_count, tail_rates
from trilift.lift.errors import ParameterError


def test_integer_thresholds_never_fire_below_the_real_one() -> None:
    """floor(N + 1/2) > tau' only if N >= tau: tried on a grid of noises."""
    for tau in np.linspace(0.0, 7.0, 141):
        limit = int(threshold_of(np.array([tau]))[0])
        noise = np.arange(-2.0, 9.0, 1 / 64)
        fires = np.floor(noise + 0.5) > limit
        assert np.all(noise[fires] >= tau)
        assert np.array_equal(fires, noise >= limit + 0.5)
        assert limit < tau + 0.5


def test_a_real_threshold_would_fire_below_itself() -> None:
    """The control: floor(N + 1/2) > tau fires at N = 5.5 for tau = 5.9."""
    noise = np.arange(-2.0, 9.0, 1 / 64)
    assert noise[np.floor(noise + 0.5) > 5.9].min() < 5.9


@pytest.mark.parametrize("level", [0.0, 0.5, 7.25, 100.0, 1e6])
def test_detected_mean_solves_its_equation(level: float) -> None:
    mu = float(detected_mean(np.array([level]))[0])
    assert math.isclose(mu - math.sqrt(19 * mu), level, abs_tol=1e-6 * (1 + level))
    mean = float(signed_mean(np.array([level]))[0])
    assert math.isclose(mean - math.sqrt(19 * mean), SCATTER * (level + 1) ** 2, rel_tol=1e-9)
    items = SCATTER * (level + 1) ** 2
    assert math.isclose((level + 1) * math.sqrt(2 / (math.pi * items)), 0.05)


def test_numbers_of_groups() -> None:
    """The rule of the groups: what is printed for T = 1000, 10^4, 10^5 and for signed groups."""
    plain = {"failure": 0.01, "high": 0.1125, "low": 0.1}
    assert [default_groups(t, **plain) for t in (1000, 10_000, 16_384, 100_000)] == [25, 29, 31, 35]
    signed = {"failure": 0.01, **signed_rates(0.05)}
    assert [default_groups(t, **signed) for t in (10_000, 100_000)] == [39, 47]
    # 2 ceil(log2 T) + 1 would not do everywhere
    assert round(1000 * group_failure(21), 3) == 0.030
    assert round(16_384 * group_failure(29), 4) == 0.0115
    assert [round(t * group_failure(g), 4) for t, g in ((10**4, 29), (10**5, 35))] == [0.0070, 0.0043]
    for reads in (1, 17, 1000, 12_345):
        groups = least_groups(reads, failure=0.01)
        assert reads * group_failure(groups) <= 0.01
        assert groups == 3 or reads * group_failure(groups - 2) > 0.01
    with pytest.raises(ParameterError):
        default_groups(10**9, failure=1e-9, high=0.49, low=0.49)


def test_chernoff_is_above_the_binomial() -> None:
    for groups in (3, 11, 29, 35):
        exact = binomial_upper(groups, 0.1125) + binomial_upper(groups, 0.1)
        assert math.isclose(copies_failure(groups), exact, rel_tol=1e-9)
        assert group_failure(groups) > exact
    assert divergence(1.0, 0.5) == math.log(2)


def test_numbers_of_copies() -> None:
    rates = {"failure": 0.01, "high": 0.1125, "low": 0.1}
    assert [default_copies(t, **rates) for t in (10_000, 100_000)] == [29, 35]
    found = [10_000 * copies_failure(29), 100_000 * copies_failure(35)]
    assert [f"{value:.1e}" for value in found] == ["1.2e-03", "6.4e-04"]
    assert default_copies(2, **rates) * 1 >= 3


def test_quantiles_of_domain_reduction() -> None:
    for maps, reads, depth in ((29, 10**4, 14), (35, 10**5, 17)):
        tail = map_tail(maps, reads=reads, depth=depth, failure=0.01)
        assert round(-NormalDist().inv_cdf(tail / 2), 2) == 2.49
        assert binomial_upper(maps, tail + 0.05) <= 0.01 / reads / 2 ** (depth + 1)
    common = check_common(horizon=1000, every=1, universe=16, failure=Fraction(1, 100))
    assert default_maps(common) >= 21


def test_levels_reach_the_largest_count() -> None:
    for most, wanted in ((1, 2), (2, 2), (3, 3), (4, 3), (5, 4), (10**4, 15), (10**5, 18)):
        assert level_count(Common(10**6, 1, most, Fraction(1, 100))) == wanted
        assert 2 ** (wanted - 1) >= most


def test_weak_and_strong_rates() -> None:
    assert tail_rates("weak", counters=18, reads=100, failure=0.01) == (0.05 / 18, 0.05, 0.05)
    tail, hidden, rate = tail_rates("strong", counters=630, reads=100, failure=0.01)
    assert tail == hidden
    assert rate == 0.0
    assert math.isclose(2 * 630 * 100 * tail, 0.005)
