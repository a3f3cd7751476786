"""Inputs of edit-private counters: numbers in [0, high] on a lattice, or BOT, "no event in this step".

BOT is not the number 0. Both add nothing to a sum, but edit neighbours treat them differently: an insertion
moves what follows one step later up to the first BOT, which absorbs the shift and disappears. A zero is moved
like any other number. So BOT says "this step is free", zero says "this step holds an event that counts 0".

What stands for BOT: ``None``, masked entries of numpy's masked arrays, and pandas' ``NA`` and ``NaT`` (so the
nullable columns of dataframes work as they are). NaN does not: it is the result of a failed computation as
often as a missing value, and an event that silently became "no event" would be counted as another stream.

Every input is rounded to the lattice by itself, floor(u + 1/2), and sums are sums of integers. Rounding
running sums instead would let those of shifted streams differ by more than one input can.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.inputs import Flags, InputRule, Integers
from trilift.lift.checks import flag, integer
from trilift.lift.errors import ParameterError

__all__ = ["BOT", "BotRule", "is_bot"]

BOT = None
"""No event in this step."""

_PANDAS_MISSING = ("NAType", "NaTType")


def is_bot(value: Any) -> bool:
    """Tell whether a value stands for BOT.

    >>> is_bot(None), is_bot(np.ma.masked), is_bot(0), is_bot(float("nan"))
    (True, True, False, False)
    """
    return value is None or value is np.ma.masked or _is_bot_type(type(value))


def _is_bot_type(kind: type) -> bool:
    """Recognise pandas' missing values without importing pandas."""
    if kind is type(None) or kind is np.ma.core.MaskedConstant:
        return True
    return kind.__name__ in _PANDAS_MISSING and kind.__module__.partition(".")[0] == "pandas"


@dataclass(frozen=True)
class BotRule:
    """What one input may be: BOT, or a multiple of 2^-places in [0, high], in units of 2^-places.

    Attributes:
        high: upper bound as a number of lattice steps, >= 1. The lower bound is 0: the privacy of the
            mechanisms rests on running sums that never fall.
        places: gamma.
        clip: whether numbers outside the bounds are moved to the nearest bound instead of refused.

    >>> rule = BotRule.make(high=1, resolution=1)
    >>> numbers, bots = rule.many([1, None, 0])
    >>> numbers.tolist(), bots.tolist()
    ([1, 0, 0], [False, True, False])
    """

    high: int
    places: int
    clip: bool = False

    @classmethod
    def make(cls, *, high: Any = 1, resolution: Any = 1, clip: Any = False) -> BotRule:
        """Check the arguments of a mechanism.

        Args:
            high: largest input, > 0, a multiple of the resolution; the smallest is 0.
            resolution: 1 for integers, or 2^-k: inputs are rounded to multiples of it.
            clip: move numbers outside [0, high] to the nearest bound.

        Raises:
            ParameterError: an argument that is not acceptable.
        """
        rule = InputRule.make(bounds=(0, high), resolution=resolution, clip=clip, name="high")
        return cls(rule.high, rule.places, rule.clip)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> BotRule:
        """Restore a rule from "high", "places" and "clip" of a record.

        Raises:
            ParameterError: values that are none of these.
        """
        high = integer("high", record["high"], minimum=1)
        return cls(
            high, integer("places", record["places"], minimum=0, maximum=256), flag("clip", record["clip"])
        )

    @property
    def largest(self) -> Fraction:
        """The largest input as a number: what one event counts at most."""
        return Fraction(self.high, 1 << self.places)

    @property
    def _numbers(self) -> InputRule:
        return InputRule(0, self.high, self.places, self.clip)

    def one(self, value: Any) -> tuple[int, bool]:
        """Return (lattice steps, whether it is BOT) of one input; BOT counts 0.

        Raises:
            ParameterError: neither BOT nor an acceptable number; NaN.
        """
        if is_bot(value):
            return 0, True
        if _is_nan(value):
            raise ParameterError(f"input must be a finite number or BOT, got {value}: {_ADVICE}")
        return self._numbers.one(value), False

    def many(self, values: Any) -> tuple[Integers, Flags]:
        """Return inputs in lattice steps (0 where BOT), and where BOT stands, both of shape (k,).

        Args:
            values: array, masked array, column of a dataframe, or any iterable of numbers and BOTs.

        Returns:
            int64 (Python integers where they do not fit) and booleans.

        Raises:
            ParameterError: as :meth:`one`, naming the first index that is refused; more dimensions than one.
        """
        nullable = not isinstance(getattr(values, "dtype", np.dtype(int)), np.dtype)
        if nullable or isinstance(values, (list, tuple, Iterator)):
            return self._items(list(values))  # pandas would turn its NA into NaN
        if isinstance(values, np.ma.MaskedArray):
            return self._masked(values)
        array = np.asarray(values)
        if array.ndim != 1:
            raise ParameterError(f"inputs must have 1 dimension, got {array.ndim}")
        if array.dtype == object:
            return self._items(list(array))
        return self._plain(array), np.zeros(len(array), dtype=np.bool_)

    def _plain(self, array: Integers) -> Integers:
        if array.dtype.kind == "f":
            missing = np.isnan(array)
            if missing.any():
                raise ParameterError(f"inputs must not be nan, at index {int(missing.argmax())}: {_ADVICE}")
        return self._numbers.many(array)

    def _masked(self, values: Any) -> tuple[Integers, Flags]:
        mask = np.ma.getmaskarray(values)
        if mask.ndim != 1:
            raise ParameterError(f"inputs must have 1 dimension, got {mask.ndim}")
        data = np.array(np.ma.getdata(values))
        if data.dtype == object:
            return self._items([None if gone else item for item, gone in zip(data, mask, strict=True)])
        if data.dtype.kind in "iuf":
            data[mask] = 0
        return self._plain(data), np.array(mask, dtype=np.bool_)

    def _items(self, items: list[Any]) -> tuple[Integers, Flags]:
        kinds = set(map(type, items))
        missing = {kind for kind in kinds if _is_bot_type(kind)}
        if missing:
            bots = np.fromiter((type(item) in missing for item in items), dtype=np.bool_, count=len(items))
            zero = 0.0 if kinds - missing == {float} else 0  # one type: the fast path of numbers
            items = [zero if bot else item for item, bot in zip(items, bots.tolist(), strict=True)]
        else:
            bots = np.zeros(len(items), dtype=np.bool_)
        for index, item in enumerate(items if any(issubclass(kind, _FLOATS) for kind in kinds) else ()):
            if _is_nan(item):
                raise ParameterError(f"inputs must not be nan, at index {index}: {_ADVICE}")
        return self._numbers.many(items), bots


_FLOATS = (float, np.floating)
_ADVICE = "write None (or a masked entry) for no event; a pandas column: .convert_dtypes()"


def _is_nan(value: Any) -> bool:
    return isinstance(value, _FLOATS) and bool(np.isnan(value))
