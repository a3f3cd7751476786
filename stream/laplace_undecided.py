"""What a draw does that 16 bits of a test leave open: rare, and the same for every way of drawing.

One of 2^16 words equals its limit. Then further words decide (:func:`decide`). An exception of the low
digits or a tail event is only ever found in this way, since their limits are zero; such a draw is put
together in Python integers (:func:`value`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from trilift.stream.draws import FLAGS, NEGATIVE, NONZERO, TAIL_EVENT
from trilift.stream.keystream import LOW, TAIL, TIE, WordSource
from trilift.stream.laplace_layout import DIGITS, EXCEPTION, TESTS, Group, low_count, rule
from trilift.stream.low_digits import exceptional

__all__ = ["Place", "decide", "exact", "settle", "value"]

_MATCHED = 16
RARE = (EXCEPTION, TAIL_EVENT)
"""Tests whose winners need :func:`value`."""


class Place:
    """A block of a level and its words: where further words are found.

    Args:
        source, level, block: the block's address.
    """

    __slots__ = ("block", "level", "source")

    def __init__(self, source: WordSource, level: int, block: int) -> None:
        self.source, self.level, self.block = source, level, block


def decide(group: Group, place: int, where: Place) -> bool:
    """Decide a test whose 16-bit word equals its limit, by further words.

    Args:
        group: the row's group.
        place: the word, counted from the group's first one.
        where: the block.

    Raises:
        StateError: if 2^14 words leave it undecided.
    """
    k, test = divmod(place, TESTS)
    probability = rule(group.scales[k], test)
    if probability is None:
        return False
    further = where.source.further(TIE, where.level, where.block, group.address(place))
    return probability.decide(further, matched=_MATCHED)


def settle(
    group: Group,
    places: Iterable[tuple[int, int]],
    source: WordSource,
    level: int,
    numbers: NDArray[np.uint64],
) -> tuple[list[tuple[int, int]], dict[tuple[int, int], Place]]:
    """Decide all tests of a batch whose word equals its limit.

    Args:
        group: the rows.
        places: of every such word: its block's place in the batch, and its own in the group.
        source, level, numbers: where the blocks are.

    Returns:
        The places of those that are won; and (block's place, row) of draws that need :func:`exact`, with
        their blocks.

    Raises:
        StateError: as :func:`decide`.
    """
    won, rare = [], {}
    for i, place in places:
        where = Place(source, level, int(numbers[i]))
        if decide(group, place, where):
            won.append((i, place))
            if place % TESTS in RARE:
                rare[i, place // TESTS] = where
    return won, rare


def exact(group: Group, k: int, octets: NDArray[np.uint8], words: NDArray[np.uint16], where: Place) -> int:
    """Return a draw with a rare event; see :func:`value`.

    Args:
        group: the row's group.
        k: the row, counted from the group's first one.
        octets: uint8 (3,), the results of its tests, bit by bit.
        words: uint16 (words of the group,), those of its block.
        where: the block.
    """
    run = next(run for run in group.runs if k < run.first + run.count)
    begin = run.begin + run.width * (k - run.first)
    fair = int.from_bytes(words[begin : begin + run.width].astype("<u2").tobytes(), "little")
    return value(group, k, int.from_bytes(octets.tobytes(), "little"), fair, where)


def value(group: Group, k: int, tests: int, fair: int, where: Place) -> int:
    """Return a draw with an exception of its low digits, a tail event or both.

    Args:
        group: the row's group.
        k: the row, counted from the group's first one.
        tests: the results of its tests, bit by bit.
        fair: its fair bits.
        where: the block.

    Raises:
        StateError: if 2^14 words leave it open.
    """
    if not tests >> NONZERO & 1:
        return 0
    scale, row = group.scales[k], group.rows[k]
    low = low_count(scale)
    high, digits = tests >> FLAGS, fair >> FLAGS & ((1 << low) - 1)
    if tests >> TAIL_EVENT & 1:
        high += _steps(group, k, where.source.further(TAIL, where.level, where.block, row)) << DIGITS
    if tests >> EXCEPTION & 1:
        digits = exceptional(low, scale, where.source.further(LOW, where.level, where.block, row))
    magnitude = 1 + digits + (high << low)
    return -magnitude if fair >> NEGATIVE & 1 else magnitude


def _steps(group: Group, k: int, words: Iterator[int]) -> int:
    """Return G >> (F + 21), known to be at least 1: geometric, with the tail test's probability a step."""
    again, steps = rule(group.scales[k], TAIL_EVENT), 1
    while again is not None and again.decide(words):
        steps += 1
    return steps
