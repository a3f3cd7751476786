"""Mechanisms by name, as objects that can be attacked. FOR SIMULATION ONLY: float noise, not private."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trilift.experiments.edit import reference
from trilift.experiments.edit.mechanisms import Mechanism
from trilift.lift.checks import choice, fail, finite, integer, numeric_array

__all__ = ["SIMULATED", "SimulatedMechanism", "simulated"]

_MAKERS: dict[str, Callable[[float, float, int], Mechanism]] = {
    "BaseCC": lambda epsilon, ln_delta, T: reference.base_cc(epsilon, ln_delta=ln_delta),
    "PartitionCC": lambda epsilon, ln_delta, T: reference.partition_cc(epsilon, ln_delta=ln_delta, steps=T),
    "GaussianCC": lambda epsilon, ln_delta, T: reference.gaussian_cc(epsilon, ln_delta=ln_delta, steps=T),
    "HorizonGaussian": lambda epsilon, ln_delta, T: reference.horizon_gaussian(
        epsilon, ln_delta=ln_delta, steps=T
    ),
    "SimECC": lambda epsilon, ln_delta, T: reference.simecc(epsilon, ln_delta=ln_delta),
    "ECC": lambda epsilon, ln_delta, T: reference.ecc(epsilon, ln_delta=ln_delta),
}
SIMULATED = tuple(_MAKERS)
"""Names that :func:`simulated` knows, each with the paper's budget, calibrated exactly."""

MAX_STEPS = 10**8


@dataclass(frozen=True)
class SimulatedMechanism:
    """A mechanism in simulation, to be attacked.

    Attributes:
        name: its name.
        mechanism: what is simulated.
        horizon: T, the length of every stream.
    """

    name: str
    mechanism: Mechanism
    horizon: int

    def release(self, stream: Any, seed: int) -> NDArray[np.float64]:
        """Return the values released for a stream of inputs 0 and 1, (T,); the seed decides the noise."""
        return np.asarray(self.release_many(np.asarray(stream)[None], seed)[0])

    def release_many(self, streams: Any, seed: int) -> NDArray[np.float64]:
        """Return the values released for streams (runs, T), with independent noise in every row.

        Raises:
            ParameterError: streams of another length, or inputs other than 0 and 1.
        """
        inputs = numeric_array("streams", streams, ndim=2)
        if inputs.shape[1] != self.horizon:
            raise fail("streams", f"streams of {self.horizon} steps", inputs.shape)
        if not np.isin(inputs, (0, 1)).all():
            raise fail("streams", "inputs 0 and 1", "others")
        prefix = np.zeros((inputs.shape[0], self.horizon + 1), dtype=np.int32)
        np.cumsum(inputs, axis=1, out=prefix[:, 1:])
        rng = np.random.default_rng(integer("seed", seed, minimum=0))
        return self.mechanism.simulate(prefix, rng=rng)


def simulated(name: str, *, epsilon: float, ln_delta: float, horizon: int) -> SimulatedMechanism:
    """Return a mechanism by name, with the paper's budget and exact calibration, in simulation.

    Args:
        name: one of :data:`SIMULATED`; "HorizonGaussian" is the baseline that knows the horizon.
        epsilon: total epsilon > 0.
        ln_delta: ln delta < 0.
        horizon: T.

    >>> exact = simulated("BaseCC", epsilon=1e6, ln_delta=-10.0, horizon=3).release([1, 0, 1], 0)
    >>> exact.round().tolist()
    [1.0, 1.0, 2.0]

    Raises:
        ParameterError: an unknown name, or numbers out of range.
    """
    make = _MAKERS[choice("name", name, SIMULATED)]
    total = finite("epsilon", epsilon, above=0)
    loss = finite("ln_delta", ln_delta)
    if loss >= 0:
        raise fail("ln_delta", "a finite number < 0", ln_delta)
    steps = integer("horizon", horizon, minimum=1, maximum=MAX_STEPS)
    return SimulatedMechanism(name, make(total, loss, steps), steps)
