"""Validation of arguments, in one place, so that every entry refuses the same things in the same words.

NaN, infinities, booleans and strings are never numbers here. A message reads
``epsilon must be a finite number > 0, got nan``.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.lift.errors import ParameterError

__all__ = [
    "choice",
    "choices",
    "fail",
    "finite",
    "flag",
    "integer",
    "numeric_array",
    "rational",
    "show",
    "written",
]


def show(value: object) -> str:
    """Render a refused value shortly and on one line, for an error message; fractions as they are written.

    >>> show(Fraction(1, 3)), show((Fraction(0), Fraction(1, 2)))
    ('1/3', '(0, 1/2)')
    """
    try:
        text = " ".join(_written(value).split())
    except Exception:  # integers of more than 4300 digits; reprs that fail
        kind = type(value).__name__
        numeric = isinstance(value, (int, Fraction))
        text = f"a {kind} of too many digits to show" if numeric else f"a {kind}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


_SHOWN = 60


def _written(value: object) -> str:
    """Write a value out, of a long one its beginning only."""
    if isinstance(value, Fraction):
        return str(value)
    if type(value) is tuple and any(isinstance(item, Fraction) for item in value[:2]):
        return f"({', '.join(show(item) for item in value[:3])}{', ...' if len(value) > 3 else ''})"
    if isinstance(value, (str, bytes, list, tuple)) and len(value) > _SHOWN:
        return repr(value[:_SHOWN])
    if isinstance(value, (set, frozenset, dict)) and len(value) > _SHOWN:
        return f"a {type(value).__name__} of {len(value)}"
    return repr(value)


def fail(name: str, wanted: str, value: object) -> ParameterError:
    """Build (not raise) the error for argument ``name`` that is not ``wanted``."""
    return ParameterError(f"{name} must be {wanted}, got {show(value)}")


_READS_AS_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(?:/0*[1-9][0-9]{0,17}|\.[0-9]{1,18})?")


def _no_number(name: str, wanted: str, value: object) -> ParameterError:
    """As :func:`fail`, for a value of a type that is no number, or not the one wanted: with what would do."""
    hint = ""
    if isinstance(value, (bool, np.bool_)):
        hint = f" (a truth value; {int(value)} is a number)"
    elif isinstance(value, str) and _READS_AS_NUMBER.fullmatch(value):
        exact = Fraction(value)
        hint = f" (a string; {exact if exact.denominator == 1 else f'Fraction({value!r})'} is a number)"
    elif isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_FLOATS:
        hint = f" (a float; write {int(value)})"
    return ParameterError(f"{fail(name, wanted, value)}{hint}")


_EXACT_FLOATS = 1 << 53
_MAX_DECIMAL = 4000  # larger exponents would be multiplied out for minutes before anything is refused
_MOST_BITS = (10**_MAX_DECIMAL).bit_length() - 1  # longer integers cannot be written into any message
_NEVER_NUMBERS = (bool, np.bool_, np.timedelta64)  # numpy counts durations among its integers


def _is_number(value: object) -> bool:
    return isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, _NEVER_NUMBERS)


_NO_CONVERSION = (ValueError, OverflowError, TypeError, AttributeError)


def _exactly(value: Any) -> Fraction:
    """Return the rational that a number is; raise one of the errors above if it is none."""
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, (float, Decimal)):
        return Fraction(value)
    if isinstance(value, np.floating):
        return Fraction(*value.as_integer_ratio())
    near = float(value)
    if near != value:  # a number of another library, of more digits than a float has
        raise ValueError
    return Fraction(near)


def _bounds_text(kind: str, minimum: object, above: object, maximum: object) -> str:
    limits = [
        f"{symbol} {show(limit)}"
        for symbol, limit in ((">", above), (">=", minimum), ("<=", maximum))
        if limit is not None
    ]
    return f"{kind} {' and '.join(limits)}" if limits else kind


def rational(
    name: str,
    value: Any,
    *,
    above: int | None = None,
    minimum: int | None = None,
    maximum: int | None = None,
) -> Fraction:
    """Return a finite real number as the exact rational that it is (a float is its binary value).

    Args:
        name: name of the argument, for the message.
        value: int, float, Fraction, Decimal or a numpy real scalar.
        above: if given, the value must be larger than this.
        minimum: if given, the value must be at least this.
        maximum: if given, the value must be at most this.

    Raises:
        ParameterError: for anything else: booleans, strings, arrays, NaN, infinities, out of range.

    >>> rational("epsilon", 0.5, above=0)
    Fraction(1, 2)
    """
    wanted = _bounds_text("a finite number", minimum, above, maximum)
    if not _is_number(value):
        raise _no_number(name, wanted, value)
    if isinstance(value, Decimal) and value.is_finite() and value and abs(value.adjusted()) > _MAX_DECIMAL:
        raise fail(name, f"between 1e-{_MAX_DECIMAL} and 1e{_MAX_DECIMAL} in size", value)
    try:
        exact = _exactly(value)
    except _NO_CONVERSION:  # NaN and infinities; what only says that it is a number
        raise fail(name, wanted, value) from None
    too_low = (above is not None and exact <= above) or (minimum is not None and exact < minimum)
    if too_low or (maximum is not None and exact > maximum):
        raise fail(name, wanted, value)
    return exact


def written(
    name: str,
    value: Any,
    *,
    above: int | None = None,
    maximum: int | None = None,
) -> Fraction:
    """Like :func:`rational`, for numbers that statements and saved states write out: no endless fractions.

    >>> written("epsilon", 0.5, above=0)
    Fraction(1, 2)
    """
    exact = rational(name, value, above=above, maximum=maximum)
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _WRITTEN_BITS:
        raise ParameterError(f"{name} must be a fraction of numbers of at most {_WRITTEN_BITS} bits")
    return exact


_WRITTEN_BITS = 2048


def finite(
    name: str,
    value: Any,
    *,
    above: int | None = None,
    minimum: int | None = None,
    maximum: int | None = None,
) -> float:
    """Like :func:`rational`, but returns the nearest float; refuses what a float cannot hold."""
    exact = rational(name, value, above=above, minimum=minimum, maximum=maximum)
    try:
        nearest = float(exact)
    except OverflowError:
        raise fail(name, "within the range of a float", value) from None
    if nearest == 0.0 and exact != 0:  # else a positive number would come out as zero
        raise fail(name, "within the range of a float", value)
    return nearest


def integer(name: str, value: Any, *, minimum: int | None = None, maximum: int | None = None) -> int:
    """Return an integer (Python or numpy; never a float, a boolean or a string).

    >>> integer("horizon", 10, minimum=1)
    10
    """
    if type(value) is int:  # by far the most common; the words of a refusal are made when one is needed
        low, high = minimum is None or value >= minimum, maximum is None or value <= maximum
        if low and high and value.bit_length() <= _MOST_BITS:
            return value
    wanted = _bounds_text("an integer", minimum, None, maximum)
    if not isinstance(value, numbers.Integral) or isinstance(value, _NEVER_NUMBERS):
        raise _no_number(name, wanted, value)
    try:
        result = int(value)
    except _NO_CONVERSION:  # it only says that it is an integer
        raise fail(name, wanted, value) from None
    if (minimum is not None and result < minimum) or (maximum is not None and result > maximum):
        raise fail(name, wanted, value)
    if result.bit_length() > _MOST_BITS:
        raise fail(name, f"{wanted}, of at most {_MAX_DECIMAL} digits", value)
    return result


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """Return ``value`` if it is one of the strings in ``options``."""
    allowed = list(options)
    text = str.__str__(value) if isinstance(value, str) else None
    if text is None or text not in allowed:
        raise fail(name, "one of " + ", ".join(repr(option) for option in allowed), value)
    return text


def choices(name: str, values: Any, options: Iterable[str]) -> list[str]:
    """Return a list or tuple of strings, each one of ``options``, as a list."""
    allowed = list(options)
    if not isinstance(values, (list, tuple)):
        raise fail(name, "a list of some of " + ", ".join(map(repr, allowed)), values)
    return [choice(f"each of {name}", value, allowed) for value in values]


def flag(name: str, value: Any) -> bool:
    """Return a boolean; numbers do not pass for one."""
    if not isinstance(value, (bool, np.bool_)):
        raise fail(name, "True or False", value)
    return bool(value)


def numeric_array(name: str, value: Any, *, ndim: int | None = None) -> np.ndarray[Any, np.dtype[Any]]:
    """Return a real numeric array without NaN or infinities (integers stay integers).

    Raises:
        ParameterError: for object, string, boolean, complex, datetime or masked arrays, NaN,
            infinities, ragged nesting, or another number of dimensions than ``ndim``; for lists that hold
            a boolean, a masked array, or integers that would be rounded to floats.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise ParameterError(f"{name} must be a plain numeric array, got a masked array")
    large = isinstance(value, (list, tuple)) and _checked_items(name, value)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise ParameterError(f"{name} must be a rectangular numeric array") from None
    if large and array.dtype.kind == "f":
        raise ParameterError(f"{name} must not mix floats with integers above 2^53, which would be rounded")
    if array.dtype.kind not in "iuf":
        hint = " (astype(int) makes them 0 and 1)" if array.dtype.kind == "b" else ""
        raise ParameterError(f"{name} must be a numeric array, got dtype {array.dtype}{hint}")
    if ndim is not None and array.ndim != ndim:
        raise ParameterError(f"{name} must have {ndim} dimension(s), got {array.ndim}")
    if array.dtype.kind == "f":
        bad = ~np.isfinite(array)
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            at = where[0] if len(where) == 1 else where
            raise ParameterError(f"{name} must be finite, got {array[where]} at index {at}")
    return array


def _checked_items(name: str, items: Any, depth: int = 0) -> bool:
    """Refuse in lists what numpy would take for a number; tell whether they hold integers beyond 2^53."""
    large = False
    for item in items:
        if isinstance(item, (bool, np.bool_)):
            raise _no_number(name, "a numeric array", item)
        if isinstance(item, np.ma.MaskedArray):
            raise ParameterError(f"{name} must be a plain numeric array, got a masked array in it")
        if isinstance(item, (list, tuple)) and depth < _MOST_NESTED:
            large |= _checked_items(name, item, depth + 1)
        elif isinstance(item, (int, np.integer)):
            large |= not -_EXACT_FLOATS <= int(item) <= _EXACT_FLOATS
    return large


_MOST_NESTED = 64  # numpy's own limit
