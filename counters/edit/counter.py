"""What edit-private counters share: counting step by step or many steps at once, and saved states."""

from __future__ import annotations

import os
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from trilift.counters.edit import state as states
from trilift.counters.edit.blueprint import Blueprint
from trilift.counters.edit.inputs import BotRule
from trilift.counters.edit.ledger import EditLedger
from trilift.counters.edit.pages import Paged
from trilift.counters.edit.part import Part
from trilift.counters.edit.position import EditPosition
from trilift.counters.edit.rules import SimPartRule
from trilift.counters.edit.schedule import Pairs, extrapolated, latest
from trilift.counters.edit.simpart import SimPart
from trilift.counters.edit.svt import MOST_STEPS
from trilift.counters.kept import Kept
from trilift.counters.lock import acquired
from trilift.counters.position import running_sums
from trilift.counters.released import as_array, as_number
from trilift.lift.checks import flag, integer
from trilift.lift.errors import HorizonError, ParameterError, ReplayError, StateError
from trilift.lift.integers import add
from trilift.stream.keys import DigestBuilder, Secret, new_key, new_stream_id, simulation_key

__all__ = ["EditCounter"]

Integers = np.ndarray[Any, np.dtype[Any]]

_CHUNK = 1 << 18


class EditCounter(Kept):
    """What counters by buckets share: SimECC, ECC and PartitionCC. Make one of those.

    Neighbours, guarantee, composition and theorem: see there.
    """

    mechanism: ClassVar[str]
    _now: EditPosition

    @classmethod
    def _restored(cls, record: dict[str, Any]) -> Blueprint:
        """Return the design of a saved state."""
        raise NotImplementedError

    def _begin(self, design: Blueprint, seed: int | None, state: str | os.PathLike[str] | None) -> None:
        simulated = seed is not None
        key = simulation_key(seed) if seed is not None else new_key()
        self._start(design, key, bytes(16) if simulated else new_stream_id(), simulated)
        self._keep(state)

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

    def __repr__(self) -> str:
        mark = ", SIMULATION" if self._simulated else ""
        name, horizon = type(self).__name__, self.horizon
        return f"{name}(epsilon={self.epsilon}, horizon={horizon}, step={self.step}{mark})"

    # -- what is public -------------------------------------------------------------------------

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that was asked for, exact."""
        return self._design.epsilon

    @property
    def delta(self) -> Fraction:
        """The delta that was asked for, exact."""
        return self._design.delta

    @property
    def horizon(self) -> int | None:
        """Number of steps that can be released; None: no end is planned (2^36 steps are the most)."""
        return self._design.horizon

    @property
    def step(self) -> int:
        """Number of steps so far."""
        return self._now.step

    @property
    def rule(self) -> BotRule:
        """What an input may be."""
        return self._design.rule

    @property
    def ledger(self) -> EditLedger:
        """Where the budget goes."""
        return self._design.ledger

    # -- counting -------------------------------------------------------------------------------

    def update(self, x: Any, *, step: int | None = None) -> Any:
        """Take the next input, a number or BOT (None), and return the value shown after it.

        Args:
            x: a number in [0, high], or BOT: None, ``np.ma.masked``, pandas' NA or NaT.
            step: number of the step, 1 for the first one. Naming one of the last 1024 steps again returns the
                value it got, if the input is the same; for retries.

        Returns:
            An int on the integer lattice; otherwise a float, exact (a Fraction where a float is not).

        Raises:
            ParameterError: an input that is not acceptable.
            HorizonError: a step past the horizon.
            ReplayError: a released step with another input, or one no longer remembered.
            StateError: a step out of order.
            OSError: the state cannot be written.

        In every case the state is unchanged. Which error comes depends on this call and on the number of
        steps; only whether a repeated step meets a :class:`ReplayError` depends on an earlier input (namely
        whether it was the same), and must not reach third parties.
        """
        number, bot = self.rule.one(x)
        named = None if step is None else integer("step", step, minimum=1)
        with self._lock:
            wanted = self.step + 1 if named is None else named
            if wanted <= self.step:
                return self._shown(self._now.log.replayed(wanted, (number, int(bot))))
            self._check_room(wanted - self.step)
            if wanted > self.step + 1:
                raise StateError(f"step {wanted} is out of order: the next step is {self.step + 1}")
            inputs = np.array([[number, bot]], dtype=np.int64 if number < 1 << 63 else object)
            return self._shown(self._advance(inputs))

    def extend(self, values: Any) -> Integers:
        """Take many inputs and return the value shown after each of them.

        Args:
            values: k inputs: an array, a masked array (masked entries are BOT), a column of a dataframe, or
                any iterable of numbers and BOTs.

        Returns:
            Array of shape (k,): the same values that k calls of :meth:`update` would give.

        Raises:
            ParameterError: an input that is not acceptable (the first bad index is named).
            HorizonError: more inputs than steps are left.
            OSError: the state cannot be written.

        In every case the state is unchanged.
        """
        numbers, bots = self.rule.many(values)
        with self._lock:
            self._check_room(len(numbers))
            if len(numbers) == 0:
                return as_array(numbers, self.rule.places)
            inputs = np.stack([numbers, bots.astype(numbers.dtype)], axis=1)
            return as_array(self._advance(inputs), self.rule.places)

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
    def load(cls, path: str | os.PathLike[str], *, persist: bool = False) -> Self:
        """Continue a saved counter where it stopped, with the very same noise.

        Args:
            path: file written by :meth:`save` or as the ``state`` of a counter.
            persist: go on writing the state to this file, as with ``state`` of the constructor.

        Raises:
            ArtifactFormatError: the file cannot be read, or is no state of this class.
            ReplayError: the mechanism is not the one that was saved: continuing would draw fresh noise.
            StateError, OSError: with ``persist``, the file is in use, or cannot be locked.
        """
        if not flag("persist", persist):
            return cls._loaded(Path(path))
        with acquired(path) as held:
            counter = cls._loaded(held.path)
            counter._held = held
            return counter

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

    def _check_room(self, count: int) -> None:
        """Refuse by the number of steps alone, which is public."""
        last = MOST_STEPS if self.horizon is None else min(self.horizon, MOST_STEPS)
        if self.step + count > last:
            raise HorizonError(f"step {self.step + count} is past the horizon {last}; nothing was changed")

    def _shown(self, released: Integers) -> Any:
        return as_number(int(released[0]), self.rule.places)

    def _advance(self, inputs: Integers) -> Integers:
        """Take checked inputs of shape (k, 2), k >= 1, move the state, return the values shown."""
        now, parts = self._now, []
        for begin in range(0, len(inputs), _CHUNK):
            now, shown = self._after(now, inputs[begin : begin + _CHUNK])
            parts.append(shown)
        self._move(now)
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

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
