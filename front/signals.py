"""Learning which signal stopped a piece of work that handles signals itself."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["last_signal"]


@contextmanager
def last_signal() -> Iterator[Callable[[], int | None]]:
    """Yield a function that returns the number of the last SIGINT or SIGTERM, or None.

    Python writes the number of every signal it handles to the wakeup descriptor, whoever installed the
    handler: the search stops at the end of a chunk on its own, and here we learn why.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None  # only the main thread may set the descriptor
        return
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    seen = bytearray()

    def last() -> int | None:
        with suppress(BlockingIOError):  # nothing new
            seen.extend(ours.recv(4096))
        stops = [number for number in seen if number in (signal.SIGINT, signal.SIGTERM)]
        return stops[-1] if stops else None

    try:
        yield last
    finally:
        signal.set_wakeup_fd(before)
        ours.close()
        theirs.close()
