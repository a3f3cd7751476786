"""Edit neighbours: one more item, and everybody after it moves by a step until somebody was silent.

Inserting at step i moves the items from i on one step later, up to the first BOT (``None``) at or after i,
which is used up; where there is none, the last item is dropped. Inserting where a BOT is fills that place and
moves nobody. The inserted item is a number: inserting a BOT would break nothing, but nobody joins by it.

Extended neighbours are for streams that end: ``$`` stands after the last item (it is the tuple's end here),
and where no BOT absorbs the shift, nothing is dropped and ``$`` moves one step later.

Steps count from 0. Source: "Edit-Neighboring Data Streams and Privacy under Continual Observation"
(Andersson, Chaturvedi, Henzinger, Safavi), definition of edit neighbours; that a BOT at the very place of the
insertion absorbs it follows from the paper's motivating example.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.neighbours.streams import (
    Number,
    Stream,
    as_alphabet,
    as_stream,
    plain,
    position,
    same_length,
)
from trilift.lift.checks import flag, integer, rational
from trilift.lift.errors import ParameterError

__all__ = [
    "absorbing_step",
    "are_edit_neighbours",
    "are_extended_neighbours",
    "edit_neighbours",
    "extended_neighbours",
    "insert",
    "insertion_neighbours",
    "is_insertion_of",
    "random_edit_neighbour",
]

_FINE = 1 << 20


def absorbing_step(stream: Iterable[Any], *, at: int) -> int:
    """Return the first step at or after ``at`` that is BOT, or T if there is none.

    >>> absorbing_step([1, None, 0], at=0), absorbing_step([1, None, 0], at=2)
    (1, 3)
    """
    items = as_stream(stream)
    return _absorbing(items, position("at", at, stop=len(items)))


def insert(stream: Iterable[Any], *, at: int, value: Any, extended: bool = False) -> Stream:
    """Return the stream with an item inserted at a step.

    Args:
        stream: T items.
        at: the step of the new item, 0 <= at < T (``extended``: at <= T).
        value: the new item, a number.
        extended: the stream ends after its last item: if no BOT absorbs the shift, it becomes longer.

    Raises:
        ParameterError: a step outside the stream, a value that is no number.

    >>> insert([0, 0, None, 0], at=1, value=1)
    (0, 1, 0, 0)
    >>> insert([0, 0], at=1, value=1), insert([0, 0], at=1, value=1, extended=True)
    ((0, 1), (0, 1, 0))
    >>> insert([0, None], at=1, value=1)
    (0, 1)
    """
    items = as_stream(stream)
    longer = flag("extended", extended)
    step = position("at", at, stop=len(items) + longer)
    return _insert(items, step, plain(value, name="value"), longer)


def is_insertion_of(stream: Iterable[Any], *, other: Iterable[Any], extended: bool = False) -> bool:
    """Tell whether ``stream`` is ``other`` with a number inserted at some step.

    >>> is_insertion_of([1, 0], other=[0, 1]), is_insertion_of([0, 1], other=[1, 0])
    (True, True)
    >>> is_insertion_of([0, 0], other=[None, 0]), is_insertion_of([None, 0], other=[0, 0])
    (True, False)
    """
    new, old = as_stream(stream), as_stream(other, name="other")
    longer = flag("extended", extended)
    if not longer:
        same_length(new, old)
    # An insertion at a step gives what was inserted: only the step has to be searched.
    return any(
        item is not None and _insert(old, step, item, longer) == new
        for step, item in enumerate(new[: len(old) + longer])
    )


def are_edit_neighbours(stream: Iterable[Any], *, other: Iterable[Any]) -> bool:
    """Tell whether one of two streams is the other with a number inserted.

    Raises:
        ParameterError: streams of two lengths, or what is no stream.

    >>> are_edit_neighbours([None, 0], other=[0, 0]), are_edit_neighbours([None, 0], other=[0, None])
    (True, False)
    """
    first, second = same_length(stream, other)
    return is_insertion_of(first, other=second) or is_insertion_of(second, other=first)


def are_extended_neighbours(stream: Iterable[Any], *, other: Iterable[Any]) -> bool:
    """Tell whether one of two streams that end is the other with a number inserted; lengths may differ by 1.

    >>> are_extended_neighbours([0, 1], other=[0]), are_extended_neighbours([1, 0], other=[0, 1])
    (True, False)
    """
    first, second = as_stream(stream), as_stream(other, name="other")
    return is_insertion_of(first, other=second, extended=True) or is_insertion_of(
        second, other=first, extended=True
    )


def insertion_neighbours(
    stream: Iterable[Any], *, alphabet: Iterable[Any] = (0, 1), extended: bool = False
) -> Iterator[Stream]:
    """Yield every stream that an insertion makes of one, each once (perhaps the stream itself).

    Args:
        stream: T items.
        alphabet: what can be inserted; a ``None`` in it is ignored.
        extended: whether the stream ends after its last item.

    >>> list(insertion_neighbours([0, None]))
    [(0, 0), (1, 0), (0, 1)]
    """
    items, numbers = as_stream(stream), _numbers(alphabet)
    longer = flag("extended", extended)
    return iter(
        dict.fromkeys(
            _insert(items, step, value, longer) for step in range(len(items) + longer) for value in numbers
        )
    )


def edit_neighbours(stream: Iterable[Any], *, alphabet: Iterable[Any] = (0, 1, None)) -> Iterator[Stream]:
    """Yield every edit neighbour over an alphabet, each once: insertions, and what they can come from.

    Args:
        stream: T items.
        alphabet: what is inserted, and what may have been dropped from the end; without ``None`` in it no
            BOT comes in.

    >>> sorted(edit_neighbours([1, 0], alphabet=[0, 1]))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    >>> list(edit_neighbours([None]))
    [(0,), (1,)]
    """
    items, letters = as_stream(stream), as_alphabet(alphabet)
    found = dict.fromkeys(insertion_neighbours(items, alphabet=letters))
    found |= dict.fromkeys(_origins(items, letters, extended=False))
    return iter(found)


def extended_neighbours(stream: Iterable[Any], *, alphabet: Iterable[Any] = (0, 1, None)) -> Iterator[Stream]:
    """Yield every extended edit neighbour over an alphabet, each once; their lengths are T - 1, T, T + 1.

    >>> list(extended_neighbours([1]))
    [(0, 1), (1, 1), (1, 0), (None,), ()]
    """
    items, letters = as_stream(stream), as_alphabet(alphabet)
    found = dict.fromkeys(insertion_neighbours(items, alphabet=letters, extended=True))
    found |= dict.fromkeys(_origins(items, letters, extended=True))
    return iter(found)


def random_edit_neighbour(
    stream: Iterable[Any], *, seed: int, low: Any = 0, high: Any = 1, extended: bool = False
) -> Stream:
    """Return a random edit neighbour: with equal chances an insertion, or a deletion where there is an item.

    A deletion moves the items after it one step earlier, up to a random place from which a BOT can have been
    used up; if that is the end, a random item or BOT comes in there (``extended``: nothing does).

    Raises:
        ParameterError: a stream without steps.

    >>> random_edit_neighbour([0, 1, 1], seed=3, extended=True)
    (None, 1, 1)
    """
    items = as_stream(stream)
    longer = flag("extended", extended)
    source = np.random.default_rng(integer("seed", seed, minimum=0))
    least, most = rational("low", low), rational("high", high)
    value = plain(
        least + (most - least) * Fraction(int(source.integers(_FINE, endpoint=True)), _FINE), name="value"
    )
    present = [step for step, item in enumerate(items) if item is not None]
    if source.integers(2) or not present:
        return insert(
            items, at=int(source.integers(len(items) + longer)) if items else 0, value=value, extended=longer
        )
    step = int(source.choice(present))
    last: Number | None = value if source.integers(2) else None
    origins = list(_origins_at(items, step, (last,), extended=longer))
    return origins[int(source.integers(len(origins)))]


def _numbers(alphabet: Iterable[Any]) -> list[Number]:
    numbers = [letter for letter in as_alphabet(alphabet) if letter is not None]
    if not numbers:
        raise ParameterError("alphabet must hold at least one number: nobody joins by a BOT")
    return numbers


def _absorbing(items: Stream, at: int) -> int:
    return next((step for step in range(at, len(items)) if items[step] is None), len(items))


def _insert(items: Stream, at: int, value: Number, longer: bool) -> Stream:
    absorbed = _absorbing(items, at)
    if absorbed < len(items):
        return (*items[:at], value, *items[at:absorbed], *items[absorbed + 1 :])
    moved = (*items[:at], value, *items[at:])
    return moved if longer else moved[: len(items)]


def _origins(items: Stream, letters: Stream, *, extended: bool) -> Iterator[Stream]:
    """Yield every stream over the letters from which an insertion makes this one."""
    for step, item in enumerate(items):
        if item is not None:
            for origin in _origins_at(items, step, letters, extended=extended):
                if None in letters or origin.count(None) <= items.count(None):
                    yield origin


def _origins_at(items: Stream, step: int, letters: Stream, *, extended: bool) -> Iterator[Stream]:
    """Yield every stream from which an insertion at this step makes this one."""
    before, moved = items[:step], items[step + 1 :]
    for length in range(len(moved) + 1):  # so many items move back, and a BOT stands after them
        if length and moved[length - 1] is None:
            return  # it would have absorbed the shift before
        yield (*before, *moved[:length], None, *moved[length:])
    if extended:
        yield (*before, *moved)
    else:
        yield from ((*before, *moved, letter) for letter in letters if letter is not None)
