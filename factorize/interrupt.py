"""Finish the current chunk on SIGTERM or SIGINT instead of dying in the middle of it."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interrupt"]

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interrupt:
    """Context in which the first SIGTERM or SIGINT only sets ``requested``.

    Handlers can be installed in the main thread alone; elsewhere the context does nothing. The previous
    handlers return with the first signal, so that a second one acts at once, and at the latest on leaving.

    >>> with Interrupt() as interrupt:
    ...     interrupt.requested
    False
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            # None: installed outside Python, which cannot be put back from here
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._previous.clear()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()
