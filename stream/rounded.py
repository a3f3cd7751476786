"""A process on a coarser lattice, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.lift.checks import integer
from trilift.lift.integers import shrink
from trilift.stream.keys import DigestBuilder
from trilift.stream.process import NoiseProcess

__all__ = ["RoundedOnce"]

Integers = np.ndarray[Any, np.dtype[Any]]


class RoundedOnce:
    """The noise of a process on a fine lattice, floor(u + 1/2) on a coarser one.

    For processes that are sums of parts, each rounded by itself: the roundings of P parts may add up to P/2
    steps of the lattice, which is much where steps are wide. On a fine lattice they add up to next to
    nothing, and what is left is one rounding.

    Neighbours, guarantee, composition and theorem: those of the fine process. Counts are multiples of the
    coarse step, so the rounding of (count + fine noise) is count + what is returned here: post-processing.

    Args:
        fine: the process.
        places: binary places of the lattice here, at most the process's own.

    Raises:
        ParameterError: more places than the process has.

    >>> from trilift.stream.keys import simulation_key
    >>> from trilift.stream.toeplitz_noise import ToeplitzNoise
    >>> fine = ToeplitzNoise(
    ...     10, mu=1, key=simulation_key(3), stream_id=bytes(16), purpose="example", places=20
    ... )
    >>> bool((RoundedOnce(fine, places=0).range(0, 10) == np.floor(fine.range(0, 10) / 2**20 + 0.5)).all())
    True
    """

    def __init__(self, fine: NoiseProcess, *, places: int) -> None:
        self.fine = fine
        self.places = integer("places", places, minimum=0, maximum=fine.places)
        self.horizon: int | None = fine.horizon
        digest = DigestBuilder("trilift/rounded once/1").add("fine", fine.digest)
        self.digest = digest.add("places", self.places).digest()
        self._shift = fine.places - self.places

    def __repr__(self) -> str:
        return f"RoundedOnce({self.fine!r}, places={self.places})"

    def range(self, start: int, stop: int) -> Integers:
        """Return the rounded integers of the steps start..stop-1, as the process does."""
        return self._coarse(self.fine.range(start, stop))

    def at(self, steps: Any) -> Integers:
        """Return the rounded integers of the given steps, as the process does."""
        return self._coarse(self.fine.at(steps))

    def variance(self, steps: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the variance at 0-based steps: the process's, and h^2 / 12 for the rounding."""
        return np.asarray(self.fine.variance(steps) + np.ldexp(1.0, -2 * self.places) / 12.0)

    def _coarse(self, values: Integers) -> Integers:
        if not self._shift:
            return values
        shift = self._shift
        if values.dtype != object and values.size and shift < 62:
            # floor((v + half) / 2^shift) without the sum, which might overflow
            return np.asarray((values >> shift) + ((values >> (shift - 1)) & 1))
        wide = values.astype(object)
        return shrink((wide + (1 << (shift - 1))) >> shift)
