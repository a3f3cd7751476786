"""Reading and writing the zip container of an artifact, refusing everything but the documented layout.

A file is a zip archive of five .npy members in a fixed order. Everything that says how much memory will be
needed (directory, member sizes, .npy headers) is checked before any of it is allocated, and no member is
ever unpickled.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from trilift.artifacts.canonical import ARRAYS
from trilift.artifacts.layout import BROKEN, check_directory, check_members, reason
from trilift.lift.errors import ArtifactFormatError
from trilift.lift.files import atomic_write, open_regular

__all__ = ["MEMBERS", "Member", "Reader", "open_container", "write_container"]

Array = np.ndarray[Any, np.dtype[Any]]

MEMBERS = ("header", *ARRAYS)
MAX_TOTAL_BYTES = 1 << 30
MAX_HEADER_BYTES = 1 << 20

_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(
    r"\{'descr': '(\|u1|<i8)', 'fortran_order': False, 'shape': \(((?:[0-9]{1,9},? ?){1,3})\), \} *\n"
)
_MAX_NPY_HEADER = 512
_EPOCH = (1980, 1, 1, 0, 0, 0)


class Member:
    """A member whose .npy header has been read and checked, but not its data.

    Raises:
        ArtifactFormatError: no .npy array of the documented kind, or of another length than declared.
    """

    def __init__(self, name: str, stream: IO[bytes], declared: int) -> None:
        start = stream.read(len(_NPY_MAGIC) + 2)
        if start[: len(_NPY_MAGIC)] != _NPY_MAGIC or len(start) != len(_NPY_MAGIC) + 2:
            raise ArtifactFormatError(f"member {name}.npy is not an .npy array of version 1.0")
        length = int.from_bytes(start[-2:], "little")
        if length > _MAX_NPY_HEADER:
            raise ArtifactFormatError(f"member {name}.npy has an array header of {length} bytes")
        match = _NPY_HEADER.fullmatch(stream.read(length).decode("latin-1"))
        if match is None:
            raise ArtifactFormatError(
                f"member {name}.npy must be a plain array of dtype |u1 or <i8 in C order"
            )
        self.name, self._stream = name, stream
        self.dtype = np.dtype(match[1])
        self.shape = tuple(int(part) for part in match[2].split(",") if part.strip())
        self.nbytes = self.dtype.itemsize
        for side in self.shape:
            self.nbytes *= side
        whole = self.nbytes + len(start) + length
        if whole != declared:
            raise ArtifactFormatError(
                f"member {name}.npy declares {declared} bytes, its array header {whole}"
            )

    def read(self) -> Array:
        """Read the data: exactly the declared number of bytes, checked against the archive's CRC.

        Raises:
            ArtifactFormatError: there are fewer bytes or more.
        """
        data = self._stream.read(self.nbytes)
        if len(data) != self.nbytes or self._stream.read(1):
            raise ArtifactFormatError(f"member {self.name}.npy does not hold the declared number of bytes")
        return np.frombuffer(data, dtype=self.dtype).reshape(self.shape)


class Reader:
    """An open container whose directory has been checked.

    Raises:
        ArtifactFormatError: other members than an artifact has, or too large ones.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        if names != [f"{name}.npy" for name in MEMBERS]:
            raise ArtifactFormatError(f"members must be {', '.join(MEMBERS)} (.npy), got {names}"[:200])
        if sum(entry.file_size for entry in entries) > MAX_TOTAL_BYTES:
            raise ArtifactFormatError(f"the members declare more than {MAX_TOTAL_BYTES} bytes")
        if entries[0].file_size > MAX_HEADER_BYTES:
            raise ArtifactFormatError(f"the header declares more than {MAX_HEADER_BYTES} bytes")
        self._entries = dict(zip(MEMBERS, entries, strict=True))

    @contextmanager
    def member(self, name: str) -> Iterator[Member]:
        """Open one member and read its array header."""
        entry = self._entries[name]
        with self._archive.open(entry) as stream:
            yield Member(name, stream, entry.file_size)


@contextmanager
def open_container(path: str | os.PathLike[str]) -> Iterator[Reader]:
    """Open an artifact file and check its directory.

    Raises:
        ArtifactFormatError: anything about the file is not as documented, or it cannot be read.
    """
    try:
        with open_regular(path) as file:
            check_directory(file, most=len(MEMBERS))
            with zipfile.ZipFile(file) as archive:
                reader = Reader(archive)
                check_members(file, archive)
                yield reader
    except ArtifactFormatError as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None  # a file of the other norm stays one
    except FileNotFoundError:
        raise ArtifactFormatError(f"{os.fspath(path)}: no such file") from None
    except BROKEN as error:
        raise ArtifactFormatError(f"{os.fspath(path)}: unreadable archive ({reason(error)})") from None


def write_container(path: str | os.PathLike[str], members: Mapping[str, Array]) -> None:
    """Write the five arrays; equal arrays give equal bytes, and the file appears whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in MEMBERS:
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=_EPOCH)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, _npy(members[name]), compresslevel=6)
    atomic_write(path, packed.getvalue())


def _npy(array: Array) -> bytes:
    text = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {array.shape}, }}"
    # the array data starts at a multiple of 64 bytes, as in every .npy file
    length = -(len(_NPY_MAGIC) + 2 + len(text) + 1) % 64 + len(text) + 1
    return (
        _NPY_MAGIC + length.to_bytes(2, "little") + text.ljust(length - 1).encode() + b"\n" + array.tobytes()
    )
