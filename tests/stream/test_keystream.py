"""The ChaCha20 word array: layout, independence of batching, disjoint addresses, refused overflows."""

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import PRIMARY, TAIL, TIE, Keystream, nonce, stream_blocks

MASK = 0xFFFFFFFF
KEY = simulation_key(20)


def chacha_block(key: bytes, counter: int, nonce_bytes: bytes) -> list[int]:
    """RFC 8439 section 2.3, written from the text: the 16 words of one block."""
    state = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key), counter]
    state += struct.unpack("<3I", nonce_bytes)
    x = list(state)

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for target, source, mixed, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[target] = (x[target] + x[source]) & MASK
            x[mixed] ^= x[target]
            x[mixed] = ((x[mixed] << turn) | (x[mixed] >> (32 - turn))) & MASK

    for _ in range(10):
        for i in range(4):
            quarter(i, i + 4, i + 8, i + 12)
        for i in range(4):
            quarter(i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12)
    return [(a + b) & MASK for a, b in zip(x, state, strict=True)]


def test_reference_block_function_meets_the_rfc() -> None:
    words = chacha_block(bytes(range(32)), 1, bytes.fromhex("000000090000004a00000000"))
    assert words[:4] == [0xE4E7F110, 0x15593BD1, 0x1FDD0F50, 0xC47120A3]
    assert words[-1] == 0x4E3C50A2


@pytest.mark.parametrize(
    ("level", "block", "q"),
    [(0, 0, 0), (0, 0, 31), (3, 7, 16), ((1 << 20) - 1, (1 << 64) - 1, 1000), (1, 1 << 40, (1 << 32) - 1)],
)
def test_primary_words_are_where_the_layout_says(level, block, q) -> None:
    expected = chacha_block(KEY, q // 16, struct.pack("<IQ", level, block))[q % 16]
    assert Keystream(KEY).words(level, [block], 1, start=q)[0, 0] == expected


@pytest.mark.parametrize(("region", "bits"), [(TIE, 0b10), (TAIL, 0b11)])
def test_further_words_are_where_the_layout_says(region, bits) -> None:
    words = Keystream(KEY).further(region, 5, 1 << 63, MASK)
    for step in (0, 1):
        field = bits << 30 | step << 20 | 5
        expected = chacha_block(KEY, MASK, struct.pack("<IQ", field, 1 << 63))
        assert list(itertools.islice(words, 16)) == expected


@settings(max_examples=60, deadline=None)
@given(
    blocks=st.lists(st.integers(0, (1 << 64) - 1), max_size=5),
    level=st.integers(0, (1 << 20) - 1),
    start=st.integers(0, 100),
    count=st.integers(0, 100),
)
def test_reads_agree_however_they_are_batched(blocks, level, start, count) -> None:
    stream = Keystream(KEY)
    together = stream.words(level, blocks, count, start=start)
    assert together.shape == (len(blocks), count)
    assert together.dtype == np.dtype("<u4")
    for i, block in enumerate(blocks):
        longer = stream.words(level, np.array([block], dtype=np.uint64), start + count)
        assert (together[i] == longer[0, start:]).all()


def test_distinct_addresses_read_distinct_keystream() -> None:
    """All 64-byte pieces of a small configuration differ (two random ones would coincide with
    probability 2^-512), so no two addresses share keystream."""
    stream = Keystream(KEY)
    pieces = []
    for level in (0, 1, 2, 1 << 19):
        primary = stream.words(level, [0, 1, 2, 1 << 32], 64)
        pieces += [piece.tobytes() for row in primary for piece in row.reshape(-1, 16)]
        for block, region, address in itertools.product((0, 1, 2, 1 << 32), (TIE, TAIL), range(6)):
            words = stream.further(region, level, block, address)
            pieces += [struct.pack("<16I", *itertools.islice(words, 16)) for _ in range(3)]
    assert len(set(pieces)) == len(pieces) == 4 * 4 * (4 + 2 * 6 * 3)


def test_nonces_are_injective() -> None:
    corners = {"step": (0, 1, 1023), "level": (0, 1, (1 << 20) - 1), "counter": (0, 1, MASK)}
    corners["block"] = (0, 1, 1 << 32, (1 << 64) - 1)
    names = list(corners)
    made = [
        nonce(region, **dict(zip(names, values, strict=True)))
        for region in (PRIMARY, TIE, TAIL)
        for values in itertools.product(*corners.values())
    ]
    assert len(set(made)) == len(made)
    assert {len(item) for item in made} == {16}


@pytest.mark.parametrize(
    "change",
    [
        {"counter": 1 << 32},
        {"counter": -1},
        {"block": 1 << 64},
        {"block": -1},
        {"level": 1 << 20},
        {"step": 1 << 10},
        {"region": 4},
        {"level": True},
        {"block": 1.0},
    ],
)
def test_no_field_of_the_nonce_overflows(change) -> None:
    fields = {"region": PRIMARY, "step": 0, "level": 0, "block": 0, "counter": 0} | change
    with pytest.raises(ParameterError):
        nonce(fields.pop("region"), **fields)


def test_reads_past_the_counter_are_refused_not_wrapped() -> None:
    stream = Keystream(KEY)
    assert stream.words(0, [0], 16, start=(1 << 32) - 16).shape == (1, 16)
    for start, count in (((1 << 32) - 16, 17), (1 << 32, 1), (-1, 1), (0, -1)):
        with pytest.raises(ParameterError):
            stream.words(0, [0], count, start=start)
    with pytest.raises(ParameterError):
        stream.words(1 << 20, [0], 1)
    with pytest.raises(ParameterError):
        stream.words(1 << 20, [], 1)
    with pytest.raises(ParameterError):
        next(stream.further(TIE, 0, 0, 1 << 32))
    with pytest.raises(ParameterError):
        next(stream.further(PRIMARY, 0, 0, 0))


def test_further_words_end_in_a_refusal_and_do_not_repeat() -> None:
    words = Keystream(KEY).further(TAIL, 0, 0, 0)
    seen = list(itertools.islice(words, 1 << 14))
    assert len(set(seen)) > (1 << 14) - 10  # 2^14 random words have about 0.03 coincidences
    with pytest.raises(StateError, match="exhausted"):
        next(words)


@pytest.mark.parametrize(
    "bad", [[-1], [1 << 64], [1.0], [True], np.array([-1]), np.array([[1]]), np.array([0.5])]
)
def test_block_numbers_are_checked(bad) -> None:
    with pytest.raises(ParameterError):
        stream_blocks(bad)


def test_keys_are_checked_and_hidden() -> None:
    for bad in (bytes(31), "0" * 32, bytearray(32)):
        with pytest.raises(ParameterError):
            Keystream(bad)
    assert repr(Keystream(b"k" * 32)) == "Keystream(<secret, 32 bytes>)"


def test_words_are_frozen() -> None:
    stream = Keystream(simulation_key(7))
    assert stream.words(2, [3, (1 << 64) - 1], 2, start=15).tolist() == [
        [3505190895, 3633008029],
        [3317053538, 515903713],
    ]
    assert list(itertools.islice(stream.further(TAIL, 2, 3, 4), 2)) == [2011894319, 1658524773]
