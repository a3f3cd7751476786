"""Changing bytes at random, always in the same way for the same seed: fuzzing with nothing installed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

__all__ = ["mutants"]

_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")
_WORD = re.compile(rb'"[^"]{0,40}"|null|true|false')
_NUMBERS = (
    b"0", b"-1", b"1", b"-0.0", b"0.5", b"4294967296", b"9223372036854775807", b"9223372036854775808",
    b"18446744073709551616", b"1e309", b"1e-320", b"1e999999999", b"1" + b"0" * 400, b"NaN", b"-Infinity",
)  # fmt: skip
_WORDS = (
    b"null", b"true", b"[]", b"{}", b'""', b'"\\ud800"', b'"1/0"', b'"1e999999999"', b'"-1"', b'"0"',
    b'"1/3"', b'[[]]', b'{"a": 1, "a": 2}', b'"x"', b'"' + b"9" * 2000 + b'"', b'"nan"', b'"0x1p5000"',
)  # fmt: skip
_PIECES = (
    b"\0", b"\xff\xff\xff\xff", b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"\x93NUMPY", b"|O", b"\n",
    b"\r", b'"', b",", b"\xef\xbb\xbf", b"\xff\xfe", b"[" * 2000, "１".encode(), b"\x80\x04.",
)  # fmt: skip


def mutants(seeds: Sequence[bytes], *, count: int, seed: int) -> Iterator[bytes]:
    """Yield the seeds, then ``count`` inputs made from them: bits, bytes, numbers and words are changed.

    Args:
        seeds: inputs to start from.
        count: how many to make.
        seed: decides everything.
    """
    yield from seeds
    rng = random.Random(seed)
    for _ in range(count):
        data = rng.choice(seeds)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            data = _changed(data, rng, seeds)
        yield data


def _changed(data: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    way = rng.randrange(8)
    if way in (0, 1):  # what stands in JSON and in headers of arrays
        found = list((_NUMBER if way == 0 else _WORD).finditer(data))
        if found:
            place = rng.choice(found)
            put = rng.choice(_NUMBERS if way == 0 else _WORDS)
            return data[: place.start()] + put + data[place.end() :]
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((1, 1, 2, 4, 8, 64)))
    if way == 2:
        return data[:start]
    if way == 3:
        return data[:start] + data[end:]
    if way == 4:
        return data[:start] + rng.choice(_PIECES) + data[start:]
    if way == 5:
        other = rng.choice(seeds)
        return data[:start] + other[rng.randrange(len(other) + 1) :]
    if way == 6:
        return data[:end] + data[start:end] + data[end:]
    if start == len(data):
        return data + b"\0"
    return data[:start] + bytes([data[start] ^ 1 << rng.randrange(8)]) + data[start + 1 :]
