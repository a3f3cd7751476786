"""Noise of buckets that end one at a time, computed in pages."""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.stream.process import NoiseProcess

__all__ = ["Paged"]

Integers = np.ndarray[Any, np.dtype[Any]]

_PAGE = 64


class Paged:
    """A noise process that keeps the page it was read from last; the values are the process's own.

    Args:
        process: the process.
        capacity: number of steps that are ever read, or None.
    """

    def __init__(self, process: NoiseProcess, capacity: int | None) -> None:
        self._process = process
        self._end = process.horizon if capacity is None else capacity
        self._page: tuple[int, Integers] = (0, np.zeros(0, dtype=np.int64))

    @property
    def places(self) -> int:
        """Binary places of the output lattice."""
        return self._process.places

    def range(self, start: int, stop: int) -> Integers:
        """Return what the process has at steps start .. stop-1."""
        first = start - start % _PAGE
        if stop > first + _PAGE:
            return self._process.range(start, stop)
        begin, page = self._page
        if begin != first or len(page) == 0:
            last = first + _PAGE if self._end is None else min(first + _PAGE, self._end)
            begin, page = first, self._process.range(first, last)
            self._page = (begin, page)
        return page[start - begin : stop - begin]
