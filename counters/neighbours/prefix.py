"""Prefix-sum neighbours: all running sums move by 0 or 1, in one direction.

Two streams are neighbours if the differences of their running sums all lie in {0, 1}, or all in {0, -1}. BOT
(``None``) is the number 0 here. Over {0, 1, BOT}, edit neighbours are prefix-sum neighbours, and every such
vector of differences occurs: see :mod:`trilift.counters.neighbours.sensitivity`.

Source: "Edit-Neighboring Data Streams and Privacy under Continual Observation" (Andersson, Chaturvedi,
Henzinger, Safavi).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np
from trilift.counters.neighbours.streams import (
    MAX_ENUMERATED,
    Number,
    Stream,
    as_alphabet,
    as_stream,
    plain,
    prefix_sums,
    same_length,
)
from trilift.lift.checks import integer, rational, show
from trilift.lift.errors import ParameterError

__all__ = ["are_prefix_neighbours", "prefix_neighbours", "random_prefix_neighbour"]


def are_prefix_neighbours(stream: Iterable[Any], *, other: Iterable[Any]) -> bool:
    """Tell whether the running sums of two streams differ by 0 or 1 everywhere, in one direction.

    Raises:
        ParameterError: streams of two lengths, or what is no stream.

    >>> are_prefix_neighbours([1, 0, 0], other=[0, 1, 0]), are_prefix_neighbours([1, 0, 0], other=[0, 1, 1])
    (True, False)
    """
    first, second = same_length(stream, other)
    differences = {x - y for x, y in zip(prefix_sums(first), prefix_sums(second), strict=True)}
    return differences <= {0, 1} or differences <= {0, -1}


def prefix_neighbours(stream: Iterable[Any], *, alphabet: Iterable[Any] = (0, 1)) -> Iterator[Stream]:
    """Yield every prefix-sum neighbour over an alphabet, each once, the stream itself among them.

    Args:
        stream: T items of the alphabet.
        alphabet: letters of the neighbours.

    Raises:
        ParameterError: more than some twenty steps: there are 2^(T+1) vectors of differences to look at.

    >>> list(prefix_neighbours([0, 1]))
    [(0, 1), (1, 0), (1, 1), (0, 0)]
    """
    items, letters = as_stream(stream), as_alphabet(alphabet)
    if 2 << len(items) > MAX_ENUMERATED:
        raise ParameterError(f"a stream of {len(items)} steps has too many neighbours to list")
    found: dict[Stream, None] = {}
    for sign in (-1, 1):
        for z in product((0, sign), repeat=len(items)):
            values = [(item or 0) - d for item, d in zip(items, _steps(z), strict=True)]
            choices = [[letter for letter in letters if (letter or 0) == value] for value in values]
            found |= dict.fromkeys(product(*choices))
    return iter(found)


def random_prefix_neighbour(stream: Iterable[Any], *, seed: int, low: Any = 0, high: Any = 1) -> Stream:
    """Return a random prefix-sum neighbour with values in [low, high]; items that need no change are kept.

    At every step the difference of the sums is drawn from those of 0 and 1 that keep the item in range.

    Raises:
        ParameterError: an item outside [low, high], with ``None`` as 0.

    >>> random_prefix_neighbour([0, 1, None, 1], seed=5)
    (1, 0, 1, 0)
    """
    items = as_stream(stream)
    least, most = rational("low", low), rational("high", high)
    source = np.random.default_rng(integer("seed", seed, minimum=0))
    sign = 1 if source.integers(2) else -1
    level, changed = 0, []
    for item in items:
        value: Number = item or 0
        if not least <= value <= most:
            raise ParameterError(
                f"an item of the stream lies outside low..high: [{show(least)}, {show(most)}]"
            )
        options = [new for new in (0, 1) if least <= value + sign * (new - level) <= most]
        new = options[int(source.integers(len(options)))]
        changed.append(item if new == level else plain(value + sign * (new - level), name="value"))
        level = new
    return tuple(changed)


def _steps(z: tuple[int, ...]) -> list[int]:
    """Return the differences of consecutive entries, the first one from 0."""
    return [after - before for before, after in zip((0, *z), z, strict=False)]
