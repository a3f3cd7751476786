"""What a search will cost, before it is begun."""

from __future__ import annotations

from dataclasses import dataclass

from trilift.lift.checks import integer

__all__ = ["CostEstimate", "estimate_cost", "step_seconds"]

# Fitted on one core of a current server processor: seconds per start and step are
# overhead + c2 m^2 + c3 m^3 (LAPACK inverse and two products). Good to a factor of about 2 there.
_OVERHEAD, _PER_ENTRY, _PER_CUBE = 4e-6, 1.5e-8, 2e-10
# The same for one data-centre GPU with fast double precision; small sizes wait for its kernels to start.
_GPU_OVERHEAD, _GPU_PER_CUBE = 2e-3, 2e-12
# Measured at m = 1025. Of every start: parameters and moments, before and after a chunk and as stored;
# and once: the gradient's intermediates and the best point.
_MATRICES_PER_START, _MATRICES_ONCE = 20, 12


@dataclass(frozen=True)
class CostEstimate:
    """Rough needs of a search.

    Attributes:
        memory_bytes: of the arrays that live at once.
        seconds: on one processor core.
    """

    memory_bytes: int
    seconds: float


def step_seconds(size: int, starts: int, *, accelerated: bool = False) -> float:
    """Rough seconds of one Adam step of all starts on one core, or on one GPU."""
    if accelerated:
        return _GPU_OVERHEAD + starts * _GPU_PER_CUBE * size**3
    return starts * (_OVERHEAD + _PER_ENTRY * size**2 + _PER_CUBE * size**3)


def estimate_cost(size: int, *, steps: int, starts: int) -> CostEstimate:
    """Estimate memory and one-core time of a search (compilation, a few seconds, not included).

    Raises:
        ParameterError: an argument is not a positive integer.

    >>> estimate_cost(129, steps=1000, starts=4).memory_bytes
    12247776
    """
    size = integer("size", size, minimum=2)
    steps = integer("steps", steps, minimum=1)
    starts = integer("starts", starts, minimum=1)
    memory = 8 * (_MATRICES_PER_START * starts + _MATRICES_ONCE) * size**2
    return CostEstimate(memory_bytes=memory, seconds=steps * step_seconds(size, starts))
