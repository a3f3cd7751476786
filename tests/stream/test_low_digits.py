"""Low digits as fair bits: the mixture is the geometric law, with certified probabilities."""

from collections import Counter
from fractions import Fraction

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from trilift.lift.errors import StateError
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import LOW, Keystream
from trilift.stream.low_digits import LowException, Proposal, exceptional

SCALES = st.one_of(
    st.integers(1, 100),
    st.integers(1, 1 << 80),
    st.fractions(min_value=Fraction(1, 20), max_value=1 << 40, max_denominator=1000),
)
ALPHA = 1e-6


def low_law(u: Fraction, low: int) -> list[Fraction]:
    """P(G mod 2^low = l) for P(G >= g) = u^g."""
    size = 1 << low
    return [u**value * (1 - u) / (1 - u**size) for value in range(size)]


@given(st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=60), st.integers(1, 5))
def test_fair_bits_and_exceptions_make_the_law(u, low) -> None:
    """An identity of fractions, with the probabilities as the rules define them."""
    size, grown = 1 << low, 1 / u
    exception = 1 - size * (grown - 1) / (grown**size - 1)
    kept = [(grown**k - 1) / (grown ** (size - 1) - 1) for k in range(size)]
    rate = sum(kept) / size
    assert 0 < rate <= Fraction(1, 2)  # a convex function of k, from 0 to 1
    law = [(1 - exception) / size + exception * kept[size - 1 - value] / size / rate for value in range(size)]
    assert law == low_law(u, low)
    assert 1 - exception >= u ** (size - 1)


@settings(max_examples=60, deadline=None)
@given(SCALES, st.integers(1, 9), st.sampled_from([1, 16, 48, 200]), st.data())
def test_floors_are_exact(scale, low, bits, data) -> None:
    flint.ctx.prec = 6000 + 4 * Fraction(scale).numerator.bit_length()
    size = 1 << low
    k = data.draw(st.integers(0, size - 1))

    def power(times: int) -> flint.arb:
        return (flint.arb(times * Fraction(scale).denominator) / Fraction(scale).numerator).exp()

    rules = [(LowException(low, scale), 1 - size * (power(1) - 1) / (power(size) - 1))]
    if 0 < k < size - 1:
        rules.append((Proposal(k, low, scale), (power(k) - 1) / (power(size - 1) - 1)))
    for rule, p in rules:
        if low > 4 and scale < 1:  # the ball would need more digits
            continue
        floor = rule.floor(bits)
        assert floor <= p * flint.arb(2) ** bits < floor + 1


@settings(max_examples=60)
@given(st.integers(22, 300))
def test_exceptions_are_rarer_than_sixteen_bits_tell(bits) -> None:
    """F as the layout chooses it, at both ends of every range of scales that share it."""
    for scale in ((1 << bits) - 1, 1 << bits, (1 << bits) + 1):
        low = (16 * scale - 1).bit_length() - 21
        assert LowException(low, scale).floor(16) == 0
        assert LowException(low, scale).floor(20) > 0  # and not much rarer


@pytest.mark.parametrize(("low", "scale"), [(1, 3), (3, 1), (3, 9), (4, Fraction(41, 2)), (3, 1 << 20)])
def test_exceptions_follow_their_law(low, scale) -> None:
    """Chi-square at alpha = 1e-6, 4,000 draws."""
    size, count = 1 << low, 4000
    u = (-flint.arb(Fraction(scale).denominator) / Fraction(scale).numerator).exp()
    weights = [float(u**value - u ** (size - 1)) for value in range(size - 1)]
    stream = Keystream(simulation_key(11))
    seen = Counter(exceptional(low, scale, stream.further(LOW, 1, n, 0)) for n in range(count))
    assert seen[size - 1] == 0
    expected = [count * weight / sum(weights) for weight in weights]
    if size == 2:
        assert seen == {0: count}
    else:
        observed = [seen[value] for value in range(size - 1)]
        assert stats.chisquare(observed, expected).pvalue > ALPHA


def test_the_bits_of_a_proposal_come_from_as_many_words_as_it_needs() -> None:
    last = (1 << 70) - 1
    assert exceptional(70, 1 << 91, iter([0xFFFFFFFF] * 3)) == 0
    assert exceptional(70, 1 << 91, iter([0xFFFFFFFE, 0xFFFFFFFF, 0x3F, 0])) == last - (last - 1)


@pytest.mark.parametrize("words", [[], [1], [0, 0, 0], [5]])
def test_words_that_end_are_refused(words) -> None:
    with pytest.raises(StateError, match="words ended"):
        exceptional(40, 1 << 61, iter(words))
