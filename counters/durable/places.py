"""Where a file lies, as a number that a copy of it does not share."""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path

__all__ = ["place_of", "place_of_path"]

_GENERATION = 0x80087601  # FS_IOC_GETVERSION of Linux: changes where a file system uses an inode again


def place_of(handle: int) -> int:
    """Return a number of an open file or folder: of its inode, and of the inode's generation where known.

    A file that is renamed keeps it. A copy gets another one, and so does what is put in the place of a
    removed file, even under the same inode number, where the file system counts generations (ext4, XFS,
    Btrfs do).
    """
    try:
        import fcntl

        (generation,) = struct.unpack("<q", fcntl.ioctl(handle, _GENERATION, bytes(8)))
    except (ImportError, OSError):
        generation = 0
    data = struct.pack("<Qq", os.fstat(handle).st_ino, generation)
    return int.from_bytes(hashlib.blake2b(data, digest_size=6).digest(), "little")  # JSON keeps it exactly


def place_of_path(path: Path) -> int:
    """Return :func:`place_of` a path.

    Raises:
        OSError: nothing is there, or it cannot be opened.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # pipes are not waited for
    try:
        return place_of(handle)
    finally:
        os.close(handle)
