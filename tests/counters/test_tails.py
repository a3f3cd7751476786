"""Tails of weighted sums of Laplace variates against closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters.tails import chernoff_half_width, half_width

FAILURES = (0.9, 0.5, 0.1, 0.05, 1e-3, 1e-6)


def exact_tail(scales: list[float], x: float) -> float:
    """Pr[|sum a_i Lap(1)| > x] for different a_i, by partial fractions of the characteristic function."""
    squares = [a * a for a in scales]
    return sum(
        math.exp(-x / a) * math.prod(s / (s - t) for t in squares if t != s)
        for a, s in zip(scales, squares, strict=True)
    )


def equal_tail(count: int, x: float) -> float:
    """The same for ``count`` variates of scale 1: the difference of two Gamma(count) variates."""
    # its density is e^-|y| times a polynomial; the tail of 2 and 3 terms in closed form
    return {2: (1 + x / 2) * math.exp(-x), 3: (1 + 5 * x / 8 + x * x / 8) * math.exp(-x)}[count]


@pytest.mark.parametrize("failure", [*FAILURES, 1e-12, 1e-300])
def test_one_variate_is_exact(failure: float) -> None:
    for coefficients in ([3.0], [0.0, -3.0, 0.0]):
        width = half_width(np.array(coefficients), failure)
        assert width == pytest.approx(-3 * math.log(failure), rel=1e-9)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("failure", FAILURES)
def test_equal_variates(count: int, failure: float) -> None:
    width = half_width(np.full(count, -2.0), failure) / 2
    assert equal_tail(count, width) == pytest.approx(failure, rel=1e-4, abs=2e-9)


scales_ = st.lists(st.integers(1, 60), min_size=2, max_size=5, unique=True)


@settings(max_examples=60, deadline=None)
@given(scales_, st.sampled_from(FAILURES))
def test_different_variates(scales: list[int], failure: float) -> None:
    coefficients = [float(a) for a in scales]
    width = half_width(np.array(coefficients), failure)
    assert exact_tail(coefficients, width) == pytest.approx(failure, rel=1e-3, abs=1e-8)


@settings(max_examples=60, deadline=None)
@given(scales_, st.floats(1e-12, 0.9))
def test_chernoff_is_an_upper_bound(scales: list[int], failure: float) -> None:
    coefficients = [float(a) for a in scales]
    bound = chernoff_half_width(np.array(coefficients), failure)
    assert exact_tail(coefficients, bound) <= failure * (1 + 1e-9) + 1e-12
    assert half_width(np.array(coefficients), failure) <= bound * (1 + 1e-9)
    assert exact_tail(coefficients, bound) >= failure * 1e-2  # and no absurd one


def test_many_variates_are_nearly_normal() -> None:
    """1000 equal terms: kurtosis 3.003, so the 5 % point is that of the normal law within 0.1 %."""
    width = half_width(np.ones(1000), 0.05)
    assert width == pytest.approx(1.959964 * math.sqrt(2000), rel=1e-3)


def test_very_different_variates() -> None:
    """A dominating term among dust: the tail is the single term's, wherever the dust's scale lies."""
    for dust in (1e-3, 1e-8, 1e-200):
        for failure in (0.5, 1e-5):
            width = half_width(np.array([1.0, dust, dust / 2]), failure)
            assert width == pytest.approx(-math.log(failure), rel=2e-5)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=8))
def test_wider_for_more_confidence_and_proportional_to_scale(coefficients: list[float]) -> None:
    array = np.array(coefficients)
    widths = [half_width(array, failure) for failure in (*FAILURES, 1e-8, 1e-20, 1e-300)]
    assert widths == sorted(widths)
    assert half_width(7 * array, 0.05) == pytest.approx(7 * half_width(array, 0.05), rel=1e-5)


def test_no_noise_at_all() -> None:
    assert half_width(np.zeros(3), 0.05) == 0.0


def test_extreme_scales() -> None:
    for scale in (1e-140, 1e140):
        assert half_width(scale * np.array([1.0, 1.0]), 0.05) == pytest.approx(
            scale * half_width(np.array([1.0, 1.0]), 0.05), rel=1e-5
        )


def discrete_tail(steps: list[int], scales: list[int], x: float) -> float:
    """Pr[|sum c_i X_i| > x] for discrete Laplace X_i and integers c_i, by convolution."""
    total = np.ones(1)
    for step, scale in zip(steps, scales, strict=True):
        reach = 45 * scale
        law = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
        spread = np.zeros(2 * reach * step + 1)
        spread[::step] = law / law.sum()
        total = np.convolve(total, spread)
    centre = len(total) // 2
    return float(total[np.abs(np.arange(len(total)) - centre) > x].sum())


DISCRETE = [([1, 1], [1, 1]), ([1, 2], [3, 2]), ([3, 1, 1], [1, 2, 4]), ([1], [1]), ([2, 5], [4, 1])]


@pytest.mark.parametrize(("steps", "scales"), DISCRETE)
@pytest.mark.parametrize("failure", FAILURES)
def test_intervals_hold_for_the_discrete_noise(steps: list[int], scales: list[int], failure: float) -> None:
    """Scales far smaller than a ledger's, where the lattice matters most."""
    coefficients = np.array(steps, dtype=float) * np.array(scales)
    width = half_width(coefficients, failure, lattice=float(sum(steps)))
    assert discrete_tail(steps, scales, width) <= failure
    assert width <= half_width(coefficients, failure) + sum(steps) * (1 + 1e-6)


def test_without_the_lattice_they_would_not() -> None:
    short = 0
    for steps, scales in DISCRETE:
        for failure in FAILURES:
            width = half_width(np.array(steps, dtype=float) * np.array(scales), failure)
            short += discrete_tail(steps, scales, width) > failure
    assert short > 0


@pytest.mark.parametrize("failure", FAILURES)
def test_the_inversion_errs_on_the_safe_side(failure: float) -> None:
    for scales in ([1.0, 2.0], [1.0, 1.5, 30.0], [5.0, 7.0, 11.0, 13.0]):
        assert exact_tail(scales, half_width(np.array(scales), failure)) <= failure
