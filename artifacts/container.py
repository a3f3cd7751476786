"""Reading and writing the zip container of an artifact, refusing everything but the documented layout.

A file is a zip archive of five .npy members in a fixed order. Everything that says how much memory will be
needed (directory, member sizes, .npy headers) is checked before any of it is allocated, and no member is
ever unpickled.
"""

from __future__ import annotations

import io
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from trilift.artifacts.canonical import ARRAYS
from trilift.lift.errors import ArtifactFormatError
from trilift.lift.files import atomic_write

__all__ = ["BROKEN", "MEMBERS", "Member", "Reader", "check_directory", "open_container", "write_container"]

Array = np.ndarray[Any, np.dtype[Any]]

MEMBERS = ("header", *ARRAYS)
MAX_FILE_BYTES = 1 << 30
MAX_TOTAL_BYTES = 1 << 30
MAX_HEADER_BYTES = 1 << 20

_END = struct.Struct("<4s4H2LH")  # end of central directory record
_MAX_DIRECTORY_BYTES = 4096
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(
    r"\{'descr': '(\|u1|<i8)', 'fortran_order': False, 'shape': \(((?:[0-9]{1,9},? ?){1,3})\), \} *\n"
)
_MAX_NPY_HEADER = 512
_EPOCH = (1980, 1, 1, 0, 0, 0)
BROKEN = (  # what reading a damaged archive may raise
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    OverflowError,
    struct.error,
)


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
        ArtifactFormatError: other members than an artifact has, encrypted or too large ones.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        if names != [f"{name}.npy" for name in MEMBERS]:
            raise ArtifactFormatError(f"members must be {', '.join(MEMBERS)} (.npy), got {names}"[:200])
        for entry in entries:
            if entry.flag_bits & 0x1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ArtifactFormatError(f"member {entry.filename} is encrypted or not stored by deflate")
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
        with open(path, "rb") as file:
            check_directory(file, most=len(MEMBERS))
            with zipfile.ZipFile(file) as archive:
                yield Reader(archive)
    except ArtifactFormatError as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None  # a file of the other norm stays one
    except FileNotFoundError:
        raise ArtifactFormatError(f"{os.fspath(path)}: no such file") from None
    except BROKEN as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ArtifactFormatError(f"{os.fspath(path)}: unreadable archive ({reason})") from None


def check_directory(file: IO[bytes], *, most: int, what: str = "an artifact") -> None:
    """Look at the end record of a zip archive before zipfile builds one object per directory entry.

    Args:
        file: open for reading; afterwards it stands at its start.
        most: number of members that are acceptable.
        what: what the file is meant to be, for messages.

    Raises:
        ArtifactFormatError: the file is too large or too short, has more members, or is no plain archive.
    """
    size = file.seek(0, os.SEEK_END)
    if size > MAX_FILE_BYTES:
        raise ArtifactFormatError(f"the file is larger than {MAX_FILE_BYTES} bytes")
    if size < _END.size:
        raise ArtifactFormatError(f"truncated, or not {what} (too short to be an archive)")
    file.seek(size - _END.size)
    magic, _, _, here, total, length, offset, comment = _END.unpack(file.read(_END.size))
    if magic != b"PK\x05\x06" or comment:
        raise ArtifactFormatError(f"truncated, or not {what} (no end record of a zip archive)")
    if here != total or total > most or length > _MAX_DIRECTORY_BYTES:
        raise ArtifactFormatError(f"the archive has {total} members, more than {most}")
    if offset + length + _END.size != size:
        raise ArtifactFormatError("the archive's directory is not where its end record says")
    file.seek(0)


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
