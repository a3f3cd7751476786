"""Writing files so that a reader sees the old one or the new one, whole, whatever happens in between."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

__all__ = ["atomic_write"]

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


def _sync_folder(folder: Path) -> None:
    """Make the renaming itself durable, where the system can (it is no failure where it cannot)."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
