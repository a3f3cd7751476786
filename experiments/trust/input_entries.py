"""One public function or class with arguments that are fine, and what each of its parameters wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["Entry", "Kept", "entry", "flag", "key_of", "maybe", "number", "steps", "untried", "whole", "word"]


@dataclass(frozen=True)
class Want:
    """What a parameter wants.

    Attributes:
        kind: "integer", "number" (a finite real one), "flag", "word" (one of a few strings, or a name),
            "steps" (an array of numbers, or one), or "untried" (an object, a path, a function).
        good: a value that is fine, which is then passed in every type that holds it.
        optional: whether None has a meaning.
        called: what else messages may call it.
    """

    kind: str
    good: Any = None
    optional: bool = False
    called: str = ""


def whole(good: int, *, called: str = "") -> Want:
    """An integer is wanted."""
    return Want("integer", good, called=called)


def number(good: Any, *, called: str = "") -> Want:
    """A finite real number is wanted."""
    return Want("number", good, called=called)


def flag(*, called: str = "") -> Want:
    """A truth value is wanted."""
    return Want("flag", True, called=called)


def word(good: str = "", *, called: str = "") -> Want:
    """A string is wanted: one of a few, or a name that is known."""
    return Want("word", good, called=called)


def steps(good: Any = None, *, called: str = "") -> Want:
    """Numbers are wanted."""
    return Want("steps", good, called=called)


def untried() -> Want:
    """An object, a path or a function is wanted: no kind of value of these tables."""
    return Want("untried")


def maybe(want: Want) -> Want:
    """The same, or None."""
    return Want(want.kind, want.good, True, want.called)


@dataclass(frozen=True)
class Entry:
    """A public callable.

    Attributes:
        target: the function, method or class.
        call: calls it with keyword arguments, for a method on an object made for it.
        fixed: arguments that are fine.
        wants: what its parameters want.
    """

    target: Callable[..., Any]
    call: Callable[..., Any]
    fixed: Mapping[str, Any]
    wants: Mapping[str, Want]

    @property
    def name(self) -> str:
        """Where the callable is defined, and how it is called there."""
        return key_of(self.target)


def entry(target: Callable[..., Any], fixed: Mapping[str, Any], **wants: Want) -> Entry:
    """Return the entry of a function or class that is called as it stands."""
    return Entry(target, target, fixed, wants)


def key_of(target: Any) -> str:
    """Return module and name of a function, method or class."""
    inner = getattr(target, "__func__", target)
    return f"{inner.__module__.removeprefix('trilift.')}.{inner.__qualname__}"


class Kept:
    """An object that is made once, and again after it has changed."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def __call__(self) -> Any:
        """Return the object."""
        if self._made is None or getattr(self._made, "step", 0) != 0:
            self._made = self._make()
        return self._made


def picture(value: Any) -> Any:
    """Return something comparable that tells results apart: numbers, texts, and what a counter releases."""
    if hasattr(value, "privacy_statement") and hasattr(value, "extend"):
        return [value.privacy_statement(), repr(value), picture(_some(value))]
    if isinstance(value, np.ndarray):
        return [str(value.dtype.kind), value.tolist()]
    if isinstance(value, (list, tuple)):
        return [picture(item) for item in value]
    if isinstance(value, (int, float, str, bytes, Fraction, type(None))):
        return value
    if hasattr(value, "__dataclass_fields__"):
        return [
            picture(getattr(value, name)) for name, field in value.__dataclass_fields__.items() if field.init
        ]
    return repr(value)


def _some(counter: Any) -> Any:
    dimension = getattr(getattr(counter, "setup", None), "dimension", None)
    return counter.extend([1, 0] if dimension is None else np.zeros((2, int(dimension)), dtype=int))
