"""Noise of one copy's counters at all steps: simulated over the Toeplitz root, or exact over a chain."""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import numpy as np
from trilift.counters.turnstile.bases import Base, make_base
from trilift.counters.turnstile.budget import Budget
from trilift.counters.turnstile.simulation import unit_noise

__all__ = ["ExactRows", "Rows", "UnitRows", "public_key", "rows_of"]

Floats = np.ndarray[Any, np.dtype[np.float32]]


def public_key(seed: int) -> bytes:
    """Return the key of a run's exact noise, 32 bytes, which anybody can compute."""
    return hashlib.sha256(f"turnstile experiments {seed}".encode()).digest()


class Rows(Protocol):
    """Noise of copies; the same copy has the same noise for every stream and estimator of one base."""

    def base(self, budget: Budget) -> Base:
        """Return the law of a bank with that budget."""
        ...

    def sigma(self, base: Base) -> float:
        """Return the unit in which noise is given."""
        ...

    def group(self, base: Base) -> Any:
        """Return what bases have in common whose noise is the same but for sigma."""
        ...

    def noise(self, base: Base, *, copy: int) -> Floats:
        """Return the noise of a copy, shape (width, steps)."""
        ...


class UnitRows:
    """Floating-point noise over the Toeplitz root, drawn once for all budgets: all have the same L z.

    Args:
        steps: T.
        width: counters of a copy.
        seed: of the run.
    """

    def __init__(self, *, steps: int, width: int, seed: int) -> None:
        self._steps, self._width, self._seed = steps, width, seed
        self._held: tuple[int, Floats] | None = None
        self._bases: dict[Budget, Base] = {}

    def base(self, budget: Budget) -> Base:
        """Return the law of a bank with that budget."""
        if budget not in self._bases:
            self._bases[budget] = make_base("toeplitz", budget=budget, ticks=self._steps, seed=self._seed)
        return self._bases[budget]

    def sigma(self, base: Base) -> float:
        """Return the standard deviation of z."""
        return float(base.sigma)  # type: ignore[attr-defined]

    def group(self, base: Base) -> Any:
        """All bases share the draws."""
        return "toeplitz"

    def noise(self, base: Base, *, copy: int) -> Floats:
        """Return L z of a copy's counters."""
        if self._held is None or self._held[0] != copy:
            rng = np.random.default_rng([self._seed, 1, copy])
            values = unit_noise(self._steps, width=self._width, rng=rng)
            self._held = copy, np.ascontiguousarray(values.T, dtype=np.float32)
        return self._held[1]


class ExactRows:
    """Exact keyed noise of certified chains, in integers.

    Args:
        steps: T.
        width: counters of a copy.
        seed: of the run; its key is public.
    """

    def __init__(self, *, steps: int, width: int, seed: int) -> None:
        self._steps, self._width, self._seed = steps, width, seed
        self._bases: dict[Budget, Base] = {}
        self._held: dict[int, tuple[int, Floats]] = {}

    def base(self, budget: Budget) -> Base:
        """Return the law of a bank with that budget."""
        if budget not in self._bases:
            self._bases[budget] = make_base("chain", budget=budget, ticks=self._steps)
        return self._bases[budget]

    def sigma(self, base: Base) -> float:
        """Return 1: noise is integers."""
        return 1.0

    def group(self, base: Base) -> Any:
        """Every base has draws of its own."""
        return id(base)

    def noise(self, base: Base, *, copy: int) -> Floats:
        """Return the noise of a copy's counters."""
        held = self._held.get(id(base))
        if held is None or held[0] != copy:
            bank = base.bank(
                self._width,
                key=public_key(self._seed),
                stream_id=bytes(16),
                purpose=f"experiments/copy {copy}",
            )
            values = bank.at(np.arange(self._steps, dtype=np.int64))
            held = self._held[id(base)] = copy, np.ascontiguousarray(values.T, dtype=np.float32)
        return held[1]


def rows_of(kind: str, *, steps: int, width: int, seed: int) -> Rows:
    """Return the noise of a kind of base: "toeplitz" or "chain"."""
    return (UnitRows if kind == "toeplitz" else ExactRows)(steps=steps, width=width, seed=seed)
