"""What edit-private counters share: counting step by step or many steps at once, and saved states."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from trilift.counters.edit import state as states
from trilift.counters.edit.blueprint import Blueprint
from trilift.counters.edit.pages import Paged
from trilift.counters.edit.part import Part
from trilift.counters.edit.position import EditPosition
from trilift.counters.edit.rules import SimPartRule
from trilift.counters.edit.schedule import Pairs, extrapolated, latest
from trilift.counters.edit.shell import EditShell
from trilift.counters.edit.simpart import SimPart
from trilift.counters.edit.svt import MOST_STEPS
from trilift.counters.position import Position, running_sums
from trilift.lift.errors import ParameterError, ReplayError
from trilift.lift.integers import add
from trilift.stream.keys import DigestBuilder, Secret

__all__ = ["EditCounter"]

Integers = np.ndarray[Any, np.dtype[Any]]

_CHUNK = 1 << 18


class EditCounter(EditShell):
    """What counters by buckets share: SimECC, ECC and PartitionCC. Make one of those.

    Neighbours, guarantee, composition and theorem: see there.
    """

    mechanism: ClassVar[str]
    _most = MOST_STEPS
    _now: EditPosition

    @classmethod
    def _restored(cls, record: dict[str, Any]) -> Blueprint:
        """Return the design of a saved state."""
        raise NotImplementedError

    def _plan(self) -> Blueprint:
        return self._design

    def _places(self) -> int:
        return self.rule.places

    def _log(self) -> Position:
        return self._now.log

    def _start(self, design: Blueprint, key: bytes, stream_id: bytes, simulated: bool) -> None:
        if design.mechanism != self.mechanism:
            raise ParameterError(f"a design of {design.mechanism!r} makes no {type(self).__name__}")
        self._design = design
        self._key, self._stream_id, self._simulated = key, stream_id, simulated
        places = design.rule.places
        values = design.values.build(
            key=key, stream_id=stream_id, purpose="edit/values", places=places, input_places=places
        )
        times = design.times.build(key=key, stream_id=stream_id, purpose="edit/times")
        limits = [most for most in (design.capacity, values.horizon, times.horizon) if most is not None]
        self._capacity = min(limits, default=None)  # after as many buckets nothing is released any more
        self._values, self._times = Paged(values, self._capacity), Paged(times, self._capacity)
        self._part = _partition(design, key, stream_id)
        digest = DigestBuilder("trilift/edit/1").add("values", values.digest).add("times", times.digest)
        self._digest = digest.add("part", self._part.digest).add("design", design.digest).digest()
        self._lock = threading.Lock()
        self._now = EditPosition.start()

    # -- saving ---------------------------------------------------------------------------------

    def _write(self, path: Path, position: Any) -> None:
        states.write(path, self._snapshot(position))

    def _snapshot(self, now: EditPosition) -> states.Snapshot:
        return states.Snapshot(
            kind=type(self).__name__,
            design=self._design,
            digest=self._digest.hex(),
            key=bytes(self._key),
            stream_id=self._stream_id,
            simulated=self._simulated,
            position=now,
        )

    @classmethod
    def _loaded(cls, path: Path) -> Self:
        snapshot = states.read(path, kind=cls.__name__, restored=cls._restored)
        counter = cls.__new__(cls)
        counter._start(snapshot.design, Secret(snapshot.key), snapshot.stream_id, snapshot.simulated)
        if snapshot.digest != counter._digest.hex():
            raise ReplayError(f"{path}: the state belongs to another mechanism; it is not continued")
        counter._now = snapshot.position
        return counter

    # -- inside ---------------------------------------------------------------------------------

    def _advance(self, inputs: Integers) -> Integers:
        """Take checked inputs of shape (k, 2), k >= 1, move the state, return the values shown."""
        now, shown = self._walked(self._now, inputs)
        self._move(now)
        return shown

    def _walked(self, now: EditPosition, inputs: Integers) -> tuple[EditPosition, Integers]:
        """Return the position after k >= 1 inputs, and the values shown; nothing moves."""
        parts = []
        for begin in range(0, len(inputs), _CHUNK):
            now, shown = self._after(now, inputs[begin : begin + _CHUNK])
            parts.append(shown)
        return now, np.concatenate(parts) if len(parts) > 1 else parts[0]

    def _after(self, now: EditPosition, inputs: Integers) -> tuple[EditPosition, Integers]:
        k = len(inputs)
        sums = running_sums(now.log.counts, inputs[:, :1])[:, 0]
        cuts, pairs = self._ended(now, sums)
        schedule, shown, where = now.schedule.advanced(step=now.step, steps=k, new=pairs)
        released = self._display(shown, where, step=now.step)
        log = now.log.advanced(
            inputs, counts=sums[-1:], peaks=now.log.peaks, released=released[:, np.newaxis]
        )
        clock = k - 1 - int(cuts[-1]) if len(cuts) else now.clock + k
        opened = int(sums[cuts[-1]]) if len(cuts) else now.opened
        return EditPosition(log, now.bucket + len(cuts), clock, opened, schedule), released

    def _ended(self, now: EditPosition, sums: Integers) -> tuple[Integers, Pairs]:
        """Return where buckets end within the next steps, and their pairs (that, vhat)."""
        capacity, first = self._capacity, now.bucket
        found = self._part.cuts(
            sums,
            bucket=first,
            clock=now.clock,
            opened=now.opened,
            most=None if capacity is None else capacity - first,
        )
        cuts = np.array(found, dtype=np.int64)
        if not found:
            return cuts, Pairs.none()
        last = first + len(found)
        index = np.arange(first, last)
        delays = np.maximum(add(self._design.alphas(first, last), self._times.range(first, last)), 0)
        values = add(sums[cuts], self._values.range(first, last))
        return cuts, Pairs(index, add(now.step + 1 + cuts, delays), values)

    def _display(self, pairs: Pairs, where: Integers, *, step: int) -> Integers:
        if self._design.display == "latest":
            return latest(pairs, where)
        delays = np.zeros(0, dtype=np.int64)
        if len(pairs):
            first = int(pairs.index.min())
            delays = self._design.alphas(first, int(pairs.index.max()) + 1)[pairs.index - first]
        return extrapolated(pairs, where, step=step, delays=delays, largest=self.rule.high)


def _partition(design: Blueprint, key: bytes, stream_id: bytes) -> Part | SimPart:
    if isinstance(design.part, SimPartRule):
        return SimPart(design.part, key=key, stream_id=stream_id, purpose="edit/part")
    return Part(design.part, high=design.rule.high, key=key, stream_id=stream_id, purpose="edit/part")
