"""Steps asked for in any order, shape or amount, and the noise of a chunk of increasing steps behind them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from trilift.lift.checks import integer, numeric_array, show
from trilift.lift.errors import HorizonError, ParameterError
from trilift.stream.fast.parallel import in_order

__all__ = ["Stepwise"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]

_CHUNK = 1 << 16
_MOST_STEPS = 1 << 62


class Stepwise(ABC):
    """The methods ``range`` and ``at`` of a noise process, for a class that says what a chunk of steps has.

    Attributes:
        horizon: number of steps; None for a process without end (then the steps end at 2^62).
    """

    _PURE: ClassVar[bool] = False
    """Whether threads may make chunks at the same time."""

    horizon: int | None

    @abstractmethod
    def _rounded(self, steps: IntArray) -> Integers:
        """Return floor(N_t / h + 1/2) at strictly increasing steps within the horizon, at least one."""

    def range(self, start: int, stop: int) -> Integers:
        """Return floor(N_t / h + 1/2) for t = start..stop-1 (0-based): integers in units of h.

        int64, or Python integers (dtype object) where they do not fit.

        Raises:
            ParameterError: not integers, start < 0, or stop < start.
            HorizonError: steps past horizon-1.
        """
        first = integer("start", start, minimum=0)
        last = integer("stop", stop, minimum=first)
        if last > self._end():
            raise HorizonError(f"step {show(last)} is past the horizon {self._end()}")
        return self._joined([np.arange(a, min(a + _CHUNK, last)) for a in range(first, last, _CHUNK)])

    def at(self, steps: Any) -> Integers:
        """Return floor(N_t / h + 1/2) at the given 0-based steps, in any order, repetitions allowed.

        The same step always gets the same noise: adding it to prefix sums of changed data reveals the
        change exactly. Meant for engines that compute exact prefix sums of *one* version of a stream.

        Raises:
            ParameterError: steps that are not integers.
            HorizonError: steps outside 0..horizon-1.
        """
        array = numeric_array("steps", steps)
        if array.dtype.kind not in "iu" and array.size:
            raise ParameterError(f"steps must be integers, got dtype {array.dtype}")
        flat = array.ravel()
        if flat.size and (flat.min() < 0 or flat.max() >= self._end()):
            bad = int(flat.min()) if flat.min() < 0 else int(flat.max())
            raise HorizonError(f"step {bad} lies outside 0..{self._end() - 1}")
        unique, where = np.unique(flat.astype(np.int64), return_inverse=True)
        chunks = [unique[a : a + _CHUNK] for a in range(0, unique.size, _CHUNK)]
        return np.asarray(self._joined(chunks)[where]).reshape(array.shape)

    def _end(self) -> int:
        return _MOST_STEPS if self.horizon is None else self.horizon

    def _joined(self, chunks: list[IntArray]) -> Integers:
        parts = in_order(self._rounded, chunks) if self._PURE else list(map(self._rounded, chunks))
        if not parts:
            return np.zeros(0, dtype=np.int64)
        if any(part.dtype == object for part in parts):
            parts = [part.astype(object) for part in parts]
        return np.concatenate(parts) if len(parts) > 1 else parts[0]
