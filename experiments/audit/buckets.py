"""Counters by buckets under audit (SimECC, ECC, PartitionCC), by what they show and when.

Everything that such a counter shows is a function of the pairs (time, value) at which it changes what it
shows, so the first few of them are looked at instead of all steps. If a bucket that is shown at time h ended
about its delay earlier, the value is s at that step plus noise of the counter of buckets: a sum that is
another one for the neighbour. The score is the likelihood ratio of those Gaussian noises, with their known
covariance and with what the uncertain time adds to it; times by themselves are left to the fitted statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from trilift.counters.edit.position import EditPosition
from trilift.experiments.audit.noise_matrices import covariance
from trilift.experiments.audit.plans import shared_plans
from trilift.experiments.audit.subject import Pair, Stream, Subject
from trilift.stream.keys import simulation_key

__all__ = ["BucketSubject"]

Array = np.ndarray[Any, np.dtype[Any]]

_SEED_BITS = 10


class BucketSubject(Subject):
    """A counter by buckets, one run a key; all streams of a batch meet the counter of a run in turn.

    Args:
        name: on the command line.
        neighbours: what the pairs differ in, in words.
        prototype: a simulated counter, whose design is audited.
        pairs: what is tried; streams of one length.
        changes: so many changes are looked at.
        batch: runs of a batch, at most 1024.
    """

    def __init__(
        self,
        name: str,
        neighbours: str,
        prototype: Any,
        *,
        pairs: Sequence[Pair],
        changes: int = 6,
        batch: int = 64,
    ) -> None:
        self.name, self.neighbours, self.batch = name, neighbours, batch
        self.epsilon, self.delta = prototype.epsilon, prototype.delta
        self._kind: Any = type(prototype)
        self._design, self._pairs, self._changes = prototype.design, pairs, changes
        self._given: dict[Stream, Any] = {}

    def pairs(self) -> Sequence[Pair]:
        """Return the pairs that are tried."""
        return self._pairs

    # -- runs -----------------------------------------------------------------------------------

    def release(self, streams: Sequence[Stream], *, seed: int) -> Sequence[Array]:
        """Return of every run how often its value changed, when it did so first, and to what.

        Arrays (batch, 1 + 2 changes); where there are fewer changes, times are one past the end and values
        the last one.
        """
        start, given = EditPosition.start(), [self._inputs(stream) for stream in streams]
        found = [np.empty((self.batch, 1 + 2 * self._changes)) for _ in streams]
        with shared_plans(page=2 * self._changes):
            for index in range(self.batch):
                counter = self._kind.__new__(self._kind)
                counter._begin(self._design, (seed << _SEED_BITS) + index, None)
                for rows, inputs in zip(found, given, strict=True):
                    counter._now = start
                    rows[index] = self._seen(np.asarray(counter.extend(inputs), dtype=np.float64))
        return found

    def _inputs(self, stream: Stream) -> Any:
        """Return a stream as a masked array, BOT masked: quicker to read than a list."""
        if stream not in self._given:
            mask = [value is None for value in stream]
            self._given[stream] = np.ma.array([value or 0 for value in stream], mask=mask)
        return self._given[stream]

    def _seen(self, shown: Array) -> Array:
        most = self._changes
        at = np.flatnonzero(np.diff(shown, prepend=0.0))
        times, values = np.full(most, len(shown) + 1.0), np.full(most, shown[-1])
        first = at[:most]
        times[: len(first)], values[: len(first)] = first + 1, shown[first]
        return np.concatenate([[len(at)], times, values])

    # -- scores ---------------------------------------------------------------------------------

    def statistics(self, pair: Pair, values: Array) -> Mapping[str, Array]:
        """Return the likelihood ratio of the values that are shown, given the times."""
        most = self._changes
        known = np.minimum(values[:, 0].astype(np.int64), most)
        times, shown = values[:, 1 : 1 + most], values[:, 1 + most :]
        one, other = (
            np.cumsum([0, *(value or 0 for value in stream)]) for stream in (pair.first, pair.second)
        )
        ends = np.clip(times - self._delays, 0, len(one) - 1).astype(np.int64)
        low, high = one[ends], other[ends]
        score = np.zeros(len(values))
        slope = max(one[-1], other[-1]) / (len(one) - 1)
        for count in range(1, most + 1):
            runs = np.flatnonzero(known == count)
            noise = self._covariance[:count, :count] + np.diag(slope**2 * self._spread[:count])
            gap, middle = (high - low)[runs, :count], (high + low)[runs, :count] / 2
            score[runs] = (np.linalg.solve(noise, gap.T).T * (shown[runs, :count] - middle)).sum(axis=1)
        return {"likelihood ratio": score}

    @cached_property
    def _delays(self) -> Array:
        return np.asarray(self._design.alphas(0, self._changes), dtype=np.float64)

    @cached_property
    def _spread(self) -> Array:
        """Variances of the release times."""
        return self._variances(self._design.times)

    @cached_property
    def _covariance(self) -> Array:
        return self._covariances(self._design.values)

    def _covariances(self, base: Any) -> Array:
        process = base.build(key=simulation_key(0), stream_id=bytes(16), purpose="audit/public")
        return covariance(process, self._changes)

    def _variances(self, base: Any) -> Array:
        process = base.build(key=simulation_key(0), stream_id=bytes(16), purpose="audit/public")
        return np.asarray(process.variance(np.arange(self._changes)), dtype=np.float64)
