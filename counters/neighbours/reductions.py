"""Reductions between counting problems: trits as bits, and distinct items as a stream of -1, 0, 1.

``trits_to_bits`` makes two bits of every trit, so that the running sums of the bits are those of the trits
plus the number of trits; prefix-sum neighbours stay so. ``difference_stream`` makes of a log of insertions
and deletions the changes of the number of distinct items; deleting *all* updates of an item gives a
prefix-sum neighbour, altering some of them two steps of it.

Steps count from 0. Source: "Edit-Neighboring Data Streams and Privacy under Continual Observation"
(Andersson, Chaturvedi, Henzinger, Safavi), lower bounds.
"""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from trilift.counters.neighbours.streams import Number, as_stream, as_values, plain, prefix_sums, same_length
from trilift.lift.checks import fail, finite, integer
from trilift.lift.errors import ParameterError

__all__ = [
    "Update",
    "are_distinct_neighbours",
    "count_distinct",
    "decode_sums",
    "delete_item",
    "difference_stream",
    "random_updates",
    "trits_to_bits",
]

Update = tuple[str, Hashable] | None
"""("+", item), ("-", item), or None for a step without an update."""

_BITS: dict[int, tuple[int, int]] = {0: (0, 1), 1: (1, 1), -1: (0, 0)}


def trits_to_bits(trits: Iterable[Any]) -> tuple[int, ...]:
    """Return two bits for each trit: 0 -> 0 1, 1 -> 1 1, -1 -> 0 0.

    The sum of the first 2 t bits is that of the first t trits plus t.

    Raises:
        ParameterError: an entry that is not -1, 0 or 1.

    >>> trits_to_bits([0, 1, -1])
    (0, 1, 1, 1, 0, 0)
    """
    bits: list[int] = []
    for index, trit in enumerate(as_stream(trits, name="trits")):
        if trit not in _BITS:
            raise fail(f"trits[{index}]", "-1, 0 or 1", trit)
        bits.extend(_BITS[int(trit)])
    return tuple(bits)


def decode_sums(sums: Sequence[Any]) -> tuple[Number, ...]:
    """Return (perhaps noisy) running sums of the trits, of those of their bits: y_t = a_{2t} - t.

    Args:
        sums: 2 T running sums of :func:`trits_to_bits`, exact or with noise.

    Raises:
        ParameterError: an odd number of sums, or what is no number.

    >>> decode_sums([0, 1, 2, 3, 3, 3])  # of the bits 0 1, 1 1, 0 0
    (0, 1, 0)
    """
    values = as_stream(sums, name="sums")
    if None in values or len(values) % 2:
        raise ParameterError(f"sums must be an even number of numbers, got {len(values)} entries")
    return tuple(plain(value - t, name="sum") for t, value in enumerate(as_values(values)[1::2], start=1))


def count_distinct(updates: Iterable[Update]) -> tuple[int, ...]:
    """Return the number of items with more insertions than deletions so far, at every step.

    Raises:
        ParameterError: an update that is neither ("+", item), ("-", item) nor None.

    >>> count_distinct([("+", "a"), ("+", "a"), None, ("-", "a"), ("-", "a"), ("-", "b")])
    (1, 1, 1, 1, 0, 0)
    """
    balance: Multiset[Hashable] = Multiset()
    present, counts = 0, []
    for index, update in enumerate(updates):
        if update is not None:
            sign, item = _checked(update, index)
            before = balance[item] > 0
            balance[item] += 1 if sign == "+" else -1
            present += (balance[item] > 0) - before
        counts.append(present)
    return tuple(counts)


def difference_stream(updates: Iterable[Update]) -> tuple[int, ...]:
    """Return d_t = f_t - f_{t-1} for the number f of distinct items: each -1, 0 or 1.

    >>> difference_stream([("+", "a"), ("+", "b"), ("-", "a")])
    (1, 1, -1)
    """
    counts = count_distinct(updates)
    return tuple(after - before for before, after in zip((0, *counts), counts, strict=False))


def delete_item(updates: Iterable[Update], *, item: Hashable) -> tuple[Update, ...]:
    """Return the log without all updates of one item: None stands in their place.

    >>> delete_item([("+", "a"), ("+", "b"), ("-", "a")], item="a")
    (None, ('+', 'b'), None)
    """
    return tuple(
        None if update is not None and _checked(update, index)[1] == item else update
        for index, update in enumerate(updates)
    )


def are_distinct_neighbours(stream: Iterable[Any], *, other: Iterable[Any]) -> bool:
    """Tell whether all sums of d - d' over intervals lie in [-1, 1], for streams of integers.

    That is the same as being prefix-sum neighbours.

    >>> are_distinct_neighbours([1, 0, -1], other=[0, 1, 0]), are_distinct_neighbours([1, -1], other=[0, 1])
    (False, False)
    >>> are_distinct_neighbours([1, 0, -1], other=[0, 1, -1])
    True
    """
    first, second = same_length(stream, other)
    levels = [0, *(x - y for x, y in zip(prefix_sums(first), prefix_sums(second), strict=True))]
    return max(levels) - min(levels) <= 1  # an interval's sum is the difference of two levels


_MOST = 10**7


def random_updates(steps: int, *, items: int, seed: int, silence: float = 0.2) -> tuple[Update, ...]:
    """Return a random log: insertions and deletions of the items 0, ..., items - 1, and steps without any.

    >>> random_updates(3, items=2, seed=1)
    (('-', 0), ('-', 1), None)
    """
    source = np.random.default_rng(integer("seed", seed, minimum=0))
    length = integer("steps", steps, minimum=0, maximum=_MOST)
    count = integer("items", items, minimum=1, maximum=_MOST)
    quiet = source.random(length) < finite("silence", silence, minimum=0, maximum=1)
    signs, names = source.integers(2, size=length), source.integers(count, size=length)
    return tuple(
        None if mute else ("+-"[int(sign)], int(name))
        for mute, sign, name in zip(quiet, signs, names, strict=True)
    )


def _checked(update: Any, index: int) -> tuple[str, Hashable]:
    if not isinstance(update, tuple) or len(update) != 2 or update[0] not in ("+", "-"):
        raise fail(f"updates[{index}]", 'None, ("+", item) or ("-", item)', update)
    sign, item = update
    return sign, item
