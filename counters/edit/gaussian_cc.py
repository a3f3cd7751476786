"""Edit-private counting by independent Gaussian noise on every running sum, with or without a horizon."""

from __future__ import annotations

import os
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from trilift.counters.edit import gaussian_state as states
from trilift.counters.edit.gaussian_setup import MOST_STEPS, GaussianSetup, make_gaussian_setup
from trilift.counters.edit.gaussian_statement import described, privacy_statement
from trilift.counters.edit.inputs import BotRule
from trilift.counters.edit.ledger import EditLedger
from trilift.counters.edit.pages import Paged
from trilift.counters.kept import Kept
from trilift.counters.lock import acquired
from trilift.counters.position import Position, running_sums
from trilift.counters.released import as_array, as_number
from trilift.lift.checks import flag, integer, numeric_array
from trilift.lift.errors import HorizonError, ParameterError, ReplayError, StateError
from trilift.lift.integers import add, shift_left
from trilift.stream.independent_noise import IndependentNoise
from trilift.stream.keys import Secret, new_key, new_stream_id, simulation_key

__all__ = ["GaussianCC", "HorizonGaussian", "PrefixGaussian"]

Integers = np.ndarray[Any, np.dtype[Any]]


class PrefixGaussian(Kept):
    """What :class:`GaussianCC` and :class:`HorizonGaussian` share; make one of those."""

    law: ClassVar[str]
    _now: Position

    def _begin(self, setup: GaussianSetup, seed: int | None, state: str | os.PathLike[str] | None) -> None:
        simulated = seed is not None
        key = simulation_key(seed) if seed is not None else new_key()
        self._start(setup, key, bytes(16) if simulated else new_stream_id(), simulated)
        self._keep(state)

    def _start(self, setup: GaussianSetup, key: bytes, stream_id: bytes, simulated: bool) -> None:
        self._setup = setup
        self._key, self._stream_id, self._simulated = key, stream_id, simulated
        self._noise = IndependentNoise(
            setup.law,
            key=key,
            stream_id=stream_id,
            purpose="edit/sums",
            places=setup.output_places,
            horizon=setup.horizon,
        )
        self._pages = Paged(self._noise, setup.horizon)
        self._lock = threading.Lock()
        self._now = Position.start(1)

    def __repr__(self) -> str:
        mark = ", SIMULATION" if self._simulated else ""
        name, horizon = type(self).__name__, self.horizon
        return f"{name}(epsilon={self.epsilon}, horizon={horizon}, step={self.step}{mark})"

    # -- what is public -------------------------------------------------------------------------

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that was asked for, exact."""
        return self._setup.epsilon

    @property
    def delta(self) -> Fraction:
        """The delta that was asked for, exact."""
        return self._setup.delta

    @property
    def horizon(self) -> int | None:
        """Number of steps that can be released; None: no end is planned (2^48 steps are the most)."""
        return self._setup.horizon

    @property
    def step(self) -> int:
        """Number of steps so far."""
        return self._now.step

    @property
    def rule(self) -> BotRule:
        """What an input may be."""
        return self._setup.rule

    @property
    def setup(self) -> GaussianSetup:
        """Everything public about the mechanism."""
        return self._setup

    @property
    def ledger(self) -> EditLedger:
        """Where the budget goes."""
        return self._setup.ledger

    def sd(self, t: Any) -> Any:
        """Return the standard deviation of the released value of step t (1 for the first one), or of steps.

        Raises:
            ParameterError: not integers >= 1.
            HorizonError: a step past the horizon.
        """
        steps = numeric_array("t", t)
        if steps.dtype.kind not in "iu" or (steps.size and steps.min() < 1):
            raise ParameterError("t must be an integer >= 1, or an array of them")
        deviations = np.sqrt(self._noise.variance(steps - 1))
        return float(deviations) if steps.ndim == 0 else deviations

    def privacy_statement(self) -> str:
        """Return what is guaranteed, to whom, and what it rests on, as plain text."""
        return privacy_statement(self._setup, name=type(self).__name__, simulated=self._simulated)

    def describe(self) -> str:
        """Return in words what the mechanism will do."""
        return described(self._setup)

    # -- counting -------------------------------------------------------------------------------

    def update(self, x: Any, *, step: int | None = None) -> Any:
        """Take the next input, a number or BOT (None), and return the released sum of all inputs so far.

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

        In every case the state is unchanged. Whether a repeated step meets a :class:`ReplayError` tells if
        its input is the same: an exact fact about the data, which must not reach third parties.
        """
        number, bot = self.rule.one(x)
        named = None if step is None else integer("step", step, minimum=1)
        with self._lock:
            wanted = self.step + 1 if named is None else named
            places = self._setup.output_places
            if wanted <= self.step:
                return as_number(int(self._now.replayed(wanted, (number, int(bot)))[0]), places)
            self._check_room(wanted - self.step)
            if wanted > self.step + 1:
                raise StateError(f"step {wanted} is out of order: the next step is {self.step + 1}")
            inputs = np.array([[number, bot]], dtype=np.int64 if number < 1 << 63 else object)
            return as_number(int(self._advance(inputs)[0]), places)

    def extend(self, values: Any) -> Integers:
        """Take many inputs and return the released sum after each of them.

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
                return as_array(numbers, self._setup.output_places)
            inputs = np.stack([numbers, bots.astype(numbers.dtype)], axis=1)
            return as_array(self._advance(inputs), self._setup.output_places)

    def _check_room(self, count: int) -> None:
        last = MOST_STEPS if self.horizon is None else self.horizon
        if self.step + count > last:
            raise HorizonError(f"step {self.step + count} is past the horizon {last}; nothing was changed")

    def _advance(self, inputs: Integers) -> Integers:
        """Take checked inputs of shape (k, 2), k >= 1, move the state, return the released integers."""
        now, k = self._now, len(inputs)
        sums = running_sums(now.counts, inputs[:, :1])[:, 0]
        lift = self._setup.output_places - self.rule.places
        released = add(shift_left(sums, lift), self._pages.range(now.step, now.step + k))
        self._move(now.advanced(inputs, counts=sums[-1:], peaks=now.peaks, released=released[:, np.newaxis]))
        return released

    # -- saving ---------------------------------------------------------------------------------

    def _write(self, path: Path, position: Any) -> None:
        states.write(path, self._snapshot(position))

    def _snapshot(self, now: Position) -> states.GaussianSnapshot:
        return states.GaussianSnapshot(
            kind=type(self).__name__,
            setup=self._setup,
            digest=self._noise.digest.hex(),
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
        snapshot = states.read(path, kind=cls.__name__)
        counter = cls.__new__(cls)
        counter._start(snapshot.setup, Secret(snapshot.key), snapshot.stream_id, snapshot.simulated)
        if snapshot.digest != counter._noise.digest.hex() or snapshot.setup.record()["law"] != cls.law:
            raise ReplayError(f"{path}: the state belongs to another mechanism; it is not continued")
        counter._now = snapshot.position
        return counter


class GaussianCC(PrefixGaussian):
    """Releases every running sum with independent Gaussian noise that grows with t: needs no horizon.

    Neighbours: edit. One stream comes from the other by inserting one input; what follows moves one step
    later, up to the first BOT, which disappears, or to the end. Streams are fixed in advance (no claim is
    made for inputs chosen after seeing outputs: one insertion changes many of them). Guarantee: all released
    values together are (epsilon, delta)-differentially private, given ideal random bits. Mechanism:
    y_t = s_t + N(0, sd_t^2), sd_t = (high / mu) 1.85 sqrt(t) ln(t + 1), with mu = mu(epsilon, delta) of the
    Gaussian mechanism (Balle, Wang 2018). Theorem: every running sum has edit sensitivity ``high``
    (:mod:`trilift.counters.edit.gaussian_laws`) and the squared ratios sum to at most 0.98987 mu^2 over all t
    (Andersson, Chaturvedi, Henzinger, Safavi, GaussianCC), proved in rationals for the numbers that are used;
    the noise is an exactly rounded Gaussian. Composition: mu adds up in squares with other Gaussian
    mechanisms. The mechanism is data-independent: its noise does not depend on the stream.

    Args:
        epsilon: > 0, taken as the rational that it is.
        delta: in (0, 1), likewise.
        horizon: refuse steps past this one; the noise does not depend on it.
        high: the largest input; the smallest is 0.
        resolution: inputs are rounded to multiples of it: 1 or 2^-k.
        clip: move inputs outside [0, high] to the nearest bound.
        output_resolution: released values are multiples of it; the resolution (default), or finer.
        simulation_seed: makes noise that anybody can reproduce. For tests and simulations only: no privacy.
        state: a new file that always holds the state: written now, and before anything is released.

    Raises:
        ParameterError: an argument that is not acceptable.
        StateError: the state file exists already, or is in use.
        OSError: the state file cannot be written.

    >>> counter = GaussianCC(10, Fraction(1, 10**5), simulation_seed=1)
    >>> values = counter.extend([1, None, 1])
    >>> bool(counter.update(1, step=3) == values[2])
    True
    """

    law = "growing"

    def __init__(
        self,
        epsilon: Any,
        delta: Any,
        *,
        horizon: int | None = None,
        high: Any = 1,
        resolution: Any = 1,
        clip: bool = False,
        output_resolution: Any = None,
        simulation_seed: int | None = None,
        state: str | os.PathLike[str] | None = None,
    ) -> None:
        setup = make_gaussian_setup(
            epsilon,
            delta=delta,
            law=self.law,
            horizon=horizon,
            high=high,
            resolution=resolution,
            clip=clip,
            output_resolution=output_resolution,
        )
        self._begin(setup, simulation_seed, state)


class HorizonGaussian(PrefixGaussian):
    """Releases every running sum with independent N(0, high^2 T / mu^2) noise, T steps known in advance.

    Neighbours, guarantee, composition and conditions: as for :class:`GaussianCC`, for streams of T steps.
    Theorem: the vector of T running sums has l2 edit sensitivity at most high sqrt(T); Gaussian mechanism
    (Balle, Wang 2018). At T = 10^4 its error is about a tenth of GaussianCC's.

    Args:
        epsilon, delta, high, resolution, clip, output_resolution, simulation_seed, state: as for
            :class:`GaussianCC`.
        horizon: T.

    Raises:
        ParameterError, StateError, OSError: as for :class:`GaussianCC`.

    >>> counter = HorizonGaussian(10, Fraction(1, 10**5), horizon=10**4, simulation_seed=1)
    >>> round(counter.sd(10**4), 1)
    50.0
    """

    law = "flat"

    def __init__(
        self,
        epsilon: Any,
        delta: Any,
        *,
        horizon: int,
        high: Any = 1,
        resolution: Any = 1,
        clip: bool = False,
        output_resolution: Any = None,
        simulation_seed: int | None = None,
        state: str | os.PathLike[str] | None = None,
    ) -> None:
        setup = make_gaussian_setup(
            epsilon,
            delta=delta,
            law=self.law,
            horizon=horizon,
            high=high,
            resolution=resolution,
            clip=clip,
            output_resolution=output_resolution,
        )
        self._begin(setup, simulation_seed, state)
