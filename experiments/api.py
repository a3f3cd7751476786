"""Every public name of trilift with its signature, as one text: what a change must not break unseen.

``python -m trilift.experiments.api docs/api.txt`` writes it; a test compares it with the library.

A name is public if the ``__all__`` of a package (a folder) has it. Of a class its constructor, public methods
and public properties are listed, those that it inherits within trilift too; of a TypedDict its fields. What
is not there may change at any time.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, is_typeddict

from trilift.lift.files import atomic_write

__all__ = ["INSIDE", "PUBLIC", "api_text", "main"]

PUBLIC = (
    "trilift",
    "trilift.artifacts",
    "trilift.counters",
    "trilift.counters.accounting",
    "trilift.counters.durable",
    "trilift.counters.edit",
    "trilift.counters.frames",
    "trilift.counters.interop",
    "trilift.counters.neighbours",
    "trilift.counters.spark",
    "trilift.counters.turnstile",
    "trilift.factorize",
    "trilift.lift",
    "trilift.stream",
    "trilift.verify",
)
"""The packages with public names."""

INSIDE = ("trilift.commands", "trilift.experiments", "trilift.stream.fast")
"""Packages whose names may change at any time, and those within them."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def api_text() -> str:
    """Return the listing: a heading for every package, a line for every name and member."""
    parts = []
    for name in PUBLIC:
        package = importlib.import_module(name)
        names = sorted(getattr(package, "__all__", []))
        if names:
            lines = [line for public in names for line in _lines(public, getattr(package, public))]
            parts.append("\n".join([f"[{name}]", *lines]))
    return "\n\n".join(parts) + "\n"


def _lines(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield from _class(name, value)
    elif inspect.ismodule(value):
        yield f"{name}: module"
    elif callable(value):
        yield f"{name}{_signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def _class(name: str, value: type[Any]) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
    head = f"class {name}({bases})" if bases else f"class {name}"
    if is_typeddict(value) or issubclass(value, BaseException):
        yield head
        for field, kind in sorted(vars(value).get("__annotations__", {}).items()):
            yield f"  {field}: {_annotation(kind)}"
        return
    yield f"{head}: {_constructor(value)}"
    for member in sorted(_members(value)):
        found = inspect.getattr_static(value, member)
        if isinstance(found, property):
            yield (
                f"  {member} -> {_annotation(inspect.signature(found.fget).return_annotation)}"
                if (found.fget)
                else f"  {member}"
            )
        elif isinstance(found, (classmethod, staticmethod)):
            kind = "class" if isinstance(found, classmethod) else "static"
            yield f"  {member}{_signature(found.__func__)} [{kind}]"
        elif inspect.isfunction(found):
            yield f"  {member}{_signature(found)}"
    fields = {
        field: kind
        for base in reversed(value.__mro__)
        if base.__module__.startswith("trilift")
        for field, kind in vars(base).get("__annotations__", {}).items()
        if not field.startswith("_") and hasattr(value, "__dataclass_fields__")
    }
    for field, kind in sorted(fields.items()):
        yield f"  {field}: {_annotation(kind)}"


def _constructor(value: type[Any]) -> str:
    try:
        return _signature(value)
    except (TypeError, ValueError):
        return "(...)"


def _members(value: type[Any]) -> set[str]:
    return {
        member
        for base in value.__mro__
        if base.__module__.startswith("trilift")
        for member, found in vars(base).items()
        if not member.startswith("_")
        and (isinstance(found, (property, classmethod, staticmethod)) or inspect.isfunction(found))
    }


def _signature(value: Any) -> str:
    signature = inspect.signature(value)
    parameters = [
        parameter.replace(annotation=_Verbatim(parameter.annotation))
        if parameter.annotation is not inspect.Parameter.empty
        else parameter
        for parameter in signature.parameters.values()
    ]
    back = signature.return_annotation
    shown = signature.replace(
        parameters=parameters,
        return_annotation=back if back is inspect.Signature.empty else _Verbatim(back),
    )
    return _ADDRESS.sub("", str(shown))


def _annotation(kind: Any) -> str:
    return kind if isinstance(kind, str) else inspect.formatannotation(kind)


class _Verbatim:
    """An annotation that shows as it was written."""

    def __init__(self, kind: Any) -> None:
        self._text = _annotation(kind)

    def __repr__(self) -> str:
        return self._text


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the listing into the file that is named, or print it."""
    parser = argparse.ArgumentParser(description="List the public API, as docs/api.txt has it.")
    parser.add_argument("file", nargs="?", type=Path, help="where to write it (default: print it)")
    chosen = parser.parse_args(arguments)
    if chosen.file is None:
        print(api_text(), end="")
    else:
        atomic_write(chosen.file, api_text().encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
