"""Certified binary expansions against Arb, and the construction of the geometric variate from digits."""

import itertools
from fractions import Fraction

import flint
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.laplace import variance
from trilift.stream.laplace_layout import make_groups
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
    j = data.draw(st.integers(0, (64 * scale).bit_length() + 3))
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
    digits = 10  # 2^digits >= 64 scale, so that cut expansions are good enough
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


def test_no_exponential_is_longer_than_the_answer_needs(monkeypatch) -> None:
    """Fractions whose numerator is a high power of two have digits far above them, too."""
    seen: list[Fraction] = []

    def watched(numerator: int, denominator: int, *, bits: int):
        seen.append(Fraction(numerator, denominator))
        return exp_bounds(numerator, denominator, bits=bits)

    monkeypatch.setattr("trilift.stream.thresholds.exp_bounds", watched)
    for scale in (Fraction(2**20, 2**30 - 1), Fraction(2**9, 2**12 + 1), 1 / Fraction(10.3), 3, 1 << 40):
        make_groups((scale,))
    assert 0 < max(seen) < 1100  # of the zero test: scales are at least 2^-10


@pytest.mark.parametrize("scale", [Fraction(1, 1024), Fraction(1, 3), 1, 7, 1000])
def test_probabilities_too_small_to_show_cost_no_exponential(scale) -> None:
    """Where the shortcut begins, the exact path agrees; far beyond, it answers at once."""
    for rule in (digit(0, scale), tail(0, scale), nonzero(scale)):
        for shift in range(14):
            p = Threshold(rule.c, rule.d, rule.odd, rule.shift + shift, rule.times)
            precise(60000)
            x = Fraction(p.times, p.odd) * Fraction(2) ** p.shift
            if x > 20000:
                continue
            for bits in (1, 16, 48):
                exact = p.c / (p.d + arb(x).exp()) * flint.arb(2) ** bits
                assert p.floor(bits) <= exact < p.floor(bits) + 1
    assert digit(10**6, scale).floor(1 << 14) == 0


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
    rule = kind(min(j, (64 * scale).bit_length()), scale)
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
