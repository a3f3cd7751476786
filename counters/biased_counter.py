"""The biased counter: every prefix sum of a stream, never reported too small."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters import state as states
from trilift.counters.bias import one_sided
from trilift.counters.biased_setup import BIASED_FIELDS, BiasedSetup, make_biased
from trilift.counters.running import RunningCounter
from trilift.lift.integers import add

__all__ = ["BiasedCounter"]

Integers = np.ndarray[Any, np.dtype[Any]]

_PAGE = 256


class BiasedCounter(RunningCounter):
    """Releases at every step a number that is at least the running sum, under (epsilon, delta).

    y_t = max(y'_t + alpha_t, sum), with y' the released value of a counter beneath (:class:`Counter`, or
    :class:`GaussianCounter`) and alpha_t a public number, rounded up to the lattice of released values, such
    that the noise of step t lies below -alpha_t with probability at most eta_t, sum eta_t <= eta.

    Neighbours: as the counter beneath: two streams of the same length (any length without a horizon) that
    differ in the inputs of one person. Guarantee: all released values together are (epsilon,
    delta)-differentially private, for inputs chosen adaptively too. Theorem (BCC of Andersson, Chaturvedi,
    Henzinger, Safavi; eta corrected): the maximum reads private data, but it changes a value only in the
    event F that at some step the noise lies below -alpha_t. F is about the noise alone, so Pr[F] <= eta
    whatever the inputs are, chosen adaptively or not, and outside F all values are those of the counter
    beneath plus public numbers, M'. So for every set S of outputs

        Pr[M(x) in S] <= Pr[M'(x) in S] + eta <= e^epsilon Pr[M'(x') in S] + delta' + eta
                      <= e^epsilon (Pr[M(x') in S] + eta) + delta' + eta.

    Composition: delta = delta' + (1 + e^epsilon) eta; delta' = 0 and eta = delta / (1 + e^epsilon) over
    Laplace noise, delta' = delta / 2 and eta = delta / (2 (1 + e^epsilon)) over Gaussian noise, every
    logarithm rounded towards the safe side. The eta_t are eta / n each with a horizon n, else 6 eta / (pi
    t)^2. Tails: :mod:`trilift.counters.bias`. The guarantee holds for any length without a horizon.

    **One counter serves one version of one stream**: see :class:`trilift.counters.Counter`, whose methods and
    further arguments this class shares.

    Args:
        epsilon: > 0, taken as the exact rational that it is.
        delta: between 0 and 1, likewise.
        base: "laplace" or "gaussian", the noise of the counter beneath.
        horizon: number of steps; None for a counter without end.
        mechanism: with base "gaussian", "chain" or "toeplitz".
        objective, chain, growth: as for the counter beneath.

    Raises:
        ParameterError, HorizonError, StateError, OSError: as :class:`trilift.counters.Counter`.

    >>> counter = BiasedCounter(1, 1e-6, horizon=100, simulation_seed=7)
    >>> all(counter.update(1) >= t for t in range(1, 101))
    True
    """

    def __init__(
        self,
        epsilon: Any,
        delta: Any,
        *,
        base: str = "laplace",
        horizon: int | None = None,
        mechanism: str | None = None,
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
        setup = make_biased(
            epsilon,
            delta=delta,
            base=base,
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
    def ln_delta(self) -> Fraction:
        """A rational at least the logarithm of the delta that is spent."""
        ln_spent: Fraction = self._setup.ln_spent
        return ln_spent

    def bias(self, t: int) -> Fraction:
        """Return alpha_t, the public amount by which the value of step t (from 1) is raised."""
        position = self._position(t)
        return Fraction(int(self._steps_bias(position, position + 1)[0]), 1 << self._setup.output_places)

    def interval(self, t: int, confidence: float = 0.95, *, simultaneous: bool = False) -> float:
        """Return w such that the true sum lies within [released - w, released] with this confidence.

        Released values are never below the true sum; w is the bias and the half width of the counter beneath.
        Arguments as :meth:`Counter.interval`.
        """
        beneath = super().interval(t, confidence, simultaneous=simultaneous)
        return beneath + float(self.bias(t))

    def _biased(self, released: Integers, exact: Integers) -> Integers:
        raised = add(released, self._next_bias(len(released))[:, None])
        return np.asarray(np.maximum(raised, exact))

    def _next_bias(self, k: int) -> Integers:
        """Return the biases of the next k steps; single steps come from a page kept at hand."""
        if k > 1:
            return self._steps_bias(self.step, self.step + k)
        start, page = self.__dict__.get("_biases", (0, np.zeros(0, dtype=np.int64)))
        if not start <= self.step < start + len(page):
            start = self.step - self.step % _PAGE
            page = self._steps_bias(start, min(start + _PAGE, self._last))
            self._biases = (start, page)
        return np.asarray(page[self.step - start : self.step - start + 1])

    def _steps_bias(self, start: int, stop: int) -> Integers:
        setup: BiasedSetup = self._setup
        steps = np.arange(start, stop, dtype=np.int64)
        alphas = one_sided(self._noises[0], steps, setup.ln_failures(steps))
        lattice = np.ceil(np.ldexp(alphas, setup.output_places))
        if lattice.size and float(lattice.max()) >= 2.0**62:
            return np.array([int(value) for value in lattice.tolist()], dtype=object)
        return lattice.astype(np.int64)

    @classmethod
    def _arguments(cls, snapshot: states.Snapshot, chain: Any, name: str) -> dict[str, Any]:
        if snapshot.levels:  # a bounded chain
            return states.setup_arguments(snapshot, chain, name, BIASED_FIELDS)
        return states.unchained_arguments(snapshot, chain, name, BIASED_FIELDS)

    @classmethod
    def _remade(cls, arguments: dict[str, Any], snapshot: states.Snapshot) -> BiasedSetup:
        return make_biased(**arguments, levels=snapshot.levels or None)
