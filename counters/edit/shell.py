"""What all counters of edit neighbours share towards their users: steps, retries, public numbers, loading."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from trilift.counters.edit.inputs import BotRule
from trilift.counters.edit.ledger import EditLedger
from trilift.counters.kept import Kept
from trilift.counters.lock import acquired
from trilift.counters.position import Position
from trilift.counters.released import as_array, as_number
from trilift.lift.checks import flag, integer, show
from trilift.lift.errors import HorizonError, StateError
from trilift.stream.keys import new_key, new_stream_id, simulation_key

__all__ = ["EditShell", "Planned"]

Integers = np.ndarray[Any, np.dtype[Any]]


class Planned(Protocol):
    """What is public and fixed about a counter: a design or a setup."""

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that was asked for."""
        ...

    @property
    def delta(self) -> Fraction:
        """The delta that was asked for."""
        ...

    @property
    def horizon(self) -> int | None:
        """Number of steps, or None."""
        ...

    @property
    def rule(self) -> BotRule:
        """What an input may be."""
        ...

    @property
    def ledger(self) -> EditLedger:
        """Where the budget goes."""
        ...


class EditShell(Kept):
    """The outside of a counter whose inputs are numbers or BOT.

    Subclasses say what is public (``_plan``), on which lattice values are released (``_places``), where the
    repeatable steps are (``_log``), and how inputs become released values (``_advance``, which moves the
    state). Neighbours, guarantee, composition and theorem: see there.
    """

    _most: ClassVar[int]
    """Most steps of a counter, with a horizon or without."""

    _simulated: bool

    def _plan(self) -> Planned:
        raise NotImplementedError

    def _places(self) -> int:
        raise NotImplementedError

    def _log(self) -> Position:
        raise NotImplementedError

    def _start(self, plan: Any, key: bytes, stream_id: bytes, simulated: bool) -> None:
        raise NotImplementedError

    def _advance(self, inputs: Integers) -> Integers:
        """Take checked inputs of shape (k, 2), k >= 1, move the state, return the released integers."""
        raise NotImplementedError

    @classmethod
    def _loaded(cls, path: Path) -> Self:
        raise NotImplementedError

    def _begin(self, plan: Any, seed: int | None, state: str | os.PathLike[str] | None) -> None:
        simulated = seed is not None
        key = simulation_key(seed, name="simulation_seed") if seed is not None else new_key()
        self._start(plan, key, bytes(16) if simulated else new_stream_id(), simulated)
        self._keep(state)

    def __repr__(self) -> str:
        mark = ", SIMULATION" if self._simulated else ""
        name, horizon = type(self).__name__, self.horizon
        return f"{name}(epsilon={self.epsilon}, horizon={horizon}, step={self.step}{mark})"

    # -- what is public -------------------------------------------------------------------------

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that was asked for, exact."""
        return self._plan().epsilon

    @property
    def delta(self) -> Fraction:
        """The delta that was asked for, exact."""
        return self._plan().delta

    @property
    def horizon(self) -> int | None:
        """Number of steps that can be released; None: no end is planned (2^36 steps are the most of counters
        by buckets, 2^48 of Gaussian ones).
        """
        return self._plan().horizon

    @property
    def step(self) -> int:
        """Number of steps so far."""
        return self._log().step

    @property
    def rule(self) -> BotRule:
        """What an input may be."""
        return self._plan().rule

    @property
    def ledger(self) -> EditLedger:
        """Where the budget goes."""
        return self._plan().ledger

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
                return self._shown(self._log().replayed(wanted, (number, int(bot))))
            self._check_room(wanted - self.step)
            if wanted > self.step + 1:
                raise StateError(f"step {show(wanted)} is out of order: the next step is {self.step + 1}")
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
                return as_array(numbers, self._places())
            inputs = np.stack([numbers, bots.astype(numbers.dtype)], axis=1)
            return as_array(self._advance(inputs), self._places())

    def _check_room(self, count: int) -> None:
        """Refuse by the number of steps alone, which is public."""
        last = self._most if self.horizon is None else min(self.horizon, self._most)
        if self.step + count > last:
            raise HorizonError(
                f"step {show(self.step + count)} is past the horizon {last}; nothing was changed"
            )

    def _shown(self, released: Integers) -> Any:
        return as_number(int(released[0]), self._places())

    # -- saving ---------------------------------------------------------------------------------

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
