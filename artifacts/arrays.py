"""Plain arrays in .npz files of any layout (checkpoints, raw factors), read without trusting them.

``numpy.load`` takes memory for whatever an array's header declares, and for whatever an archive unfolds to.
Here headers and directory must agree first, and nothing is unpickled or evaluated.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, Any

import numpy as np
from trilift.artifacts.layout import BROKEN, reason
from trilift.artifacts.npy import read_npy_header
from trilift.lift.errors import ArtifactFormatError
from trilift.lift.files import open_regular

__all__ = ["read_arrays"]

Array = np.ndarray[Any, np.dtype[Any]]

MAX_UNFOLDED = 1 << 30
"""Bytes that packed members may declare together; members that are stored are as long as they are."""
_MAX_MEMBERS = 512
_MAX_AXES = 8
_CHUNK = 1 << 20


def read_arrays(source: str | os.PathLike[str] | IO[bytes]) -> dict[str, Array]:
    """Return the arrays of an .npz file by name: numbers, truth values and text of fixed length.

    Args:
        source: a file's path, or an open file.

    Raises:
        FileNotFoundError: there is no such file.
        ArtifactFormatError: anything else about it is wrong; the message does not name it.
    """
    try:
        with _opened(source) as file, zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            _check(entries, file.seek(0, os.SEEK_END))
            return {entry.filename.removesuffix(".npy"): _array(archive, entry) for entry in entries}
    except ArtifactFormatError:
        raise
    except FileNotFoundError:
        raise
    except BROKEN as error:
        raise ArtifactFormatError(f"unreadable archive ({reason(error)})") from None


@contextmanager
def _opened(source: str | os.PathLike[str] | IO[bytes]) -> Iterator[IO[bytes]]:
    with open_regular(source) if isinstance(source, (str, os.PathLike)) else nullcontext(source) as file:
        yield file


def _check(entries: list[zipfile.ZipInfo], size: int) -> None:
    """Check what the directory declares before anything is unpacked."""
    if len(entries) > _MAX_MEMBERS:
        raise ArtifactFormatError(f"the archive has {len(entries)} members, more than {_MAX_MEMBERS}")
    if len({entry.filename for entry in entries}) != len(entries):
        raise ArtifactFormatError("the archive has two members of one name")
    stored = [entry for entry in entries if entry.compress_type == zipfile.ZIP_STORED]
    packed = [entry for entry in entries if entry.compress_type == zipfile.ZIP_DEFLATED]
    if len(stored) + len(packed) != len(entries) or any(entry.flag_bits & 1 for entry in entries):
        raise ArtifactFormatError("a member is encrypted, or neither stored nor deflated")
    if sum(entry.file_size for entry in packed) > MAX_UNFOLDED:
        raise ArtifactFormatError(f"the members would unfold to more than {MAX_UNFOLDED} bytes")
    if any(entry.file_size != entry.compress_size for entry in stored):
        raise ArtifactFormatError("a member that is stored has two lengths")
    if sum(entry.compress_size for entry in entries) > size:
        raise ArtifactFormatError("the members lie over each other, or behind the end of the file")


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    name = entry.filename[:80]
    with archive.open(entry) as stream:
        try:
            header = read_npy_header(stream)
        except ArtifactFormatError as error:
            raise ArtifactFormatError(f"member {name!r} is {error}") from None
        size = header.size
        if len(header.shape) > _MAX_AXES or header.length + size != entry.file_size:
            raise ArtifactFormatError(
                f"member {name!r} does not hold the {size} bytes that its header asks for"
            )
        data, filled = bytearray(size), 0
        while chunk := stream.read(min(_CHUNK, size - filled)):
            data[filled : filled + len(chunk)] = chunk
            filled += len(chunk)
        if filled != size or stream.read(1):
            raise ArtifactFormatError(f"member {name!r} is not as long as it declares")
    if header.dtype.itemsize == 0:
        return np.empty(header.shape, header.dtype)
    return np.frombuffer(data, dtype=header.dtype).reshape(header.shape, order=header.order)
