"""Reading a stream of numbers from text: plain lines, or one column of a CSV, line by line.

Nothing is guessed: a line that is not a number as documented (docs/cli.md) is refused by its number. Messages
name lines and columns, never values, because messages end up in logs.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Protocol

from trilift.arguments import parse_number
from trilift.lift.errors import ParameterError

__all__ = ["ByteStream", "Lines", "Numbered", "Value", "parse_integer", "read_column", "read_plain", "reader"]

Value = int | Fraction
Numbered = tuple[int, Value | None]
"""The number of a line and what it holds: None for "no event", where that is taken."""

Parse = Callable[[str], Value | None]

_CHUNK = 1 << 18
MAX_LINE = 1 << 20
"""Longest line, in bytes; what is longer is no list of numbers, and would have to be held in memory."""

_BOM = b"\xef\xbb\xbf"
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}")
_SHOWN_COLUMNS = 20

NO_EVENT_LINE = "null"
"""What stands for "no event" on a line of its own, as in JSON; in a CSV it is the empty cell."""

_NOT_TAKEN = ' (an empty cell is "no event" with --neighbours edit alone)'
_ONE_COLUMN = ' (in a CSV of one column, write "no event" as two double quotes)'


class ByteStream(Protocol):
    """A binary stream that can hand over what has arrived so far."""

    def read1(self, size: int, /) -> bytes:
        """Return some bytes as soon as there are any, none at the end."""


class Lines:
    """The lines of a byte stream as text, with their line endings normalised to a single newline.

    UTF-8, a byte order mark at the start allowed; lines end in LF or CRLF, the last one need not end.

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
        try:
            return raw.removesuffix(b"\r").decode("utf-8") + "\n"
        except UnicodeDecodeError:
            raise self.refused("not UTF-8 text") from None

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


def parse_integer(text: str) -> int | None:
    """Return an integer written in ASCII digits with an optional sign, or None for anything else.

    >>> parse_integer("-3"), parse_integer("1_000"), parse_integer("1e3"), parse_integer("１")
    (-3, None, None, None)
    """
    return int(text) if _INTEGER.fullmatch(text) else None


class _Blanks:
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


def _number(text: str, parse: Parse, lines: Lines, *, number: int, hint: str = "") -> Value:
    written = text.strip(" \t\n")
    value = parse(written)
    if value is None:
        wanted = "an integer" if parse is parse_integer else "a decimal number"
        raise lines.refused(f"not {wanted}{_remedy(written, parse) or hint}", number=number)
    return value


def _remedy(written: str, parse: Parse) -> str:
    """Say what to do about a field by its kind, without repeating it."""
    if written.lower() in ("true", "false"):
        return " (for truth values, write 1 and 0)"
    exact = parse_number(written)
    if parse is not parse_integer or exact is None:
        return ""
    if exact.denominator == 1:
        return " (write whole numbers without point and exponent, or take decimals: --resolution 1/2)"
    return " (for decimals: --resolution 1/128)"


def read_plain(lines: Lines, *, parse: Parse = parse_integer, no_event: bool = False) -> Iterator[Numbered]:
    """Yield (line, number) for a text of one number a line.

    Args:
        lines: the text.
        parse: :func:`parse_integer`, or :func:`trilift.arguments.parse_number` for decimals.
        no_event: take a line ``null`` as None, "no event".

    Raises:
        ParameterError: naming the first line that is not a number, when it is reached.
    """
    blanks = _Blanks(lines, hint=f' ("no event" is written {NO_EVENT_LINE})' if no_event else "")
    for text in lines:
        if blanks.check(blank=not text.strip(" \t\n")):
            continue
        if no_event and text.strip(" \t\n") == NO_EVENT_LINE:
            yield lines.number, None
            continue
        hint = " (for a table with a header, name the --column)" if lines.number == 1 else ""
        yield lines.number, _number(text, parse, lines, number=lines.number, hint=hint)


def read_column(
    lines: Lines,
    column: str,
    *,
    parse: Parse = parse_integer,
    delimiter: str = ",",
    no_event: bool = False,
) -> Iterator[Numbered]:
    """Yield (line, number) for one column of a CSV with a header.

    Args:
        lines: the text.
        column: name of the column, as in the header (spaces around it do not count).
        parse: as in :func:`read_plain`.
        delimiter: what separates the fields.
        no_event: take an empty field as None, "no event".

    Raises:
        ParameterError: no such column (those there are listed), a row of another length than the header, a
            field that is not a number, text that is not CSV; naming the line, when it is reached.
    """
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    blanks = _Blanks(lines)
    start = 1
    header: list[str] | None = None
    index = 0
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise lines.refused(f"not CSV ({error})", number=start) from None
        if header is None:
            header = [name.strip() for name in row]
            index = _column_index(lines, header, column)
            blanks = _Blanks(lines, hint=_ONE_COLUMN if no_event and len(header) == 1 else "")
        elif not blanks.check(blank=not row):
            if len(row) != len(header):
                why = f"{len(row)} field{'s'[: len(row) != 1]}, but the header has {len(header)}"
                raise lines.refused(why, number=start)
            empty = not row[index].strip(" \t\n")
            if empty and no_event:
                yield start, None
            else:
                hint = _NOT_TAKEN if empty else ""
                yield start, _number(row[index], parse, lines, number=start, hint=hint)
        start = lines.number + 1


def _column_index(lines: Lines, header: list[str], column: str) -> int:
    found = [index for index, name in enumerate(header) if name == column.strip()]
    if len(found) == 1:
        return found[0]
    if found:
        raise lines.refused(f"the header names the column {column!r} {len(found)} times", number=1)
    names = ", ".join(repr(name[:40]) for name in header[:_SHOWN_COLUMNS])
    more = f" and {len(header) - _SHOWN_COLUMNS} more" if len(header) > _SHOWN_COLUMNS else ""
    raise lines.refused(f"no column is named {column!r}; there are {names}{more}", number=1)


def reader(
    stream: ByteStream, *, column: str | None, integers: bool, delimiter: str, no_event: bool = False
) -> tuple[Lines, Iterator[Numbered]]:
    """Return the lines of a stream, and the numbers read from them: see :func:`read_column`."""
    lines = Lines(stream)
    parse = parse_integer if integers else parse_number
    if column is None:
        return lines, read_plain(lines, parse=parse, no_event=no_event)
    return lines, read_column(lines, column, parse=parse, delimiter=delimiter, no_event=no_event)
