"""The public parameters of a counter without a horizon: they make epochs of Laplace noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trilift.counters.epoch_mechanisms import ChainEpochs, EpochRecord, laplace_epochs
from trilift.counters.levels import SavedLevel
from trilift.counters.streamed import StreamSetup, checked_epsilon, make_stream
from trilift.lift.budget import OBJECTIVES
from trilift.lift.checks import choice
from trilift.stream.epoch_layout import GROWTHS, Layout
from trilift.stream.process import NoiseProcess

__all__ = ["UNBOUNDED_FIELDS", "UnboundedSetup", "make_unbounded"]

UNBOUNDED_FIELDS = ("epsilon", "objective", "growth")


@dataclass(frozen=True, kw_only=True)
class UnboundedSetup(StreamSetup):
    """Everything about an unbounded counter that is public and fixed: its ``horizon`` is None.

    Attributes:
        epsilon: the budget, exact; of every epoch, and of the whole stream.
        objective: "max" or "mean": what the chains of the epochs are good for.
        growth: "tapered", "relay" or "doubling".

    The others are those of :class:`trilift.counters.streamed.StreamSetup`.
    """

    epsilon: Fraction
    objective: str
    growth: str

    @property
    def layout(self) -> Layout:
        """The epochs."""
        return Layout.of(self.growth)

    @property
    def names(self) -> None:
        """None: every epoch has a chain of its own."""
        return None

    def processes(
        self, *, key: bytes, stream_id: bytes, purposes: list[str], epochs: Mapping[int, EpochRecord]
    ) -> tuple[list[NoiseProcess], ChainEpochs | None]:
        """Return the noise, one process a purpose, and what makes its epochs."""
        noises, made = laplace_epochs(
            self.epsilon,
            key=key,
            stream_id=stream_id,
            purposes=purposes,
            growth=self.growth,
            change=self.change,
            objective=self.objective,
            input_places=self.rule.places,
            places=self.output_places,
            saved=epochs,
        )
        return list(noises), made

    def levels(self) -> tuple[SavedLevel, ...]:
        """Return what a state keeps of a bounded chain: there is none."""
        return ()

    def own_record(self) -> dict[str, Any]:
        """Return what a state keeps besides the inputs' parameters."""
        return {"epsilon": str(self.epsilon), "objective": self.objective, "growth": self.growth}


def make_unbounded(epsilon: Any, *, growth: Any, objective: Any, **shared: Any) -> UnboundedSetup:
    """Check the arguments of an unbounded counter: see :class:`trilift.counters.Counter`.

    Raises:
        ParameterError: an argument that is not acceptable.
    """
    return UnboundedSetup(
        **make_stream(horizon=None, **shared),
        epsilon=checked_epsilon(epsilon),
        objective=choice("objective", objective, OBJECTIVES),
        growth=choice("growth", growth, GROWTHS),
    )
