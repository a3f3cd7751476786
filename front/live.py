"""A live view of released values in a terminal (``--live``), drawn with rich.

It is given what has been released, steps and values, and what is public about the noise, and nothing else:
neither inputs nor true counts ever come here. Where standard error is no terminal there is no view, and what
is written is what is written without ``--live``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trilift.braille import Canvas

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["LiveView", "Shown", "band_of", "can_draw", "live", "reading_shown", "silent"]

_KEPT = 256  # points: about as many as a terminal has columns of dots; a band takes a millisecond each
_REFRESHES = 8  # a second, at most
_HEIGHT, _MARGIN, _LABEL = 16, 6, 12
_SD_95 = 1.959964


@dataclass(frozen=True)
class Shown:
    """A released value as it is drawn.

    Attributes:
        step: number of inputs up to it.
        value: as released.
        low, high: ends of its error band; equal to the value where none is known.
    """

    step: int
    value: float
    low: float
    high: float


def band_of(counter: Any) -> Callable[[int], float] | None:
    """Return the half-width of the 95 % interval of a step, or None for counters that know none.

    It depends on public parameters alone. A running maximum has no interval of its own.
    """
    setup = getattr(counter, "setup", None)
    if setup is not None and getattr(setup, "postprocess", None) == "monotone":
        return None
    if hasattr(counter, "interval"):
        return lambda step: float(counter.interval(step))
    if hasattr(counter, "sd"):
        return lambda step: _SD_95 * float(counter.sd(step))
    return None


def reading_shown(reading: Any) -> Shown:
    """Return a reading of ``distinct`` or ``f2`` with its interval."""
    return Shown(reading.step, float(reading.estimate), float(reading.low), float(reading.high))


class LiveView:
    """Released values over time with their error band: something that rich can draw.

    Args:
        title: first line.
        horizon: number of steps that can come, or None.
        band: half-width of a step's interval, or None; see :func:`band_of`.
        readings: whether values are readings, which bring their own intervals.
    """

    def __init__(
        self,
        title: str,
        *,
        horizon: int | None,
        band: Callable[[int], float] | None = None,
        readings: bool = False,
    ) -> None:
        self._title, self._horizon, self._band, self._readings = title, horizon, band, readings
        self._count, self._stride = 0, 1
        self._kept: list[Shown] = []  # of every stride-th value
        self._points: list[Shown] = []

    @property
    def points(self) -> tuple[Shown, ...]:
        """What is kept of the released values: evenly thinned, the last one always there."""
        return tuple(self._points)

    def released(self, first: int, values: Sequence[Any]) -> None:
        """Take values that have just been written, those of the steps ``first``, ``first + 1``, ..."""
        if not values:
            return
        start, self._count = self._count, self._count + len(values)
        while self._count > _KEPT * self._stride:
            self._stride *= 2
            self._kept = self._kept[::2]
        for index in range(-start % self._stride, len(values), self._stride):
            self._kept.append(self._shown(first + index, values[index]))
        last = self._shown(first + len(values) - 1, values[-1])
        if self._kept[-1].step == last.step:
            self._points = self._kept.copy()  # replaced as a whole: another thread draws
        else:
            self._points = [*self._kept, last]

    def _shown(self, step: int, value: Any) -> Shown:
        if self._readings:
            return reading_shown(value)
        number = float(value)
        width = 0.0 if self._band is None else self._band(step)
        return Shown(step, number, number - width, number + width)

    def __rich_console__(self, console: Console, options: Any) -> Iterator[Any]:
        """Yield the lines of the view."""
        from rich.text import Text

        points = self._points
        yield Text(self._title, style="bold", no_wrap=True, overflow="ellipsis")
        if not points:
            yield Text("nothing released yet")
            return
        braille = console.encoding.lower().startswith("utf")
        said = self._said(points[-1])
        yield Text(said if braille else said.replace("±", "+-"), no_wrap=True, overflow="ellipsis")
        height = max(min(_HEIGHT, console.size.height - _MARGIN), 2)
        width = max(options.max_width - _LABEL - 2, 4)
        yield from _chart(points, width=width, height=height, braille=braille)

    def _said(self, last: Shown) -> str:
        of = "" if self._horizon is None else f" of {self._horizon:,}"
        if last.high == last.low:
            return f"step {last.step:,}{of}: released {last.value:,.6g}"
        if self._readings:
            return f"step {last.step:,}{of}: {last.value:,.6g}, in [{last.low:,.6g}, {last.high:,.6g}]"
        return f"step {last.step:,}{of}: released {last.value:,.6g} ± {last.high - last.value:,.6g} (95 %)"


def _chart(points: Sequence[Shown], *, width: int, height: int, braille: bool) -> Iterator[Any]:
    """Yield the chart's lines: values as a line, the band around them in fainter dots, and both scales."""
    from rich.text import Text

    low, high = min(p.low for p in points), max(p.high for p in points)
    if high == low:
        low, high = low - 1.0, high + 1.0
    first, last = points[0].step, points[-1].step
    canvas = Canvas(width, height, braille=braille)
    columns, rows = canvas.columns, canvas.rows
    index = 0
    before: int | None = None
    for column in range(columns):
        step = first + (last - first) * column / max(columns - 1, 1)
        while index + 1 < len(points) and points[index + 1].step <= step:
            index += 1
        point = points[index]
        top, bottom, at = (_row(value, low, high, rows) for value in (point.high, point.low, point.value))
        canvas.shade(column, top, bottom)
        canvas.line(column, at if before is None else before, at)
        before = at
        if last == first:
            break
    labels = {0: f"{high:,.5g}", height - 1: f"{low:,.5g}"}
    for number, cells in enumerate(canvas.lines()):
        text = Text(f"{labels.get(number, ''):>{_LABEL}} ", no_wrap=True)
        for cell, bright in cells:
            text.append(cell, style="bold cyan" if bright else "dim")
        yield text
    ends = f"{first:,}", f"{last:,}"
    gap = max(width - len(ends[0]) - len(ends[1]), 1)
    yield Text(" " * (_LABEL + 1) + ends[0] + " " * gap + ends[1], style="dim", no_wrap=True, overflow="crop")


def _row(value: float, low: float, high: float, rows: int) -> int:
    return round((high - value) / (high - low) * (rows - 1))


@contextmanager
def live(view: LiveView | None) -> Iterator[None]:
    """Draw a view on standard error while the block runs, if that is a terminal; its last state stays."""
    if view is None or not can_draw():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    with Live(view, console=Console(stderr=True), refresh_per_second=_REFRESHES, redirect_stdout=False):
        yield


def silent(view: LiveView | None) -> bool:
    """Tell whether values need not be written to standard output: it is the terminal that shows the view."""
    return view is not None and can_draw() and sys.stdout.isatty()


def can_draw() -> bool:
    """Tell whether standard error is a terminal that can be drawn on."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}
