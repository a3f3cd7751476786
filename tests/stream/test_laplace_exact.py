"""The sampler word by word: model draws, ties, rare events, extreme keystreams, frozen values."""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import LOW, TAIL, TIE, Keystream
from trilift.stream.laplace import SAMPLER_ID, LaplaceRows

STREAM = Keystream(simulation_key(30))
MIXED = [1, 3, 10, 10, 1 << 25, (1 << 40) + 1, 1 << 57, 3 << 90, 7, (1 << 200) + 1, Fraction(1, 3)]
TESTS, FULL = 24, 0xFFFF


# A model of the layout that shares nothing with the sampler but the keystream.


def lows(scale) -> int:
    """F: 2^(F+21) >= 16 t, as small as that allows."""
    return next(f for f in itertools.count() if 1 << (f + 21) >= 16 * scale)


@cache
def digits_of(scale, test: int, bits: int) -> int:
    """First bits of the probability behind a test, by Arb."""
    flint.ctx.prec = bits + 1200
    low, scale = lows(scale), Fraction(scale)
    if test == 1 and low == 0:
        return 0

    def power(times: int):
        return (flint.arb(times * scale.denominator) / scale.numerator).exp()

    if test >= 3 and (1 << (low + test - 3)) / scale > bits + 2:
        return 0
    if test == 0:
        p = 2 / (1 + power(1))
    elif test == 1:
        p = 1 - (1 << low) * (power(1) - 1) / (power(1 << low) - 1)
    elif test == 2:
        if (1 << (low + 21)) / scale > bits + 2:
            return 0
        p = 1 / power(1 << (low + 21))
    else:
        p = 1 / (1 + power(1 << (low + test - 3)))
    return int((p * flint.arb(2) ** bits).floor().unique_fmpz())


def limit(scale, test: int) -> int:
    return digits_of(scale, test, 16)


def won(scale, test: int, word: int, further: Iterator[int]) -> bool:
    bits = 16
    while word == digits_of(scale, test, bits):
        if test == 1 and lows(scale) == 0:
            return False
        bits, word = bits + 32, word << 32 | next(further)
    return word < digits_of(scale, test, bits)


def kept(scale, k: int, words: Iterator[int]) -> bool:
    """U < (E^k - 1) / (E^(M-1) - 1), from the balls of both ends of U."""
    last = (1 << lows(scale)) - 1
    if k in (0, last):
        return k == last
    value = bits = 0
    while True:
        value, bits = value << 32 | next(words), bits + 32
        flint.ctx.prec = bits + 4 * Fraction(scale).numerator.bit_length() + 400
        t = flint.arb(Fraction(scale).numerator) / Fraction(scale).denominator
        p = ((k / t).exp() - 1) / ((last / t).exp() - 1) * flint.arb(2) ** bits
        if value + 1 < p or value > p:
            return bool(value < p)


def model(scale, tests: list[int], fair: int, further: Callable[[int, int], Iterator[int]]) -> int:
    """A draw; ``further`` is given the region and the number of the test."""
    low = lows(scale)
    won_ = [won(scale, test, word, further(TIE, test)) for test, word in enumerate(tests)]
    if not won_[0]:
        return 0
    digits = fair >> 3 & ((1 << low) - 1)
    high = sum(bit << j for j, bit in enumerate(won_[3:]))
    if won_[1]:
        words = further(LOW, -1)
        while True:
            k = sum(next(words) << 32 * n for n in range(-(-low // 32))) & ((1 << low) - 1)
            if kept(scale, k, words):
                break
        digits = (1 << low) - 1 - k
    if won_[2]:
        words = further(TAIL, -1)
        high += 1 << 21
        while won_from(scale, words):
            high += 1 << 21
    return (1 + digits + (high << low)) * (-1 if fair >> 1 & 1 else 1)


def won_from(scale, words: Iterator[int]) -> bool:
    word, bits = next(words), 32
    while word == digits_of(scale, 2, bits):
        word, bits = word << 32 | next(words), bits + 32
    return word < digits_of(scale, 2, bits)


def fair_words(scale) -> int:
    return -(-(lows(scale) + 3) // 16)


class Scripted:
    """A keystream double: 16-bit words that all blocks share, a function for the further ones."""

    def __init__(self, halves: list[int], further: Callable[[int, int], Iterator[int]]) -> None:
        self.primary = np.array(halves + [0] * (len(halves) % 2), dtype="<u2").view("<u4")
        self.answer = further
        self.asked: list[tuple[int, int, int, int]] = []

    def words(self, level, blocks, count, *, start=0):
        return np.tile(self.primary[start : start + count], (len(blocks), 1))

    def further(self, region, level, block, address):
        self.asked.append((region, level, block, address))
        return self.answer(region, address)


def refuse(region: int, address: int) -> Iterator[int]:
    raise AssertionError("further words were asked for")


def halves(scale, tests: list[int], fair: int) -> list[int]:
    return tests + [fair >> 16 * n & FULL for n in range(fair_words(scale))]


def draw(scale, tests: list[int], fair: int = 0, further=refuse) -> int:
    draws = LaplaceRows([scale]).sample(Scripted(halves(scale, tests, fair), further), 0, [0])
    (value,) = draws.block(0)
    assert draws.to_objects().tolist() == [[value]]
    return value


def lost(scale, **words: int) -> list[int]:
    """Tests of a draw that is not zero and has no high digit, but for the words that are named."""
    tests = [0] + [FULL] * (TESTS - 1)
    for name, word in words.items():
        tests[int(name[1:])] = word
    return tests


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(MIXED), st.data())
def test_every_pattern_of_comparisons_gives_its_value(scale, data) -> None:
    """Words just below and just above each limit, any fair bits: everything is read off as defined."""
    limits = [limit(scale, test) for test in range(TESTS)]
    wanted = [data.draw(st.booleans()) and value > 0 for value in limits]
    tests = [value - 1 if yes else min(value + 1, FULL) for value, yes in zip(limits, wanted, strict=True)]
    if limits[0] == FULL and not wanted[0]:  # only a tie can be "not below"
        tests[0], wanted[0] = FULL - 1, True
    fair = data.draw(st.integers(0, (1 << 16 * fair_words(scale)) - 1))
    high = sum(bit << j for j, bit in enumerate(wanted[3:]))
    magnitude = 1 + (fair >> 3) % (1 << lows(scale)) + (high << lows(scale))
    assert wanted[1:3] == [False, False]
    assert draw(scale, tests, fair) == (0 if not wanted[0] else -magnitude if fair & 2 else magnitude)


def test_draws_agree_with_a_model_that_compares_rationals() -> None:
    """Every draw of a mixed level, recomputed from its own words by Arb, some ties among them."""
    rows, count = LaplaceRows(MIXED), TESTS * len(MIXED)
    blocks = [*range(600), (1 << 64) - 1]
    words = STREAM.words(3, blocks, rows.words).view("<u2")
    drawn = rows.sample(STREAM, 3, blocks).to_objects()
    assert rows.words == -(-(count + sum(map(fair_words, MIXED))) // 2)
    ties = 0
    for i, block in enumerate(blocks):
        start = count
        for k, scale in enumerate(MIXED):
            mine = [int(word) for word in words[i, TESTS * k : TESTS * (k + 1)]]
            width = fair_words(scale)
            fair = sum(int(word) << 16 * n for n, word in enumerate(words[i, start : start + width]))
            start += width
            ties += any(word == limit(scale, test) for test, word in enumerate(mine))

            def further(region: int, test: int, block=block, k=k) -> Iterator[int]:
                return STREAM.further(region, 3, block, TESTS * k + test if region == TIE else k)

            assert drawn[i, k] == model(scale, mine, fair, further)
    assert ties > 0


@pytest.mark.parametrize("scale", [1, 10, (1 << 25) + 1, 3 << 90])
@pytest.mark.parametrize("test", [0, 3, 4, 9, 23, 1, 2])
@pytest.mark.parametrize("matched", [1, 2, 9])
def test_ties_are_decided_by_further_digits(scale, test, matched) -> None:
    """The word equals its limit, and so do some further ones; then one unit below or above decides."""
    bits = 16 + 32 * matched
    tests = lost(scale, **{f"w{test}": limit(scale, test)})
    for change in (-1, 0, 1):
        value = digits_of(scale, test, bits) + change
        if value < 0 or value >> 32 * matched != tests[test]:
            continue

        def further(region: int, address: int, value: int = value) -> Iterator[int]:
            if region == TAIL:
                return itertools.repeat(0xFFFFFFFF)
            if region == LOW:  # the largest proposal is kept: the lowest digits
                return itertools.repeat(0xFFFFFFFF)
            assert (region, address) == (TIE, test)
            rest = [value >> 32 * (matched - 1 - i) & 0xFFFFFFFF for i in range(matched)]
            return itertools.chain(rest, itertools.repeat(0xFFFFFFFF))

        below = value < digits_of(scale, test, bits)
        fair = ((1 << lows(scale)) - 1) << 3
        low, source = fair >> 3, draw(scale, tests, fair, further)
        if test >= 2:
            place = 21 if test == 2 else test - 3
            assert source == 1 + low + (below << lows(scale) + place)
        else:
            assert source == (below * (1 + low), 1 if below else 1 + low)[test]


@pytest.mark.parametrize("scale", [20000, 1 << 25, 1 << 57, 3 << 90])
@pytest.mark.parametrize("again", [0, 1, 5])
@pytest.mark.parametrize("sign", [1, -1])
def test_forced_tail_events_continue_exactly(scale, again, sign) -> None:
    """Tail test won on a tie; then ``again`` more wins, each a run of zero words as long as p needs."""
    low = lows(scale)
    lead = next(k for k in itertools.count(1) if digits_of(scale, 2, 32 * k))
    tests = lost(scale, w2=0, w3=0)  # digit F is set

    def further(region: int, address: int) -> Iterator[int]:
        if region == TIE:
            assert address == 2
            return itertools.repeat(0)
        assert (region, address) == (TAIL, 0)
        return iter([0] * lead * again + [0xFFFFFFFF])

    value = sign * (1 + (1 << low) + ((1 + again) << low + 21))
    source = Scripted(halves(scale, tests, 2 if sign < 0 else 0), further)
    draws = LaplaceRows([scale]).sample(source, 0, [0])
    assert draws.block(0) == [value]
    assert draws.to_objects().tolist() == [[value]]
    assert draws.to_float().tolist() == [[float(value)]]
    if abs(value) < 1 << 63:
        assert draws.to_int64().tolist() == [[value]]
    else:
        with pytest.raises(StateError):
            draws.to_int64()


@pytest.mark.parametrize("scale", [(1 << 18) + 1, 1 << 25, 1 << 57, 3 << 90, Fraction(1 << 40, 3)])
@pytest.mark.parametrize("seed", range(8))
def test_forced_exceptions_draw_their_low_digits_anew(scale, seed) -> None:
    """By real words, against the model, with a tail event in every other one."""
    tests = lost(scale, w1=0, w9=0, **({"w2": 0} if seed % 2 else {}))
    stream = Keystream(simulation_key(seed))
    fair = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF

    def further(region: int, address: int) -> Iterator[int]:
        return itertools.repeat(0) if region == TIE else stream.further(region, 0, 0, max(address, 0))

    fair &= (1 << 16 * fair_words(scale)) - 1
    assert draw(scale, tests, fair, further) == model(scale, tests, fair, further)


def test_further_words_are_asked_for_at_the_address_of_their_draw() -> None:
    """A tie by its word in the block, a tail and low digits by their row in the level, in any group."""
    scales = [10] * 1024 + [1 << 30, 20000]
    first = [FULL] * (TESTS + 1) * 1024
    assert len(first) % 32 == 0  # the second group begins with a new piece of keystream
    tests = [FULL] * TESTS * 2 + [0] * (fair_words(1 << 30) + 1)
    tests[0:3] = [0, 0, FULL]  # an exception
    tests[TESTS : TESTS + 3] = [0, FULL, 0]  # a tail event
    first[TESTS * 1000 + 5] = limit(10, 5)

    def further(region: int, address: int) -> Iterator[int]:
        return itertools.repeat(0 if region == TIE else 0xFFFFFFFF)

    source = Scripted(first + tests, further)
    block = (1 << 64) - 3
    draws = LaplaceRows(scales).sample(source, 6, [block])
    assert draws.block(0) == [0] * 1024 + [1, 1 + (1 << 21)]
    ties = [(TIE, 6, block, word) for word in (24005, len(first) + 1, len(first) + TESTS + 2)]
    assert sorted(source.asked) == sorted([*ties, (TAIL, 6, block, 1025), (LOW, 6, block, 1024)])


@pytest.mark.parametrize("scale", [20000, 1 << 25, 3 << 90])
def test_rare_events_of_a_zero_draw_are_ignored(scale) -> None:
    def further(region: int, address: int) -> Iterator[int]:
        assert region == TIE
        return itertools.repeat(0xFFFFFFFF if address == 0 else 0)

    assert draw(scale, [FULL, *[0] * (TESTS - 1)], 0, further) == 0


@pytest.mark.parametrize("scale", MIXED)
def test_keystream_of_ones_gives_zero(scale) -> None:
    """U = 1 - 2^-k is below no p < 1, however far it must be compared."""
    ones = [FULL] * TESTS
    fair = (1 << 16 * fair_words(scale)) - 1
    assert draw(scale, ones, fair, lambda region, address: itertools.repeat(0xFFFFFFFF)) == 0


@pytest.mark.parametrize("scale", MIXED)
def test_keystream_of_zeros(scale) -> None:
    """U = 0 is below every p: what never ends is refused."""

    def endless(region: int, address: int) -> Iterator[int]:
        return iter([0] * 1500)

    with pytest.raises(StateError):
        draw(scale, [0] * TESTS, 0, endless)


@pytest.mark.parametrize("bad", [[0], [-3], [1.0], [True], [3, None], np.array([2.0])])
def test_scales_are_checked(bad) -> None:
    with pytest.raises(ParameterError):
        LaplaceRows(bad)


def test_scales_may_be_arrays() -> None:
    rows = LaplaceRows(np.array([3, 4]))
    assert rows.scales == (3, 4)
    assert rows.words == 25


def test_draws_are_frozen() -> None:
    """Golden values: a change here needs another SAMPLER_ID, or restarts would draw other noise."""
    assert SAMPLER_ID == "trilift/laplace/2"
    rows = LaplaceRows(MIXED)
    drawn = rows.sample(Keystream(simulation_key(7)), 2, [0, 1, (1 << 64) - 1]).to_objects()
    assert drawn.tolist() == [
        [
            0,
            0,
            8,
            -22,
            -8728694,
            116390270879,
            77348501471380264,
            5066421567958551958883577917,
            6,
            153810466196616866718343298509470959536464701556576758695954,
            0,
        ],
        [
            -2,
            1,
            35,
            8,
            -9200252,
            -293731127625,
            377142514066382467,
            1801253991508350403533939766,
            -11,
            960604251176028426573712385926838445473576991592008526813751,
            0,
        ],
        [
            0,
            4,
            -5,
            -15,
            50210089,
            938830945135,
            -3408286867409254,
            -2975740748283354609180403226,
            7,
            -1790194370291460615042614814915508542966953496912509618306576,
            0,
        ],
    ]
