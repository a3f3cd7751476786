"""Reading a stream of numbers from text: plain lines, or one column of a CSV, line by line.

Nothing is guessed: a line that is not a number as documented (docs/cli.md) is refused by its number. Messages
name lines and columns, never values, because messages end up in logs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from trilift.arguments import parse_number
from trilift.lines import MAX_LINE, Blanks, ByteStream, Lines, csv_rows

__all__ = [
    "MAX_LINE",
    "ByteStream",
    "Lines",
    "Numbered",
    "Value",
    "parse_integer",
    "read_column",
    "read_plain",
    "reader",
]

Value = int | Fraction
Numbered = tuple[int, Value | None]
"""The number of a line and what it holds: None for "no event", where that is taken."""

Parse = Callable[[str], Value | None]

_INTEGER = re.compile(r"[+-]?[0-9]{1,400}")

NO_EVENT_LINE = "null"
"""What stands for "no event" on a line of its own, as in JSON; in a CSV it is the empty cell."""

_NOT_TAKEN = ' (an empty cell is "no event" with --neighbours edit alone)'
_ONE_COLUMN = ' (in a CSV of one column, write "no event" as two double quotes)'


def parse_integer(text: str) -> int | None:
    """Return an integer written in ASCII digits with an optional sign, or None for anything else.

    >>> parse_integer("-3"), parse_integer("1_000"), parse_integer("1e3"), parse_integer("１")
    (-3, None, None, None)
    """
    return int(text) if _INTEGER.fullmatch(text) else None


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
    blanks = Blanks(lines, hint=f' ("no event" is written {NO_EVENT_LINE})' if no_event else "")
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
    rows = csv_rows(lines, [column], delimiter=delimiter, one_column=_ONE_COLUMN if no_event else "")
    for start, (field,) in rows:
        empty = not field.strip(" \t\n")
        if empty and no_event:
            yield start, None
        else:
            hint = _NOT_TAKEN if empty else ""
            yield start, _number(field, parse, lines, number=start, hint=hint)


def reader(
    stream: ByteStream, *, column: str | None, integers: bool, delimiter: str, no_event: bool = False
) -> tuple[Lines, Iterator[Numbered]]:
    """Return the lines of a stream, and the numbers read from them: see :func:`read_column`."""
    lines = Lines(stream)
    parse = parse_integer if integers else parse_number
    if column is None:
        return lines, read_plain(lines, parse=parse, no_event=no_event)
    return lines, read_column(lines, column, parse=parse, delimiter=delimiter, no_event=no_event)
