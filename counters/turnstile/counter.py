"""What turnstile counters share: events one by one or many at once, retries, saved states."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np
from trilift.counters.kept import Kept
from trilift.counters.lock import acquired
from trilift.counters.statement import CONDITIONS, weakness
from trilift.counters.turnstile import state as states
from trilift.counters.turnstile.blueprint import Blueprint, Mechanism
from trilift.counters.turnstile.budget import Budget, TurnstileLedger
from trilift.counters.turnstile.events import batches, one_event
from trilift.counters.turnstile.items import Fingerprints
from trilift.counters.turnstile.position import TurnstilePosition
from trilift.counters.turnstile.reading import Reading, Readings
from trilift.lift.checks import flag, integer, show
from trilift.lift.errors import HorizonError, ParameterError, ReplayError, StateError
from trilift.stream.keys import (
    DigestBuilder,
    Secret,
    derive_key,
    new_key,
    new_stream_id,
    simulation_key,
)

__all__ = ["TurnstileCounter"]

Encode = Callable[[Any], Any]

_MOST_AHEAD = 1 << 40


class TurnstileCounter(Kept):
    """What counters of turnstile streams share. Make one of its subclasses.

    Neighbours, guarantee, composition and theorem: see there.
    """

    _now: TurnstilePosition

    def _mechanism(self, blueprint: Blueprint, key: bytes, stream_id: bytes) -> Mechanism:
        """Return the running mechanism of a blueprint."""
        raise NotImplementedError

    @classmethod
    def _restored(cls, record: dict[str, Any], seed: int | None) -> Blueprint:
        """Return the blueprint of a saved state, nothing being chosen anew."""
        raise NotImplementedError

    def _begin(
        self,
        blueprint: Blueprint,
        *,
        seed: int | None,
        state: str | os.PathLike[str] | None,
        encode: Encode | None,
    ) -> None:
        if encode is not None and not callable(encode):
            raise ParameterError("encode must be a function of an item")
        key = simulation_key(seed, name="simulation_seed") if seed is not None else new_key()
        self._start(blueprint, key, bytes(16) if seed is not None else new_stream_id(), seed, encode)
        self._keep(state)

    def _start(
        self, blueprint: Blueprint, key: bytes, stream_id: bytes, seed: int | None, encode: Encode | None
    ) -> None:
        self._blueprint = blueprint
        self._key, self._stream_id, self._seed, self._encode = key, stream_id, seed, encode
        self._run = self._mechanism(blueprint, key, stream_id)
        self._digest = DigestBuilder("trilift/turnstile/1").add("mechanism", self._run.digest).digest()
        # a key of its own: what is known of hashes says nothing of noise
        items = derive_key(key, stream_id=stream_id, purpose="turnstile/items", digest=bytes(32))
        self._prints = Fingerprints(items, encode=encode)
        self._lock = threading.Lock()
        self._now = TurnstilePosition(0, self._run.start(), ())

    def __repr__(self) -> str:
        mark = ", SIMULATION" if self._seed is not None else ""
        return f"{type(self).__name__}({self.method!r}, horizon={self.horizon}, step={self.step}{mark})"

    # -- what is public -------------------------------------------------------------------------

    @property
    def blueprint(self) -> Blueprint:
        """Everything public about the counter, as it was made."""
        return self._blueprint

    @property
    def method(self) -> str:
        """The estimator."""
        return self._blueprint.method

    @property
    def budget(self) -> Budget:
        """What all released values spend together at most."""
        return self._blueprint.budget

    @property
    def ledger(self) -> TurnstileLedger:
        """Where it goes, in rationals."""
        return self._blueprint.ledger

    @property
    def horizon(self) -> int:
        """Number of events that can be taken."""
        return self._blueprint.common.horizon

    @property
    def every(self) -> int:
        """A value is released after every so many events."""
        return self._blueprint.common.every

    @property
    def failure(self) -> Fraction:
        """Bound on the probability that some released interval is wrong, where there is such a bound."""
        return self._blueprint.common.failure

    @property
    def step(self) -> int:
        """Number of events so far."""
        return self._now.step

    def privacy_statement(self) -> str:
        """Return guarantee, mechanism, composition and ledger in words; no secrets, nothing of the data."""
        plan = self._blueprint
        lines = ["SIMULATION: the key is public, nobody is protected."] if self._seed is not None else []
        if plan.simulated:
            lines.append("SIMULATION: the noise is floating point.")
        return "\n".join(
            [
                *lines,
                f"Guarantee: all released values together are {plan.budget.as_text()}.",
                "Neighbours: streams that differ in one event, whose pair (item, sign) is another one; for"
                " adaptively chosen events too. No assumption on the stream is made for it.",
                f"Events: at most {plan.common.horizon}; a value after every {plan.common.every}.",
                *plan.lines,
                CONDITIONS,
                plan.ledger.as_text(),
                *weakness(plan.budget.amount, name="epsilon" if plan.budget.law == "laplace" else "rho"),
            ]
        )

    # -- counting -------------------------------------------------------------------------------

    def update(self, event: Any, sign: Any = None, *, step: int | None = None) -> Reading | None:
        """Take the next event and return what is released after it: None but for every ``every``-th event.

        Args:
            event: a pair (item, sign); or an item, with the sign as the second argument.
            sign: 1 inserts, -1 removes, 0 does nothing (yet takes a step).
            step: number of the event, 1 for the first one. Naming one of the last 1024 again returns what it
                got, if the event is the same; for retries.

        Raises:
            ParameterError: an event that is not acceptable.
            HorizonError: an event past the horizon.
            ReplayError: a step that was taken with another event, or one no longer remembered.
            StateError: a step out of order.
            OSError: the state cannot be written.

        In every case the state is unchanged. No error depends on earlier events, save :class:`ReplayError`,
        which must not reach third parties.
        """
        item, number = one_event(event, sign)
        prints = self._prints.many([item])
        named = None if step is None else integer("step", step, minimum=1, maximum=_MOST_AHEAD)
        with self._lock:
            wanted = self.step + 1 if named is None else named
            if wanted <= self.step:
                return self._now.replayed(wanted, (int(prints[0, 0]), int(prints[0, 1])), number)
            self._check_room(wanted - self.step)
            if wanted > self.step + 1:
                raise StateError(f"step {show(wanted)} is out of order: the next step is {self.step + 1}")
            after, readings = self._after(self._now, prints, np.array([number], dtype=np.int8))
            self._move(after)
            return readings[0] if len(readings) else None

    def extend(self, items: Any, signs: Any = None) -> Readings:
        """Take many events and return what is released meanwhile.

        Args:
            items: k items: an array, a column of a dataframe, or any iterable.
            signs: their signs, each -1, 0 or 1; when left out, all items are inserted.

        Returns:
            One reading for every ``every``-th event, as k calls of :meth:`update` would give.

        Raises:
            ParameterError: an event that is not acceptable.
            HorizonError: more events than are left.
            OSError: the state cannot be written.

        In every case the state is unchanged.
        """
        parts: list[Readings] = []
        with self._lock:
            if getattr(items, "shape", None) != () and hasattr(items, "__len__"):  # arrays of no dimension
                self._check_room(len(items))
            now = self._now
            for some, checked in batches(items, signs):
                self._check_room(now.step - self.step + len(checked))
                now, readings = self._after(now, self._prints.many(some), checked)
                parts.append(readings)
            if now is not self._now:
                self._move(now)
            return Readings.joined(parts)

    # -- saving ---------------------------------------------------------------------------------

    def _write(self, path: Path, position: Any) -> None:
        states.write(path, self._snapshot(position))

    def _snapshot(self, now: TurnstilePosition) -> states.Snapshot:
        return states.Snapshot(
            kind=type(self).__name__,
            setup=self._blueprint.record(),
            encoded=self._encode is not None,
            digest=self._digest.hex(),
            key=bytes(self._key),
            stream_id=self._stream_id,
            seed=self._seed,
            step=now.step,
            held=self._run.record(now.held),
            recent=now.recent,
        )

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, persist: bool = False, encode: Encode | None = None
    ) -> Self:
        """Continue a saved counter where it stopped, with the very same noise.

        Args:
            path: file written by :meth:`save` or as the ``state`` of a counter.
            persist: go on writing the state to this file, as with ``state`` of the constructor.
            encode: the function that the counter was made with; it is not saved.

        Raises:
            ArtifactFormatError: the file cannot be read, or is no state of this class.
            ParameterError: ``encode`` is missing, or given though the counter had none.
            ReplayError: the mechanism is not the one that was saved: continuing would draw fresh noise.
            StateError, OSError: with ``persist``, the file is in use, or cannot be locked.
        """
        if not flag("persist", persist):
            return cls._loaded(Path(path), encode)
        with acquired(path) as held:
            counter = cls._loaded(held.path, encode)
            counter._held = held
            return counter

    @classmethod
    def _loaded(cls, path: Path, encode: Encode | None) -> Self:
        saved = states.read(path, kind=cls.__name__)
        if (encode is not None) != saved.encoded:
            wanted = "needs" if saved.encoded else "was made without"
            raise ParameterError(f"{path}: this counter {wanted} encode=")
        with states.damage(path):
            blueprint = cls._restored(saved.setup, saved.seed)
        counter = cls.__new__(cls)
        counter._start(blueprint, Secret(saved.key), saved.stream_id, saved.seed, encode)
        if saved.digest != counter._digest.hex():
            raise ReplayError(f"{path}: the state belongs to another mechanism; it is not continued")
        with states.damage(path):
            held = counter._run.restored(saved.held)
            counter._now = TurnstilePosition(saved.step, held, saved.recent).checked(counter.horizon)
        return counter

    # -- inside ---------------------------------------------------------------------------------

    def _check_room(self, count: int) -> None:
        """Refuse by the number of events alone, which is public."""
        if self.step + count > self.horizon:
            raise HorizonError(
                f"event {self.step + count} is past the horizon {self.horizon}; nothing was changed"
            )

    def _after(self, now: TurnstilePosition, prints: Any, signs: Any) -> tuple[TurnstilePosition, Readings]:
        held, readings = self._run.advanced(now.held, prints, signs, step=now.step)
        return now.advanced(held, prints, signs, readings), readings

    def _move(self, position: TurnstilePosition) -> None:
        super()._move(position)
        settle = getattr(position.held, "settled", None)  # overlays of large states are merged only now
        if settle is not None:
            self._now = position.holding(settle())
