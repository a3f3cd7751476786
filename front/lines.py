"""Text that arrives piece by piece, as lines and as rows of a CSV; refusals name the line, never a value."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Protocol

from trilift.lift.errors import ParameterError

__all__ = ["MAX_LINE", "Blanks", "ByteStream", "Lines", "csv_rows"]

_CHUNK = 1 << 18
MAX_LINE = 1 << 20
"""Longest line, in bytes; what is longer is no list of numbers, and would have to be held in memory."""

_BOM = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BYTES = "not UTF-8 text"
_UTF16 = "not UTF-8 text (it begins as UTF-16 does: save it as UTF-8)"
_NUL = "a NUL byte, which no UTF-8 text has (UTF-16 has, and binary files)"
_MACINTOSH = "a carriage return within the line (lines must end in LF or CRLF)"
_SHOWN_COLUMNS = 20


class ByteStream(Protocol):
    """A binary stream that can hand over what has arrived so far."""

    def read1(self, size: int, /) -> bytes:
        """Return some bytes as soon as there are any, none at the end."""


class Lines:
    """The lines of a byte stream as text, with their line endings normalised to a single newline.

    UTF-8, a byte order mark at the start allowed; lines end in LF or CRLF, the last one need not end. NUL or
    a carriage return elsewhere is refused: a text in UTF-16, or one of old line ends, would be read as other
    lines than it has.

    Attributes:
        number: number of the line handed out last, from 1.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._whole: list[bytes] = []  # complete lines, the next one last
        self._rest = b""
        self._ended = False
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    @property
    def ready(self) -> bool:
        """Whether the next line is here already, so that asking for it does not wait."""
        return bool(self._whole)

    def __next__(self) -> str:
        while not self._whole and not self._ended:
            self._fetch()
        if not self._whole:
            raise StopIteration
        raw = self._whole.pop()
        self.number += 1
        if self.number == 1:
            raw = raw.removeprefix(_BOM)
        raw = raw.removesuffix(b"\r")
        if b"\0" in raw or b"\r" in raw:
            what = _MACINTOSH if b"\0" not in raw else _UTF16 if raw[:2] in _UTF16_MARKS else _NUL
            raise self.refused(what)
        try:
            return raw.decode("utf-8") + "\n"
        except UnicodeDecodeError:
            raise self.refused(_UTF16 if self.number == 1 and raw[:2] in _UTF16_MARKS else _BYTES) from None

    def refused(self, why: str, *, number: int | None = None) -> ParameterError:
        """Build the error about a line, by default the last one."""
        return ParameterError(f"line {self.number if number is None else number}: {why}")

    def _fetch(self) -> None:
        chunk = self._stream.read1(_CHUNK)
        if chunk:
            *whole, self._rest = (self._rest + chunk).split(b"\n")
        else:
            self._ended = True
            whole, self._rest = ([self._rest] if self._rest else []), b""
        self._whole = whole[::-1]
        if len(self._rest) > MAX_LINE:
            raise self.refused(f"longer than {MAX_LINE} bytes", number=self.number + len(whole) + 1)


class Blanks:
    """Blank lines are refused, except a single one at the very end."""

    def __init__(self, lines: Lines, *, hint: str = "") -> None:
        self._lines = lines
        self._hint = hint
        self._seen: int | None = None

    def check(self, *, blank: bool) -> bool:
        """Tell whether the last line is blank, and refuse an earlier one now that it was not the last."""
        if self._seen is not None:
            raise self._lines.refused(f"blank{self._hint}", number=self._seen)
        if blank:
            self._seen = self._lines.number
        return blank


def csv_rows(
    lines: Lines, columns: Sequence[str], *, delimiter: str, one_column: str = "", listed: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, fields of the columns) for the rows of a CSV with a header.

    Args:
        lines: the text.
        columns: names of columns, as in the header (spaces around them do not count).
        delimiter: what separates the fields.
        one_column: what to add to the refusal of a blank line, where there is one column.
        listed: whether the refusal of a column lists those that there are. Without a header they are data.

    Raises:
        ParameterError: no such column, a row of another length than the header, text that is not CSV; naming
            the line, when it is reached.
    """
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    blanks = Blanks(lines)
    start = 1
    header: list[str] | None = None
    places: list[int] = []
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise lines.refused(f"not CSV ({error})", number=start) from None
        if header is None:
            header = [name.strip() for name in row]
            places = [_column_index(lines, header, column, listed=listed) for column in columns]
            blanks = Blanks(lines, hint=one_column if len(header) == 1 else "")
        elif not blanks.check(blank=not row):
            if len(row) != len(header):
                why = f"{len(row)} field{'s'[: len(row) != 1]}, but the header has {len(header)}"
                raise lines.refused(why, number=start)
            yield start, [row[place] for place in places]
        start = lines.number + 1


def _column_index(lines: Lines, header: list[str], column: str, *, listed: bool) -> int:
    found = [index for index, name in enumerate(header) if name == column.strip()]
    if len(found) == 1:
        return found[0]
    if found:
        raise lines.refused(f"the header names the column {column!r} {len(found)} times", number=1)
    if not listed:
        raise lines.refused(f"no column of the header is named {column!r}", number=1)
    names = ", ".join(repr(name[:40]) for name in header[:_SHOWN_COLUMNS])
    more = f" and {len(header) - _SHOWN_COLUMNS} more" if len(header) > _SHOWN_COLUMNS else ""
    raise lines.refused(f"no column is named {column!r}; there are {names}{more}", number=1)
