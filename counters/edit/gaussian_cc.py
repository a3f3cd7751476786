"""Edit-private counting by independent Gaussian noise on every running sum, with or without a horizon."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from trilift.counters.edit import gaussian_state as states
from trilift.counters.edit.gaussian_setup import MOST_STEPS, GaussianSetup, make_gaussian_setup
from trilift.counters.edit.gaussian_statement import described, privacy_statement
from trilift.counters.edit.pages import Paged
from trilift.counters.edit.shell import EditShell
from trilift.counters.position import Position, running_sums
from trilift.lift.checks import numeric_array
from trilift.lift.errors import ParameterError, ReplayError
from trilift.lift.integers import add, shift_left
from trilift.stream.independent_noise import IndependentNoise
from trilift.stream.keys import Secret

__all__ = ["GaussianCC", "HorizonGaussian", "PrefixGaussian"]

Integers = np.ndarray[Any, np.dtype[Any]]


class PrefixGaussian(EditShell):
    """What :class:`GaussianCC` and :class:`HorizonGaussian` share; make one of those."""

    law: ClassVar[str]
    _most = MOST_STEPS
    _now: Position

    def _plan(self) -> GaussianSetup:
        return self._setup

    def _places(self) -> int:
        return self._setup.output_places

    def _log(self) -> Position:
        return self._now

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

    @property
    def setup(self) -> GaussianSetup:
        """Everything public about the mechanism."""
        return self._setup

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

    >>> from fractions import Fraction
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

    >>> from fractions import Fraction
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
