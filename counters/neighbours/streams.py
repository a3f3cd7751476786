"""Streams for the neighbour relations: tuples of exact numbers and of ``None``, which means "no event" (BOT).

BOT adds nothing to a sum, but it is not 0: only BOT absorbs the shift after an insertion. Steps count from 0
here, as everywhere in trilift. Everything is exact: a float is the rational that it is.

Source of the relations: "Edit-Neighboring Data Streams and Privacy under Continual Observation" (Andersson,
Chaturvedi, Henzinger, Safavi).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, product
from typing import Any

import numpy as np
from trilift.lift.checks import fail, integer, rational, show
from trilift.lift.errors import ParameterError

__all__ = [
    "Number",
    "Stream",
    "all_streams",
    "as_alphabet",
    "as_stream",
    "prefix_sums",
    "random_stream",
    "sparsity",
]

Number = int | Fraction
Stream = tuple[Number | None, ...]

MAX_ENUMERATED = 10**7
"""Streams listed at most; more would run for hours."""


def plain(value: Any, *, name: str) -> Number:
    """Return a number as an integer where it is one, else as a fraction."""
    exact = rational(name, value)
    return exact.numerator if exact.denominator == 1 else exact


def as_stream(stream: Iterable[Any], *, name: str = "stream") -> Stream:
    """Return a stream as a tuple of integers, fractions and ``None``.

    Args:
        stream: T numbers, with ``None`` or a masked entry for "no event".
        name: what to call it in an error.

    Raises:
        ParameterError: anything else in it: NaN, infinities, booleans, strings.

    >>> as_stream([1, None, 0.5])
    (1, None, Fraction(1, 2))
    """
    if isinstance(stream, np.ndarray):
        if stream.ndim != 1:
            raise ParameterError(f"{name} must have 1 dimension(s), got {stream.ndim}")
    elif isinstance(stream, str) or not isinstance(stream, Iterable):
        raise fail(name, "a sequence of numbers and None", stream)
    return tuple(
        None if item is None or item is np.ma.masked else plain(item, name=f"{name}[{index}]")
        for index, item in enumerate(stream)
    )


def as_alphabet(alphabet: Iterable[Any]) -> Stream:
    """Return an alphabet as a tuple without repetition.

    Raises:
        ParameterError: it is empty, or holds something that is neither a number nor ``None``.

    >>> as_alphabet([0, 1, 1.0, None])
    (0, 1, None)
    """
    letters = tuple(dict.fromkeys(as_stream(alphabet, name="alphabet")))
    if not letters:
        raise ParameterError("alphabet must hold at least one letter")
    return letters


def all_streams(steps: int, *, alphabet: Iterable[Any] = (0, 1, None)) -> Iterator[Stream]:
    """Yield every stream of so many steps over an alphabet.

    Raises:
        ParameterError: more than ten million streams, or an alphabet as in :func:`as_alphabet`.

    >>> list(all_streams(1))
    [(0,), (1,), (None,)]
    """
    letters = as_alphabet(alphabet)
    length = integer("steps", steps, minimum=0)
    if len(letters) > 1 and (length > 64 or len(letters) ** length > MAX_ENUMERATED):
        raise ParameterError(
            f"steps: {len(letters)}^{show(length)} streams are too many to list: at most {MAX_ENUMERATED}"
        )
    return product(letters, repeat=length)


def random_stream(
    steps: int, *, seed: int, alphabet: Iterable[Any] | None = None, silence: float = 0.25, places: int = 20
) -> Stream:
    """Return a random stream.

    Args:
        steps: number of steps T.
        seed: decides the stream.
        alphabet: letters to choose from with equal chances; without it, numbers in [0, 1] on the lattice of
            step 2^-places, with ``None`` in between.
        silence: chance of ``None`` at a step, without an alphabet.
        places: binary places, without an alphabet.

    >>> random_stream(4, seed=1, alphabet=[0, 1, None])
    (1, 1, None, None)
    """
    source = np.random.default_rng(integer("seed", seed, minimum=0))
    length = integer("steps", steps, minimum=0, maximum=MAX_ENUMERATED)
    if alphabet is not None:
        letters = as_alphabet(alphabet)
        return tuple(letters[int(at)] for at in source.integers(len(letters), size=length))
    chance = rational("silence", silence, minimum=0, maximum=1)
    unit = 1 << integer("places", places, minimum=0, maximum=60)
    quiet = source.random(length) < float(chance)
    values = source.integers(unit, size=length, endpoint=True)
    return tuple(
        None if mute else plain(Fraction(int(value), unit), name="value")
        for mute, value in zip(quiet, values, strict=True)
    )


def prefix_sums(stream: Iterable[Any]) -> tuple[Number, ...]:
    """Return the running sums of a stream; ``None`` adds nothing.

    >>> prefix_sums([1, None, 0, 0.5])
    (1, 1, 1, Fraction(3, 2))
    """
    items = as_stream(stream)
    return tuple(plain(total, name="sum") for total in accumulate(item or 0 for item in items))


def sparsity(stream: Iterable[Any]) -> int:
    """Return the number of items that are not ``None``.

    >>> sparsity([1, None, 0])
    2
    """
    return sum(item is not None for item in as_stream(stream))


def same_length(stream: Iterable[Any], other: Iterable[Any]) -> tuple[Stream, Stream]:
    """Return both streams, or refuse them if their lengths differ."""
    first, second = as_stream(stream), as_stream(other, name="other")
    if len(first) != len(second):
        raise ParameterError(f"the streams must have one length, got {len(first)} and {len(second)}")
    return first, second


def position(name: str, value: Any, *, stop: int) -> int:
    """Return an index 0 <= value < stop.

    Raises:
        ParameterError: anything else, also where there is no index at all.
    """
    if stop < 1:
        raise ParameterError(f"{name}={show(value)}: the stream has no steps")
    return integer(name, value, minimum=0, maximum=stop - 1)


def as_values(stream: Sequence[Number | None]) -> tuple[Number, ...]:
    """Return a stream with 0 for ``None``."""
    return tuple(item or 0 for item in stream)
