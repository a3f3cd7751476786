"""How the learning rate, the smoothing and the power mean move during a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from trilift.factorize.objective import Annealed
from trilift.lift.checks import fail, finite

__all__ = ["Schedule", "cold", "warm"]


def _ends(
    name: str, value: Any, *, above: int | None = None, minimum: int | None = None
) -> tuple[float, float]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise fail(name, "a pair (first, last)", value)
    first, last = (finite(name, end, above=above, minimum=minimum) for end in value)
    return (first, last)


@dataclass(frozen=True)
class Schedule:
    """Start and end of every annealed number of a search of ``size``.

    Attributes:
        rate: first learning rate of Adam; it falls along a cosine to zero.
        smoothing: (first, last) mu, in units of 1/size.
        exponent: (first, last) p of the power mean of the squared row norms; (1, 1) is the mean.
        settled: fraction of the steps after which both keep their last value.

    Raises:
        ParameterError: a value that is not finite or out of range (all > 0; p >= 1; settled <= 1).
    """

    rate: float
    smoothing: tuple[float, float]
    exponent: tuple[float, float]
    settled: float

    def __post_init__(self) -> None:
        """Check the ranges; numbers become floats."""
        object.__setattr__(self, "rate", finite("rate", self.rate, above=0))
        object.__setattr__(self, "smoothing", _ends("smoothing", self.smoothing, above=0))
        object.__setattr__(self, "exponent", _ends("exponent", self.exponent, minimum=1))
        object.__setattr__(self, "settled", finite("settled", self.settled, above=0, maximum=1))

    def annealed(self, step: jax.Array, *, steps: int, size: int) -> Annealed:
        """The annealed numbers at ``step`` of ``steps``; every one moves geometrically."""
        progress = jnp.minimum(step.astype(jnp.float64) / (self.settled * steps), 1.0)

        def between(ends: tuple[float, float]) -> jax.Array:
            first, last = ends
            return first * (last / first) ** progress

        return Annealed(
            smoothing=between(self.smoothing) / size,
            exponent=between(self.exponent),
        )


def cold(*, largest: bool) -> Schedule:
    """The schedule from random starts: strong smoothing first."""
    return Schedule(
        rate=0.01,
        smoothing=(3.0, 3e-5),
        exponent=(2.0, 5e4) if largest else (1.0, 1.0),
        settled=0.9,
    )


def warm(*, largest: bool) -> Schedule:
    """The schedule from a given solution: little smoothing, so that the start is not forgotten."""
    return Schedule(
        rate=0.005,
        smoothing=(0.1, 3e-5),
        exponent=(8.0, 5e4) if largest else (1.0, 1.0),
        settled=0.9,
    )
