"""A progress bar on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Report", "reporter"]

Report = Callable[[int, int, float], None]
"""Called as report(step, steps, best kappa so far)."""


def _silent(step: int, steps: int, kappa: float) -> None:
    """Report nothing."""


@contextmanager
def reporter(progress: bool | Report | None, *, title: str, start: int, steps: int) -> Iterator[Report]:
    """Yield what to call after every chunk.

    ``progress`` is a callable of one's own, True or None for a bar on standard error if that is a terminal
    and rich is installed, False for nothing.
    """
    if callable(progress):
        yield progress
        return
    bar = _bar() if progress is not False and sys.stderr.isatty() else None
    if bar is None:
        yield _silent
        return
    with bar:
        task = bar.add_task(title, total=steps, completed=start, kappa="")

        def report(step: int, steps: int, kappa: float) -> None:
            bar.update(task, completed=step, kappa=f"kappa {kappa:.6f}")

        yield report


def _bar() -> Any:
    """A bar of rich on standard error, or None where rich is missing (a bare image)."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[kappa]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
