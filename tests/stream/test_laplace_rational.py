"""Discrete Laplace variates of fractional scales: thresholds by Arb, the law, and integers unchanged."""

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from trilift.lift.errors import ParameterError
from trilift.stream import thresholds
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import LaplaceRows
from trilift.stream.laplace_layout import low_count

STREAM = Keystream(simulation_key(2))
SCALES = st.fractions(Fraction(1, 1 << 10), 1 << 40, max_denominator=10**20)


def by_arb(c: int, d: int, exponent: Fraction) -> int:
    """First 32 bits of c / (d + exp(exponent))."""
    flint.ctx.prec = 2000
    p = c / (d + (flint.arb(exponent.numerator) / exponent.denominator).exp())
    return int((p * (1 << 32)).floor().unique_fmpz())


@settings(max_examples=60, deadline=None)
@given(SCALES, st.integers(0, 5))
def test_thresholds_of_fractions(scale, j) -> None:
    assert thresholds.nonzero(scale).floor(32) == by_arb(2, 1, 1 / scale)
    assert thresholds.digit(j, scale).floor(32) == by_arb(1, 1, (1 << j) / scale)
    assert thresholds.tail(j, scale).floor(32) == by_arb(1, 0, (1 << j) / scale)


@given(st.integers(1, 1 << 70), st.integers(0, 80))
def test_an_integer_is_the_fraction_that_it_is(scale, j) -> None:
    for maker in (thresholds.digit, thresholds.tail):
        assert maker(j, scale) == maker(j, Fraction(scale))
    assert low_count(scale) == low_count(Fraction(scale))
    assert LaplaceRows([Fraction(scale)]).scales == (scale,)


@given(SCALES)
def test_digits_reach_past_16_scales(scale) -> None:
    low = low_count(scale)
    assert 1 << (low + 21) >= 16 * scale
    assert low == 0 or 1 << (low + 20) < 16 * scale


@pytest.mark.parametrize(
    "scale", [Fraction(1, 3), Fraction(7, 5), Fraction(10, 3), Fraction(51 * 10**17 + 1, 10**18)]
)
def test_the_law(scale) -> None:
    """Chi-square over values with 20 expected or more, outer values together; false alarm 1e-6 each."""
    drawn = LaplaceRows([scale] * 100).sample(STREAM, 0, np.arange(2000)).to_int64().ravel()
    u = math.exp(-1 / scale)
    m = 1 + int(float(scale) * math.log(drawn.size * (1 - u) / (1 + u) / 20))
    inner = (1 - u) / (1 + u) * u ** np.abs(np.arange(-m + 1, m))
    probabilities = np.concatenate([[u**m / (1 + u)], inner, [u**m / (1 + u)]])
    counts = np.bincount(np.clip(drawn, -m, m) + m, minlength=2 * m + 1)
    test = stats.chisquare(counts, probabilities * drawn.size, sum_check=False)
    assert test.pvalue > 1e-6
    wrong = np.roll(probabilities, 1)
    assert stats.chisquare(counts, wrong * drawn.size, sum_check=False).pvalue < 1e-12


@pytest.mark.parametrize("scale", [0, -1, 0.5, Fraction(0), Fraction(-1, 2), Fraction(1, 1025), True, "1"])
def test_what_is_no_scale(scale) -> None:
    with pytest.raises(ParameterError, match="scale must be"):
        LaplaceRows([scale])
