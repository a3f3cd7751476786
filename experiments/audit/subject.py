"""What is audited: a mechanism under a claim, the neighbours to be tried, and how outputs are scored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["Pair", "Subject"]

Array = np.ndarray[Any, np.dtype[Any]]
Stream = tuple[Any, ...]


@dataclass(frozen=True)
class Pair:
    """Two neighbouring streams.

    Attributes:
        label: what is different, in words.
        first: inputs, a tuple (hashable, so that streams are run once).
        second: inputs of the neighbour.
    """

    label: str
    first: Stream
    second: Stream


class Subject(ABC):
    """A mechanism under audit.

    Attributes:
        name: its name on the command line.
        neighbours: what the pairs differ in, in words.
        epsilon: the claim, exact.
        delta: the claim, exact; 0 for a pure mechanism.
        batch: runs that one call of :meth:`release` makes.
    """

    name: str
    neighbours: str
    epsilon: Fraction
    delta: Fraction
    batch: int

    @abstractmethod
    def pairs(self) -> Sequence[Pair]:
        """Return the pairs that are tried."""

    @abstractmethod
    def release(self, streams: Sequence[Stream], *, seed: int) -> Sequence[Array]:
        """Run the mechanism ``batch`` times on every stream, under new keys that ``seed`` decides.

        The streams may share keys: runs of *one* stream are independent of each other.

        Returns:
            for every stream an array (batch, k) of all that is released, numbers in any fixed order.
        """

    def statistics(self, pair: Pair, values: Array) -> Mapping[str, Array]:
        """Return statistics of outputs (runs, k), each of shape (runs,), larger for the second stream."""
        return {}

    @property
    def learns(self) -> bool:
        """Whether linear statistics are to be fitted to the first runs as well."""
        return True
