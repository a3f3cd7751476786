"""Turnstile counters under audit: many runs of one sketch, with its hash functions, side by side.

The proofs hold for every hash function, so an audit may keep those of one key: runs then differ in their
noise alone, and are independent and of one law. A batch is one object of the shipped class, whose sketch
stands in it many times over: the same counters are touched in every copy, and the shipped bank gives every
copy noise of its own, of the same law (a bank's counters are independent, and each has the base's budget).

Estimates and intervals hide most of the noise (they are medians, clipped to what is possible). The proofs
promise more: that the noisy counters they are read off are private. So the audit looks at both: at what is
read, and at the noisy counters that the streams touch, as the shipped code hands them to its reading. Their
likelihood ratio is known, since hash functions are: a sum over the counters in which the streams differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from trilift.counters.turnstile.position import TurnstilePosition
from trilift.counters.turnstile.reading import Readings
from trilift.counters.turnstile.sketch import Linear, Sketch
from trilift.experiments.audit.noise_matrices import Matrices, chain_matrices
from trilift.experiments.audit.plans import shared_plans
from trilift.experiments.audit.ratios import Ratios
from trilift.experiments.audit.subject import Pair, Stream, Subject
from trilift.stream.keys import DigestBuilder, simulation_key

__all__ = ["Copies", "SketchSubject"]

Array = np.ndarray[Any, np.dtype[Any]]

_COUNTERS = 1 << 16  # of a batch
_MOST = 4096
_READ = 3  # numbers of a reading
_PURPOSE = "audit/sketch"


class SketchSubject(Subject):
    """A DistinctCounter (without its hybrid part) or a SecondMoment under audit.

    Args:
        name: on the command line.
        prototype: a simulated counter of few events; its design and its hash functions are audited.
        epsilon, delta: the claim.
        pairs: streams of (item, sign), all as long as the horizon.
    """

    neighbours = "one event is another one"

    def __init__(
        self, name: str, prototype: Any, *, epsilon: Fraction, delta: Fraction, pairs: Sequence[Pair]
    ) -> None:
        self.name, self.epsilon, self.delta = name, epsilon, delta
        self._counter, self._pairs = prototype, pairs
        shipped: Linear = prototype._run
        self._sketch, self._base, self._every = shipped.sketch, shipped.base, shipped.every
        self._ticks = prototype.horizon // prototype.every
        self.batch = max(1, min(_MOST, _COUNTERS // self._sketch.width))

    def pairs(self) -> Sequence[Pair]:
        """Return the pairs that are tried."""
        return self._pairs

    # -- runs -----------------------------------------------------------------------------------

    def release(self, streams: Sequence[Stream], *, seed: int) -> Sequence[Array]:
        """Give all streams to one counter of many copies: arrays (batch, readings, then noisy counters)."""
        with shared_plans():
            return self._released(streams, seed)

    def _released(self, streams: Sequence[Stream], seed: int) -> list[Array]:
        copies = Copies(self._sketch, self.batch)
        run = Linear(
            copies,
            self._base,
            every=self._every,
            key=simulation_key(seed),
            stream_id=bytes(16),
            purpose=_PURPOSE,
        )
        run.bank = _Once(run.bank)  # all streams meet the same noise
        counter, found = self._counter, []
        counter._run = run
        for stream in streams:
            counter._now = TurnstilePosition(0, run.start(), ())
            copies.values.clear()
            copies.readings.clear()
            counter.extend([item for item, _ in stream], [sign for _, sign in stream])
            values = np.concatenate(copies.values, axis=1)  # (batch, ticks, width)
            read = np.concatenate(copies.readings, axis=1)
            seen = values[:, :, self._cells].reshape(self.batch, -1)
            found.append(np.concatenate([read.reshape(self.batch, -1), seen], axis=1))
        return found

    @cached_property
    def _cells(self) -> Array:
        """The counters that any stream touches."""
        items = {item for pair in self._pairs for stream in (pair.first, pair.second) for item, _ in stream}
        where, _ = self._sketch.touched(self._counter._prints.many(sorted(items)))
        return np.unique(where)

    # -- scores ---------------------------------------------------------------------------------

    @cached_property
    def known(self) -> Matrices:
        """The public matrices of one counter's noise."""
        base: Any = self._base  # a ChainBase: simulated noise is not audited
        return chain_matrices(base.chain, base.ledger, self._ticks)

    @cached_property
    def _ratios(self) -> Ratios:
        return Ratios(self.known, step=1.0)

    def _added(self, stream: Stream) -> Array:
        """Return what a stream adds to the counters that are looked at, by ticks: (ticks, counters)."""
        prints = self._counter._prints.many([item for item, _ in stream])
        signs = np.array([sign for _, sign in stream], dtype=np.int8)
        at = np.arange(len(stream)) // self._every
        return self._sketch.increments(prints, signs, at, count=self._ticks)[:, self._cells].astype(float)

    def statistics(self, pair: Pair, values: Array) -> Mapping[str, Array]:
        """Return the likelihood ratio of the noisy counters in which the streams differ."""
        first, second = self._added(pair.first), self._added(pair.second)
        seen = values[:, _READ * self._ticks :].reshape(len(values), self._ticks, -1)
        found: dict[str, Array] = {}
        for cell in np.flatnonzero((first != second).any(axis=0)):
            own = self._ratios.statistics(first[:, cell], second[:, cell], seen[:, :, cell])
            own.setdefault("projected ratio", own["likelihood ratio"])
            for name, score in own.items():
                found[name] = found[name] + score if name in found else score
        return found

    def largest_loss(self, pair: Pair) -> float:
        """Return the log-likelihood ratio that a pair can reach (Laplace): the spent epsilon at most."""
        gaps = self._added(pair.second) - self._added(pair.first)
        return float(sum(self._ratios.loss(gap) for gap in gaps.T))


class Copies(Sketch):
    """A sketch many times over, every copy with counters of its own; what is read is written down.

    Args:
        sketch: the shipped one.
        copies: how often.
    """

    def __init__(self, sketch: Sketch, copies: int) -> None:
        self.sketch, self.copies = sketch, copies
        self.width, self.banks = sketch.width * copies, sketch.banks * copies
        self.failure = sketch.failure
        self._tables: dict[bytes, Array] = {}
        self.values: list[Array] = []
        """Noisy counters of every read, (copies, ticks, width of one)."""
        self.readings: list[Array] = []
        """Estimates, lower and upper ends of every read, (copies, ticks, 3)."""

    def touched(self, prints: Array) -> tuple[Array, Array]:
        """Return the counters that items touch in all copies, and by how much."""
        where, change = self.sketch.touched(prints)
        shifts = np.arange(self.copies)[:, None] * self.sketch.width
        wide = (where[:, None, :] + shifts).reshape(len(where), -1)
        return wide, np.tile(np.broadcast_to(change, where.shape), self.copies)

    def increments(self, prints: Array, signs: Array, ticks: Array, *, count: int) -> Array:
        """Return the sketch's own increments, once for every copy."""
        return np.tile(self.sketch.increments(prints, signs, ticks, count=count), self.copies)

    def tables(self, ticks: Array) -> Array:
        """Return the sketch's own; they are public, and the same for all streams."""
        key = ticks.tobytes()
        if key not in self._tables:
            self._tables[key] = self.sketch.tables(ticks)
        return self._tables[key]

    def read(self, values: Array, tables: Array, *, steps: Array) -> Readings:
        """Read every copy; return what the first one says."""
        count = len(steps)
        apart = values.reshape(count, self.copies, -1).transpose(1, 0, 2)
        flat = apart.reshape(count * self.copies, -1)
        read = self.sketch.read(flat, np.tile(tables, (self.copies, 1)), steps=np.tile(steps, self.copies))
        numbers = np.stack([read.estimate, read.low, read.high], axis=1)
        self.values.append(apart.astype(np.float64))
        self.readings.append(numbers.reshape(self.copies, count, _READ))
        return Readings(steps, *(numbers[:count, k] for k in range(_READ)))

    def described(self, digest: DigestBuilder) -> DigestBuilder:
        """Add the number of copies to what the sketch says."""
        return self.sketch.described(digest).add("copies", self.copies)


class _Once:
    """A bank that remembers what it said last: every stream of a batch asks for the same ticks."""

    def __init__(self, bank: Any) -> None:
        self._bank = bank
        self._said: dict[bytes, Array] = {}

    @property
    def digest(self) -> bytes:
        """The bank's own."""
        return bytes(self._bank.digest)

    def at(self, steps: Array) -> Array:
        """Return the bank's noise."""
        key = steps.tobytes()
        if key not in self._said:
            self._said[key] = self._bank.at(steps)
        return self._said[key]
