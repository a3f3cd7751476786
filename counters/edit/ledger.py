"""Where the budget of an edit mechanism goes, part by part, and the proof of the sum."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

__all__ = ["EditLedger", "LedgerPart"]


@dataclass(frozen=True)
class LedgerPart:
    """One part of a budget.

    Attributes:
        name: for example "counts" or "delays".
        epsilon: what it spends, exact.
        delta: an upper bound on what it spends, exact (0 for a pure part).
        ln_delta: ln of that bound, rounded up; -inf for 0.
        reason: why, in one sentence.
    """

    name: str
    epsilon: Fraction
    delta: Fraction
    ln_delta: float
    reason: str


@dataclass(frozen=True)
class EditLedger:
    """All parts of a mechanism, and what was asked for."""

    epsilon: Fraction
    delta: Fraction
    parts: tuple[LedgerPart, ...]

    @property
    def spent_epsilon(self) -> Fraction:
        """Sum of the parts' epsilons."""
        return sum((part.epsilon for part in self.parts), Fraction(0))

    @property
    def spent_delta(self) -> Fraction:
        """Sum of the parts' deltas: an upper bound."""
        return sum((part.delta for part in self.parts), Fraction(0))

    def as_text(self) -> str:
        """Return the ledger as a small table."""
        raise NotImplementedError

    def record(self) -> list[dict[str, Any]]:
        """Return [{"part", "epsilon": "p/q", "ln_delta": float or None}]."""
        raise NotImplementedError
