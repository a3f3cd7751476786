"""The noise beneath an edit mechanism: which process, at which budget, and what its tails are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.stream.process import NoiseProcess

__all__ = ["KINDS", "BaseSpec"]

KINDS = ("cc", "toeplitz", "l2-chain", "chain", "doubling", "relay")


@dataclass(frozen=True)
class BaseSpec:
    """One noise process, indexed by buckets 0, 1, ..., for prefix sums whose inputs change.

    Attributes:
        kind: "toeplitz", "l2-chain" (bounded, Gaussian), "cc" (unbounded, Gaussian), "chain" (bounded, Laplace),
            "doubling", "relay" (unbounded, Laplace).
        capacity: number of buckets, None for an unbounded kind.
        mu: Gaussian kinds: the process is mu-GDP when one input changes by 1 ("cc": each of its two halves, the
            counters inside epochs and the totals of epochs, is).
        epsilon: Laplace kinds: the process is epsilon-DP when one input changes by 1.
        names: artifacts of the chain, finest first; empty for "cc" and "toeplitz".
        objective: "max" or "mean", for the level scales of a chain.
    """

    kind: str
    capacity: int | None
    mu: Fraction | None = None
    epsilon: Fraction | None = None
    names: tuple[str, ...] = ()
    objective: str = "max"

    def build(
        self, *, key: bytes, stream_id: bytes, purpose: str, places: int = 0, input_places: int = 0
    ) -> NoiseProcess:
        """Return the process; values on the lattice 2^-places, for inputs on the lattice 2^-input_places."""
        raise NotImplementedError

    def sd(self, indices: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return standard deviations at 0-based bucket indices (before rounding)."""
        raise NotImplementedError

    def tail_quantile(self, index: int, ln_failure: float) -> float:
        """Return x with Pr[N <= -x] <= exp(ln_failure), one-sided, rounded up, rounding of released noise included."""
        raise NotImplementedError
