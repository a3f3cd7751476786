"""What a counter by buckets needs to know of its mechanism: types only, all of it public."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from trilift.counters.edit.inputs import BotRule
from trilift.counters.edit.ledger import EditLedger
from trilift.counters.edit.part import Thresholds
from trilift.counters.edit.rules import SimPartRule
from trilift.stream.process import NoiseProcess

__all__ = ["Base", "Blueprint"]


class Base(Protocol):
    """What makes a noise process under a key: a :class:`trilift.counters.edit.base.BaseSpec`, for example."""

    def build(
        self, *, key: bytes, stream_id: bytes, purpose: str, places: int = 0, input_places: int = 0
    ) -> NoiseProcess:
        """Return the process for one purpose of one key."""
        ...


class Blueprint(Protocol):
    """A mechanism by buckets: a :class:`trilift.counters.edit.design.Design`, for example."""

    @property
    def mechanism(self) -> str:
        """Its name."""
        ...

    @property
    def epsilon(self) -> Fraction:
        """Asked for, exact."""
        ...

    @property
    def delta(self) -> Fraction:
        """Asked for, exact."""
        ...

    @property
    def horizon(self) -> int | None:
        """Most steps."""
        ...

    @property
    def capacity(self) -> int | None:
        """Most buckets."""
        ...

    @property
    def rule(self) -> BotRule:
        """What an input may be."""
        ...

    @property
    def part(self) -> SimPartRule | Thresholds:
        """How buckets end."""
        ...

    @property
    def values(self) -> Base:
        """Noise of counts."""
        ...

    @property
    def times(self) -> Base:
        """Noise of times."""
        ...

    @property
    def display(self) -> str:
        """What is shown between counts."""
        ...

    @property
    def ledger(self) -> EditLedger:
        """Where the budget goes."""
        ...

    @property
    def digest(self) -> bytes:
        """32 bytes, a hash of all of it."""
        ...

    def alphas(self, start: int, stop: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the delays of buckets start..stop-1, numbered from 0."""
        ...

    def record(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        ...
