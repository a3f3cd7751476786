"""The public parameters of a bounded counter, and the mechanism they make: chain, ledger, lattices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trilift.counters.defaults import chain_of, default_names
from trilift.counters.epoch_mechanisms import ChainEpochs, EpochRecord
from trilift.counters.levels import SavedLevel, restored_chain, saved_levels
from trilift.counters.streamed import POSTPROCESSING, StreamSetup, checked_epsilon, make_stream
from trilift.lift import Chain
from trilift.lift.budget import OBJECTIVES, horizon_scales
from trilift.lift.checks import choice, fail, integer
from trilift.lift.errors import ParameterError
from trilift.stream.ledger import Ledger, make_ledger, restore_ledger
from trilift.stream.noise import Noise
from trilift.stream.process import NoiseProcess

__all__ = ["POSTPROCESSING", "Setup", "make_setup"]


@dataclass(frozen=True, kw_only=True)
class Setup(StreamSetup):
    """Everything about a bounded counter that is public and fixed.

    Attributes:
        epsilon: the budget, exact.
        horizon: number of steps.
        objective: "max" or "mean".
        names: artifact names of the chain, finest first, or None for a chain given as an object.
        chain: the chain.
        ledger: the exact budget split; its ``change`` is what one neighbour can change in l1 norm.

    The others are those of :class:`trilift.counters.streamed.StreamSetup`.
    """

    horizon: int
    epsilon: Fraction
    objective: str
    names: tuple[str, ...] | None
    chain: Chain
    ledger: Ledger

    def processes(
        self, *, key: bytes, stream_id: bytes, purposes: list[str], epochs: Mapping[int, EpochRecord]
    ) -> tuple[list[NoiseProcess], ChainEpochs | None]:
        """Return the noise, one process a purpose; there are no epochs."""
        noises = Noise.family(
            self.chain,
            self.ledger,
            horizon=self.horizon,
            key=key,
            stream_id=stream_id,
            purposes=purposes,
            places=self.output_places,
        )
        return list(noises), None

    def levels(self) -> tuple[SavedLevel, ...]:
        """Return what a state keeps of the chain."""
        return saved_levels(self.chain, self.ledger)

    def own_record(self) -> dict[str, Any]:
        """Return what a state keeps besides the inputs' parameters."""
        return {
            "epsilon": str(self.epsilon),
            "objective": self.objective,
            "chain": None if self.names is None else list(self.names),
        }


def _chain(chain: Any, horizon: int, objective: str) -> tuple[tuple[str, ...] | None, Chain]:
    if isinstance(chain, Chain):
        if not chain.is_exact:
            raise ParameterError("chain must be exact: complete and certify the factors first")
        return None, chain
    if chain is None:
        names = default_names(horizon, objective=objective)
    elif isinstance(chain, Sequence) and not isinstance(chain, str):
        names = tuple(chain)
    else:
        raise fail("chain", "a Chain, a sequence of artifact names, or None", chain)
    return names, chain_of(names)


def make_setup(
    epsilon: Any,
    *,
    horizon: Any,
    objective: Any,
    chain: Any,
    bounds: Any,
    max_contributions: Any,
    clip: Any,
    resolution: Any,
    output_resolution: Any,
    dimension: Any,
    norm_bound: Any,
    postprocess: Any,
    levels: Sequence[SavedLevel] | None = None,
) -> Setup:
    """Check the arguments of a counter and build its mechanism: see :class:`trilift.counters.Counter`.

    With the saved levels of a counter it is their mechanism: nothing is chosen or computed by floats again.
    """
    asked = checked_epsilon(epsilon)
    n = integer("horizon", horizon, minimum=1)
    choice("objective", objective, OBJECTIVES)
    shared = make_stream(
        horizon=n,
        bounds=bounds,
        max_contributions=max_contributions,
        clip=clip,
        resolution=resolution,
        output_resolution=output_resolution,
        dimension=dimension,
        norm_bound=norm_bound,
        postprocess=postprocess,
    )
    change, gamma = StreamSetup(**shared).change, shared["rule"].places
    if levels is None:
        names, built = _chain(chain, n, objective)
        built.check_horizon(n)
        scales = horizon_scales(built, n, objective=objective)
        ledger = make_ledger(built, asked, scales=scales, change=change, input_places=gamma)
    else:
        names, built = restored_chain(chain, levels)
        built.check_horizon(n)
        pairs = [(level.scale, level.places) for level in levels]
        ledger = restore_ledger(built, asked, scales=pairs, change=change, input_places=gamma)
    return Setup(**shared, epsilon=asked, objective=objective, names=names, chain=built, ledger=ledger)
