"""Files: written so that a reader sees the old one or the new one, whole; read only where they are files."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

__all__ = ["atomic_write", "open_regular", "read_regular"]

_NAME_SHOWN = 32  # characters of the file's name in that of the temporary one: names have a length limit


def atomic_write(path: str | os.PathLike[str], data: bytes, *, private: bool = False) -> None:
    """Replace a file by these bytes: written beside it, flushed to the disk, then renamed (new).

    The file appears whole or not at all, also after a crash or an interrupt; a failed write leaves what was
    there before and no temporary file. A link is replaced, not followed.

    Args:
        path: the file; its folder must exist.
        data: what it will hold.
        private: readable by the owner alone (mode 0600, whatever the umask); otherwise the umask decides.

    Raises:
        OSError: the file cannot be written.
    """
    target = Path(path)
    partial = target.parent / f".{target.name[:_NAME_SHOWN]}.{secrets.token_hex(8)}.part"
    handle = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for reading, and nothing else than a file: pipes and devices are never waited for.

    Links are followed; what they lead to is what counts.

    Raises:
        OSError: it cannot be opened, or is a folder, a pipe, a socket or a device.
    """
    waiting = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, os.O_RDONLY | waiting)
    with os.fdopen(handle, "rb") as file:  # refuses folders
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        yield file


def read_regular(path: str | os.PathLike[str], *, max_bytes: int, grows: bool = False) -> bytes | None:
    """Return the bytes of a file, or None where there are more than ``max_bytes``.

    Args:
        path: the file.
        max_bytes: the limit.
        grows: whether it is a log, of which what is appended meanwhile is left for the next time.

    Raises:
        OSError: as :func:`open_regular`; a file that is no log grows while it is read.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            return None
        data = file.read(size if grows else size + 1)  # a larger number would be allocated
    if len(data) > size:
        raise OSError(errno.EBUSY, "is being written to", os.fspath(path))
    return data


def _sync_folder(folder: Path) -> None:
    """Make the renaming itself durable, where the system can (it is no failure where it cannot)."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
