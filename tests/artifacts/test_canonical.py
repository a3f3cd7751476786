"""The canonical bytes: a hand-written example, wide numbers, and independence of the representation."""

import hashlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.artifacts import canonical_bytes, digest
from trilift.artifacts.canonical import from_limbs, limbs_needed, to_limbs
from trilift.lift import Dyadic, Stage
from trilift.lift.errors import ParameterError


def test_bytes_of_a_stage_written_by_hand():
    stage = Stage(Dyadic([[2], [6]], 2), Dyadic([[4, -2]], 1), Dyadic([0, 0], 5), Dyadic([1 << 64]))
    words = struct.pack
    expected = (
        b"trilift/stage/1\n"
        + b"A shape=2,1 exponent=1 limbs=1\n"
        + words("<2q", 1, 3)
        + b"B shape=1,2 exponent=0 limbs=1\n"
        + words("<2q", 2, -1)
        + b"w shape=2 exponent=0 limbs=1\n"
        + words("<2q", 0, 0)
        + b"g shape=1 exponent=0 limbs=2\n"
        + words("<2Q", 0, 1)
    )
    assert canonical_bytes(stage) == expected
    assert digest(stage) == hashlib.sha256(expected).hexdigest()


@given(st.integers(-(2**200), 2**200))
def test_words_are_least_and_invertible(value):
    num = Dyadic([value]).num
    words = to_limbs(num)
    count = limbs_needed(num)
    assert [int(x) for x in from_limbs(words, 1)] == [value]
    assert -(1 << (64 * count - 1)) <= value < 1 << (64 * count - 1)
    if count > 1:
        assert not -(1 << (64 * count - 65)) <= value < 1 << (64 * count - 65)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**127, -(2**127)])
def test_words_at_the_edges(value):
    num = np.array([value, 0], dtype=object)
    assert [int(x) for x in from_limbs(to_limbs(num), 1)] == [value, 0]
    assert limbs_needed(num) == (
        1 if -(2**63) <= value < 2**63 else 2 if value in (2**63, -(2**63) - 1, -(2**127)) else 3
    )


@given(
    st.lists(st.integers(-(2**70), 2**70), min_size=6, max_size=6),
    st.integers(0, 80),
    st.integers(0, 70),
)
def test_equal_numbers_have_equal_bytes(entries, exponent, more):
    def stage(shift):
        numbers = [entry << shift for entry in entries]
        A, B = np.array(numbers[:2], dtype=object)[:, None], np.array(numbers[2:4], dtype=object)[None, :]
        return Stage(
            Dyadic(A, exponent + shift),
            Dyadic(B, exponent + shift),
            Dyadic([0, 1]),
            Dyadic(numbers[4:5], exponent + shift),
        )

    assert digest(stage(0)) == digest(stage(more))


def test_any_changed_entry_changes_the_hash(tree):
    base = tree.stage
    for name in "ABwg":
        num = np.array(getattr(base, name).num)
        num.flat[-1] += 1
        parts = {other: getattr(base, other) for other in "ABwg"} | {name: Dyadic(num)}
        assert digest(Stage(**parts)) != digest(base)


def test_transposed_shapes_are_told_apart():
    one = Stage(Dyadic([[1, 1]]), Dyadic([[1], [1]]), Dyadic([1]), Dyadic([0, 0]))
    other = Stage(Dyadic([[1], [1]]), Dyadic([[1, 1]]), Dyadic([1, 0]), Dyadic([0]))
    assert digest(one) != digest(other)


def test_floats_have_no_canonical_bytes():
    with pytest.raises(ParameterError, match="exact stage"):
        digest(Stage.plain(np.tril(np.ones((2, 2))), np.eye(2)))
