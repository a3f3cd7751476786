"""Random streams with known rates, and the pair of neighbours that the attack tells apart.

An input is 1 with probability p_t, independently. The block stream of the paper has p_t alternating between
two rates in blocks; its edit neighbour is (1, x_1, ..., x_(T-1)): one event more at the front, everything
else one step later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from trilift.lift.checks import fail, finite, integer

__all__ = ["Draw", "RateStream", "block_stream", "constant_stream"]


@dataclass(frozen=True)
class Draw:
    """Streams drawn together.

    Attributes:
        prefix: (runs, T + 1) int32, running sums; column 0 is zero.
        shifted: (runs,) bool, whether a run is the neighbour.
    """

    prefix: NDArray[np.int32]
    shifted: NDArray[np.bool_]


@dataclass(frozen=True)
class RateStream:
    """A stream of independent 0/1 inputs with rates that everybody knows.

    Attributes:
        steps: T.
        rates: the rates of one period, repeated.
        name: how it is called in results.
    """

    steps: int
    rates: tuple[float, ...]
    name: str

    def all_rates(self) -> NDArray[np.float64]:
        """Return p_1, ..., p_T."""
        return np.resize(np.asarray(self.rates), self.steps)

    def draw(self, rng: np.random.Generator, *, runs: int, shift: bool = True) -> Draw:
        """Draw streams, each shifted with probability one half (or none of them)."""
        chance = self.all_rates().astype(np.float32)
        inputs = rng.random((runs, self.steps), dtype=np.float32) < chance
        shifted = rng.random(runs) < 0.5 if shift else np.zeros(runs, dtype=bool)
        inputs[shifted, 1:] = inputs[shifted, :-1]
        inputs[shifted, 0] = True
        prefix = np.zeros((runs, self.steps + 1), dtype=np.int32)
        np.cumsum(inputs, axis=1, out=prefix[:, 1:])
        return Draw(prefix, shifted)


def _rate(name: str, value: float) -> float:
    rate = finite(name, value)
    if not 0 <= rate <= 1:
        raise fail(name, "a number in [0, 1]", value)
    return rate


def block_stream(steps: int, *, block: int = 10, low: float = 0.1, high: float = 0.9) -> RateStream:
    """Return the paper's stream: rates alternate in blocks, the low one first.

    >>> block_stream(5, block=2).all_rates().tolist()
    [0.1, 0.1, 0.9, 0.9, 0.1]

    Raises:
        ParameterError: a length that is not an integer >= 1, or a rate outside [0, 1].
    """
    T, width = integer("steps", steps, minimum=1), integer("block", block, minimum=1)
    pair = (_rate("low", low), _rate("high", high))
    return RateStream(T, (pair[0],) * width + (pair[1],) * width, f"blocks of {width}: {low:g}, {high:g}")


def constant_stream(steps: int, *, rate: float) -> RateStream:
    """Return a stream of one rate.

    >>> constant_stream(3, rate=0.5).all_rates().tolist()
    [0.5, 0.5, 0.5]

    Raises:
        ParameterError: a length that is not an integer >= 1, or a rate outside [0, 1].
    """
    return RateStream(integer("steps", steps, minimum=1), (_rate("rate", rate),), f"rate {rate:g}")
