"""Headers of .npy arrays, read without trusting them: nothing is evaluated, and nothing allocated."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import IO, Any, Literal

import numpy as np
from trilift.lift.errors import ArtifactFormatError

__all__ = ["NpyHeader", "read_npy_header"]

_VERSIONS = (b"\1\0", b"\2\0", b"\3\0")
_MAX_HEADER = 4096
_HEADER = re.compile(
    r"\{'descr': '([<>|](?:f[248]|[iu][1248]|b1|[US][0-9]{1,8}))', 'fortran_order': (True|False), "
    r"'shape': \(((?:[0-9]{1,12},? ?)*)\), \} *\n"
)


@dataclass(frozen=True)
class NpyHeader:
    """What an .npy array says of itself.

    Attributes:
        dtype: numbers, truth values or text of fixed length.
        shape: its axes.
        order: "C" or "F".
        length: bytes of the file before the first entry.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    length: int

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        return math.prod((self.dtype.itemsize, *self.shape))


def read_npy_header(stream: IO[bytes]) -> NpyHeader:
    """Read the header of an .npy array up to the first entry, versions 1 to 3.

    Raises:
        ArtifactFormatError: it is none, or one of a type that is not plain; the message ends a sentence that
            begins with what was read.
    """
    start = stream.read(8)
    if len(start) != 8 or start[:6] != b"\x93NUMPY" or start[6:] not in _VERSIONS:
        raise ArtifactFormatError("not an .npy array")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(stream.read(width), "little")
    match = _HEADER.fullmatch(stream.read(length).decode("latin-1")) if length <= _MAX_HEADER else None
    if match is None:
        raise ArtifactFormatError("not a plain array of numbers or text")
    shape = tuple(int(part) for part in match[3].split(",") if part.strip())
    return NpyHeader(np.dtype(match[1]), shape, "F" if match[2] == "True" else "C", 8 + width + length)
