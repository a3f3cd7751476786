"""Files that are wrong in one respect: archives and arrays put together by hand."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["Forger", "plain_npy"]

_DAY = (1980, 1, 1, 0, 0, 0)


def plain_npy(descr: str, shape: tuple[int, ...], data: bytes = b"", *, fortran: bool = False) -> bytes:
    """Return an .npy file that says of its data what it is told to say."""
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}"
    head = text.encode("latin-1").ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


class Forger:
    """The members of an artifact's file, to be changed and packed again.

    Args:
        whole: the bytes of the file.
    """

    def __init__(self, whole: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            self.members = {name: archive.read(name) for name in archive.namelist()}

    @property
    def header_text(self) -> bytes:
        """The JSON text of the header."""
        return bytes(np.load(io.BytesIO(self.members["header.npy"])).tobytes())

    @property
    def header(self) -> Any:
        """The header."""
        return json.loads(self.header_text)

    def set_header(self, **changes: Any) -> Forger:
        """Change fields of the header."""
        return self.set_raw_header(json.dumps({**self.header, **changes}).encode())

    def set_raw_header(self, text: bytes) -> Forger:
        """Put any bytes in the place of the header's text."""
        self.members["header.npy"] = plain_npy("|u1", (len(text),), text)
        return self

    def set_claim(self, **changes: Any) -> Forger:
        """Change fields of the certificate."""
        return self.set_header(certificate={**self.header["certificate"], **changes})

    def put(self, name: str, data: bytes) -> Forger:
        """Put any bytes in the place of a member."""
        self.members[f"{name}.npy"] = data
        return self

    def packed(self, names: Iterable[str] | None = None, *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
        """Return the archive; ``names`` says which members it has, in what order and how often."""
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name in self.members if names is None else names:
                entry = zipfile.ZipInfo(name, date_time=_DAY)
                entry.compress_type = method
                archive.writestr(entry, self.members[name])
        return file.getvalue()
