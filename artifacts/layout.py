"""The layout of a zip archive, checked before anything is unpacked: few members, one behind the other.

Zip says everything twice, in the directory at the end and in a header before each member. Where the two
differ, readers differ. Here they must agree, and members may neither overlap nor leave room between them.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from typing import IO

from trilift.lift.errors import ArtifactFormatError

__all__ = ["BROKEN", "MAX_FILE_BYTES", "check_directory", "check_members", "reason"]

MAX_FILE_BYTES = 1 << 30

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

_END = struct.Struct("<4s4H2LH")  # end of central directory record
_MAX_DIRECTORY_BYTES = 4096
_LOCAL = struct.Struct("<4s5H3L2H")  # what stands before a member
_MAX_EXTRA = 64
_ELSEWHERE = 0xFFFFFFFF  # a size that stands in a zip64 field
_ENCRYPTED, _DESCRIPTOR = 0x1, 0x8


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


def check_members(file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """Check that the members lie one behind the other, as the directory says, and fill the file before it.

    Raises:
        ArtifactFormatError: they overlap, leave room, are encrypted, or are not what the directory says.
    """
    place = 0
    for entry in archive.infolist():
        name = entry.orig_filename[:80]
        if entry.flag_bits & _ENCRYPTED or entry.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):
            raise ArtifactFormatError(f"member {name!r} is encrypted or not stored by deflate")
        if entry.header_offset != place:
            raise ArtifactFormatError(f"member {name!r} does not begin where the one before it ends")
        file.seek(place)
        magic, _, flags, method, _, _, crc, packed, full, named, extra = _LOCAL.unpack(file.read(_LOCAL.size))
        sizes = (packed, full)
        fits = (
            magic == b"PK\x03\x04"
            and flags == entry.flag_bits
            and not flags & _DESCRIPTOR
            and (method, crc) == (entry.compress_type, entry.CRC)
            and (sizes == (entry.compress_size, entry.file_size) or (sizes == (_ELSEWHERE,) * 2 and extra))
            and extra <= _MAX_EXTRA
            and file.read(named) == entry.orig_filename.encode("utf-8" if flags & 0x800 else "cp437")
        )
        if not fits:
            raise ArtifactFormatError(f"member {name!r} is not what the archive's directory says")
        place += _LOCAL.size + named + extra + entry.compress_size
    if place != archive.start_dir:
        raise ArtifactFormatError("there is room between the last member and the archive's directory")


def reason(error: BaseException) -> str:
    """Return in one short line what was wrong with an archive."""
    text = getattr(error, "strerror", None) or str(error)
    return text.splitlines()[0][:200] if text else type(error).__name__
