"""Counting a stream of text: batches that never wait for a line, states saved before values are shown.

What counts is a :class:`Tally`: :class:`trilift.tallies.Plain` around a counter of numbers,
:class:`trilift.tallies.Edit` around one of edit-neighbouring streams, in which a line may say "no event", or
:class:`trilift.tallies_turnstile.Turnstile` around one of insertions and removals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, Self

from trilift.lift.errors import HorizonError, ParameterError
from trilift.lines import Lines
from trilift.mending import MendedFile
from trilift.output import write

if TYPE_CHECKING:
    from trilift.counters.durable.replay import Again
    from trilift.live import LiveView

__all__ = ["Sink", "Taker", "Tally", "check_stream", "count_stream", "value_text"]

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

    def arguments(self, inputs: list[Any]) -> tuple[Any, ...]:
        """Return checked inputs as ``extend`` of the counter takes them."""

    def advance(self, inputs: list[Any]) -> list[Any]:
        """Take checked inputs, and return what is released for them."""

    def save(self, path: Path) -> None:
        """Save the counter's state."""

    def statement(self) -> str:
        """Return what is guaranteed, and what will happen, as text."""


class Kept(Protocol):
    """What keeps its counter."""

    counter: Any

    def close(self) -> None:
        """Give the counter's state free."""


class Tally(Taker, Kept, Protocol):
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
        mend: whether a file that exists is gone through from its beginning: see :mod:`trilift.mending`.
        view: is given what was written, or None.
        silent: whether standard output gets nothing, because the view shows it.

    Attributes:
        written: number of values so far.
    """

    header = "step,released"

    def __init__(
        self,
        form: str,
        *,
        path: Path | None,
        append: bool = False,
        mend: bool = False,
        view: LiveView | None = None,
        silent: bool = False,
    ) -> None:
        self._view, self._silent = view, silent and path is None
        self._form, self._path, self._append, self._mend = form, path, append, mend
        self._file: IO[str] | MendedFile | None = None
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
            self._file = self._opened(self._path)
            self._header = self._header and self._file.tell() == 0
        rows = self.rows(first, values)
        if self._header:
            rows.insert(0, self.header)
            self._header = False
        self.written += len(values)
        if not self._silent:
            write("\n".join(rows) + "\n", file=self._file)
        if self._view is not None:
            self._view.released(first, values)

    def settle(self) -> None:
        """See that a file that is mended holds no more than was written: from here on, values are new.

        Raises:
            ParameterError: it does.
        """
        if self._mend and self._file is None and self._path is not None and self._path.exists():
            self._file = self._opened(self._path)
        if isinstance(self._file, MendedFile):
            self._file.settle()

    def _opened(self, path: Path) -> IO[str] | MendedFile:
        if self._mend:
            return MendedFile(path)
        mode = "a" if self._append else "x"
        return open(path, mode, encoding="utf-8", newline="\n")  # closed on leaving


def count_stream(
    tally: Taker,
    lines: Lines,
    numbers: Iterator[tuple[int, Any]],
    sink: Sink,
    save: Callable[[], None],
    *,
    begin: Callable[[], None] = lambda: None,
    again: Again | None = None,
    advice: str = "",
) -> int:
    """Count the inputs as they arrive; return how many there were that are new.

    A batch ends where the next line is not here yet. It is counted, saved, and only then written, so that no
    value is seen that a saved state does not know.

    Args:
        tally: what counts them.
        lines: the text, which says whether more of it is here.
        numbers: the inputs of its lines, with the numbers of the lines.
        sink: where released values go.
        save: saves the counter's state.
        begin: is called before something is released.
        again: takes the first inputs, which were counted before: they are released again, not counted.
        advice: what to add to the message about a refused line, where values were released.

    Raises:
        ParameterError: a line that is not acceptable; those before it are released, it and the rest are not.
        HorizonError: a line past the horizon, likewise.
        ReplayError: the first inputs are not those that were counted before.
    """
    start = tally.step
    inputs = _inputs(tally, numbers, start=start if again is None else 0)
    if again is not None:
        _give_again(tally, again, inputs, sink)
    batch: list[Any] = []

    def release() -> None:
        if batch:
            begin()
            first = tally.step + 1
            values = tally.advance(batch)
            batch.clear()
            save()
            sink.write(first, values)

    try:
        for value in inputs:
            batch.append(value)
            if len(batch) == _BATCH or not lines.ready:
                release()
    except (ParameterError, HorizonError) as error:
        release()
        took = advice if tally.step > start else ""
        raise type(error)(f"{error}; values released: {sink.written}{took}") from None
    release()
    return tally.step - start


def _give_again(tally: Taker, again: Again, inputs: Iterator[Any], sink: Sink | None) -> None:
    """Compare the first inputs with what was counted, and write what was released for them."""
    steps = again.left
    while again.left:
        batch = list(islice(inputs, min(_BATCH, again.left)))
        if not batch:
            raise ParameterError(
                f"the input ends after step {again.step}, and {steps} were counted: give all of them again "
                "(or only what follows, with --following)"
            )
        pairs = again.extend(*tally.arguments(batch))
        if pairs and sink is not None:
            sink.write(pairs[0][0], [value for _, value in pairs])
    if sink is not None:
        sink.settle()


def check_stream(tally: Taker, numbers: Iterator[tuple[int, Any]], *, again: Again | None = None) -> int:
    """Check all inputs as counting would; release nothing, and return how many there are.

    Raises:
        ParameterError, HorizonError, ReplayError: the first line that would be refused.
    """
    inputs = _inputs(tally, numbers, start=tally.step if again is None else 0)
    if again is None:
        return sum(1 for _ in inputs)
    _give_again(tally, again, inputs, None)
    return again.step + sum(1 for _ in inputs)


def _inputs(tally: Taker, numbers: Iterator[tuple[int, Any]], *, start: int) -> Iterator[Any]:
    """Yield inputs, checked against the counter's bounds and the steps that it has left after ``start``."""
    left = None if tally.horizon is None else tally.horizon - start
    for number, value in numbers:
        if left is not None:
            if left == 0:
                raise HorizonError(f"line {number}: past the horizon {tally.horizon}")
            left -= 1
        yield tally.checked(number, value)
