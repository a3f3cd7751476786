"""For tests only: what a turnstile counter hides, of a simulated counter.

Nothing in the library imports this module. Real counters refuse: their sums are as secret as the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.turnstile.budget import Budget
from trilift.counters.turnstile.counter import TurnstileCounter
from trilift.counters.turnstile.sketch import Linear
from trilift.lift.errors import StateError

__all__ = ["SilentBank", "SilentBase", "exact", "linear", "noisy", "replace_bank", "silence", "touched"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class SilentBank:
    """No noise at all."""

    width: int
    digest: bytes = bytes(32)

    def at(self, steps: IntArray) -> IntArray:
        """Return zeros, shape (k, width)."""
        return np.zeros((len(steps), self.width), dtype=np.int64)


@dataclass(frozen=True)
class SilentBase:
    """The law of no noise: variances and quantiles are 0."""

    ticks: int
    budget: Budget

    kind = "silent"
    simulated = True
    spent = Fraction(0)

    def bank(self, width: int, *, key: bytes, stream_id: bytes, purpose: str) -> SilentBank:
        """Return no noise."""
        return SilentBank(width)

    def variance(self, ticks: Any) -> FloatArray:
        """Return zeros."""
        return np.zeros(len(ticks))

    def upper(self, ticks: Any, *, failure: float, terms: int = 1) -> FloatArray:
        """Return zeros."""
        return np.zeros(len(ticks))

    def record(self) -> dict[str, Any]:
        """Return nothing that could be restored."""
        return {"kind": "silent"}

    def as_text(self) -> str:
        """Return what it is."""
        return "no noise (tests)"


def linear(counter: TurnstileCounter) -> Linear:
    """Return the mechanism of a simulated counter that is one linear sketch.

    Raises:
        StateError: a counter with a secret key, or another mechanism.
    """
    if counter._seed is None:
        raise StateError("only simulated counters show what they hide")
    if not isinstance(counter._run, Linear):
        raise StateError("the counter is not one linear sketch")
    return counter._run


def silence(counter: TurnstileCounter) -> None:
    """Take the noise away: thresholds, variances and noise become 0, so that answers are combinatorial."""
    run = linear(counter)
    base = SilentBase(run.base.ticks, run.base.budget)
    run.base = base
    run.sketch.base = base  # type: ignore[attr-defined]
    replace_bank(counter, SilentBank(run.sketch.width))


def replace_bank(counter: TurnstileCounter, bank: Any) -> None:
    """Let a simulated counter take its noise from elsewhere."""
    run = linear(counter)
    run.bank = bank
    run._held = None


def exact(counter: TurnstileCounter) -> IntArray:
    """Return the exact sums in all counters."""
    linear(counter)
    counts: IntArray = counter._now.held.copy()
    return counts


def touched(counter: TurnstileCounter, items: Any) -> tuple[IntArray, Integers]:
    """Return which counters insertions of items touch, and by how much: shapes (k, banks)."""
    where, change = linear(counter).sketch.touched(counter._prints.many(items))
    return where, np.broadcast_to(change, where.shape)


def noisy(counter: TurnstileCounter, items: Any, signs: Any) -> Integers:
    """Take events and return the noisy counters that were read, shape (reads, width)."""
    run, seen = linear(counter), []
    sketch = run.sketch
    original = sketch.read

    def spy(values: Integers, tables: FloatArray, *, steps: IntArray) -> Any:
        seen.append(values.copy())
        return original(values, tables, steps=steps)

    sketch.read = spy  # type: ignore[method-assign]
    try:
        counter.extend(items, signs)
    finally:
        sketch.read = original  # type: ignore[method-assign]
    return np.concatenate(seen) if seen else np.zeros((0, sketch.width), dtype=np.int64)
