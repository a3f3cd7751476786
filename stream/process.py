"""What a source of noise offers: exact integers at any step, whatever mechanism lies behind it."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

__all__ = ["NoiseProcess"]


@runtime_checkable
class NoiseProcess(Protocol):
    """Noise N_0, N_1, ... on an output lattice: a pure function of its key, the same at every visit.

    It never sees data: neither its values nor how long it takes to make them depend on a stream. What it
    protects (neighbours, epsilon and delta, composition) is said by the class that makes it.

    ``isinstance`` looks for the members alone, not for what they promise.
    """

    @property
    def horizon(self) -> int | None:
        """Number of steps; None for a process without end."""
        ...

    @property
    def places(self) -> int:
        """Binary places of the output lattice h = 2^-places."""
        ...

    @property
    def digest(self) -> bytes:
        """32 bytes: SHA-256 of everything that the noise depends on besides key, stream and purpose."""
        ...

    def range(self, start: int, stop: int) -> np.ndarray[Any, np.dtype[Any]]:
        """Return floor(N_t / h + 1/2) for t = start..stop-1 (0-based): integers in units of h.

        int64, or Python integers (dtype object) where they do not fit.

        Raises:
            ParameterError: not integers, start < 0, or stop < start.
            HorizonError: steps past the horizon.
        """
        ...

    def at(self, steps: Any) -> np.ndarray[Any, np.dtype[Any]]:
        """Return floor(N_t / h + 1/2) at the given 0-based steps, in any order, repetitions allowed.

        Raises:
            ParameterError: steps that are not integers.
            HorizonError: steps outside 0..horizon-1.
        """
        ...

    def variance(self, steps: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the variance of the released values at 0-based steps, in squared units of the count."""
        ...
