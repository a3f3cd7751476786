"""Neighbours that differ in place: k-step, all-step and consecutive-step Delta-neighbours.

Steps count from 0. For these relations BOT (``None``) is the number 0: they speak of sums alone.

Source: "Edit-Neighboring Data Streams and Privacy under Continual Observation" (Andersson, Chaturvedi,
Henzinger, Safavi), preliminaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from trilift.counters.neighbours.streams import Stream, as_alphabet, as_stream, as_values, plain, same_length
from trilift.lift.checks import integer, rational, show
from trilift.lift.errors import ParameterError

__all__ = [
    "are_all_step_neighbours",
    "are_step_neighbours",
    "follows_consecutively",
    "random_all_step_neighbour",
    "random_consecutive_neighbour",
    "random_step_neighbour",
    "step_neighbours",
]

_FINE = 1 << 20
"""Random values lie on the lattice of step (high - low) / 2^20 around what they replace."""


def are_step_neighbours(stream: Iterable[Any], *, other: Iterable[Any], k: int = 1, change: Any = 1) -> bool:
    """Tell whether two streams are k-step Delta-neighbours: equal but for k steps, there within Delta.

    Args:
        stream: T items.
        other: T items.
        k: number of steps that may differ.
        change: Delta.

    Raises:
        ParameterError: streams of two lengths, or what is no stream.

    >>> are_step_neighbours([0, 1, None], other=[1, 1, 0])
    True
    >>> are_step_neighbours([0, 1, 0], other=[1, 0, 0]), are_step_neighbours([0, 1], other=[1, 0], k=2)
    (False, True)
    """
    differences = _differences(stream, other)
    limit = rational("change", change, minimum=0)
    count = integer("k", k, minimum=0)
    return sum(d != 0 for d in differences) <= count and all(-limit <= d <= limit for d in differences)


def are_all_step_neighbours(stream: Iterable[Any], *, other: Iterable[Any], change: Any = 1) -> bool:
    """Tell whether two streams differ by at most Delta at every step.

    >>> are_all_step_neighbours([0, 1], other=[1, 0]), are_all_step_neighbours([0, 2], other=[0, 0])
    (True, False)
    """
    limit = rational("change", change, minimum=0)
    return all(-limit <= d <= limit for d in _differences(stream, other))


def follows_consecutively(
    stream: Iterable[Any], *, other: Iterable[Any], k: int = 1, change: Any = 1
) -> bool:
    """Tell whether ``stream`` is ``other`` k steps later, within Delta (k-consecutive-step Delta-neighbours).

    That is |x_{i+k} - x'_i| <= Delta for every i < T - k, and |x_i| <= Delta for i < k. The relation has a
    direction; it is used both ways.

    >>> follows_consecutively([1, 5, 7], other=[5, 6, 9]), follows_consecutively([5, 6, 9], other=[1, 5, 7])
    (True, False)
    """
    later, earlier = map(as_values, same_length(stream, other))
    limit = rational("change", change, minimum=0)
    shift = integer("k", k, minimum=0)
    pairs = zip(later[shift:], earlier, strict=False)  # the last k items of the earlier one meet nothing
    moves = [*later[:shift], *(x - y for x, y in pairs)]
    return all(-limit <= move <= limit for move in moves)


def step_neighbours(
    stream: Iterable[Any], *, alphabet: Iterable[Any] = (0, 1), k: int = 1, change: Any = 1
) -> Iterator[Stream]:
    """Yield every k-step Delta-neighbour over an alphabet but the stream itself, each once.

    >>> list(step_neighbours([0, 1]))
    [(1, 1), (0, 0)]
    """
    items, letters = as_stream(stream), as_alphabet(alphabet)
    limit = rational("change", change, minimum=0)
    count = integer("k", k, minimum=0)
    choices = [
        [new for new in letters if new != old and -limit <= (new or 0) - (old or 0) <= limit] for old in items
    ]
    for size in range(1, min(count, len(items)) + 1):
        for places in combinations(range(len(items)), size):
            for news in product(*(choices[place] for place in places)):
                changed = list(items)
                for place, new in zip(places, news, strict=True):
                    changed[place] = new
                yield tuple(changed)


def random_step_neighbour(
    stream: Iterable[Any], *, seed: int, k: int = 1, change: Any = 1, low: Any = 0, high: Any = 1
) -> Stream:
    """Return a random k-step Delta-neighbour: k random steps get random values in [low, high].

    Raises:
        ParameterError: a stream without steps or with an item outside [low, high].

    >>> random_step_neighbour([0, 0, 0], seed=1, change=0)
    (0, 0, 0)
    """
    items = as_stream(stream)
    source = np.random.default_rng(integer("seed", seed, minimum=0))
    count = min(integer("k", k, minimum=0), len(items))
    changed = list(items)
    for place in source.permutation(len(items))[:count].tolist():
        changed[place] = _near(items[place] or 0, change, low, high, source)
    return tuple(changed)


def random_all_step_neighbour(
    stream: Iterable[Any], *, seed: int, change: Any = 1, low: Any = 0, high: Any = 1
) -> Stream:
    """Return a random all-step Delta-neighbour with values in [low, high].

    >>> random_all_step_neighbour([1, 1], seed=1, change=0)
    (1, 1)
    """
    items = as_stream(stream)
    return random_step_neighbour(items, seed=seed, k=len(items), change=change, low=low, high=high)


def random_consecutive_neighbour(
    stream: Iterable[Any], *, seed: int, change: Any = 1, low: Any = 0, high: Any = 1
) -> Stream:
    """Return a random stream that follows ``stream`` one step later, within Delta, in [low, high].

    >>> random_consecutive_neighbour([1, 0, 1], seed=1, change=0, low=0)
    (0, 1, 0)
    """
    earlier = as_values(as_stream(stream))
    source = np.random.default_rng(integer("seed", seed, minimum=0))
    return tuple(_near(value, change, low, high, source) for value in (0, *earlier)[: len(earlier)])


def _differences(stream: Iterable[Any], other: Iterable[Any]) -> list[int | Fraction]:
    first, second = map(as_values, same_length(stream, other))
    return [x - y for x, y in zip(first, second, strict=True)]


def _near(
    value: int | Fraction, change: Any, low: Any, high: Any, source: np.random.Generator
) -> int | Fraction:
    """Return a random value within ``change`` of another, and in [low, high]."""
    reach = rational("change", change, minimum=0)
    least, most = rational("low", low), rational("high", high)
    if not least <= value <= most:
        raise ParameterError(f"an item of the stream lies outside low..high: [{show(least)}, {show(most)}]")
    bottom, top = max(least, value - reach), min(most, value + reach)
    share = Fraction(int(source.integers(_FINE, endpoint=True)), _FINE)
    return plain(bottom + (top - bottom) * share, name="value")
