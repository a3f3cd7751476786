"""Reading a stream of insertions and removals from text: an item a line, or columns of a CSV, line by line.

Nothing is guessed: what is not as documented (docs/cli.md) is refused by its line. Messages name lines and
columns that were asked for, and repeat nothing of the text, not even of its first line: without a header,
that is an item already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trilift.counters.turnstile.items import encoded
from trilift.lift.errors import ParameterError
from trilift.lines import Blanks, ByteStream, Lines, csv_rows
from trilift.reading import parse_integer

__all__ = ["Event", "Item", "check_columns", "event_reader"]

Item = str | tuple[str, ...]
Event = tuple[Item, int]
"""An item and its sign."""

MOST_COLUMNS = 64

_SPACES = " \t\n"
_SAFE = 1 << 16  # characters: at most four bytes each, far below what an item may take


def check_columns(items: Sequence[str], sign: str | None) -> None:
    """Check the names of the columns that an event is read from.

    Raises:
        ParameterError: a sign without items, a column twice, or too many.
    """
    if sign is not None and not items:
        raise ParameterError("--sign-column needs an --item-column: without, every line is an item")
    names = [name.strip() for name in [*items, *([] if sign is None else [sign])]]
    if len(set(names)) < len(names):
        raise ParameterError("--item-column and --sign-column must name different columns")
    if len(items) > MOST_COLUMNS:
        raise ParameterError(f"--item-column must be given at most {MOST_COLUMNS} times")


def event_reader(
    stream: ByteStream, *, items: Sequence[str], sign: str | None, delimiter: str = ","
) -> tuple[Lines, Iterator[tuple[int, Event]]]:
    """Return the lines of a stream, and (line, event) read from them as they come.

    Args:
        stream: UTF-8 text.
        items: columns of a CSV with a header that make an item: the text of one, a tuple of the texts of
            several. None: the text has no columns, and every line is an item.
        sign: column that holds 1 or -1 or 0; None: every row inserts.
        delimiter: what separates the fields.

    Raises:
        ParameterError: what is no event, naming the line, when it is reached; see :func:`check_columns`.
    """
    check_columns(items, sign)
    lines = Lines(stream)
    if not items:
        return lines, _plain(lines)
    return lines, _columns(lines, list(items), sign, delimiter)


def _plain(lines: Lines) -> Iterator[tuple[int, Event]]:
    blanks = Blanks(lines)
    for text in lines:
        if not blanks.check(blank=not text.strip(_SPACES)):
            yield lines.number, (text.strip(_SPACES), 1)


def _columns(lines: Lines, items: list[str], sign: str | None, delimiter: str) -> Iterator[tuple[int, Event]]:
    wanted = items if sign is None else [*items, sign]
    for line, fields in csv_rows(lines, wanted, delimiter=delimiter, listed=False):
        number = 1 if sign is None else _sign(fields[-1], lines, line)
        parts = tuple(field.strip(_SPACES) for field in fields[: len(items)])
        if number and not all(parts):
            hint = "" if sign is None else " (a row that is no event has the sign 0)"
            raise lines.refused(f"an item is empty{hint}", number=line)
        if sum(map(len, parts)) > _SAFE:
            _check_size(parts, lines, line)
        yield line, (parts[0] if len(parts) == 1 else parts, number)


def _sign(text: str, lines: Lines, line: int) -> int:
    number = parse_integer(text.strip(_SPACES))
    if number is None or not -1 <= number <= 1:
        raise lines.refused("the sign must be 1 (insertion), -1 (removal) or 0 (no event)", number=line)
    return number


def _check_size(parts: tuple[str, ...], lines: Lines, line: int) -> None:
    try:
        encoded(parts)
    except ParameterError as error:
        raise lines.refused(str(error), number=line) from None
