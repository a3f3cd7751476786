"""Keys, secrets and digests."""

import copy
import hashlib
import hmac
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.lift.errors import ParameterError
from trilift.stream.keys import (
    DigestBuilder,
    Secret,
    derive_key,
    length_prefixed,
    new_key,
    new_stream_id,
    simulation_key,
)

MASTER, STREAM, DIGEST = bytes(range(32)), bytes(range(16)), bytes(range(100, 132))


def test_derivation_is_hkdf_sha256_with_the_documented_info() -> None:
    def prefixed(data: bytes) -> bytes:
        return len(data).to_bytes(8, "little") + data

    info = prefixed(b"trilift/noise/1") + prefixed(b"turnstile/counter/7") + prefixed(DIGEST)
    pseudorandom = hmac.new(STREAM, MASTER, hashlib.sha256).digest()
    expected = hmac.new(pseudorandom, info + b"\x01", hashlib.sha256).digest()
    assert derive_key(MASTER, stream_id=STREAM, purpose="turnstile/counter/7", digest=DIGEST) == expected


def test_every_input_of_the_derivation_changes_the_key() -> None:
    base = {"stream_id": STREAM, "purpose": "a", "digest": DIGEST}
    flipped = bytes([1]) + bytes(31)
    keys = {
        bytes(derive_key(MASTER, **base)),
        bytes(derive_key(flipped, **base)),
        bytes(derive_key(MASTER, **{**base, "stream_id": flipped[:16]})),
        bytes(derive_key(MASTER, **{**base, "purpose": "a/b"})),
        bytes(derive_key(MASTER, **{**base, "purpose": "b"})),
        bytes(derive_key(MASTER, **{**base, "digest": flipped})),
    }
    assert len(keys) == 6


@pytest.mark.parametrize(
    "change",
    [
        {"master": b"short"},
        {"master": "0" * 32},
        {"stream_id": bytes(15)},
        {"digest": bytes(31)},
        {"purpose": ""},
        {"purpose": b"a"},
    ],
)
def test_derivation_refuses_wrong_lengths_and_types(change) -> None:
    arguments = {"master": MASTER, "stream_id": STREAM, "purpose": "a", "digest": DIGEST} | change
    with pytest.raises(ParameterError):
        derive_key(arguments.pop("master"), **arguments)


def test_errors_do_not_show_key_bytes() -> None:
    with pytest.raises(ParameterError) as refusal:
        derive_key(b"topsecret", stream_id=STREAM, purpose="a", digest=DIGEST)
    assert "topsecret" not in str(refusal.value)


def test_fresh_keys_differ_and_have_their_lengths() -> None:
    assert len(new_key()) == 32
    assert len(new_stream_id()) == 16
    assert new_key() != new_key()
    assert new_stream_id() != new_stream_id()


def test_secrets_hide_themselves_but_remain_bytes() -> None:
    secret = Secret(b"abc")
    shown = (repr(secret), str(secret), f"{secret}", f"{[secret]}", format(secret, ">20"))
    assert not any("abc" in text for text in shown)
    assert secret == b"abc"
    assert isinstance(derive_key(MASTER, stream_id=STREAM, purpose="a", digest=DIGEST), Secret)
    assert isinstance(new_key(), Secret)
    assert "abc" not in repr(copy.deepcopy(secret))


def test_simulation_keys_depend_on_the_seed_alone() -> None:
    seeds = (0, 1, -1, 255, 256, -256, 1 << 80)
    assert len({bytes(simulation_key(seed)) for seed in seeds}) == len(seeds)
    assert simulation_key(5) == simulation_key(np.int64(5))
    for bad in (True, 1.0, "1"):
        with pytest.raises(ParameterError):
            simulation_key(bad)


def test_length_prefix() -> None:
    assert length_prefixed(b"ab") == b"\x02" + bytes(7) + b"ab"


def digest(*fields) -> bytes:
    builder = DigestBuilder("test")
    for name, value in fields:
        builder.add(name, value)
    return builder.digest()


def test_digest_distinguishes_fields_types_and_shapes() -> None:
    square = np.arange(6).reshape(2, 3)
    variants = [
        [("a", 1)],
        [("b", 1)],
        [("a", -1)],
        [("a", 0)],
        [("a", "1")],
        [("a", b"1")],
        [("a", Fraction(1))],
        [("a", Fraction(1, 2))],
        [("a", np.array(1))],
        [("a", [1])],
        [("a", [1, 0])],
        [("a", [])],
        [("a", 1), ("b", 1)],
        [("b", 1), ("a", 1)],
        [("a", square)],
        [("a", square.T)],
        [("a", square.ravel())],
        [("a", [1 << 70])],
        [("a", [1 << 70, 1])],
        [("a", 1 << 70)],
        [("a", -(1 << 70))],
        [("a", "")],
        [("a", b"")],
    ]
    assert len({digest(*fields) for fields in variants}) == len(variants)
    assert DigestBuilder("one").digest() != DigestBuilder("other").digest()


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=8))
def test_digest_depends_on_values_not_on_dtypes(values) -> None:
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    as_list = digest(("a", values))
    assert as_list == digest(("a", objects)) == digest(("a", np.array(values, dtype=np.int64)))
    assert as_list == digest(("a", tuple(values)))
    if all(value >= 0 for value in values):
        assert as_list == digest(("a", np.array(values, dtype=np.uint64)))


def test_digest_reads_values_in_row_order_whatever_the_memory_layout() -> None:
    square = np.arange(6).reshape(2, 3)
    assert digest(("a", square)) == digest(("a", np.asfortranarray(square)))


@pytest.mark.parametrize(
    "bad",
    [1.0, True, None, np.array([1.0]), np.array([True]), [1.5], [True], np.array([1, 2.5], dtype=object)],
)
def test_digest_refuses_what_is_not_exact(bad) -> None:
    with pytest.raises(ParameterError):
        digest(("a", bad))


def test_digest_is_frozen() -> None:
    value = (
        DigestBuilder("trilift/noise/1")
        .add("epsilon", Fraction(1, 3))
        .add("purpose", "counter")
        .add("raw", b"\x00\x01")
        .add("n", -(1 << 70))
        .add("B", np.array([[1, -2], [3, 4]]))
        .add("sigma", [1 << 90, 5])
        .digest()
    )
    assert value.hex() == "aae3ad40a632565c42d45733966c5c309f9d7c66cfe01fdf2029b47936225b67"
