"""An output file that a killed run has left, written again from its beginning: what is there must fit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from trilift.lift.errors import ParameterError

__all__ = ["MendedFile"]


class MendedFile:
    """A text file that is compared as far as it goes, and written from there on.

    A torn end is completed. So is one that a crash of the machine has filled with zero bytes. Anything else
    that is not what is to be written is left as it is.

    Args:
        path: the file; it is made if it is not there.

    Raises:
        ParameterError: no regular file.
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if path.exists() and not path.is_file():
            raise ParameterError(f"--out {path}: not a regular file")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        self._file = os.fdopen(handle, "r+b")
        self._at = 0
        self._left = os.fstat(handle).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def tell(self) -> int:
        """Return how many bytes were written, or found as they should be."""
        return self._at

    def write(self, text: str) -> int:
        """Write text, or see that it is there.

        Raises:
            ParameterError: something else is there.
            OSError: it cannot be written.
        """
        data = text.encode("utf-8")
        if self._left:
            found = self._file.read(min(self._left, len(data)))
            same = _same(found, data)
            if same < len(found):
                self._cut(self._at + same)
                found = found[:same]
            self._left = max(self._left - len(found), 0)
            self._at += len(found)
            data = data[len(found) :]
            if data:
                self._file.seek(self._at)
        self._file.write(data)
        self._at += len(data)
        return len(text)

    def settle(self) -> None:
        """See that nothing follows what was written: from here on, values are new.

        Raises:
            ParameterError: the file goes on.
        """
        if self._left:
            self._cut(self._at)

    def flush(self) -> None:
        """Hand everything to the system."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _cut(self, start: int) -> None:
        """Cut off an end of zero bytes alone."""
        self._file.seek(start)
        while chunk := self._file.read(1 << 20):
            if chunk.strip(b"\0"):
                raise ParameterError(
                    f"--out {self._path} is not what was released, from byte {start} on: move it away, and "
                    "all values are written again"
                )
        self._file.seek(start)
        self._file.truncate()
        self._left = 0


def _same(one: bytes, two: bytes) -> int:
    """Return how many bytes two texts begin with in common.

    >>> _same(b"12\\n13", b"12\\n14\\n"), _same(b"1", b"123")
    (4, 1)
    """
    if two.startswith(one):
        return len(one)
    return next(place for place, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
