"""What the command line prints: data on standard output, everything said to people on standard error."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from trilift.lift.errors import ParameterError

__all__ = [
    "CLOSED_PIPE",
    "ClosedPipeError",
    "duration",
    "json_text",
    "note",
    "one_line",
    "print_json",
    "print_pairs",
    "print_table",
    "printable",
    "progress",
    "warnings_as_notes",
    "write",
]

CLOSED_PIPE = 141
"""Exit code when the reader of standard output has gone away, as that of a process ended by SIGPIPE."""


class Writable(Protocol):
    """What text can be written to."""

    def write(self, text: str, /) -> int:
        """Take text."""
        ...

    def flush(self) -> None:
        """Hand it on."""
        ...


class ClosedPipeError(Exception):
    """The reader of standard output has gone away: there is nobody left to print for."""


def one_line(text: str) -> str:
    """Put a message on one line."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    r"""Write out what is no printable character: text from files must not command the terminal.

    >>> print(printable("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def note(text: str) -> None:
    """Say something to people, on standard error."""
    print(text, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Say roughly how long something takes.

    >>> duration(90.0), duration(600.0), duration(9000.0)
    ('90 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def write(text: str, *, file: Writable | None = None) -> None:
    """Write text and flush it.

    Raises:
        ClosedPipeError: nobody reads standard output any more.
    """
    stream: Writable = sys.stdout if file is None else file
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _silence_stdout()
        raise ClosedPipeError from None


def _silence_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not complain on leaving."""
    with suppress(OSError, ValueError):  # not a real file descriptor: nothing can be pending there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def json_text(value: Any) -> str:
    """Return JSON of a value.

    Raises:
        ParameterError: it holds NaN or an infinity, which JSON cannot say.
    """
    try:
        return json.dumps(value, indent=2, allow_nan=False)
    except ValueError:
        raise ParameterError("a figure of the result does not fit a float: choose other parameters") from None


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    write(json_text(value) + "\n")


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str] = ("name",)
) -> None:
    """Print a table: columns named in ``left`` are flush left, all others flush right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for name in columns:
        table.add_column(name, justify="left" if name in left else "right", no_wrap=name not in left)
    for row in rows:
        table.add_row(*[Text(printable(cell)) for cell in row])
    write(title + "\n")
    _render(table)


def print_pairs(pairs: Mapping[str, str]) -> None:
    """Print names and values, one pair a line."""
    width = max(map(len, pairs), default=0)
    write("".join(f"{name:<{width}}  {printable(value)}\n" for name, value in pairs.items()))


def _render(table: Any) -> None:
    """Write a table as wide as the terminal, or as wide as our tables get where there is none."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 120
    shown = Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)
    with shown.capture() as captured:
        shown.print(table)
    lines = (line.rstrip() for line in captured.get().splitlines())
    write("\n".join(lines) + "\n")


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """Yield report(done, steps): a bar on standard error if that is a terminal, else nothing."""
    if not sys.stderr.isatty():
        yield lambda done, steps: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, steps: bar.update(task, completed=done, total=steps)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Say the library's own warnings in one line each, once, on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        shown, said = warnings.showwarning, set[str]()

        def show(message: Any, category: Any, *rest: Any, **more: Any) -> None:
            text = one_line(str(message))
            if category is not UserWarning:
                shown(message, category, *rest, **more)
            elif text not in said:
                said.add(text)
                note(f"trilift: {text}")

        warnings.showwarning = show
        yield
