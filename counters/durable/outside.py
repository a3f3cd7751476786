"""Keys that are kept apart from a counter's folder: in the environment, in a file, behind a function."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trilift.lift.errors import ParameterError
from trilift.stream.keys import KEY_BYTES, Secret

__all__ = ["KeySource", "read_key"]

KeySource = bytes | str | Callable[[], bytes]

_HEX = re.compile(r"[0-9a-fA-F]{64}")


def read_key(source: Any) -> Secret:
    """Return a key of 32 bytes.

    Args:
        source: the bytes, a function that returns them, or "env:NAME" or "file:PATH" where 64 hexadecimal
            digits stand (in a file, a final newline too).

    Raises:
        ParameterError: none of these, or there is no key; the message never shows it.

    >>> read_key(lambda: bytes(31))
    Traceback (most recent call last):
    trilift.lift.errors.ParameterError: key must be 32 bytes
    """
    if callable(source):
        source = source()
    if isinstance(source, bytes):
        if len(source) != KEY_BYTES:
            raise ParameterError(f"key must be {KEY_BYTES} bytes")
        return Secret(source)
    if not isinstance(source, str) or not source.startswith(("env:", "file:")):
        raise ParameterError('key must be 32 bytes, a function, "env:NAME" or "file:PATH"')
    where, _, name = source.partition(":")
    if where == "env":
        text = os.environ.get(name)
        if text is None:
            raise ParameterError(f"key: the environment has no variable {name}")
    else:
        try:
            text = Path(name).read_text(encoding="ascii")
        except (OSError, ValueError):
            raise ParameterError(f"key: the file {name} cannot be read") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not _HEX.fullmatch(text):
        raise ParameterError(f"key: {source} must hold 64 hexadecimal digits")
    return Secret(bytes.fromhex(text))
