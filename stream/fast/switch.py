"""Whether the compiled kernels are used: asked for, forbidden, or loaded as soon as they pay."""

from __future__ import annotations

import os
import threading
from importlib.util import find_spec
from types import SimpleNamespace

from trilift.lift.errors import ParameterError

__all__ = ["VARIABLE", "disable", "enable", "in_use", "kernels", "status"]

VARIABLE = "TRILIFT_FAST"

_WORTH = 1 << 26
"""Keystream words that the plain path reads before numba is loaded by itself: about half a second."""


class _Switch:
    """The state of this process. Forked children inherit it; nothing in it is a thread or a file."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loaded: SimpleNamespace | None = None
        self.wanted: bool | None = None  # None: when it pays
        self.asked = False  # whether the environment has been read
        self.words = 0  # read by the plain path; a hint, so that races do not matter
        self.failure: str | None = None


_switch = _Switch()


def _after_fork() -> None:
    _switch.lock = threading.Lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _read_environment() -> None:
    text = os.environ.get(VARIABLE, "")
    if text not in ("", "0", "1"):
        raise ParameterError(f"{VARIABLE} must be 0, 1 or unset, got {text!r}")
    if _switch.wanted is None and text:
        _switch.wanted = text == "1"
    _switch.asked = True


def _load() -> SimpleNamespace | None:
    """Compile, once; on failure remember why. The lock is held."""
    if _switch.loaded is None and _switch.failure is None:
        from trilift.stream.fast.loading import load

        try:
            _switch.loaded = load()
        except Exception as error:  # whatever it is, the plain path goes on
            _switch.failure = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return _switch.loaded


def kernels(words: int) -> SimpleNamespace | None:
    """Return the compiled kernels if they are in use.

    Args:
        words: keystream words that the caller is about to read, for the decision when loading pays.

    Raises:
        ParameterError: ``TRILIFT_FAST`` is none of 0, 1 and unset, or 1 and numba cannot be loaded.
    """
    if not _switch.asked:
        _read_environment()
    if _switch.wanted is False:
        return None
    if _switch.loaded is not None:
        return _switch.loaded
    if _switch.wanted:
        enable()
        return _switch.loaded
    _switch.words += words
    if _switch.words < _WORTH or _switch.failure is not None:
        return None
    if not _switch.lock.acquire(blocking=False):  # another thread is at it: go on without
        return None
    try:
        if find_spec("numba") is None:
            _switch.failure = "numba is not installed"
            return None
        return _load()
    finally:
        _switch.lock.release()


def in_use() -> bool:
    """Tell whether the compiled kernels are in use; loads nothing."""
    return _switch.loaded is not None and _switch.wanted is not False


def enable() -> None:
    """Use the compiled kernels from now on, in this process.

    Loading takes some seconds the first time, while the kernels are compiled; later processes find them
    beside the installed package, if that folder can be written.

    Raises:
        ParameterError: numba is missing, or cannot compile the kernels here.
    """
    _switch.asked = True
    with _switch.lock:
        if find_spec("numba") is None:
            raise ParameterError("the fast kernels need numba: pip install 'trilift[fast]'")
        if _load() is None:
            raise ParameterError(f"the fast kernels cannot be used here: {_switch.failure}")
        _switch.wanted = True


def disable() -> None:
    """Use the plain path alone from now on, in this process."""
    _switch.asked = True
    _switch.wanted = False


def status() -> str:
    """Return one line: whether the kernels are used, or why not."""
    if not _switch.asked:
        _read_environment()
    if _switch.wanted is False:
        return "fast kernels: turned off"
    if _switch.loaded is not None:
        return f"fast kernels: in use ({_switch.loaded.version})"
    if _switch.failure is not None or find_spec("numba") is None:
        return f"fast kernels: not available ({_switch.failure or 'numba is not installed'})"
    return "fast kernels: will be loaded when they pay"
