"""Secrets and what is derived from them: master keys, per-purpose stream keys, digests of mechanisms.

A mechanism's noise is a pure function of (master key, stream identity, purpose, digest of everything else).
The master key and the stream identity come together from the operating system; the digest binds the
artifact, the widths, the scales and the sampler, so that a change of any of them changes the key and can
never reuse noise that was drawn for something else. HKDF is RFC 5869, the hash SHA-256 throughout.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray
from trilift.lift.checks import fail, integer

__all__ = [
    "KEY_BYTES",
    "NOISE_LABEL",
    "STREAM_ID_BYTES",
    "DigestBuilder",
    "Secret",
    "derive_key",
    "length_prefixed",
    "new_key",
    "new_stream_id",
    "simulation_key",
]

KEY_BYTES = 32
STREAM_ID_BYTES = 16
DIGEST_BYTES = 32
NOISE_LABEL = b"trilift/noise/1"
_SIMULATION_LABEL = b"trilift/simulation only, not secret/1"
_INT64 = np.iinfo(np.int64)

Field = bytes | str | int | Fraction | NDArray[Any] | Sequence[int]


class Secret(bytes):
    """Bytes that do not show themselves: ``repr``, ``str`` and formatting print the length alone.

    It stops keys from reaching logs and tracebacks by accident; it is no protection against code that
    means to read them, and slices or concatenations are plain bytes again.

    >>> Secret(b"abc")
    <secret, 3 bytes>
    """

    def __repr__(self) -> str:
        return f"<secret, {len(self)} bytes>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


def new_key() -> Secret:
    """Draw a master key of 32 bytes from the operating system."""
    return Secret(os.urandom(KEY_BYTES))


def new_stream_id() -> bytes:
    """Draw a stream identity of 16 bytes from the operating system (public, but never used twice)."""
    return os.urandom(STREAM_ID_BYTES)


def simulation_key(seed: int, *, name: str = "seed") -> Secret:
    """Make a key from a public seed: for tests and simulations only, such noise protects nobody.

    Args:
        seed: any integer; equal seeds give equal keys.
        name: what to call it in an error.

    Raises:
        ParameterError: if ``seed`` is not an integer.
    """
    payload = length_prefixed(_SIMULATION_LABEL) + length_prefixed(_signed(integer(name, seed)))
    return Secret(hashlib.sha256(payload).digest())


def length_prefixed(data: bytes) -> bytes:
    """Return ``data`` behind its length (8 bytes, little endian): joined fields cannot be confused."""
    return len(data).to_bytes(8, "little") + data


def _exact_bytes(name: str, value: object, length: int) -> bytes:
    if not isinstance(value, bytes) or len(value) != length:
        kind = f"{len(value)} bytes" if isinstance(value, bytes) else type(value).__name__
        raise fail(name, f"bytes of length {length}", Secret(value) if isinstance(value, bytes) else kind)
    return value


def derive_key(master: bytes, *, stream_id: bytes, purpose: str, digest: bytes) -> Secret:
    """Derive the 32-byte key of one purpose of one stream by HKDF-SHA256 (RFC 5869).

    Two different (stream identity, purpose, digest) give independent keys. Equal ones give the same key,
    hence the same noise: the caller sees to it that a purpose is used once per master key.

    Args:
        master: 32 bytes, as from :func:`new_key`.
        stream_id: 16 bytes, as from :func:`new_stream_id`; the salt.
        purpose: path of what the noise is for, such as ``"turnstile/counter/7"``; not empty.
        digest: 32 bytes, as from :class:`DigestBuilder`, of everything that the noise depends on.

    Raises:
        ParameterError: if a length or a type is wrong.
    """
    _exact_bytes("master", master, KEY_BYTES)
    _exact_bytes("stream_id", stream_id, STREAM_ID_BYTES)
    _exact_bytes("digest", digest, DIGEST_BYTES)
    if not isinstance(purpose, str) or not purpose:
        raise fail("purpose", "a string that is not empty", purpose)
    info = b"".join(map(length_prefixed, (NOISE_LABEL, purpose.encode(), digest)))
    kdf = HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=stream_id, info=info)
    return Secret(kdf.derive(bytes(master)))


def _signed(value: int) -> bytes:
    """Encode an integer of any size, one encoding per value: a sign byte, then the magnitude."""
    magnitude = abs(value)
    sign = b"-" if value < 0 else b"+"
    return sign + magnitude.to_bytes((magnitude.bit_length() + 7) // 8, "little")


class DigestBuilder:
    """SHA-256 over named, typed, length-prefixed fields.

    The encoding depends on the values alone: an integer array gives the same digest whether it is held
    as int8, int64 or Python integers, and two different sequences of fields never encode alike.

    Args:
        domain: what the digest is of; bound first.

    >>> a = DigestBuilder("example").add("n", 3).add("B", np.eye(2, dtype=np.int8)).digest()
    >>> b = DigestBuilder("example").add("n", 3).add("B", np.eye(2, dtype=np.int64).astype(object)).digest()
    >>> a == b
    True
    """

    def __init__(self, domain: str) -> None:
        self._hash = hashlib.sha256(length_prefixed(domain.encode()))

    def add(self, name: str, value: Field) -> Self:
        """Append one field and return the builder.

        Args:
            name: the field's name, bound with it.
            value: bytes, string, integer of any size, Fraction, integer array (shape bound too, any
                integer dtype or objects holding integers) or a sequence of integers (as the 1-d array).

        Raises:
            ParameterError: for any other type, floats and booleans among them.
        """
        tag, payload = _encode_field(name, value)
        for part in (name.encode(), tag, payload):
            self._hash.update(length_prefixed(part))
        return self

    def digest(self) -> bytes:
        """Return the 32 bytes of the digest of the fields so far."""
        return self._hash.digest()


def _encode_field(name: str, value: object) -> tuple[bytes, bytes]:
    if isinstance(value, bytes):
        return b"bytes", bytes(value)
    if isinstance(value, str):
        return b"text", value.encode()
    if isinstance(value, Fraction):
        parts = (_signed(value.numerator), _signed(value.denominator))
        return b"ratio", b"".join(map(length_prefixed, parts))
    if isinstance(value, np.ndarray):
        return _encode_array(name, value)
    if isinstance(value, Sequence):
        items = np.empty(len(value), dtype=object)
        items[:] = [integer(name, item) for item in value]
        return _encode_array(name, items)
    return b"integer", _signed(integer(name, value))


def _encode_array(name: str, array: NDArray[Any]) -> tuple[bytes, bytes]:
    if array.dtype.kind not in "iuO":
        raise fail(name, "an integer array", array.dtype)
    shape = b"".join(map(length_prefixed, map(_signed, array.shape)))
    prefix = length_prefixed(shape)
    if array.dtype.kind == "i":
        return b"array/64", prefix + np.ascontiguousarray(array, dtype="<i8").tobytes()
    values = [integer(name, item) for item in array.ravel().tolist()]
    if all(_INT64.min <= item <= _INT64.max for item in values):
        return b"array/64", prefix + np.array(values, dtype="<i8").tobytes()
    return b"array/any", prefix + b"".join(map(length_prefixed, map(_signed, values)))
