"""Charts of dots: braille characters of 2 x 4 dots, or plain characters where there is no UTF-8."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["Canvas"]

_BLANK = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row, then column, of a cell


class Canvas:
    """A grid of dots; the upper left one is (0, 0).

    Args:
        width: in characters.
        height: in lines.
        braille: eight dots a character; otherwise one.

    >>> canvas = Canvas(2, 1)
    >>> canvas.line(0, 3, 0)
    >>> canvas.shade(2, 0, 3)
    >>> [[cell for cell, _ in row] for row in canvas.lines()]
    [['⡇', '⡁']]
    """

    def __init__(self, width: int, height: int, *, braille: bool = True) -> None:
        self.width, self.height, self._braille = width, height, braille
        self.columns, self.rows = (2 * width, 4 * height) if braille else (width, height)
        self._line: set[tuple[int, int]] = set()
        self._shade: set[tuple[int, int]] = set()

    def line(self, column: int, start: int, stop: int) -> None:
        """Draw all dots of a column from one row to another, both included."""
        self._line.update((column, row) for row in range(min(start, stop), max(start, stop) + 1))

    def shade(self, column: int, top: int, bottom: int) -> None:
        """Draw every third dot of a column between two rows, both of which are drawn."""
        self._shade.update((column, row) for row in (*range(top, bottom + 1, 3), bottom))

    def lines(self) -> Iterator[list[tuple[str, bool]]]:
        """Yield lines of (character, whether the line, not shading alone, is in it)."""
        for row in range(self.height):
            yield [self._cell(column, row) for column in range(self.width)]

    def _cell(self, column: int, row: int) -> tuple[str, bool]:
        if not self._braille:
            bright = (column, row) in self._line
            return ("*" if bright else "." if (column, row) in self._shade else " "), bright
        code, bright = 0, False
        for down, pair in enumerate(_DOTS):
            for right, dot in enumerate(pair):
                place = (2 * column + right, 4 * row + down)
                if place in self._line:
                    bright = True
                    code |= dot
                elif place in self._shade:
                    code |= dot
        return chr(_BLANK + code), bright
