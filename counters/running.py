"""Running counters of every kind: counting step by step or many steps at once, retries, saved states.

What the noise is, what it costs and what a state keeps of it is said by the classes that stand on this one.
"""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from trilift.counters import state as states
from trilift.counters.accuracy import Accuracy
from trilift.counters.epoch_mechanisms import ChainEpochs, EpochRecord
from trilift.counters.kept import Kept
from trilift.counters.lock import acquired
from trilift.counters.position import Position, running_sums
from trilift.counters.released import as_array, as_number, post_process
from trilift.counters.statement import privacy_statement
from trilift.lift.checks import flag, integer, show
from trilift.lift.errors import (
    ArtifactFormatError,
    HorizonError,
    ParameterError,
    ReplayError,
    StateError,
)
from trilift.lift.integers import add, shift_left
from trilift.stream.epoch_layout import LAST_STEP
from trilift.stream.keys import Secret, new_key, new_stream_id, simulation_key

__all__ = ["RunningCounter"]

Integers = np.ndarray[Any, np.dtype[Any]]

_PAGE = 256  # steps whose noise is computed together for single updates
_PAGE_NUMBERS = 1 << 20  # fewer steps for very long vectors


class RunningCounter(Kept, Accuracy):
    """The running sum of a stream with noise added at every step: what all kinds of counters share.

    Subclasses make a setup, say how noise is drawn for it, and write the guarantee down.
    """

    _made: ChainEpochs | None
    _now: Position

    def _begin(self, setup: Any, simulation_seed: int | None, state: str | os.PathLike[str] | None) -> None:
        """Start a new counter, under a new key, and write its state if it keeps one."""
        simulated = simulation_seed is not None
        key = (
            new_key() if simulation_seed is None else simulation_key(simulation_seed, name="simulation_seed")
        )
        self._start(setup, key, bytes(16) if simulated else new_stream_id(), simulated, {})
        self._keep(state)

    def _start(
        self,
        setup: Any,
        key: bytes,
        stream_id: bytes,
        simulated: bool,
        epochs: Mapping[int, EpochRecord],
    ) -> None:
        self._setup = setup
        self._key, self._stream_id, self._simulated = key, stream_id, simulated
        purposes = [f"counter/{coordinate}" for coordinate in range(setup.width)]
        keyed: dict[str, Any] = {"key": key, "stream_id": stream_id, "epochs": epochs}
        self._noises, self._made = setup.processes(purposes=purposes, **keyed)
        self._last = LAST_STEP if setup.horizon is None else setup.horizon
        self._lock = threading.Lock()
        self._now = Position.start(setup.width)
        self._page: tuple[int, Integers] = (0, np.zeros((0, setup.width), dtype=np.int64))

    @classmethod
    @abstractmethod
    def _arguments(cls, snapshot: states.Snapshot, chain: Any, name: str) -> dict[str, Any]:
        """Return the arguments that a saved counter's setup is made from.

        Raises:
            ParameterError: ``chain`` is missing or not needed.
            ArtifactFormatError: the record is damaged.
        """

    @classmethod
    @abstractmethod
    def _remade(cls, arguments: dict[str, Any], snapshot: states.Snapshot) -> Any:
        """Return the setup of a saved counter."""

    def __repr__(self) -> str:
        mark = ", SIMULATION" if self._simulated else ""
        name = type(self).__name__
        return f"{name}(epsilon={self._setup.epsilon}, horizon={self.horizon}, step={self.step}{mark})"

    # -- what is public -------------------------------------------------------------------------

    @property
    def horizon(self) -> int | None:
        """Number of steps that can be released; None for a counter without end (2^62 steps)."""
        horizon: int | None = self._setup.horizon
        return horizon

    @property
    def step(self) -> int:
        """Number of steps so far."""
        return self._now.step

    @property
    def setup(self) -> Any:
        """The public parameters and the mechanism."""
        return self._setup

    def privacy_statement(self) -> str:
        """Return what is guaranteed, to whom, and what it rests on, as plain text."""
        return privacy_statement(self._setup, simulated=self._simulated)

    # -- counting -------------------------------------------------------------------------------

    def update(self, x: Any, *, step: int | None = None) -> Any:
        """Take the next input and return the released sum of all inputs so far.

        Args:
            x: a number, or a vector of shape (dimension,).
            step: number of the step, 1 for the first one. Naming one of the last 1024 steps again returns the
                value it got, if the input is the same; for retries.

        Returns:
            An int on the integer lattice; otherwise a float, exact (a Fraction where a float is not).
            Arrays of them for vectors.

        Raises:
            ParameterError: an input that is not acceptable.
            HorizonError: a step past the horizon.
            ReplayError: a released step with another input, or one no longer remembered.
            StateError: a step out of order.
            OSError: the state cannot be written.

        In every case the state is unchanged. Whether a repeated step meets a :class:`ReplayError` tells if
        its input is the same: an exact fact about the data, which must not reach third parties.

        Without ``state``, :meth:`save` before you publish the value: a crash without a saved state loses the
        key, and counting again spends epsilon again.
        """
        inputs = self._setup.one(x)
        named = None if step is None else integer("step", step, minimum=1)
        with self._lock:
            wanted = self.step + 1 if named is None else named
            if wanted <= self.step:
                return self._shown(self._now.replayed(wanted, tuple(inputs.tolist())))
            if wanted > self._last:
                raise HorizonError(
                    f"step {show(wanted)} is past the horizon {self._last}; nothing was changed"
                )
            if wanted > self.step + 1:
                raise StateError(f"step {show(wanted)} is out of order: the next step is {self.step + 1}")
            return self._shown(self._advance(inputs[None, :])[-1])

    def extend(self, values: Any) -> Integers:
        """Take many inputs and return the released sum after each of them.

        Args:
            values: shape (k,), or (k, dimension) for vectors; k = 0 is allowed. Arrays, columns of
                dataframes, and sequences and generators of what :meth:`update` takes.

        Returns:
            Array of the same shape: the same values that k calls of :meth:`update` would give.

        Raises:
            ParameterError: an input that is not acceptable (the first bad index is named).
            HorizonError: more inputs than steps are left.
            OSError: the state cannot be written.

        In every case the state is unchanged. As with :meth:`update`: save before you publish.
        """
        inputs = self._setup.many(values)
        with self._lock:
            self._check_room(len(inputs))
            released = self._advance(inputs)
        shown = as_array(released, self._setup.output_places)
        return shown if self._setup.dimension is not None else shown[:, 0]

    def skip(self, steps: int) -> None:
        """Let steps pass with input 0 and release nothing for them.

        Raises:
            ParameterError: not an integer >= 0, or zeros are no inputs (bounds and norm_bound).
            HorizonError: fewer steps are left.
            OSError: the state cannot be written. In every case the state is unchanged.
        """
        count = integer("steps", steps, minimum=0)
        self._setup.check_zeros()
        with self._lock:
            self._check_room(count)
            self._move(self._now.skipped(count))

    # -- saving ---------------------------------------------------------------------------------

    def _write(self, path: Path, position: Any) -> None:
        states.write(path, self._snapshot(position))

    def _snapshot(self, now: Position) -> states.Snapshot:
        return states.Snapshot(
            setup=states.stream_record(self._setup) | self._setup.own_record(),
            levels=self._setup.levels(),
            digest=self._noises[0].digest.hex(),
            key=bytes(self._key),
            stream_id=self._stream_id,
            simulated=self._simulated,
            position=now,
            kind=type(self).__name__,
            epochs={} if self._made is None else dict(self._made.records),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, chain: Any = None, persist: bool = False) -> Self:
        """Continue a saved counter where it stopped, with the very same noise.

        The noise scales are read, not computed again, and the budget is proved for them. Artifacts are found
        by name, or by the hash of their numbers where another or none has the name by now.

        After a crash the file may know one step (or :meth:`extend`) more than the caller saw released: naming
        the step in :meth:`update` gives its value again.

        Args:
            path: file written by :meth:`save` or as the ``state`` of a counter.
            chain: the chain, if the counter was made with a Chain object.
            persist: go on writing the state to this file, as with ``state`` of the constructor.

        Raises:
            ArtifactFormatError: the file cannot be read, or is not a state.
            ParameterError: ``chain`` is missing, not needed, or not acceptable.
            ReplayError: the mechanism (artifacts, sampler, epsilon, ...) is not the one that was saved:
                continuing would draw fresh noise for released steps.
            StateError, OSError: with ``persist``, the file is in use, or cannot be locked.
        """
        if not flag("persist", persist):
            return cls._loaded(Path(path), chain)
        with acquired(path) as held:
            counter = cls._loaded(held.path, chain)
            counter._held = held
            return counter

    @classmethod
    def _loaded(cls, path: Path, chain: Any) -> Self:
        snapshot = states.read(path)
        if snapshot.kind != cls.__name__:
            raise ArtifactFormatError(f"{path}: is the state of a {snapshot.kind}, not of a {cls.__name__}")
        arguments = cls._arguments(snapshot, chain, str(path))
        try:
            setup = cls._remade(arguments, snapshot)
        except (ParameterError, HorizonError) as error:
            if chain is not None:
                raise
            raise ArtifactFormatError(f"{path}: parameters that make no counter: {error}") from None
        except ReplayError as error:
            raise ReplayError(f"{path}: {error}") from None
        counter = cls.__new__(cls)
        key = Secret(snapshot.key)
        counter._start(setup, key, snapshot.stream_id, snapshot.simulated, snapshot.epochs)
        if snapshot.digest != counter._noises[0].digest.hex():
            raise ReplayError(f"{path}: the state belongs to another mechanism; it is not continued")
        states.check_fit(snapshot.position, setup.width, counter._last, str(path))
        counter._now = snapshot.position
        return counter

    def _noise_digests(self) -> list[str]:
        """Return the digests, hexadecimal, of what has been drawn from: of the noise, then of its epochs."""
        records = {} if self._made is None else self._made.records
        return [self._noises[0].digest.hex(), *(records[epoch].digest for epoch in sorted(records))]

    # -- inside ---------------------------------------------------------------------------------

    def _check_room(self, count: int) -> None:
        if self.step + count > self._last:
            wanted = self.step + count
            raise HorizonError(f"step {show(wanted)} is past the horizon {self._last}; nothing was changed")

    def _shown(self, released: Integers) -> Any:
        places = self._setup.output_places
        if self._setup.dimension is not None:
            return as_array(released, places)
        return as_number(int(released[0]), places)

    def _advance(self, inputs: Integers) -> Integers:
        """Add checked inputs of shape (k, d), move the state, return the released numerators (k, d)."""
        k, now = len(inputs), self._now
        if k == 0:
            return inputs
        sums = running_sums(now.counts, inputs)
        places = self._setup.output_places - self._setup.rule.places
        exact = shift_left(sums, places)
        released = self._biased(add(exact, self._noise(k)), exact)
        released = post_process(released, self._setup.postprocess, now.peaks)
        peaks = released[-1] if self._setup.postprocess == "monotone" else now.peaks
        self._move(now.advanced(inputs, counts=sums[-1], peaks=peaks, released=released))
        return released

    def _biased(self, released: Integers, exact: Integers) -> Integers:
        """Return what is released for sums with noise; ``exact`` are the sums without."""
        return released

    def _noise(self, k: int) -> Integers:
        """Return the noise of the next k steps, shape (k, d); single steps come from a page kept at hand."""
        start, page = self._page
        if k == 1 and not start <= self.step < start + len(page):
            steps = max(1, min(_PAGE, _PAGE_NUMBERS // self._setup.width))
            start = self.step - self.step % steps
            page = self._stacked(start, min(start + steps, self._last))
            self._page = (start, page)
        if start <= self.step and self.step + k <= start + len(page):
            return page[self.step - start : self.step - start + k]
        return self._stacked(self.step, self.step + k)

    def _stacked(self, start: int, stop: int) -> Integers:
        columns = [noise.range(start, stop) for noise in self._noises]
        if any(column.dtype == object for column in columns):
            columns = [column.astype(object) for column in columns]
        return np.stack(columns, axis=1)
