"""Counters under audit whose runs are objects of their own: edit counters, turnstile counters.

Every run is a counter of the shipped class under a key of its own. It sees all streams of the batch in turn:
its position, which is an immutable record, is put back between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.edit import EndingCounter
from trilift.counters.neighbours import insert, random_edit_neighbour, random_stream
from trilift.experiments.audit.plans import shared_plans
from trilift.experiments.audit.subject import Pair, Stream, Subject

__all__ = [
    "EndingSubject",
    "SingleSubject",
    "bucket_pairs",
    "edit_pairs",
    "hybrid_subject",
    "prefix_gaussian_subject",
    "swap_pairs",
    "turnstile_pairs",
]

Array = np.ndarray[Any, np.dtype[Any]]

BATCH = 32
_SEARCHED = 3
_SEED_BITS = 10
ITEMS = ["a", "b", "c", "d", "z"]
"""Items of the turnstile streams."""


class SingleSubject(Subject):
    """A mechanism whose runs are made one by one.

    Args:
        name: on the command line.
        neighbours: what the pairs differ in, in words.
        epsilon, delta: the claim.
        pairs: what is tried.
        fresh: makes a counter under the key of a seed.
        show: gives a counter a stream and returns all that it releases, as numbers.
        batch: runs of a batch, at most 1024.
        scored: statistics beside the fitted ones.
    """

    def __init__(
        self,
        name: str,
        neighbours: str,
        *,
        epsilon: Fraction,
        delta: Fraction,
        pairs: Sequence[Pair],
        fresh: Callable[[int], Any],
        show: Callable[[Any, Stream], Sequence[float]],
        batch: int = BATCH,
        scored: Callable[[Pair, Array], Mapping[str, Array]] | None = None,
    ) -> None:
        self.name, self.neighbours, self.batch = name, neighbours, batch
        self.epsilon, self.delta = epsilon, delta
        self._pairs, self._fresh, self._show, self._scored = pairs, fresh, show, scored

    def pairs(self) -> Sequence[Pair]:
        """Return the pairs that are tried."""
        return self._pairs

    def release(self, streams: Sequence[Stream], *, seed: int) -> Sequence[Array]:
        """Run one counter a run on all streams."""
        found: list[list[Sequence[float]]] = [[] for _ in streams]
        with shared_plans():
            for index in range(self.batch):
                counter = self._fresh((seed << _SEED_BITS) + index)
                for rows, stream in zip(found, streams, strict=True):
                    rows.append(self._show(counter, stream))
        return [np.array(rows, dtype=np.float64) for rows in found]

    def statistics(self, pair: Pair, values: Array) -> Mapping[str, Array]:
        """Return the statistics that were given."""
        return {} if self._scored is None else self._scored(pair, values)


# -- edit -------------------------------------------------------------------------------------------


def edit_pairs(steps: int, *, extended: bool = False) -> list[Pair]:
    """Return insertions into short streams of several kinds, and searched ones."""
    streams = {
        "no events": (None,) * steps,
        "events": (1,) * steps,
        "every other step": tuple((1, None)[t % 2] for t in range(steps)),
    }
    found = []
    for kind, stream in streams.items():
        for at in (0, steps // 2):
            for value in (0, 1):
                other = insert(stream, at=at, value=value, extended=extended)
                if other != stream:
                    found.append(Pair(f"{kind}, {value} inserted before step {at + 1}", stream, other))
    return found + _searched(steps, _SEARCHED, extended=extended)


def bucket_pairs(steps: int, *, apart: int) -> list[Pair]:
    """Return insertions into long streams, for counters by buckets.

    What changes all later sums of a stream in which little happens shows most: the sum at the end of a bucket
    is then known, whenever that was. In dense streams the uncertain end hides the change.

    Args:
        steps: of a stream.
        apart: steps between two events of a stream of few events.
    """
    streams = {
        "no events": (None,) * steps,
        f"an event every {apart} steps": tuple(1 if t % apart == apart - 1 else None for t in range(steps)),
        "events": (1,) * steps,
    }
    found = []
    for (kind, stream), value in zip(streams.items(), (1, 1, 0), strict=True):
        other = insert(stream, at=0, value=value)
        found.append(Pair(f"{kind}, {value} inserted before step 1", stream, other))
    return found + _searched(steps, 1)


def _searched(steps: int, count: int, *, extended: bool = False) -> list[Pair]:
    """Return random neighbours."""
    found = []
    for seed in range(count):
        some = random_stream(steps, seed=seed, alphabet=(0, 1, None))
        other = random_edit_neighbour(some, seed=seed, extended=extended)
        if other != some and all(value in (0, 1, None) for value in other):
            found.append(Pair(f"searched pair {seed + 1}", some, other))
    return found


def swap_pairs(steps: int) -> list[Pair]:
    """Return streams that differ in one input: the neighbours of PartitionCC."""
    found = []
    for kind, level in (("zeros", 0), ("events", 1)):
        base = (level,) * steps
        for at in sorted({0, steps // 2}):
            other = (*base[:at], 1 - level, *base[at + 1 :])
            found.append(Pair(f"{kind}, {1 - level} at step {at + 1}", base, other))
    return found


def _values(counter: Any, stream: Stream) -> Sequence[float]:
    """Release a stream from the beginning."""
    start = counter.__dict__.setdefault("_audit_start", counter._now)
    counter._now = start
    shown: list[float] = np.asarray(counter.extend(list(stream)), dtype=np.float64).tolist()
    return shown


def _remade(prototype: Any) -> Callable[[int], Any]:
    """Return a maker of counters with the prototype's public design and new keys."""

    def fresh(seed: int) -> Any:
        kind: Any = type(prototype)
        counter = kind.__new__(kind)
        counter._begin(prototype._plan(), seed, None)
        return counter

    return fresh


def prefix_gaussian_subject(name: str, prototype: Any, *, steps: int) -> SingleSubject:
    """Return a GaussianCC or HorizonGaussian under audit, scored by the exact likelihood ratio."""
    variances = np.array([prototype.sd(t) ** 2 for t in range(1, steps + 1)])

    def scored(pair: Pair, values: Array) -> Mapping[str, Array]:
        one, other = (np.cumsum([x or 0 for x in stream]) for stream in (pair.first, pair.second))
        weights = (other - one) / variances
        return {"likelihood ratio": (values - (one + other) / 2) @ weights}

    return SingleSubject(
        name,
        "edit: one input inserted",
        epsilon=prototype.epsilon,
        delta=prototype.delta,
        pairs=edit_pairs(steps),
        fresh=_remade(prototype),
        show=_values,
        scored=scored,
    )


class EndingSubject(SingleSubject):
    """An EndingCounter under audit: its padded length is released too, and comes first."""

    def __init__(self, name: str, prototype: EndingCounter, *, steps: int) -> None:
        self._prototype, self._seen = prototype, steps + 1
        super().__init__(
            name,
            "extended edit: one input inserted, and the stream may be one step longer",
            epsilon=prototype.epsilon,
            delta=prototype.delta,
            pairs=edit_pairs(steps, extended=True),
            fresh=self._made,
            show=self._shown,
        )

    def _made(self, seed: int) -> EndingCounter:
        made: Any = EndingCounter.__new__(EndingCounter)
        made.__dict__.update(self._prototype.__dict__)
        made._counter = _remade(self._prototype.counter)(seed)
        return made  # type: ignore[no-any-return]

    def _shown(self, counter: Any, stream: Stream) -> Sequence[float]:
        counter._now = self._prototype._now  # before the first step, which is the same under every key
        shown = [*counter.extend(list(stream)).tolist(), *counter.finish().tolist()]
        tail = shown[-1] if shown else 0
        first = [*shown, *[tail] * self._seen][: self._seen]
        return [float(len(shown)), float(tail), *map(float, first)]


# -- turnstile --------------------------------------------------------------------------------------


def turnstile_pairs(steps: int) -> list[Pair]:
    """Return streams of (item, sign) that differ in one event."""
    same = (("a", 1),) * steps
    fresh = tuple((ITEMS[t % len(ITEMS)], 1) for t in range(steps))
    turns = tuple(("a", (1, -1)[t % 2]) for t in range(steps))
    found = []
    for kind, stream in (("one item", same), ("new items", fresh), ("comes and goes", turns)):
        for at in sorted({0, steps - 1}):
            for event in (("z", 1), ("a", -1)):
                other = (*stream[:at], event, *stream[at + 1 :])
                if other != stream:
                    label = f"{kind}, {'+' if event[1] > 0 else '-'}{event[0]} at event {at + 1}"
                    found.append(Pair(label, stream, other))
    return found


def hybrid_subject(name: str, prototype: Any, *, epsilon: Fraction, delta: Fraction) -> SingleSubject:
    """Return a DistinctCounter or a SecondMoment under audit.

    Estimates and intervals hide most of the noise (they are medians, clipped to what is possible). The proofs
    promise more: that the noisy counters they are read off are private, for every hash function. So the audit
    also looks at those, as the shipped code hands them to its reading: for every item the sum over banks of
    the counters that it touches, with the signs that it touches them by.
    """

    def fresh(seed: int) -> Any:
        kind: Any = type(prototype)
        counter = kind.__new__(kind)
        counter._begin(prototype.blueprint, seed=seed, state=None, encode=None)
        return _Watched(counter)

    return SingleSubject(
        name,
        "one event is another one",
        epsilon=epsilon,
        delta=delta,
        pairs=turnstile_pairs(prototype.horizon),
        fresh=fresh,
        show=lambda watched, stream: watched.shown(stream),
    )


class _Watched:
    """A turnstile counter whose noisy counters are written down on their way to the reading."""

    def __init__(self, counter: Any) -> None:
        self._counter, self._start = counter, counter._now
        hybrid = hasattr(counter._run, "_sketch")
        sketch = (counter._run._sketch if hybrid else counter._run).sketch
        self._where, self._by = sketch.touched(counter._prints.many(ITEMS))
        self._cells: list[Array] = []
        self._releases: list[Array] = []
        sketch.read = self._noting(sketch.read, self._cells)
        if hybrid:
            combined = counter._run._combined

            def noting(seen: Any, releases: Array, first: int) -> Any:
                self._releases.append(releases[1:] if first == 0 else releases)  # the first one is no release
                return combined(seen, releases, first)

            counter._run._combined = noting

    @staticmethod
    def _noting(read: Callable[..., Any], notes: list[Array]) -> Callable[..., Any]:
        def noting(values: Array, tables: Array, *, steps: Array) -> Any:
            notes.append(np.array(values, dtype=np.float64))
            return read(values, tables, steps=steps)

        return noting

    def shown(self, stream: Stream) -> Sequence[float]:
        """Release a stream; return readings, noisy counters by item and tick, and releases of a hybrid."""
        counter = self._counter
        counter._now = self._start
        self._cells.clear()
        self._releases.clear()
        seen = counter.extend([item for item, _ in stream], [sign for _, sign in stream])
        cells = np.concatenate(self._cells)  # (ticks, width)
        touched = (cells[:, self._where] * self._by).sum(axis=-1)  # (ticks, items)
        numbers: list[float] = np.concatenate(
            [seen.estimate, seen.low, seen.high, touched.ravel(), *self._releases]
        ).tolist()
        return numbers
