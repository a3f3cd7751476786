"""The coupling of checkpoints: every small case, and 10^5 random ones with real values, in both directions.

Many streams are checked at a time: a partition, the place of the insertion and the absorbing step decide
which buckets change, the items only by how much.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from trilift.counters.neighbours import (
    all_streams,
    couple,
    gap_difference,
    gaps,
    insert,
    interval_sums,
    sum_difference,
)
from trilift.lift.errors import ParameterError

Array = np.ndarray[Any, np.dtype[Any]]


def partitions(steps: int) -> Iterator[tuple[int, ...]]:
    for count in range(steps + 1):
        yield from combinations(range(1, steps + 1), count)


def inserted_into(base: Array, at: int, absorbed: int, values: Array) -> Array:
    """Rows of x for rows of x' (BOT as NaN) that share the step of the insertion and the absorbing one."""
    last = min(absorbed, base.shape[1] - 1)
    return np.concatenate((base[:, :at], values[:, None], base[:, at:last], base[:, last + 1 :]), axis=1)


def sums(rows: Array, ends: tuple[int, ...]) -> Array:
    running = np.concatenate((np.zeros((len(rows), 1)), np.nan_to_num(rows).cumsum(axis=1)), axis=1)
    return running[:, list(ends)] - running[:, [0, *ends[:-1]]] if ends else np.empty((len(rows), 0))


def unit(count: int, number: int) -> Array:
    return np.array([float(place == number) for place in range(1, count + 1)])


def check(x: Array, base: Array, values: Array, at: int, absorbed: int, of_x: tuple[int, ...]) -> None:
    """Check the difference of everything for coupled partitions; ``of_x`` is the one of the insertion.

    ``at`` and ``absorbed`` count from 0.
    """
    coupled = couple(of_x, inserted=at + 1, absorbed=absorbed + 1)
    p, q, of_base, k = coupled.first, coupled.last, coupled.checkpoints, len(of_x)
    before = (0, *of_x, base.shape[1] + 1)
    assert before[p - 1] < at + 1 <= before[p]
    assert before[q - 1] < absorbed + 1 <= before[q]
    numbers = np.nan_to_num(base)
    wanted = np.outer(values, unit(k, p))
    if q > p:
        wanted += np.outer(numbers[:, of_x[p - 1] - 1], unit(k, p + 1) - unit(k, p))
    if q > p + 1:
        wanted += np.outer(numbers[:, of_x[q - 2] - 1], unit(k, q) - unit(k, q - 1))
    found = sums(x, of_x) - sums(base, of_base)
    assert np.array_equal(found, wanted)
    assert np.all(np.abs(found) <= 1)
    places = set((np.flatnonzero(np.any(found != 0, axis=0)) + 1).tolist())
    assert places <= {p, p + 1, q - 1, q}
    change = [a - b for a, b in zip(gaps(of_x), gaps(of_base), strict=True)]
    assert change == list(unit(k, p + 1) - unit(k, q - 1) if q >= p + 3 else unit(k, 0))
    assert change == list(gap_difference(coupled))
    if p == k + 1:
        assert of_base == of_x
        assert not found.any()


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, pytest.param(6, marks=pytest.mark.slow)])
def test_every_small_case(steps: int) -> None:
    """All of {0, 1, BOT}^T, all partitions, buckets of one step too where the coupling is defined."""
    streams = np.array([[np.nan if item is None else item for item in s] for s in all_streams(steps)])
    silent = np.isnan(streams)
    defined = undefined = rows = 0
    for at in range(steps):
        first = np.where(silent[:, at:].any(axis=1), at + silent[:, at:].argmax(axis=1), steps)
        for absorbed in range(at, steps + 1):
            base = streams[first == absorbed]
            images: set[tuple[int, ...]] = set()
            back = set()
            for ends in partitions(steps):
                p, q = (1 + sum(end < step for end in ends) for step in (at + 1, absorbed + 1))
                lengths = (0, *gaps(ends))
                for to, bucket, seen in (("base", p + 1, images), ("insertion", q - 1, back)):
                    if q >= p + 3 and lengths[bucket] < 2:
                        undefined += 1
                        with pytest.raises(ParameterError, match=f"bucket {bucket} has one step"):
                            couple(ends, inserted=at + 1, absorbed=absorbed + 1, to=to)
                        continue
                    other = couple(ends, inserted=at + 1, absorbed=absorbed + 1, to=to)
                    assert (other.first, other.last) == (p, q)
                    assert other.checkpoints not in seen  # injective
                    seen.add(other.checkpoints)
                    away = {"base": "insertion", "insertion": "base"}[to]
                    again = couple(other.checkpoints, inserted=at + 1, absorbed=absorbed + 1, to=away)
                    assert again.checkpoints == ends
                    of_x = ends if to == "base" else other.checkpoints
                    for value in (0.0, 1.0):
                        values = np.full(len(base), value)
                        check(inserted_into(base, at, absorbed, values), base, values, at, absorbed, of_x)
                    defined += 1
                    rows += 2 * len(base)
    assert defined > undefined
    # every stream, place, partition, inserted value, both ways, but where a bucket would vanish
    assert rows <= 3**steps * steps * 2**steps * 2 * 2
    assert rows > 0.8 * 3**steps * steps * 2**steps * 2 * 2


@pytest.mark.slow
def test_a_hundred_thousand_random_cases() -> None:
    """T <= 14, real values, buckets of two steps or more: 2,500 structures of 40 streams, both ways."""
    source = np.random.default_rng(20261130)
    cases = moved = 0
    for _ in range(2_500):
        steps = int(source.integers(2, 15, size=2).max())
        lengths = source.integers(2, 4, size=steps)
        ends = tuple(int(end) for end in lengths.cumsum() if end <= steps)
        at = int(source.integers(steps, size=2).min())
        absorbed = int(source.integers(at, steps + 1, size=2).max())
        values = source.integers(2**20 + 1, size=(40, steps + 1)) / 2**20
        base, new = values[:, :steps], values[:, steps]
        base[:, absorbed + 1 :][source.random((40, max(steps - absorbed - 1, 0))) < 0.3] = np.nan
        base[:, :at][source.random((40, at)) < 0.3] = np.nan
        if absorbed < steps:
            base[:, absorbed] = np.nan
        x = inserted_into(base, at, absorbed, new)
        check(x, base, new, at, absorbed, ends)  # the insertion has the given partition
        there = couple(ends, inserted=at + 1, absorbed=absorbed + 1, to="insertion")
        check(x, base, new, at, absorbed, there.checkpoints)  # the other stream has it
        cases += len(base)
        moved += there.last >= there.first + 3
    assert cases == 100_000
    assert moved > 250


def test_the_vectorised_check_inserts_as_the_library_does() -> None:
    source = np.random.default_rng(5)
    for _ in range(300):
        stream = [None if source.random() < 0.3 else int(source.integers(5)) for _ in range(6)]
        at = int(source.integers(6))
        absorbed = next((t for t in range(at, 6) if stream[t] is None), 6)
        row = np.array([[np.nan if item is None else item for item in stream]])
        new = inserted_into(row, at, absorbed, np.array([7.0]))[0]
        assert [None if np.isnan(v) else v for v in new] == list(insert(stream, at=at, value=7))
        ends = tuple(sorted(set(source.integers(1, 7, size=3).tolist())))
        assert interval_sums(stream, checkpoints=ends) == tuple(sums(row, ends)[0])
        try:
            other = couple(ends, inserted=at + 1, absorbed=absorbed + 1)
        except ParameterError:
            continue
        mine = interval_sums(insert(stream, at=at, value=7), checkpoints=ends)
        theirs = interval_sums(stream, checkpoints=other.checkpoints)
        formula = sum_difference(stream, at=at, value=7, checkpoints=ends)
        assert formula == tuple(a - b for a, b in zip(mine, theirs, strict=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"checkpoints": [2, 2]}, "checkpoints must increase"),
        ({"checkpoints": [0]}, r"checkpoints\[0\] must be an integer >= 1"),
        ({"inserted": 0}, "inserted must be an integer >= 1"),
        ({"absorbed": 1}, "absorbed must be an integer >= 2"),
        ({"to": "x"}, "to must be one of 'base', 'insertion'"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"checkpoints": [2, 4], "inserted": 2, "absorbed": 3} | arguments
    with pytest.raises(ParameterError, match=message):
        couple(good.pop("checkpoints"), **good)


def test_checkpoints_lie_in_the_stream() -> None:
    with pytest.raises(ParameterError, match="at most 3, the number of steps, got 4"):
        interval_sums([1, 2, 3], checkpoints=[2, 4])
