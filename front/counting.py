"""Counting a stream of text: batches that never wait for a line, states saved before values are shown.

What counts is a :class:`Tally`: :class:`trilift.tallies.Plain` around a counter of numbers,
:class:`trilift.tallies.Edit` around one of edit-neighbouring streams, in which a line may say "no event", or
:class:`trilift.tallies_turnstile.Turnstile` around one of insertions and removals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, Protocol, Self

from trilift.counters.lock import exclusive
from trilift.lift.errors import HorizonError, ParameterError
from trilift.lines import Lines
from trilift.output import write

__all__ = ["Sink", "Taker", "Tally", "check_stream", "count_stream", "exclusive", "value_text"]

_BATCH = 1 << 16


class Taker(Protocol):
    """What takes the lines of a stream, and releases values meanwhile."""

    @property
    def step(self) -> int:
        """Number of steps so far."""

    @property
    def horizon(self) -> int | None:
        """Number of steps that can be released; None for any number."""

    def checked(self, number: int, value: Any) -> Any:
        """Return what a line holds as :meth:`advance` takes it.

        Raises:
            ParameterError: an input that is not acceptable; it names the line and not the value.
        """

    def advance(self, inputs: list[Any]) -> list[Any]:
        """Take checked inputs, and return what is released for them."""

    def save(self, path: Path) -> None:
        """Save the counter's state."""

    def statement(self) -> str:
        """Return what is guaranteed, and what will happen, as text."""


class Tally(Taker, Protocol):
    """A counter of numbers as the command line sees it: it releases a value for each."""

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that was asked for."""

    @property
    def delta(self) -> Fraction | None:
        """The delta that was asked for, None for pure differential privacy."""

    @property
    def integers(self) -> bool:
        """Whether inputs are integers, not decimals."""

    @property
    def no_event(self) -> bool:
        """Whether a line may hold "no event"."""

    def summary(self) -> str:
        """Return the end of the sentence "Released so many values, up to step t" about the last value."""


def value_text(value: int | float | Fraction) -> str:
    """Return a released value as a decimal number without losing a bit.

    >>> value_text(3), value_text(0.5), value_text(Fraction(-2**60 - 1, 4))
    ('3', '0.5', '-288230376151711744.25')
    """
    if not isinstance(value, Fraction):
        return repr(value)
    places = value.denominator.bit_length() - 1  # the denominator is a power of two
    digits = str(abs(value.numerator) * 5**places).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if value < 0 else text


class Sink:
    """Where released values go, and in which form: a context, which opens a file with the first values.

    Args:
        form: "plain" (a value a line), "csv" (with a header) or "json" (an object a line).
        path: a file, or None for standard output.
        append: whether values may be added to a file that exists, under its old header.

    Attributes:
        written: number of values so far.
    """

    header = "step,released"

    def __init__(self, form: str, *, path: Path | None, append: bool) -> None:
        self._form, self._path, self._append = form, path, append
        self._file: IO[str] | None = None
        self._header = form == "csv"
        self.written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._file is not None:
            self._file.close()

    def rows(self, first: int, values: list[Any]) -> list[str]:
        """Return the lines of released values, without their ends."""
        texts = enumerate(map(value_text, values), first)
        if self._form == "json":
            return [f'{{"step": {step}, "released": {text}}}' for step, text in texts]
        if self._form == "csv":
            return [f"{step},{text}" for step, text in texts]
        return [text for _, text in texts]

    def write(self, first: int, values: list[Any]) -> None:
        """Write what was released at or after the step ``first``; the values of first, first + 1, ..."""
        if not values:
            return
        if self._file is None and self._path is not None:
            mode = "a" if self._append else "x"
            opened = open(self._path, mode, encoding="utf-8", newline="\n")  # noqa: SIM115, closed on leaving
            self._file = opened
            self._header = self._header and opened.tell() == 0
        rows = self.rows(first, values)
        if self._header:
            rows.insert(0, self.header)
            self._header = False
        self.written += len(values)
        write("\n".join(rows) + "\n", file=self._file)


def count_stream(
    tally: Taker,
    lines: Lines,
    numbers: Iterator[tuple[int, Any]],
    sink: Sink,
    save: Callable[[], None],
    *,
    advice: str = "",
) -> int:
    """Count the inputs as they arrive; return how many there were.

    A batch ends where the next line is not here yet. It is counted, saved, and only then written, so that no
    value is seen that a saved state does not know.

    Args:
        tally: what counts them.
        lines: the text, which says whether more of it is here.
        numbers: the inputs of its lines, with the numbers of the lines.
        sink: where released values go.
        save: saves the counter's state.
        advice: what to add to the message about a refused line, where values were released.

    Raises:
        ParameterError: a line that is not acceptable; those before it are released, it and the rest are not.
        HorizonError: a line past the horizon, likewise.
    """
    start = tally.step
    batch: list[Any] = []

    def release() -> None:
        if batch:
            first = tally.step + 1
            values = tally.advance(batch)
            batch.clear()
            save()
            sink.write(first, values)

    try:
        for value in _inputs(tally, numbers):
            batch.append(value)
            if len(batch) == _BATCH or not lines.ready:
                release()
    except (ParameterError, HorizonError) as error:
        release()
        took = advice if tally.step > start else ""
        raise type(error)(f"{error}; values released: {sink.written}{took}") from None
    release()
    return tally.step - start


def check_stream(tally: Taker, numbers: Iterator[tuple[int, Any]]) -> int:
    """Check all inputs as counting would; release nothing, and return how many there are.

    Raises:
        ParameterError, HorizonError: the first line that would be refused.
    """
    return sum(1 for _ in _inputs(tally, numbers))


def _inputs(tally: Taker, numbers: Iterator[tuple[int, Any]]) -> Iterator[Any]:
    """Yield inputs, checked against the counter's bounds and the steps that it has left."""
    left = None if tally.horizon is None else tally.horizon - tally.step
    for number, value in numbers:
        if left is not None:
            if left == 0:
                raise HorizonError(f"line {number}: past the horizon {tally.horizon}")
            left -= 1
        yield tally.checked(number, value)
