"""SIGINT and SIGTERM end the program with at most one line and exit code 128 + n, whatever it is at.

Until the commands are loaded there is nothing to tidy up, and the program leaves at once: an exception in the
middle of an import would come out as a traceback, or get lost. After that the first signal raises
KeyboardInterrupt, so that files are closed and progress bars taken away, and a second one leaves at once.
Searches have handlers of their own, which save them (:mod:`trilift.factorize`). This module is imported
before all else, and therefore light.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

__all__ = ["as_a_program", "exit_code", "interrupted", "say_stopped"]

_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
_stopped: list[int] = []  # numbers of the signals that have come


def as_a_program(load: Callable[[], Callable[[list[str]], int]]) -> int:
    """Run what ``load`` returns with the arguments of the process; return the exit code.

    Signals that the process was told to ignore (``nohup``, a shell's background jobs) stay ignored.
    """
    _handle(_leave)
    sys.unraisablehook = _lost
    try:
        try:
            run = load()
            _handle(_unwind)
            code = run(sys.argv[1:])
        finally:
            _handle(_leave)
    except BaseException:
        if not _stopped:
            raise
        say_stopped()  # whatever a library has made of the interrupt
    if _stopped:
        with suppress(OSError):
            sys.stdout.flush()
        # Python would end itself by SIGINT if the interrupt has passed through an exec() of a library.
        os._exit(exit_code())
    return code


def exit_code() -> int:
    """Return the exit code of a stopped program: 130, or 143 after SIGTERM."""
    return 128 + (_stopped[0] if _stopped else signal.SIGINT)


def interrupted() -> bool:
    """Tell whether a signal has come that :func:`as_a_program` has to do with."""
    return bool(_stopped)


def say_stopped() -> None:
    """Say on standard error that the program was stopped."""
    with suppress(OSError):
        print(_line(), file=sys.stderr, flush=True)


def _line() -> str:
    return f"trilift: {_WORDS[signal.Signals(exit_code() - 128)]}"


def _handle(handler: Callable[[int, Any], None]) -> None:
    for number in _WORDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _leave(number: int, _: Any) -> None:
    if not _stopped:
        _stopped.append(number)
        with suppress(OSError):
            os.write(2, f"{_line()}\n".encode())  # printing might be what was interrupted
    os._exit(exit_code())


def _unwind(number: int, frame: Any) -> None:
    if _stopped:
        _leave(number, frame)
    _stopped.append(number)
    raise KeyboardInterrupt


def _lost(what: Any) -> None:
    """Leave where an interrupt has come up in a finaliser, where nobody can catch it."""
    if _stopped:
        os._exit(exit_code())
    sys.__unraisablehook__(what)
