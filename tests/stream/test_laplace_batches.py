"""A draw depends on its address alone: no batch, chunk or other address matters."""

import itertools
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import LaplaceRows

STREAM = Keystream(simulation_key(30))
MIXED = [1, 3, 10, 10, 1 << 25, (1 << 40) + 1, 1 << 57, 3 << 90, 7, (1 << 200) + 1, Fraction(1, 3)]
TESTS = 24


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


def test_chunks_cannot_matter(monkeypatch) -> None:
    """However blocks are cut into chunks, the bits are the same; and a block is read once."""
    scales = [5] * 1300 + MIXED + [1 << 30] * 70
    blocks = np.arange(40)
    rows = LaplaceRows(scales)
    whole = rows.sample(STREAM, 0, blocks).to_objects()
    for chunk in (1, 50000, 1 << 30):
        monkeypatch.setattr("trilift.stream.laplace_bits._CHUNK_WORDS", chunk)
        assert (rows.sample(STREAM, 0, blocks).to_objects() == whole).all()
    reads: list[tuple[int, int]] = []

    class Recording(Keystream):
        def words(self, level, blocks, count, *, start=0):
            reads.append((start, start + count))
            return super().words(level, blocks, count, start=start)

    rows.sample(Recording(simulation_key(30)), 0, [0])
    first = 1024 * (TESTS + 1) // 2
    assert reads == [(0, first), (first, rows.words)]


def test_draws_of_different_addresses_differ() -> None:
    """Draws of about 130 bits: among these few, a coincidence has probability below 2^-100."""
    rows = LaplaceRows([1 << 130] * 4)
    values = [
        value
        for key, level in itertools.product((1, 2), (0, 1, 7))
        for value in rows.sample(Keystream(simulation_key(key)), level, [0, 1, 1 << 33]).to_objects().ravel()
    ]
    assert len(set(map(abs, values))) == len(values) == 72
