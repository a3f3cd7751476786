"""Artifacts that are damaged or made to do harm, by name: what is wrong with each is one thing.

Every case starts from a shipped stage of size 9 and is refused by every reader of artifacts.
"""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from trilift.artifacts.listing import SHIPPED
from trilift.experiments.trust.forgery import Forger, plain_npy

__all__ = ["ARCHIVES", "LOADER_ALONE", "Tripwire", "small_artifact", "unpickled"]

unpickled: list[str] = []
"""What was unpickled: nothing, ever."""


class Tripwire:
    """Unpickling this is noticed."""

    def __reduce__(self) -> Any:
        return (unpickled.append, ("a pickle was loaded",))


@cache
def small_artifact(name: str = "stage-max-9") -> bytes:
    """Return the bytes of a shipped artifact."""
    return (SHIPPED / f"{name}.npz").read_bytes()


def _forger() -> Forger:
    return Forger(small_artifact())


def _put(name: str, data: bytes) -> bytes:
    """Return the file with other bytes as one of its members."""
    return _forger().put(name, data).packed()


def _member(name: str) -> bytes:
    return _forger().members[f"{name}.npy"]


def _objects() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([Tripwire()], dtype=object), allow_pickle=True)
    return file.getvalue()


def _numbers(name: str) -> Any:
    return np.load(io.BytesIO(_forger().members[f"{name}.npy"]))


def _array(name: str, array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return _forger().put(name, file.getvalue()).packed()


def _patched(where: str, offset: int, fmt: str, value: int) -> bytes:
    """Change a field of A's entry in the directory, of the header before it, or of the end record."""
    whole = bytearray(small_artifact())
    with zipfile.ZipFile(io.BytesIO(bytes(whole))) as archive:
        local = archive.getinfo("A.npy").header_offset
    place = {"directory": whole.rindex(b"A.npy") - 46, "local": local, "end": len(whole) - 22}[where] + offset
    struct.pack_into(fmt, whole, place, value)
    return bytes(whole)


def _names(*names: str) -> list[str]:
    return [f"{name}.npy" for name in names]


@cache
def _bomb() -> bytes:
    return _put("A", plain_npy("<i8", (9, 2**18), bytes(9 * 2**21)))


def _nested() -> bytes:
    return _put("A", _bomb())


def _text(change: Callable[[str], str | bytes]) -> bytes:
    made = change(_forger().header_text.decode("ascii"))
    return _forger().set_raw_header(made if isinstance(made, bytes) else made.encode()).packed()


def _first(text: str, more: str) -> str:
    """Put something in front of the other fields of the header."""
    return "{" + more + "," + text[1:]


def _changed_number() -> bytes:
    num = np.array(_numbers("B"))
    num[0, 0] += 2
    return _array("B", num)


def _others_claims() -> bytes:
    other = Forger(small_artifact("stage-mean-9")).header
    return _forger().set_header(certificate=other["certificate"]).packed()


def _shape(*shape: int) -> Callable[[], bytes]:
    return lambda: _put("A", plain_npy("<i8", shape))


def _type(descr: str, size: int = 8) -> Callable[[], bytes]:
    return lambda: _put("A", plain_npy(descr, (9, 19), bytes(9 * 19 * size)))


def _header(**changes: Any) -> Callable[[], bytes]:
    return lambda: _forger().set_header(**changes).packed()


def _claim(**changes: Any) -> Callable[[], bytes]:
    return lambda: _forger().set_claim(**changes).packed()


_MEMBERS = ("header", "A", "B", "w", "g")

ARCHIVES: dict[str, dict[str, Callable[[], bytes]]] = {
    "pickles and object arrays": {
        "an object array": lambda: _put("A", _objects()),
        "an object array as header": lambda: _put("header", _objects()),
        "a pickle as a member": lambda: _put("B", pickle.dumps(Tripwire())),
        "a pickle as the file": lambda: pickle.dumps(Tripwire()),
        "an .npy file": lambda: plain_npy("<i8", (2, 2), bytes(32)),
        "an object .npy file": _objects,
    },
    "members of the archive": {
        "one missing": lambda: _forger().packed(_names(*_MEMBERS[:4])),
        "another order": lambda: _forger().packed(_names(*_MEMBERS[::-1])),
        "one twice": lambda: _forger().packed(_names(*_MEMBERS, "A")),
        "one instead of another": lambda: _forger().packed(_names(*_MEMBERS[:4], "A")),
        "a further one": lambda: _put("extra", b""),
        "no members": lambda: _forger().packed([]),
        "not deflated": lambda: _forger().packed(method=zipfile.ZIP_BZIP2),
        "lzma": lambda: _forger().packed(method=zipfile.ZIP_LZMA),
        "an empty file": lambda: b"",
        "something before": lambda: b"#!/bin/sh\n" + small_artifact(),
        "something behind": lambda: small_artifact() + b"\0",
        "two archives": lambda: small_artifact() + small_artifact(),
        "a comment": lambda: small_artifact()[:-2] + b"\1\0x",
        "a member longer than its array": lambda: _forger().put("w", _member("w") + bytes(8)).packed(),
        "a member shorter than its array": lambda: _forger().put("w", _member("w")[:-8]).packed(),
    },
    "two headers that differ": {
        "the checksum in the directory": lambda: _patched("directory", 16, "<L", 1),
        "the checksum before the member": lambda: _patched("local", 14, "<L", 1),
        "the packed size in the directory": lambda: _patched("directory", 20, "<L", 5),
        "the size in the directory": lambda: _patched("directory", 24, "<L", 2**31),
        "the size before the member": lambda: _patched("local", 22, "<L", 2**31),
        "the name before the member": lambda: _patched("local", 30, "<B", ord("B")),
        "encrypted": lambda: _patched("directory", 8, "<H", 1),
        "sizes behind the member": lambda: _patched("local", 6, "<H", 8),
        "the method": lambda: _patched("directory", 10, "<H", 0),
        "the place of a member: over another": lambda: _patched("directory", 42, "<L", 0),
        "the place of a member: behind the end": lambda: _patched("directory", 42, "<L", 2**31),
        "the place of the directory": lambda: _patched("end", 16, "<L", 0),
        "the number of members": lambda: _patched("end", 10, "<H", 60000),
        "a directory of 4 GiB": lambda: _patched("end", 12, "<L", 2**32 - 1),
    },
    "bombs and declared sizes": {
        "18 MiB of zeros as A": _bomb,
        "a bomb inside": _nested,
        "a header of 16 MiB": lambda: _forger().set_raw_header(b" " * 2**24).packed(),
        "2^40 elements": _shape(2**20, 2**20),
        "2^62 elements": _shape(2**31, 2**31),
        "2^40 in one axis": lambda: _put("A", plain_npy("<i8", (2**40,))),
        "a negative axis": _shape(-1, 9),
        "no axes": lambda: _put("A", plain_npy("<i8", (), bytes(8))),
        "64 axes": lambda: _put("A", plain_npy("<i8", (1,) * 64, bytes(8))),
        "an axis of words too many": _shape(9, 17, 17),
        "transposed": lambda: _array("A", _numbers("A").T.copy()),
    },
    "types and orders of arrays": {
        "floats": _type("<f8"),
        "complex numbers": _type("<c16", 16),
        "big-endian": _type(">i8"),
        "32 bits": _type("<i4", 4),
        "unsigned": _type("<u8"),
        "bytes": _type("|u1", 1),
        "text": _type("<U2"),
        "dates": _type("<M8[ns]"),
        "records": lambda: (
            _forger().put("A", plain_npy("[('a', '<i8')]", (9, 19), bytes(9 * 19 * 8))).packed()
        ),
        "Fortran order": lambda: _array("A", np.asfortranarray(_numbers("A"))),
        "an expression": lambda: _put("A", plain_npy("<i8' + print('x') + '", (9, 19))),
        "another version of .npy": lambda: _forger().put("A", b"\x93NUMPY\2" + _member("A")[7:]).packed(),
    },
    "headers that are no JSON object, or an odd one": {
        "a field twice": lambda: _text(lambda text: _first(text, '"size": 9')),
        "NaN": lambda: _text(lambda text: _first(text, '"x": NaN')),
        "a million digits": lambda: _text(lambda text: _first(text, '"x": ' + "9" * 10**6)),
        "1e999999999": lambda: _text(lambda text: _first(text, '"x": 1e999999999')),
        "deep nesting": lambda: _text(lambda text: "[" * 10**5),
        "half of a pair": lambda: _text(lambda text: text.replace('"notes": "', '"notes": "\\ud800')),
        "cut off": lambda: _text(lambda text: text[:-1]),
        "UTF-16": lambda: _text(lambda text: text.encode("utf-16")),
        "a byte order mark": lambda: _text(lambda text: b"\xef\xbb\xbf" + text.encode()),
        "null": lambda: _text(lambda text: "null"),
        "a list": lambda: _text(lambda text: f"[{text}]"),
        "nothing": lambda: _text(lambda text: ""),
    },
    "fields of the header": {
        "another format": _header(format="other"),
        "a newer version": _header(version=3),
        "a much newer version": _header(version=10**4000),
        "version true": _header(version=True),
        "another size": _header(size=5),
        "a huge size": _header(size=10**6),
        "a negative inner": _header(inner=-1),
        "another tail": _header(tail=3),
        "another kind": _header(kind="direct"),
        "exponents missing": _header(exponents={"A": 0}),
        "a huge exponent": _header(exponents={"A": 10**9, "B": 0, "w": 0, "g": 0}),
        "no certificate": _header(certificate=None),
    },
    "certificates": {
        "numbers that were changed": _changed_number,
        "those of another matrix": _others_claims,
        "another hash": _claim(sha256="0" * 64),
        "no hash": _claim(sha256=""),
        "a sensitivity over zero": _claim(sensitivity="1/0"),
        "a sensitivity as a decimal": _claim(sensitivity="1.5"),
        "a sensitivity of 10^6 digits": _claim(sensitivity="1" * 10**6 + "/1"),
        "a kappa of text": _claim(kappa_max="0.1"),
        "a negative kappa": _claim(kappa_max=-1.0),
        "a kappa true": _claim(kappa_max=True),
    },
}
"""Cases by what they are about: a name, and a function that makes the bytes."""

LOADER_ALONE = ("1e999999999", "half of a pair")
"""Cases about fields that the standalone checker does not read: it proves the rest of the file."""
