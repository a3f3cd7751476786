"""Certified binary expansions against Arb, and the construction of the geometric variate from digits."""

import itertools
from fractions import Fraction

import flint
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.laplace import row_words, variance
from trilift.stream.thresholds import Threshold, digit, exp_bounds, nonzero, tail, variance_bounds

SCALES = st.one_of(
    st.integers(1, 100),
    st.integers(1, 1 << 64),
    st.builds(lambda odd, twos: odd << twos, st.integers(1, 1 << 40), st.integers(0, 200)),
)


def arb(value: Fraction) -> flint.arb:
    return flint.arb(value.numerator) / flint.arb(value.denominator)


def precise(bits: int):
    flint.ctx.prec = bits
    return bits


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 1 << 60), st.integers(1, 1 << 60), st.integers(0, 200))
@example(1, 1 << 250, 20)
@example(8192, 1, 32)
@example(1, 1, 0)
def test_exp_bounds_enclose_exp(numerator, denominator, bits) -> None:
    if numerator > 2000 * denominator:
        numerator = numerator % (2000 * denominator) + 1
    low, high = exp_bounds(numerator, denominator, bits=bits)
    precise(4000)
    exact = arb(Fraction(numerator, denominator)).exp() * flint.arb(2) ** bits
    assert low <= exact <= high
    assert high - low <= 2 + (low >> bits)


def test_exp_bounds_need_no_guard_bits_to_enclose(monkeypatch) -> None:
    """The directions of all roundings are right even when every one of them reaches the last place."""
    monkeypatch.setattr("trilift.stream.thresholds._GUARD", -8)
    precise(200)
    for denominator in range(1, 60):
        for numerator in range(denominator, 16 * denominator, 7):
            exact = arb(Fraction(numerator, denominator)).exp()
            for bits in (0, 1, 5):
                low, high = exp_bounds(numerator, denominator, bits=bits)
                assert low <= exact * 2**bits <= high


@settings(max_examples=80, deadline=None)
@given(SCALES, st.data())
def test_floors_are_exact(scale, data) -> None:
    """floor <= p 2^bits < floor + 1, by Arb, for every kind of probability."""
    words = row_words(scale)
    j = data.draw(st.integers(0, words - 3))
    bits = data.draw(st.sampled_from([1, 32, 64, 320]))
    precise(2000 + scale.bit_length())
    x, start = arb(Fraction(1 << j, scale)), arb(Fraction(1, scale))
    for rule, p in (
        (digit(j, scale), 1 / (1 + x.exp())),
        (tail(j, scale), (-x).exp()),
        (nonzero(scale), 2 / (1 + start.exp())),
    ):
        floor = rule.floor(bits)
        shifted = p * flint.arb(2) ** bits
        assert floor <= shifted < floor + 1


@given(SCALES, st.integers(0, 80), st.integers(0, 70))
def test_scales_of_a_family_share_their_thresholds(scale, j, twos) -> None:
    assert digit(j + twos, scale << twos) == digit(j, scale)
    assert tail(j + twos, scale << twos) == tail(j, scale)


@given(
    st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=60),
    st.integers(1, 6),
    st.integers(0, 300),
)
def test_digits_make_the_geometric_law_exactly(u, digits, g) -> None:
    """For rational u: product over digits of their probabilities, times the law of the part above, is
    (1-u) u^g, as an identity of fractions."""
    product = Fraction(1)
    for j in range(digits):
        power = u ** (1 << j)
        one = power / (1 + power)
        product *= one if g >> j & 1 else 1 - one
    ratio = u ** (1 << digits)
    product *= (1 - ratio) * ratio ** (g >> digits)
    assert product == (1 - u) * u**g


@pytest.mark.parametrize("scale", [1, 2, 3, 10])
def test_expansions_make_the_discrete_laplace_law(scale) -> None:
    """The law of the expansions, cut at 1200 bits, is the discrete Laplace law within relative 2^-400."""
    one = 1 << 1200
    digits = row_words(scale) - 3
    floors = [digit(j, scale).floor(1200) for j in range(digits)]
    top = tail(digits, scale).floor(1200)
    start = nonzero(scale).floor(1200)
    precise(3000)
    u = (-arb(Fraction(1, scale))).exp()
    assert abs(arb(Fraction(one - start, one)) / ((1 - u) / (1 + u)) - 1) < flint.arb(2) ** -400
    for magnitude in [*range(1, 70), 1 << 9]:
        law = Fraction(start * (one - top), 2 * one * one)
        for j, floor in enumerate(floors):
            law *= Fraction(floor if (magnitude - 1) >> j & 1 else one - floor, one)
        exact = (1 - u) / (1 + u) * u**magnitude
        assert abs(arb(law) / exact - 1) < flint.arb(2) ** -400


def test_top_part_starts_where_it_is_negligible() -> None:
    for scale in [*range(1, 300), (1 << 55) - 1, 1 << 55, (1 << 55) + 1, 3 << 90]:
        digits = row_words(scale) - 3
        assert 64 * scale <= 1 << digits < 64 * scale << 8
        assert row_words(scale) % 8 == 0


def split(value: int, words: int) -> list[int]:
    return [value >> 32 * (words - 1 - i) & 0xFFFFFFFF for i in range(words)]


@settings(max_examples=100, deadline=None)
@given(
    SCALES,
    st.integers(0, 40),
    st.integers(1, 5),
    st.sampled_from([-1, 1]),
    st.tuples(st.sampled_from([digit, tail]), st.lists(st.integers(0, 0xFFFFFFFF), max_size=3)),
)
def test_lazy_comparison_is_the_exact_one(scale, j, words, change, ending) -> None:
    """U agrees with p for words - 1 words, then lies one step below or above: the whole string decides."""
    kind, rest = ending
    rule = kind(min(j, row_words(scale) - 4), scale)
    value = rule.floor(32 * words) + change
    if value < 0 or value >> 32 * words:
        return
    string = split(value, words) + rest
    low = Fraction(value, 1 << 32 * words)  # U lies in [low, low + 2^-32 words)
    p = Fraction(rule.floor(32 * words + 64), 1 << 32 * words + 64)
    assert rule.decide(iter(string)) == (low < p)
    if split(rule.floor(32 * words), words)[0] == string[0]:
        assert rule.decide(iter(string[1:]), matched=32) == (low < p)


def test_a_string_that_never_decides_is_refused() -> None:
    rule = digit(3, 10)
    with pytest.raises(StateError):
        rule.decide(iter(split(rule.floor(128), 4)))


def test_decisions_reach_far_digits_of_tiny_probabilities() -> None:
    """exp(-8192) has 11818 zeros before its first one: a string of zeros stays below it."""
    rule = Threshold(c=1, d=0, odd=1, shift=13)
    assert rule.decide(itertools.repeat(0))
    assert not rule.decide(iter([0] * 100 + [1]))


@pytest.mark.parametrize("scale", [1, 2, 3, 10, 12345, 1 << 30, (1 << 57) - 1, 3 << 90, (1 << 200) + 1])
def test_variance_is_enclosed(scale) -> None:
    lower, upper = variance_bounds(scale)
    precise(2000)
    u = (-arb(Fraction(1, scale))).exp()
    exact = 2 * u / (1 - u) ** 2
    assert arb(lower) <= exact <= arb(upper)
    assert upper - lower < lower / (1 << 80)
    assert abs(arb(Fraction(variance(scale))) / exact - 1) < flint.arb(2) ** -52
    assert lower < 2 * scale**2


@pytest.mark.parametrize("bad", [0, -1, 1.0, True, "3"])
def test_variance_refuses_what_is_no_scale(bad) -> None:
    for call in (variance, variance_bounds):
        with pytest.raises(ParameterError):
            call(bad)


def test_variance_refuses_what_no_float_holds() -> None:
    with pytest.raises(ParameterError):
        variance(1 << 600)
    lower, upper = variance_bounds(1 << 600)
    assert lower < 2 << 1200 < upper * 2
