"""Turnstile streams to measure on: easy ones, and the instances on which some estimator must be bad."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.lift.errors import ParameterError

__all__ = ["GENERAL", "STREAMS", "STRICT", "Stream", "make_stream", "truth"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class Stream:
    """Events and what is true after each of them.

    Attributes:
        name: from :data:`STREAMS`.
        items: int64 of shape (T,), from 0.
        signs: -1, 0 or 1, int64 of shape (T,).
        distinct: number of items whose signs do not add up to 0, int64 of shape (T,).
        moment: sum of squared frequencies, int64 of shape (T,).
    """

    name: str
    items: IntArray
    signs: IntArray
    distinct: IntArray
    moment: IntArray

    @property
    def strict(self) -> bool:
        """Whether no frequency is ever negative."""
        return self.name in STRICT


def truth(items: IntArray, signs: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the number of distinct items, the second moment, and the event's own frequency after each event.

    >>> [part.tolist() for part in truth(np.array([0, 0, 1, 0]), np.array([1, 1, -1, -1]))]
    [[1, 1, 2, 2], [1, 4, 5, 2], [1, 2, -1, 1]]
    """
    order = np.argsort(items, kind="stable")
    total = np.cumsum(signs[order])
    first = np.flatnonzero(np.diff(items[order], prepend=-1))
    before = total[first] - signs[order][first]
    lengths = np.diff(np.append(first, len(items)))
    after = np.empty(len(items), dtype=np.int64)
    after[order] = total - np.repeat(before, lengths)
    earlier = after - signs
    distinct = np.cumsum((after != 0).astype(np.int64) - (earlier != 0))
    return distinct, np.cumsum(after**2 - earlier**2), after


def _in_then_out(items: IntArray, steps: int) -> tuple[IntArray, IntArray]:
    """Insert all, remove all in the same order, then do nothing."""
    rest = np.zeros(steps - 2 * len(items), dtype=np.int64)
    ones = np.ones(len(items), dtype=np.int64)
    return np.concatenate([items, items, rest]), np.concatenate([ones, -ones, rest])


def _unit(steps: int, _: np.random.Generator) -> tuple[IntArray, IntArray]:
    return _in_then_out(np.arange(steps // 2), steps)


def _heavy_element(steps: int, _: np.random.Generator) -> tuple[IntArray, IntArray]:
    return np.zeros(steps, dtype=np.int64), np.ones(steps, dtype=np.int64)


def heavy_shape(steps: int) -> tuple[int, int]:
    """Return (items, frequency) of the heavy rotation: T^(1/3) / 2 items, 2000 times if that fits.

    >>> heavy_shape(10**5), heavy_shape(10**4)
    ((23, 2000), (10, 500))
    """
    count = max(1, int(steps ** (1 / 3) / 2))
    return count, min(2000, steps // (2 * count))


def _heavy_rotation(steps: int, _: np.random.Generator) -> tuple[IntArray, IntArray]:
    count, times = heavy_shape(steps)
    return _in_then_out(np.repeat(np.arange(count), times), steps)


def _flippancy(steps: int, _: np.random.Generator) -> tuple[IntArray, IntArray]:
    at = np.arange(steps)
    return at % 40, 1 - 2 * (at // 40 % 2)


def _marginals(steps: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """A secret half of sqrt(T) items, then query sets of half the items: inserted, read, removed."""
    universe = max(2, int(steps**0.5))
    secret = rng.permutation(universe)[: universe // 2]
    parts = [(secret, np.ones(len(secret), dtype=np.int64))]
    done = len(secret)
    while done < steps:
        query = rng.permutation(universe)[: universe // 2]
        parts.append((np.tile(query, 2), np.repeat(np.array([1, -1]), len(query))))
        done += 2 * len(query)
    return tuple(np.concatenate([p[i] for p in parts])[:steps] for i in (0, 1))  # type: ignore[return-value]


def _window(steps: int, _: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Distinct items, of which the last sqrt(T) or so are present."""
    size = max(1, int(steps**0.5))
    at = np.arange(steps)
    later = at - size  # from here on an insertion and the removal of the oldest take turns
    new = np.where(later < 0, at, size + later // 2)
    old = later // 2
    remove = (later >= 0) & (later % 2 == 1)
    return np.where(remove, old, new), np.where(remove, -1, 1)


def _zipf(steps: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Items of frequencies proportional to 1/rank among T/10, inserted, then removed in the same order."""
    count = max(2, steps // 10)
    weights = 1.0 / np.arange(1, count + 1)
    edges = np.cumsum(weights / weights.sum())
    edges[-1] = 1.0
    items = np.searchsorted(edges, rng.random(steps // 2), side="right")
    return _in_then_out(np.minimum(items, count - 1).astype(np.int64), steps)


def _random(steps: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Random signs of random items among T/10: not strict."""
    return rng.integers(0, max(2, steps // 10), steps), 2 * rng.integers(0, 2, steps) - 1


def _frequent(steps: int, _: np.random.Generator) -> tuple[IntArray, IntArray]:
    """T/100 items, each inserted 100 times, one after the other round and round."""
    return np.arange(steps) % max(1, steps // 100), np.ones(steps, dtype=np.int64)


_MAKERS: dict[str, Callable[[int, np.random.Generator], tuple[IntArray, IntArray]]] = {
    "unit": _unit,
    "heavy element": _heavy_element,
    "heavy rotation": _heavy_rotation,
    "flippancy": _flippancy,
    "marginals": _marginals,
    "window": _window,
    "zipf": _zipf,
    "frequent": _frequent,
    "random ±1": _random,
}

STREAMS = tuple(_MAKERS)
GENERAL = ("random ±1",)
STRICT = tuple(name for name in STREAMS if name not in GENERAL)


def make_stream(name: str, *, steps: int, rng: np.random.Generator) -> Stream:
    """Return a stream.

    Args:
        name: one of :data:`STREAMS`.
        steps: T, at least 100.
        rng: of the streams that are random.

    Raises:
        ParameterError: another name.

    >>> unit = make_stream("unit", steps=100, rng=np.random.default_rng(0))
    >>> int(unit.distinct.max()), int(unit.distinct[-1])
    (50, 0)
    """
    if name not in _MAKERS:
        raise ParameterError(f"there is no stream {name}: choose one of {', '.join(STREAMS)}")
    items, signs = _MAKERS[name](steps, rng)
    distinct, moment, _ = truth(items.astype(np.int64), signs.astype(np.int64))
    return Stream(name, items.astype(np.int64), signs.astype(np.int64), distinct, moment)
