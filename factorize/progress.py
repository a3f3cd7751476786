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
    rich = _rich() if progress is not False and sys.stderr.isatty() else None
    if rich is None:
        yield _silent
        return
    bar, columns = rich
    with bar(*columns) as shown:
        task = shown.add_task(title, total=steps, completed=start, kappa="")

        def report(step: int, steps: int, kappa: float) -> None:
            shown.update(task, completed=step, kappa=f"kappa {kappa:.6f}")

        yield report


def _rich() -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
    """The bar of rich on standard error, or None where rich is missing (a bare image)."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[kappa]}"),
        TimeRemainingColumn(),
        Console(stderr=True),
    )
    *shown, console = columns

    def bar(*parts: Any) -> Progress:
        return Progress(*parts, console=console, transient=True)

    return bar, tuple(shown)
