"""Other people's matrices: plain .npy arrays, and .npz archives of L and R, read without trusting them.

What a file declares is checked against its size and our limits before anything is allocated, and nothing is
ever unpickled or evaluated.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from trilift.artifacts.artifact import MAX_SIZE
from trilift.artifacts.layout import BROKEN, check_directory, reason
from trilift.artifacts.npy import read_npy_header
from trilift.lift.errors import ArtifactFormatError
from trilift.lift.files import open_regular

__all__ = ["is_array", "read_factors", "read_matrix"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

MAX_BYTES = 1 << 30
_MAX_SIDE = 4 * MAX_SIZE + 16
_MAX_MEMBERS = 16
_EXACT_INTEGERS = 1 << 53


def is_array(path: str | os.PathLike[str]) -> bool:
    """Tell by its name whether a file is meant to hold one plain array."""
    return os.fspath(path).endswith(".npy")


def read_matrix(path: str | os.PathLike[str]) -> FloatArray:
    """Read a matrix of integers or floats from an .npy file, as float64 without rounding.

    Raises:
        ArtifactFormatError: no such file, not a plain two-dimensional numeric array, one beyond the limits,
            or integers that float64 cannot hold.
    """
    name = os.fspath(path)
    try:
        with open_regular(path) as file:
            return _matrix(file, os.fstat(file.fileno()).st_size)
    except ArtifactFormatError as error:
        raise ArtifactFormatError(f"{name}: {error}") from None
    except OSError as error:
        raise ArtifactFormatError(f"{name}: {error.strerror or error}") from None


def read_factors(paths: list[Path]) -> tuple[FloatArray | None, FloatArray]:
    """Read (L, R), or (None, R), from R.npy, from L.npy and R.npy, or from an .npz with L and R.

    Raises:
        ArtifactFormatError: as :func:`read_matrix`; other files, or other members of an archive.
    """
    if len(paths) == 1 and not is_array(paths[0]):
        return _read_archive(paths[0])
    if len(paths) not in (1, 2) or not all(map(is_array, paths)):
        raise ArtifactFormatError(
            "factors must be given as R.npy, as L.npy and R.npy, or as one .npz of both"
        )
    *left, R = map(read_matrix, paths)
    return (left[0] if left else None), R


def _read_archive(path: Path) -> tuple[FloatArray | None, FloatArray]:
    found = {}
    try:
        with open_regular(path) as file:
            check_directory(file, most=_MAX_MEMBERS, what="an archive")
            with zipfile.ZipFile(file) as archive:
                entries = {entry.filename: entry for entry in archive.infolist()}
                if "R.npy" not in entries:
                    raise ArtifactFormatError(f"the archive has no array R, only {sorted(entries)}"[:200])
                for name in entries.keys() & {"L.npy", "R.npy"}:
                    entry = entries[name]
                    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                        raise ArtifactFormatError(f"member {name} is not stored by deflate")
                    with archive.open(entry) as member:
                        found[name] = _matrix(member, entry.file_size)
    except ArtifactFormatError as error:
        raise ArtifactFormatError(f"{path}: {error}") from None
    except BROKEN as error:
        raise ArtifactFormatError(f"{path}: unreadable archive ({reason(error)})") from None
    return found.get("L.npy"), found["R.npy"]


def _matrix(stream: IO[bytes], declared: int) -> FloatArray:
    """Read one .npy matrix that has ``declared`` bytes in all."""
    header = read_npy_header(stream)
    dtype, shape, size = header.dtype, header.shape, header.size
    if len(shape) != 2 or dtype.kind not in "iuf":
        raise ArtifactFormatError("not a plain two-dimensional array of integers or floats")
    if min(shape) < 1 or max(shape) > _MAX_SIDE or min(shape) > MAX_SIZE:
        raise ArtifactFormatError(f"a matrix of shape {shape} is empty or too large")
    if size > MAX_BYTES or header.length + size != declared:
        raise ArtifactFormatError(f"the array header asks for {size} bytes, which the file does not hold")
    data = stream.read(size)
    if len(data) != size or stream.read(1):
        raise ArtifactFormatError("the file does not hold the bytes that it declares")
    array = np.frombuffer(data, dtype=dtype).reshape(shape, order=header.order)
    if dtype.kind in "iu" and (array.max() > _EXACT_INTEGERS or array.min() < -_EXACT_INTEGERS):
        raise ArtifactFormatError("integers above 2**53 in size would be rounded")
    return np.ascontiguousarray(array, dtype=np.float64)
