"""The sampler word by word: model draws, ties, tail events, extreme keystreams, batching, conversions."""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.draws import Draws, Part
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import TAIL, TIE, Keystream
from trilift.stream.laplace import SAMPLER_ID, LaplaceRows, row_words
from trilift.stream.thresholds import digit, nonzero, tail

STREAM = Keystream(simulation_key(30))
MIXED = [1, 3, 10, 10, 1 << 25, (1 << 40) + 1, 1 << 57, 3 << 90, 7, (1 << 200) + 1]


class Scripted:
    """A keystream double: one array of primary words for all blocks, a function for the further ones."""

    def __init__(self, primary: list[int], further: Callable[[int, int], Iterator[int]]) -> None:
        self.primary = np.array(primary, dtype=np.uint32)
        self.answer = further
        self.asked: list[tuple[int, int, int, int]] = []

    def words(self, level, blocks, count, *, start=0):
        return np.tile(self.primary[start : start + count], (len(blocks), 1))

    def further(self, region, level, block, address):
        self.asked.append((region, level, block, address))
        return self.answer(region, address)


def refuse(region: int, address: int) -> Iterator[int]:
    raise AssertionError("further words were asked for")


def draw(scale: int, primary: list[int], further=refuse) -> int:
    draws = LaplaceRows([scale]).sample(Scripted(primary, further), 0, [0])
    (value,) = draws.block(0)
    assert draws.to_objects().tolist() == [[value]]
    return value


def limit(scale: int, word: int) -> int:
    """First 32 bits of the probability behind a word, by Arb."""
    flint.ctx.prec = 1000
    digits = row_words(scale) - 3
    if word == 1:
        return 1 << 31
    exponent = {0: Fraction(1, scale), 2: Fraction(1 << digits, scale)}.get(word)
    exponent = exponent or Fraction(1 << (word - 3), scale)
    e = (flint.arb(exponent.numerator) / exponent.denominator).exp()
    p = {0: 2 / (1 + e), 2: 1 / e}.get(word, 1 / (1 + e))
    return int((p * (1 << 32)).floor().unique_fmpz())


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(MIXED), st.data())
def test_every_pattern_of_comparisons_gives_its_value(scale, data) -> None:
    """Words just below and just above each limit: nonzero, sign, digits read off as defined."""
    words = row_words(scale)
    limits = [limit(scale, word) for word in range(words)]
    wanted = [data.draw(st.booleans()) and value > 0 for value in limits]
    wanted[2] = False
    primary = [
        value - 1 if yes else min(value + 1, 0xFFFFFFFF) for value, yes in zip(limits, wanted, strict=True)
    ]
    if limits[0] == 0xFFFFFFFF and not wanted[0]:  # only a tie can be "not below"
        primary[0], wanted[0] = 0xFFFFFFFE, True
    magnitude = 1 + sum(bit << j for j, bit in enumerate(wanted[3:]))
    assert draw(scale, primary) == (0 if not wanted[0] else -magnitude if wanted[1] else magnitude)


def test_draws_agree_with_a_model_that_compares_rationals() -> None:
    """Every draw of a mixed level, recomputed from its own words with limits by Arb."""
    rows = LaplaceRows(MIXED)
    blocks = [0, 5, (1 << 64) - 1]
    words = STREAM.words(3, blocks, rows.words)
    drawn = rows.sample(STREAM, 3, blocks).to_objects()
    assert rows.words == sum(map(row_words, MIXED))
    for i in range(len(blocks)):
        start = 0
        for k, scale in enumerate(MIXED):
            mine = [int(word) for word in words[i, start : start + row_words(scale)]]
            start += row_words(scale)
            bits = [word < limit(scale, n) for n, word in enumerate(mine)]
            magnitude = 1 + sum(bit << j for j, bit in enumerate(bits[3:]))
            assert not bits[2]
            assert drawn[i, k] == (0 if not bits[0] else -magnitude if bits[1] else magnitude)


RULES = {0: nonzero, 2: lambda scale: tail(row_words(scale) - 3, scale)}


@pytest.mark.parametrize("scale", [1, 10, (1 << 25) + 1, 3 << 90])
@pytest.mark.parametrize("word", [0, 3, 4, 9, "last", 2])
@pytest.mark.parametrize("matched", [1, 2, 9])
def test_ties_are_decided_by_further_digits(scale, word, matched) -> None:
    """The word equals its limit, and so do some further ones; then one unit below or above decides."""
    word = row_words(scale) - 1 if word == "last" else word
    rule = RULES[word](scale) if word in RULES else digit(word - 3, scale)
    bits = 32 * (matched + 1)
    # nonzero, positive, no tail, all digits 0 unless tied
    primary = [0] + [0xFFFFFFFF] * (row_words(scale) - 1)
    if limit(scale, 0) == 0:
        raise AssertionError("zero test can always be below")
    primary[word] = limit(scale, word)
    for change in (-1, 0, 1):
        value = rule.floor(bits) + change
        if value < 0 or value >> 32 * matched != primary[word]:
            continue

        def further(region: int, address: int, value: int = value) -> Iterator[int]:
            if region == TAIL:
                return itertools.repeat(0xFFFFFFFF)
            assert (region, address) == (TIE, word)
            rest = [value >> 32 * (matched - 1 - i) & 0xFFFFFFFF for i in range(matched)]
            return itertools.chain(rest, itertools.repeat(0xFFFFFFFF))

        below = Fraction(value + 1, 1 << bits) <= Fraction(rule.floor(bits + 64), 1 << bits + 64)
        source = draw(scale, primary, further)
        if word == 0:
            assert source == int(below)
        elif word == 2:
            assert source == 1 + (below << row_words(scale) - 3)
        else:
            assert source == 1 + (below << word - 3)


def test_a_tied_sign_is_positive_without_further_words() -> None:
    primary = [0, 1 << 31] + [0xFFFFFFFF] * (row_words(10) - 2)
    assert draw(10, primary) == 1
    primary[1] -= 1
    assert draw(10, primary) == -1


@pytest.mark.parametrize("scale", [1, 10, 1 << 25, 1 << 57, 3 << 90])
@pytest.mark.parametrize("again", [0, 1, 5])
@pytest.mark.parametrize("sign", [1, -1])
def test_forced_tail_events_continue_exactly(scale, again, sign) -> None:
    """Tail test won on a tie; then ``again`` more wins, each a run of zero words as long as p needs."""
    digits = row_words(scale) - 3
    lead = next(k for k in itertools.count(1) if tail(digits, scale).floor(32 * k))
    primary = [0, 0xFFFFFFFF if sign > 0 else 0, 0] + [0xFFFFFFFF] * digits
    primary[3] = 0  # digit 0 is set

    def further(region: int, address: int) -> Iterator[int]:
        if region == TIE:
            assert address == 2
            return itertools.repeat(0)
        assert (region, address) == (TAIL, 0)
        return iter([0] * lead * again + [0xFFFFFFFF])

    value = sign * (2 + ((1 + again) << digits))
    draws = LaplaceRows([scale]).sample(Scripted(primary, further), 0, [0])
    assert draws.block(0) == [value]
    assert draws.to_objects().tolist() == [[value]]
    assert draws.to_float().tolist() == [[float(value)]]
    if abs(value) < 1 << 63:
        assert draws.to_int64().tolist() == [[value]]
    else:
        with pytest.raises(StateError):
            draws.to_int64()


def test_further_words_are_asked_for_at_the_address_of_their_draw() -> None:
    """Rows in different pieces: a tie by its word in the block, a tail by its row in the level."""
    scales = [10, 1000, 10, 10]
    starts = [sum(map(row_words, scales[:k])) for k in range(5)]
    primary = [0xFFFFFFFF] * starts[4]
    primary[starts[3] : starts[3] + 3] = [0, 0xFFFFFFFF, 0]  # a tie of the tail test, and a tail event
    primary[starts[1] + 4] = limit(scales[1], 4)

    def further(region: int, address: int) -> Iterator[int]:
        return itertools.repeat(0 if region == TIE else 0xFFFFFFFF)

    source = Scripted(primary, further)
    block = (1 << 64) - 3
    draws = LaplaceRows(scales).sample(source, 6, [block])
    assert draws.block(0) == [0, 0, 0, 1 + (1 << row_words(10) - 3)]
    ties = [(TIE, 6, block, starts[1] + 4), (TIE, 6, block, starts[3] + 2)]
    assert sorted(source.asked) == [*ties, (TAIL, 6, block, 3)]


@pytest.mark.parametrize("scale", [1, 10, 1 << 25, 3 << 90])
def test_a_tail_event_of_a_zero_draw_is_ignored(scale) -> None:
    words = row_words(scale)
    primary = [0xFFFFFFFF, 0, 0] + [0] * (words - 3)

    def further(region: int, address: int) -> Iterator[int]:
        assert region == TIE
        return itertools.repeat(0xFFFFFFFF if address == 0 else 0)

    assert draw(scale, primary, further) == 0


@pytest.mark.parametrize("scale", MIXED)
def test_keystream_of_ones_gives_zero(scale) -> None:
    """U = 1 - 2^-k is below no p < 1, however far it must be compared."""
    ones = [0xFFFFFFFF] * row_words(scale)
    assert draw(scale, ones, lambda region, address: itertools.repeat(0xFFFFFFFF)) == 0


@pytest.mark.parametrize("scale", MIXED)
def test_keystream_of_zeros(scale) -> None:
    """U = 0 is below every p: all digits are set, and the tail goes on until the stream is refused."""
    digits = row_words(scale) - 3
    zeros = [0] * row_words(scale)

    def fair(region: int, address: int) -> Iterator[int]:
        return iter([1 << 31])

    set_bits = sum(1 << j for j in range(digits) if limit(scale, j + 3) > 0)
    assert draw(scale, zeros, fair) == -(1 + set_bits)

    def endless(region: int, address: int) -> Iterator[int]:
        return iter([0] * 1500)

    with pytest.raises(StateError):
        draw(scale, zeros, endless)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=12), st.data())
def test_batching_cannot_matter(blocks, data) -> None:
    rows = LaplaceRows(MIXED)
    together = rows.sample(STREAM, 1, blocks).to_objects()
    cut = data.draw(st.integers(0, len(blocks)))
    halves = [rows.sample(STREAM, 1, part).to_objects() for part in (blocks[:cut], blocks[cut:])]
    assert (np.concatenate(halves) == together).all()
    order = data.draw(st.permutations(range(len(blocks))))
    permuted = rows.sample(STREAM, 1, [blocks[i] for i in order]).to_objects()
    assert (permuted == together[list(order)]).all()


def test_pieces_and_chunks_cannot_matter(monkeypatch) -> None:
    """However rows are cut into pieces and blocks into chunks, the bits are the same; and the reads of the
    pieces cover the words of a block once each."""
    scales = [5] * 300 + MIXED + [1 << 30] * 70
    blocks = np.arange(40)
    whole = LaplaceRows(scales).sample(STREAM, 0, blocks).to_objects()
    for piece, chunk in ((64, 1), (640, 5000), (1 << 30, 1 << 30)):
        monkeypatch.setattr("trilift.stream.laplace._PIECE_WORDS", piece)
        monkeypatch.setattr("trilift.stream.laplace._CHUNK_WORDS", chunk)
        rows = LaplaceRows(scales)
        assert (rows.sample(STREAM, 0, blocks).to_objects() == whole).all()
        reads: list[tuple[int, int]] = []

        class Recording(Keystream):
            def words(self, level, blocks, count, *, start=0, reads=reads):
                reads.append((start, start + count))
                return super().words(level, blocks, count, start=start)

        rows.sample(Recording(simulation_key(30)), 0, [0])
        assert [word for begin, end in sorted(reads) for word in range(begin, end)] == list(range(rows.words))


def test_draws_of_different_addresses_differ() -> None:
    """Draws of about 130 bits: among these few, a coincidence has probability below 2^-100."""
    rows = LaplaceRows([1 << 130] * 4)
    values = [
        value
        for key, level in itertools.product((1, 2), (0, 1, 7))
        for value in rows.sample(Keystream(simulation_key(key)), level, [0, 1, 1 << 33]).to_objects().ravel()
    ]
    assert len(set(map(abs, values))) == len(values) == 72


@pytest.mark.parametrize("scale", [1, 1 << 20, 1 << 55, (1 << 55) + 1, 1 << 70, 3 << 90, 1 << 300])
def test_conversions_agree(scale) -> None:
    draws = LaplaceRows([scale, 2, scale]).sample(STREAM, 0, range(300))
    exact = draws.to_objects()
    floats = draws.to_float()
    assert exact.shape == floats.shape == draws.shape == (300, 3)
    assert exact.tolist() == [draws.block(i) for i in range(300)]
    for value, approximate in zip(exact.ravel(), floats.ravel().tolist(), strict=True):
        assert abs(Fraction(approximate) - value) * (1 << 52) <= abs(value)
        assert abs(value) >= 1 << 53 or approximate == value
    if max(map(abs, exact.ravel())) < 1 << 63:
        assert draws.to_int64().tolist() == exact.tolist()
        assert draws.to_int64().dtype == np.int64
    else:
        with pytest.raises(StateError):
            draws.to_int64()


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([0, 1, (1 << 32) - 1, 1 << 31, (1 << 21) - 1]), min_size=1, max_size=7),
    st.integers(0, 1 << 60),
    st.sampled_from([-1, 1]),
)
@example([(1 << 32) - 1] * 6, 0, 1)
def test_float_conversion_keeps_its_bound_on_hard_integers(halves, low, sign) -> None:
    """Magnitudes made of extreme 32-bit halves, given in packed form: |X| - 1, behind three flags."""
    magnitude = sum(half << 32 * k for k, half in enumerate(halves)) + low
    bits = magnitude << 3 | (1 if sign > 0 else 3)
    limbs = -(-bits.bit_length() // 64)
    packed = np.array([[[bits >> 64 * k & (1 << 64) - 1 for k in range(limbs)]]], dtype=np.uint64)
    draws = Draws((1, 1), [Part(range(1), packed)])
    exact = sign * (magnitude + 1)
    assert draws.block(0) == [exact]
    assert draws.to_objects().tolist() == [[exact]]
    assert abs(Fraction(float(draws.to_float()[0, 0])) - exact) * (1 << 52) < abs(exact)
    if abs(exact) < 1 << 63:
        assert draws.to_int64().tolist() == [[exact]]
    else:
        with pytest.raises(StateError):
            draws.to_int64()


def test_floats_that_do_not_exist_are_refused() -> None:
    draws = LaplaceRows([1 << 1100]).sample(STREAM, 0, range(4))
    with pytest.raises(StateError):
        draws.to_float()
    assert max(map(abs, draws.to_objects().ravel())) > 1 << 1024


def test_empty_batches_and_levels() -> None:
    assert LaplaceRows([3, 1 << 80]).sample(STREAM, 0, []).to_float().shape == (0, 2)
    assert LaplaceRows([]).sample(STREAM, 0, [1, 2]).to_int64().shape == (2, 0)


@pytest.mark.parametrize("bad", [[0], [-3], [1.0], [True], [3, None], np.array([2.0])])
def test_scales_are_checked(bad) -> None:
    with pytest.raises(ParameterError):
        LaplaceRows(bad)


def test_scales_may_be_arrays() -> None:
    rows = LaplaceRows(np.array([3, 4]))
    assert rows.scales == (3, 4)
    assert rows.words == 32


def test_draws_do_not_show_their_values() -> None:
    draws = LaplaceRows([1 << 60] * 2).sample(STREAM, 0, [0])
    assert repr(draws) == "Draws(shape=(1, 2))"


def test_draws_are_frozen() -> None:
    """Golden values: a change here needs another SAMPLER_ID, or restarts would draw other noise."""
    assert SAMPLER_ID == "trilift/laplace/1"
    rows = LaplaceRows(MIXED)
    drawn = rows.sample(Keystream(simulation_key(7)), 2, [0, 1, (1 << 64) - 1]).to_objects()
    assert drawn.tolist() == [
        [
            2,
            1,
            -21,
            6,
            -7754410,
            -33045560579,
            205530068897681410,
            -3923834022046103164258009127,
            -16,
            -1439965174191251889300511663974636917084978050296249926659574,
        ],
        [
            -1,
            -3,
            15,
            3,
            1693283,
            174025365825,
            14855023146761456,
            -10677755397042313935387361998,
            0,
            1049920072565670643223215706132899401373711134861620714352775,
        ],
        [
            -1,
            -8,
            -9,
            -25,
            21924172,
            1281252085208,
            74869752804006388,
            174266405842138954023945990,
            -11,
            -1486651149860089071813536816271844727051016056449225356694364,
        ],
    ]
