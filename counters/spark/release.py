"""What travels to the executors: public parameters, and the name of where the key is. Never the key."""

from __future__ import annotations

import hmac
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trilift.counters.durable.outside import read_key
from trilift.counters.frames import PrivateCumsum
from trilift.lift.errors import ParameterError, StateError

__all__ = ["Release", "key_name", "mark_of"]


def key_name(source: Any) -> str:
    """Return the text that names a key: it goes into plans and logs, so it must not be the key.

    Args:
        source: "env:NAME", "file:PATH", "call:MODULE:FUNCTION", or a function of a module that executors
            can import.

    Raises:
        ParameterError: anything else; bytes among it.
    """
    if isinstance(source, str) and source.startswith(("env:", "file:", "call:")):
        return source
    if callable(source):
        module, name = getattr(source, "__module__", ""), getattr(source, "__qualname__", "")
        if module in ("", "__main__") or not name.isidentifier() or _function(module, name) is not source:
            raise ParameterError("key: a function must be one of a module that executors can import")
        return f"call:{module}:{name}"
    raise ParameterError(
        'key must be "env:NAME", "file:PATH", "call:MODULE:FUNCTION" or a function of a module: the bytes '
        "themselves would be written into plans"
    )


def _function(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


def _opened(source: str) -> str | Callable[[], bytes]:
    if not source.startswith("call:"):
        return source
    module, _, name = source.removeprefix("call:").rpartition(":")
    function: Callable[[], bytes] | None = _function(module, name)
    if not callable(function):
        raise ParameterError(f"key: {source} names no function that can be imported here")
    return function


def mark_of(inner: PrivateCumsum) -> str:
    """Return 32 hexadecimal digits that tell key, data and mechanism from others, and nothing of the key."""
    mark: bytes = inner._representative()._stream_id
    return mark.hex()


@dataclass(frozen=True, kw_only=True)
class Release:
    """All that an executor needs to make the noise of any group.

    Attributes:
        value: the column that is summed.
        options: public arguments of :class:`trilift.counters.frames.PrivateCumsum`.
        source: where the key is (:func:`key_name`); None in simulations.
        mark: of the driver's key and mechanism: an executor with other ones refuses to work.
    """

    value: str
    options: dict[str, Any]
    source: str | None
    mark: str = ""

    def opened(self, **more: Any) -> PrivateCumsum:
        """Read the key here, and return the private sum.

        Raises:
            ParameterError: an argument that is not acceptable, or no key.
            StateError: not the key, or not the mechanism, of the driver.
        """
        given = dict(self.options) | more
        if self.source is not None:
            given["key"] = read_key(_opened(self.source))
        inner = PrivateCumsum(self.value, **given)
        if self.mark and not hmac.compare_digest(mark_of(inner), self.mark):
            raise StateError("the key or the mechanism here is not that of the driver: nothing is released")
        return inner
