"""Everything public about one edit-private mechanism, made before it sees data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from trilift.counters.edit.base import BaseSpec
from trilift.counters.edit.ledger import EditLedger
from trilift.counters.edit.rules import PartRule, SimPartRule

__all__ = ["ACCOUNTINGS", "DISPLAYS", "MECHANISMS", "Design", "make_design"]

MECHANISMS = ("simecc", "ecc")
DISPLAYS = ("latest", "extrapolated")
ACCOUNTINGS = ("paper", "paper-tight", "joint-40", "joint", "sharp")


@dataclass(frozen=True)
class Design:
    """A mechanism: partition, noise of the counts, noise and delays of the times, ledger.

    Attributes:
        mechanism: "simecc" or "ecc".
        accounting: which proof its ledger rests on.
        epsilon: asked for, exact.
        delta: asked for, exact.
        horizon: number of steps known in advance, or None.
        rate: events a step that the parameters were chosen for, or None.
        capacity: most buckets that are ever released (after them updates stop), or None.
        part: lengths of buckets (simecc) or thresholds (ecc).
        values: noise of the running count.
        times: noise of the release times.
        alphas_table: alpha of buckets 0..capacity-1 for a bounded mechanism; empty when computed as needed.
        delay_budget: eta, what all delays together may fail with, exact.
        display: "latest" or "extrapolated".
        ledger: the budget.
        predicted_rmse: at (horizon, rate), or None.
    """

    mechanism: str
    accounting: str
    epsilon: Fraction
    delta: Fraction
    horizon: int | None
    rate: float | None
    capacity: int | None
    part: SimPartRule | PartRule
    values: BaseSpec
    times: BaseSpec
    alphas_table: tuple[int, ...]
    delay_budget: Fraction
    display: str
    ledger: EditLedger
    predicted_rmse: float | None = None

    def alphas(self, start: int, stop: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the delays alpha_l of buckets start..stop-1 in whole steps, int64: that_l = t_l + max(0, alpha_l + N2(l))."""
        raise NotImplementedError

    @property
    def digest(self) -> bytes:
        """32 bytes: SHA-256 of :meth:`record`."""
        raise NotImplementedError

    def record(self) -> dict[str, Any]:
        """Return all of it as JSON with exact numbers as strings; :meth:`from_record` restores it."""
        raise NotImplementedError

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Restore a design: nothing is chosen anew."""
        raise NotImplementedError


def make_design(
    epsilon: Any,
    *,
    delta: Any,
    mechanism: str = "simecc",
    accounting: str = "sharp",
    base: str = "auto",
    horizon: int | None = None,
    rate: float | None = None,
    display: str = "latest",
) -> Design:
    """Make the design of an edit-private counter."""
    raise NotImplementedError
