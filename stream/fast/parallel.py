"""Work on independent pieces by several threads, while the compiled kernels are in use.

The kernels and the cipher let other threads run meanwhile. Threads live as long as one call: none is left to
be lost in a fork, and none waits for work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from trilift.lift.errors import ParameterError
from trilift.stream.fast.switch import in_use

__all__ = ["VARIABLE", "in_order", "threads"]

VARIABLE = "TRILIFT_THREADS"

_MOST = 64
_DEFAULT_MOST = 8

Item = TypeVar("Item")
Result = TypeVar("Result")


def threads() -> int:
    """Return how many threads a call may use: ``TRILIFT_THREADS``, or the processors at hand, at most 8.

    Raises:
        ParameterError: ``TRILIFT_THREADS`` is no integer from 1 to 64.
    """
    text = os.environ.get(VARIABLE, "")
    if text:
        if not (text.isascii() and text.isdigit() and len(text) <= 2 and 1 <= int(text) <= _MOST):
            raise ParameterError(f"{VARIABLE} must be an integer from 1 to {_MOST}, or unset")
        return int(text)
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        usable = os.cpu_count() or 1
    return min(usable, _DEFAULT_MOST)


def in_order(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return the results of all items, in order; the first error is raised when all have ended.

    Args:
        work: a pure function that threads may run at the same time.
        items: what it is called with.
    """
    several = min(len(items), threads()) if len(items) > 1 and in_use() else 1
    if several == 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(max_workers=several, thread_name_prefix="trilift") as pool:
        return list(pool.map(work, items))
