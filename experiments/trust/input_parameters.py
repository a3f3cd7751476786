"""Every parameter of every public function and class with every hostile value: refused by name, or exact."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.experiments.trust.input_entries import Entry, Want, picture
from trilift.experiments.trust.input_values import EDGES, NO_NUMBERS, like
from trilift.lift.checks import show
from trilift.lift.errors import TriliftError

__all__ = ["Fault", "faults"]

LONGEST = 400
"""Characters of a message."""


@dataclass(frozen=True)
class Fault:
    """A call that did not do as it should."""

    where: str
    parameter: str
    value: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}({self.parameter}={self.value}): {self.what}"


def cases(want: Want) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of what a parameter is tried with."""
    for name, value in NO_NUMBERS.items():
        if value is None and want.optional:
            continue
        if want.kind == "flag" and isinstance(value, (bool, np.bool_)):
            continue
        yield name, value
    if want.kind in ("integer", "number"):
        yield from EDGES.items()
        yield from ((f"{type(x).__name__} {x}", x) for x in like(want.good, whole=want.kind == "integer"))


def tried(entry: Entry, *, every: int = 1) -> int:
    """Return how many calls the entry is tried with."""
    return sum(1 for _ in _calls(entry, every))


def _calls(entry: Entry, every: int) -> Iterator[tuple[str, Want, str, Any]]:
    """Yield (parameter, what it wants, name of a value, value); of every so many one, others each time."""
    for place, (parameter, want) in enumerate(entry.wants.items()):
        if want.kind != "untried":
            for index, (name, value) in enumerate(cases(want)):
                if (index + 5 * place) % every == 0 or (index < 2 and every < 20):
                    yield parameter, want, name, value


def faults(entry: Entry, *, every: int = 1) -> Iterator[Fault]:
    """Call an entry with everything, one parameter at a time, and yield what went wrong.

    Args:
        entry: what to call.
        every: try one in so many values only, at another place of the table for each parameter.
    """
    for parameter, want, name, value in _calls(entry, every):
        what = _fault(entry, parameter, want, value)
        if what is not None:
            yield Fault(entry.name, parameter, name, what)


def _fault(entry: Entry, parameter: str, want: Want, value: Any) -> str | None:
    try:
        result = entry.call(**{**entry.fixed, parameter: value})
        shown = picture(result)
    except TriliftError as error:
        return _message_fault(error, parameter, want, value, entry)
    except Exception as error:
        return f"{type(error).__name__}: {_said(error)}"
    if want.kind == "steps":
        return None
    twin = _plain(want.kind, value)
    if twin is None:
        return f"accepted: {str(shown)[:80]}"
    try:
        same = type(twin) is type(value) or picture(entry.call(**{**entry.fixed, parameter: twin})) == shown
    except Exception as error:
        return f"its twin: {type(error).__name__}: {_said(error)}"
    if not same:
        return f"means something else than {twin}"
    return None


def _said(error: Exception) -> str:
    try:
        return str(error)[:100]
    except Exception:
        return "(a message that fails)"


def _plain(kind: str, value: Any) -> Any:
    """Return the plain number that a value is; None if it is nothing that the kind wants."""
    if isinstance(value, (bool, np.bool_, np.timedelta64)):
        return None
    if isinstance(value, Decimal) and value.is_finite() and value and abs(value.adjusted()) > 4000:
        return None  # refused: it would have to be multiplied out
    if isinstance(value, numbers.Integral):
        return int(value) if hasattr(value, "__int__") else None
    if kind != "number" or not isinstance(value, (float, np.floating, Fraction, Decimal)):
        return None
    try:
        return Fraction(*value.as_integer_ratio())
    except (ValueError, OverflowError):
        return None


def _message_fault(error: TriliftError, parameter: str, want: Want, value: Any, entry: Entry) -> str | None:
    text = str(error)
    if "\n" in text or len(text) > LONGEST:
        return f"a message of several lines or {len(text)} characters: {text[:80]!r}"
    if not any(called and called in text for called in (parameter, *want.called.split("|"))):
        return f"does not name it: {type(error).__name__}: {text[:140]}"
    twin = _plain(want.kind, value)
    if twin is not None and type(twin) is not type(value):
        try:
            entry.call(**{**entry.fixed, parameter: twin})
        except TriliftError:
            return None
        except Exception as other:
            return f"its twin: {type(other).__name__}: {_said(other)}"
        return f"refused, but {show(twin)} is accepted: {text[:100]}"
    return None
