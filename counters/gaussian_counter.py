"""The Gaussian counter: every prefix sum of a stream under (epsilon, delta), bounded or without end."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

from trilift.counters import state as states
from trilift.counters.gaussian_setup import GAUSSIAN_FIELDS, GaussianSetup, make_gaussian
from trilift.counters.running import RunningCounter

__all__ = ["GaussianCounter"]


class GaussianCounter(RunningCounter):
    """Releases the running sum of a stream at every step, under (epsilon, delta)-differential privacy.

    Neighbours: two streams of the same length (any length without a horizon) that differ in the inputs of
    one person: at most ``max_contributions`` of them, each by at most high - low in every coordinate.
    Guarantee: all released values together are (epsilon, delta)-differentially private, for inputs chosen
    adaptively too; more precisely they are mu-GDP, and delta(epsilon, mu) <= delta is proved with balls.
    Composition: R x + z is one release with Gaussians z, whose squared sensitivity in units of the noise is
    at most mu^2 in rational arithmetic; each released value, T x + L z rounded once and exactly by floor(u +
    1/2), is a function of it (post-processing; for "toeplitz" z is a rounded Gaussian itself, on the lattice
    of R x). Without a horizon each epoch is such a release, and one input is in one epoch (parallel
    composition); the guarantee holds for any length. Theorem: Dong, Roth, Su 2022 and Balle, Wang 2018, for
    the factorisations of :mod:`trilift.stream.gaussian_noise` and :mod:`trilift.stream.toeplitz_noise`.
    Random bits come from ChaCha20 under a key drawn from the operating system; ideal ones are assumed.

    **One counter serves one version of one stream**: see :class:`trilift.counters.Counter`, whose methods and
    further arguments this class shares.

    Args:
        epsilon: > 0, taken as the exact rational that it is.
        delta: between 0 and 1, likewise.
        horizon: number of steps; None for a counter without end.
        mechanism: "chain" (memory O(log n)), or "toeplitz", the square root with the least known error, for
            horizons up to 2^20.
        objective: "max" or "mean", what chains are good for.
        chain: names of artifacts for Gaussian noise, finest first and the top last, or an exact Chain.
        growth: without a horizon, how epochs grow: "tapered" (the default), "relay" or "doubling".

    Raises:
        ParameterError, HorizonError, StateError, OSError: as :class:`trilift.counters.Counter`.

    >>> counter = GaussianCounter(1, 1e-6, horizon=100, simulation_seed=7)
    >>> isinstance(counter.update(1), int)
    True
    >>> counter.ln_delta <= -13.8155
    True
    """

    def __init__(
        self,
        epsilon: Any,
        delta: Any,
        *,
        horizon: int | None = None,
        mechanism: str = "chain",
        objective: str | None = None,
        chain: Any = None,
        growth: str | None = None,
        bounds: Any = (0, 1),
        max_contributions: int = 1,
        clip: bool = False,
        resolution: Any = 1,
        output_resolution: Any = None,
        dimension: int | None = None,
        norm_bound: Any = None,
        postprocess: str | None = None,
        simulation_seed: int | None = None,
        state: str | os.PathLike[str] | None = None,
    ) -> None:
        default = "mean" if horizon is None else "max"
        setup = make_gaussian(
            epsilon,
            delta=delta,
            horizon=horizon,
            mechanism=mechanism,
            objective=default if objective is None else objective,
            growth=growth,
            chain=chain,
            bounds=bounds,
            max_contributions=max_contributions,
            clip=clip,
            resolution=resolution,
            output_resolution=output_resolution,
            dimension=dimension,
            norm_bound=norm_bound,
            postprocess=postprocess,
        )
        self._begin(setup, simulation_seed, state)

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that was asked for, exact."""
        epsilon: Fraction = self._setup.epsilon
        return epsilon

    @property
    def delta(self) -> Fraction:
        """The delta that was asked for, exact."""
        delta: Fraction = self._setup.delta
        return delta

    @property
    def mu(self) -> Fraction:
        """The whole is mu-GDP, exact."""
        mu: Fraction = self._setup.mu
        return mu

    @property
    def ln_delta(self) -> Fraction:
        """A rational at least the logarithm of the delta that is spent at ``epsilon``."""
        ln_spent: Fraction = self._setup.ln_spent
        return ln_spent

    @classmethod
    def _arguments(cls, snapshot: states.Snapshot, chain: Any, name: str) -> dict[str, Any]:
        if snapshot.levels:  # a bounded chain
            return states.setup_arguments(snapshot, chain, name, GAUSSIAN_FIELDS)
        return states.unchained_arguments(snapshot, chain, name, GAUSSIAN_FIELDS)

    @classmethod
    def _remade(cls, arguments: dict[str, Any], snapshot: states.Snapshot) -> GaussianSetup:
        return make_gaussian(**arguments, levels=snapshot.levels or None)
