"""The counter: every prefix sum of a stream, under pure differential privacy, bounded or without end."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

from trilift.counters import state as states
from trilift.counters.running import RunningCounter
from trilift.counters.setup import Setup, make_setup
from trilift.counters.unbounded import UNBOUNDED_FIELDS, UnboundedSetup, make_unbounded
from trilift.lift.errors import ParameterError

__all__ = ["Counter"]


class Counter(RunningCounter):
    """Releases the running sum of a stream at every step, under pure epsilon-differential privacy.

    Neighbours: two streams of the same length (any length without a horizon) that differ in the inputs of one
    person: at most ``max_contributions`` of them, each by at most high - low in every coordinate. Guarantee:
    all released values together are (epsilon, 0)-differentially private, for inputs chosen adaptively too.
    Composition: with L R = T exactly, R x + z is one release of discrete Laplace mechanisms, one a row of R,
    whose costs add up to ``ledger.spent <= epsilon`` in rational arithmetic; each released value, the
    rounding floor(u + 1/2) of L (R x + z), is a function of it (post-processing). Without a horizon each
    epoch of the stream is such a release, with its own noise, and one input is in one epoch (parallel
    composition, :mod:`trilift.stream.epochs`); the guarantee holds for any length. Theorem: the bridge lift
    (new, docs/lifting.md) and the Laplace matrix mechanism (Li, Miklau, Hay, McGregor, Rastogi). The
    guarantee holds given ideal random bits; here they come from ChaCha20 under a key drawn from the operating
    system.

    **One counter serves one version of one stream.** Counting corrected data again costs a new epsilon and
    needs a new counter. Key, counts, remembered inputs and saved states are secrets. A counter whose state is
    not on disk when its process ends is lost together with its key: counting the stream again then spends
    epsilon again, on top of what was released before. So pass ``state``, or save before you publish.

    Args:
        epsilon: privacy budget > 0, taken as the exact rational that it is.
        horizon: number of steps n; asking for more is an error. None: no end, with noise that grows with the
            step; about 1.3 times (on average) to 1.9 times (at worst) that of a counter made for the step.
        objective: "max" for the least largest error, "mean" for the least mean squared error.
        chain: names of artifacts, finest first and the top last, or an exact Chain. When left out, a good
            chain of small shipped artifacts; ``trilift plan`` names better ones of large artifacts.
        growth: without a horizon, how epochs grow: "tapered" (the default), "relay" or "doubling" (the hybrid
            mechanism of the literature).
        bounds: (low, high), what one input may be. Inputs outside are refused unless ``clip``.
        max_contributions: number of inputs that one person may contribute.
        clip: move inputs outside the bounds to the nearest bound.
        resolution: 1 for integer inputs, or 2^-k: inputs are then rounded to multiples of it.
        output_resolution: 2^-k, lattice of the released values; the inputs' own when left out.
        dimension: count vectors of this many coordinates; None for plain numbers.
        norm_bound: largest l1 norm of (vector input - low), if that is less than the bounds allow (1 for
            one-hot vectors with low = 0): a neighbour then changes at most twice that.
        postprocess: "nonnegative" or "monotone" (running maximum): free, but released values are biased.
        simulation_seed: makes noise that anybody can reproduce. For tests and simulations only: no privacy.
        state: a new file that always holds the state: written now, and by :meth:`update`, :meth:`extend` and
            :meth:`skip` before they return. It is locked for as long as the counter lives (or until
            :meth:`close`), and continued by ``Counter.load(path, persist=True)``. A write takes a few
            milliseconds; many steps in one :meth:`extend` share one.

    Raises:
        ParameterError: an argument that is not acceptable.
        HorizonError: a horizon past the capacity of the chain.
        StateError: the state file exists already, or is in use.
        OSError: the state file cannot be written.

    >>> counter = Counter(1.0, horizon=100, simulation_seed=7)
    >>> value = counter.update(1)
    >>> counter.update(1, step=1) == value
    True
    >>> endless = Counter(1.0, horizon=None, simulation_seed=7)
    >>> endless.skip(10**12)
    >>> isinstance(endless.update(1), int)
    True
    """

    def __init__(
        self,
        epsilon: Any,
        *,
        horizon: int | None = None,
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
        shared: dict[str, Any] = {
            "bounds": bounds,
            "max_contributions": max_contributions,
            "clip": clip,
            "resolution": resolution,
            "output_resolution": output_resolution,
            "dimension": dimension,
            "norm_bound": norm_bound,
            "postprocess": postprocess,
        }
        setup: Setup | UnboundedSetup
        if horizon is None:
            if chain is not None:
                raise ParameterError("chain needs a horizon: without one, every epoch has a chain of its own")
            setup = make_unbounded(
                epsilon,
                growth="tapered" if growth is None else growth,
                objective="mean" if objective is None else objective,
                **shared,
            )
        else:
            if growth is not None:
                raise ParameterError("growth is for counters without a horizon")
            objective = "max" if objective is None else objective
            setup = make_setup(epsilon, horizon=horizon, objective=objective, chain=chain, **shared)
        self._begin(setup, simulation_seed, state)

    @property
    def epsilon(self) -> Fraction:
        """The budget that was asked for, exact."""
        epsilon: Fraction = self._setup.epsilon
        return epsilon

    @property
    def spent(self) -> Fraction:
        """The budget that is spent, exact: at most ``epsilon``; without a horizon, the most of any epoch met.

        An epoch that is to come spends at most ``epsilon`` too: that is proved when it is made.
        """
        if self._made is not None:
            layout = self._setup.layout
            epochs = {epoch for _, epoch in self._made.costs}
            return max((self._made.spent(epoch, layout=layout) for epoch in epochs), default=Fraction(0))
        spent: Fraction = self._setup.ledger.spent
        return spent

    @classmethod
    def _arguments(cls, snapshot: states.Snapshot, chain: Any, name: str) -> dict[str, Any]:
        if "horizon" in snapshot.setup and snapshot.setup["horizon"] is None:
            return states.unchained_arguments(snapshot, chain, name, UNBOUNDED_FIELDS)
        return states.setup_arguments(snapshot, chain, name)

    @classmethod
    def _remade(cls, arguments: dict[str, Any], snapshot: states.Snapshot) -> Setup | UnboundedSetup:
        if arguments["horizon"] is None:
            del arguments["horizon"]
            return make_unbounded(**arguments)
        return make_setup(**arguments, levels=snapshot.levels)
