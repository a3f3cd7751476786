"""Rounded Gaussians: each against its definition, exact ways against fast ones, the law, golden values."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtri
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.gaussian import MARGIN, SAMPLER_ID, GaussianRows, variance
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import TIE, Keystream

ALPHA = 1e-6
SMALL = [Fraction(1, 1000), Fraction(1, 3), 1, Fraction(7, 2), 100, 2**20 + 1, Fraction(2**35, 3)]
LARGE = [2**38, 2**52 + 1, Fraction(2**71, 3), 2**200]


def stream(key: int = 1) -> Keystream:
    return Keystream(simulation_key(key))


class Chosen:
    """A keystream of given primary words; further words are given too, and counted."""

    def __init__(self, words, further=(), count: int = 1 << 14) -> None:
        self.primary, self.more, self.count, self.asked = np.array(words, dtype=np.uint32), further, count, []

    def words(self, level, blocks, count, *, start=0):
        return np.tile(self.primary[:count], (len(blocks), 1))

    def further(self, region, level, block, address):
        self.asked.append((region, level, block, address))
        for index in range(self.count):
            yield self.more[index] if index < len(self.more) else int(self.primary[0])


def draw(scale, digits: int, *, negative: bool = False, further=()) -> int:
    bits = digits | int(negative) << 63
    source = Chosen([bits & 0xFFFFFFFF, bits >> 32], further)
    value: int = GaussianRows([scale]).sample(source, 3, [9]).to_objects()[0, 0]
    assert set(source.asked) <= {(TIE, 3, 9, 0)}
    return value


def expected(scale, digits: int, further, *, digits_used: int = 63) -> int:
    """|z| by definition: how many m >= 1 have V < P(|z| >= m) = erfc((2m - 1) / (2 sqrt(2) sigma))."""
    for word in further:
        digits, digits_used = digits << 32 | word, digits_used + 32
    with mpmath.workdps(260):
        v = (mpmath.mpf(digits) + 0.5) / mpmath.mpf(2) ** digits_used
        sigma = mpmath.mpf(Fraction(scale).numerator) / Fraction(scale).denominator

        def at_least(m: int) -> bool:
            return m == 0 or v < mpmath.erfc((2 * m - 1) / (2 * mpmath.sqrt(2) * sigma))

        low, high = 0, 1
        while at_least(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if at_least(middle) else (low, middle)
        return low


# -- one by one -----------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    scale=st.sampled_from([*SMALL, *LARGE]),
    size=st.integers(1, 62),
    seed=st.integers(0, 2**30),
    negative=st.booleans(),
)
def test_a_draw_is_what_its_words_say(scale, size, seed, negative) -> None:
    """Any words, tails too, against the definition in mpmath at 260 digits."""
    rng = np.random.default_rng(seed)
    digits = (1 << size) + int(rng.integers(0, 1 << size))
    further = rng.integers(0, 1 << 32, size=40, dtype=np.uint64).tolist()
    value = draw(scale, min(digits, (1 << 63) - 2), negative=negative, further=further)
    assert abs(value) == expected(scale, min(digits, (1 << 63) - 2), further)
    assert value == 0 or (value < 0) == negative


@pytest.mark.parametrize("scale", [1, 100, 2**30, Fraction(2**35, 3)])
@pytest.mark.parametrize("m", [1, 2, 77])
def test_at_the_boundary_further_words_decide(scale, m) -> None:
    """V agrees with P(|z| >= m) in 63 digits and one further word: the word after that decides."""
    with mpmath.workdps(200):
        sigma = mpmath.mpf(Fraction(scale).numerator) / Fraction(scale).denominator
        p = mpmath.erfc((2 * m - 1) / (2 * mpmath.sqrt(2) * sigma))
        if p < mpmath.mpf(2) ** -50:
            return
        limit = int(mpmath.floor(p * mpmath.mpf(2) ** 127))
    digits, first, second = limit >> 64, limit >> 32 & 0xFFFFFFFF, limit & 0xFFFFFFFF
    rest = [first] * 40
    assert 100 < second < 2**32 - 100
    assert draw(scale, digits, further=[first, second - 50, *rest]) == m
    assert draw(scale, digits, further=[first, second + 50, *rest]) == m - 1


@pytest.mark.parametrize("scale", [Fraction(1, 1000), 1, 1000, 2**70])
@pytest.mark.parametrize("word", [0, 0xFFFFFFFF])
def test_a_stuck_keystream_is_an_error(scale, word) -> None:
    """Never silent zeros, never infinities."""
    draws = GaussianRows([scale] * 2).sample(Chosen([word] * 4, count=1 << 9), 0, [0])
    for values in (draws.to_int64, draws.to_objects, draws.to_float, draws.to_real, lambda: draws.block(0)):
        with pytest.raises(StateError, match="further words ended"):
            values()


def test_the_smallest_and_the_largest_digits_that_decide() -> None:
    assert draw(1, 1, further=[0] * 40) == expected(1, 1, [0] * 40) == 9
    assert draw(2**70, (1 << 63) - 2, further=[5] * 40) == expected(2**70, (1 << 63) - 2, [5] * 40) > 0
    assert draw(1, (1 << 63) - 2) == 0


# -- exact and fast ways agree --------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SMALL)
def test_the_exact_way_finds_the_same_values(scale) -> None:
    draws = GaussianRows([scale] * 40).sample(stream(), 2, np.arange(50))
    fast = draws.to_int64()
    forced = GaussianRows([scale] * 40).sample(stream(), 2, np.arange(50))
    forced.excess = 1.0
    assert forced._sizes[1].all()
    assert not draws._sizes[1].all()
    assert forced.to_int64().tolist() == fast.tolist()
    assert draws.to_objects().tolist() == fast.tolist()
    assert draws.to_float().tolist() == fast.tolist()
    assert [draws.block(i) for i in range(50)] == fast.tolist()
    assert draws.block(-1) == fast[-1].tolist()


@pytest.mark.parametrize("scale", [*SMALL, *LARGE])
def test_reals_and_finer_lattices(scale) -> None:
    """to_real is within its bound of sigma N, and every lattice rounds that same number."""
    draws = GaussianRows([scale] * 8).sample(stream(4), 0, np.arange(8))
    own, fine = draws.to_objects(), draws.finer(100).to_objects()
    # a few with small V, whose reals take another way
    for (i, k), value in np.ndenumerate(fine):
        real = Fraction(int(value), 1 << 100)
        assert abs(real - int(own[i, k])) <= Fraction(1, 2) + Fraction(1, 1 << 100)
        bound = Fraction(draws.real_error[k]) + abs(real) / (1 << 52)
        assert abs(Fraction(float(draws.to_real()[i, k])) - real) <= bound
        bound = Fraction(draws.float_error[k]) + abs(int(own[i, k])) * Fraction(1, 1 << 52)
        assert abs(Fraction(float(draws.to_float()[i, k])) - int(own[i, k])) <= bound


@pytest.mark.parametrize("scale", [1, 2**20, 2**60])
def test_reals_in_the_far_tail(scale) -> None:
    for digits in (1, 12345, 1 << 46, (1 << 47) - 1, 1 << 47):
        source = Chosen([digits & 0xFFFFFFFF, digits >> 32], [77] * 64)
        draws = GaussianRows([scale]).sample(source, 0, [0])
        real = Fraction(draws.finer(100).to_objects()[0, 0], 1 << 100)
        got = Fraction(float(draws.to_real()[0, 0]))
        assert abs(got - real) <= Fraction(float(draws.real_error[0])) + real / (1 << 52)
        assert draws.real_error[0] < scale * 2.0**-41


@pytest.mark.slow
def test_the_error_of_ndtri_is_far_inside_what_is_assumed() -> None:
    """More than 10^5 points: evenly, evenly in the logarithm, and near the ends of ndtri's own pieces.

    The margin has room for 2^-45 of ndtri; seen is less than 2^-49, the cut after 63 digits included.
    """
    rng = np.random.default_rng(0)
    cut = int(math.exp(-2) * 2.0**64)
    digits = np.concatenate(
        [
            rng.integers(1 << 47, 1 << 63, 55_000),
            (2.0 ** rng.uniform(47, 62.99, 40_000)).astype(np.int64),
            (1 << 63) - 1 - (2.0 ** rng.uniform(0, 61, 5_000)).astype(np.int64),
            np.clip(cut + rng.integers(-(1 << 50), 1 << 50, 2_000), 0, (1 << 63) - 2),
            np.array([1 << 47, (1 << 63) - 2, 1 << 62, (1 << 62) - 1]),
        ]
    )
    assert len(digits) > 100_000
    found = -ndtri((digits.astype(np.float64) + 0.5) * 2.0**-64)
    worst = 0.0
    with ctx.workprec(110):
        root = arb(2).sqrt()
        for digit, value in zip(digits.tolist(), found.tolist(), strict=True):
            exact = root * arb(fmpq(2 * digit + 1, 1 << 64)).erfcinv()
            worst = max(worst, float(abs(exact - arb(value))) / max(value, 1.0))
    assert worst < 2.0**-49
    assert worst + 2.0**-47 < MARGIN / 2


# -- addresses ------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(blocks=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8), level=st.integers(0, 2**20 - 1))
def test_batches_cannot_matter(blocks, level) -> None:
    rows = GaussianRows([3, Fraction(7, 2), 2**50, 10**9])
    together = rows.sample(stream(), level, blocks).to_objects()
    alone = [rows.sample(stream(), level, [block]).to_objects()[0].tolist() for block in blocks]
    assert together.tolist() == alone


def test_rows_do_not_depend_on_the_other_rows_scales() -> None:
    one = GaussianRows([5, 1000, 7]).sample(stream(), 0, range(20)).to_objects()
    two = GaussianRows([9, 1000, 2**80]).sample(stream(), 0, range(20)).to_objects()
    assert one[:, 1].tolist() == two[:, 1].tolist()
    assert one[:, 0].tolist() != two[:, 0].tolist()


def test_levels_blocks_rows_and_keys_differ() -> None:
    rows = GaussianRows([10**6] * 3)
    all_values = [
        rows.sample(stream(key), level, [0, 1]).to_int64().ravel() for key in (1, 2) for level in (0, 1)
    ]
    assert len(set(np.concatenate(all_values).tolist())) == 24


def test_golden_values() -> None:
    """Frozen: a change here re-draws the noise of saved streams and needs a new SAMPLER_ID."""
    assert SAMPLER_ID == "trilift/gaussian/1"
    rows = GaussianRows([3, Fraction(7, 2), 2**70, 10**6])
    assert rows.words == 8
    values = rows.sample(stream(), 5, [0, 2**63]).to_objects()
    assert values.tolist() == GOLDEN
    many = GaussianRows([1000] * 64).sample(stream(), 0, np.arange(2000)).to_int64()
    assert hashlib.sha256(many.astype("<i8").tobytes()).hexdigest() == GOLDEN_HASH


GOLDEN = [[-2, 6, 2641303309437412760535, -175898], [3, 2, -1598553066558178563059, -47175]]
GOLDEN_HASH = "614cdab636fa3df8fec63840847b31a21c19dc276aa16cbdc02de0eb5e189a2e"


# -- the law --------------------------------------------------------------------------------------------


def p_value(values: np.ndarray, sigma: float) -> float:
    m = max(1, int(sigma * 3.2 + 0.5))
    while 2 * stats.norm.sf((m - 0.5) / sigma) * values.size < 40:
        m -= 1
    edges = (np.arange(-m + 1, m + 1) - 0.5) / sigma
    law = np.diff(np.concatenate([[0.0], stats.norm.cdf(edges), [1.0]]))
    law[m + 1 :] = law[:m][::-1]  # by symmetry, without cancellation
    counts = np.bincount(np.clip(values, -m, m) + m, minlength=2 * m + 1)
    return float(stats.chisquare(counts, law * values.size, sum_check=False).pvalue)


@pytest.mark.parametrize("scale", [Fraction(1, 2), 1, Fraction(5, 2), 10])
def test_small_scales_follow_the_exact_law(scale) -> None:
    """Chi-square over all values with 20 expected or more; false alarm 1e-6. Controls: a scale 3 % off."""
    values = GaussianRows([scale] * 100).sample(stream(), 0, np.arange(5000)).to_int64().ravel()
    assert p_value(values, float(scale)) > ALPHA
    assert p_value(values, float(scale) * 1.03) < ALPHA
    assert p_value(values + (values > 0), float(scale)) < ALPHA


@pytest.mark.parametrize("scale", [1 << 25, 3 << 90])
def test_large_scales_follow_the_law(scale) -> None:
    """Kolmogorov-Smirnov, and the tail past 4 sigma; false alarm 1e-6 each. Control: 2 % off."""
    draws = GaussianRows([scale] * 100).sample(stream(), 0, np.arange(3000))
    values = draws.to_real().ravel() / scale
    assert stats.kstest(values, "norm").pvalue > ALPHA
    assert stats.kstest(values * 1.02, "norm").pvalue < ALPHA
    far = int((np.abs(values) > 4).sum())
    assert stats.binomtest(far, values.size, 2 * stats.norm.sf(4)).pvalue > ALPHA
    neighbours = values.reshape(3000, 100)
    for a, b in ((neighbours[:, 1:], neighbours[:, :-1]), (neighbours[1:], neighbours[:-1])):
        assert abs(np.mean(a * b)) * math.sqrt(a.size) < 5.3  # false alarm below 1e-6 in both


@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(1, 5), 1, Fraction(39, 10), 4, 1000])
def test_variance_is_that_of_the_law(scale) -> None:
    with mpmath.workdps(40):
        sigma = mpmath.mpf(Fraction(scale).numerator) / Fraction(scale).denominator
        if scale < 5:
            odd = range(1, 200, 2)
            exact = sum(m * mpmath.erfc(m / (2 * mpmath.sqrt(2) * sigma)) for m in odd)
        else:
            exact = sigma**2 + mpmath.mpf(1) / 12
        assert variance(scale) == pytest.approx(float(exact), rel=1e-12, abs=1e-300)


def test_variance_of_draws() -> None:
    """An empirical second moment, within 5 standard errors (false alarm 6e-7)."""
    values = GaussianRows([Fraction(2, 3)] * 100).sample(stream(2), 0, np.arange(5000)).to_int64().ravel()
    squares = values.astype(float) ** 2
    assert abs(squares.mean() - variance(Fraction(2, 3))) < 5 * squares.std() / math.sqrt(squares.size)


# -- refusals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, "3", True, Fraction(1, 2**65), 2**1023, None])
def test_scales_that_are_refused(scale) -> None:
    with pytest.raises(ParameterError):
        GaussianRows([scale])
    with pytest.raises(ParameterError):
        variance(scale)


def test_what_does_not_fit() -> None:
    huge = GaussianRows([2**1022]).sample(Chosen([1, 0], [77] * 64), 0, [0])  # about 9 standard deviations
    with pytest.raises(StateError, match="int64"):
        huge.to_int64()
    with pytest.raises(StateError, match="range of float64"):
        huge.to_float()
    with pytest.raises(StateError, match="range of float64"):
        huge.to_real()
    assert 9 * 2**1022 < huge.block(0)[0] < 10 * 2**1022
    with pytest.raises(ParameterError, match="within the range of a float"):
        variance(2**600)
    with pytest.raises(ParameterError):
        GaussianRows([1]).sample(stream(), 1 << 20, [0])
    with pytest.raises(ParameterError):
        GaussianRows([1]).sample(stream(), 0, [-1])
    assert GaussianRows([]).sample(stream(), 0, [1]).to_int64().shape == (1, 0)
    assert GaussianRows([1]).sample(stream(), 0, []).to_int64().shape == (0, 1)


@pytest.mark.parametrize("negative", [False, True])
def test_draws_whose_floats_overflow_are_decided_exactly(negative) -> None:
    """4.1 standard deviations of 2^1022 are past the range of floats, though not rare enough for balls."""
    digits = int(math.erfc(4.1 / math.sqrt(2)) * 2**63)
    value = draw(2**1022, digits, negative=negative, further=[7] * 64)
    assert (value < 0) == negative
    assert abs(Fraction(abs(value), 2**1022) - Fraction("4.1")) < Fraction(1, 10**12)
