"""The noise beneath turnstile counters: a factorisation, its exact ledger, deviations and tails.

A *tick* is a released step: with ``every=k`` the counters take the sums of k events at once, and the noise
has one step a tick. Between neighbours the sums of one tick change as the one event does, so the budget is
the same; there are k times fewer noise values, and less noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from trilift.counters.defaults import chain_of, default_names
from trilift.counters.levels import SavedLevel, restored_chain, saved_levels
from trilift.counters.turnstile.budget import BANK_CHANGE, Budget
from trilift.counters.turnstile.tails import mixture_quantiles
from trilift.lift import Chain
from trilift.lift.budget import horizon_scales
from trilift.lift.checks import choice
from trilift.lift.costs import row_norms_sq
from trilift.lift.errors import ParameterError
from trilift.lift.tree_chains import binary_tree_chain
from trilift.stream.bank import NoiseBank

__all__ = ["BASES", "Bank", "Base", "ChainBase", "make_base", "restored_base"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]

BASES = ("chain", "tree", "toeplitz")

_UP = 1.0 + 1e-9
_MOST_DRAWS = 1 << 25  # of one block


class Bank(Protocol):
    """Noise of many counters, as integers: :class:`trilift.stream.bank.NoiseBank`, or a simulated one."""

    @property
    def digest(self) -> bytes:
        """Everything that the noise depends on but the key."""
        ...

    def at(self, steps: IntArray) -> Integers:
        """Return the noise at strictly increasing 0-based ticks, shape (k, width)."""
        ...


class Base(Protocol):
    """One counter's noise law; a bank of any width has it in every counter, independently."""

    @property
    def kind(self) -> str:
        """One of :data:`BASES`."""
        ...

    @property
    def ticks(self) -> int:
        """Number of released steps."""
        ...

    @property
    def budget(self) -> Budget:
        """The share of one bank."""
        ...

    @property
    def simulated(self) -> bool:
        """Whether the noise is floating point, for simulations only."""
        ...

    @property
    def spent(self) -> Fraction:
        """What one bank spends, exact: epsilon or rho."""
        ...

    def bank(self, width: int, *, key: bytes, stream_id: bytes, purpose: str) -> Bank:
        """Return the noise of ``width`` counters."""
        ...

    def variance(self, ticks: Any) -> FloatArray:
        """Return E[N^2] of the noise N before its rounding, at 0-based ticks."""
        ...

    def upper(self, ticks: Any, *, failure: float, terms: int = 1) -> FloatArray:
        """Return x with Pr[N >= x] <= failure at 0-based ticks, N the noise before its rounding.

        With ``terms``, N is the sum of the noises of so many counters.
        """
        ...

    def record(self) -> dict[str, Any]:
        """Return what a state keeps."""
        ...

    def as_text(self) -> str:
        """Return the mechanism in words."""
        ...


def normal_upper(failure: float) -> float:
    """Return z with Pr[N(0, 1) >= z] <= failure < 1/2, rounded up."""
    return -NormalDist().inv_cdf(failure) * _UP


@dataclass(frozen=True)
class ChainBase:
    """Exact noise over a chain of certified artifacts, or over the binary tree.

    Attributes:
        kind: "chain" or "tree".
        ticks: number of released steps.
        budget: of one bank.
        names: artifacts, finest first; None for the tree.
        chain: the chain.
        ledger: its exact ledger, for a change of 2.
    """

    kind: str
    ticks: int
    budget: Budget
    names: tuple[str, ...] | None
    chain: Chain
    ledger: Any

    @property
    def simulated(self) -> bool:
        """False: the noise is exact."""
        return False

    @property
    def spent(self) -> Fraction:
        """What one bank spends: epsilon, or rho = (squared mu spent) / 2."""
        if self.budget.law == "laplace":
            return Fraction(self.ledger.spent)
        return Fraction(self.ledger.spent_sq) / 2

    def bank(self, width: int, *, key: bytes, stream_id: bytes, purpose: str) -> NoiseBank:
        """Return the noise of ``width`` counters, on the integers.

        Raises:
            ParameterError: so many counters that a block of their noise does not fit into memory.
        """
        rows = max(len(level.row_scales) for level in self.ledger.levels)
        if width * rows > _MOST_DRAWS:
            raise ParameterError(
                f"{width} counters need too much memory: give a universe, or a shorter horizon"
            )
        return NoiseBank(
            self.chain,
            self.ledger,
            width=width,
            horizon=self.ticks,
            key=key,
            stream_id=stream_id,
            purpose=purpose,
        )

    @cached_property
    def _floats(self) -> tuple[Chain, FloatArray]:
        return self.chain.to_float(), np.array([float(scale) for scale in self.ledger.scales])

    def _parts(self, ticks: Any) -> FloatArray:
        """Squared scales times squared row norms, shape (levels, k)."""
        chain, scales = self._floats
        return np.asarray(scales[:, None] ** 2 * row_norms_sq(chain, ticks))

    def variance(self, ticks: Any) -> FloatArray:
        """Return E[N^2] at 0-based ticks: s_l^2 |row_l|^2 summed over the levels, twice that for Laplace.

        The draws being rounded to, or discrete on, a lattice at least 2^10 times finer than their scale adds
        less than a relative 1e-6.
        """
        factor = 2.0 if self.budget.law == "laplace" else 1.0
        return np.asarray(factor * np.asarray(sum(self._parts(ticks))))

    def upper(self, ticks: Any, *, failure: float, terms: int = 1) -> FloatArray:
        """Return x with Pr[N >= x] <= failure at 0-based ticks, N the sum of ``terms`` counters' noises.

        Gaussian: the quantile, exact but for the rounding of floats. Laplace: a bound from each level's
        squared row norm and largest coefficient (:func:`trilift.counters.turnstile.tails.mixture_quantiles`).
        """
        parts = terms * self._parts(ticks)
        if self.budget.law == "gaussian":
            return np.asarray(np.sqrt(np.asarray(sum(parts))) * normal_upper(failure))
        tops, lattice = self._coefficients
        return mixture_quantiles(parts, tops, ln_failure=math.log(failure), lattice=terms * lattice)

    @cached_property
    def _coefficients(self) -> tuple[FloatArray, float]:
        """Bounds on each level's coefficients, and on what all draws may be off by as they are discrete.

        Coefficients are convex combinations of entries of A's rows and of g, so no larger than the largest;
        the same holds for the l1 norms of a level's rows.
        """
        chain, scales = self._floats
        tops, lattice = [], 0.0
        for scale, stage, entry in zip(scales, chain.levels, self.ledger.levels, strict=True):
            tops.append(scale * max(float(np.abs(stage.A).max()), float(np.abs(stage.g).max(initial=0.0))))
            row = float(np.abs(stage.A).sum(axis=1).max()) + float(np.abs(stage.g).sum())
            lattice += math.ldexp(row, -entry.coarsest)
        return np.array(tops), lattice * _UP

    def record(self) -> dict[str, Any]:
        """Return the names and the integer scales: a counter is continued with these or not at all."""
        levels = saved_levels(self.chain, self.ledger)
        return {
            "kind": self.kind,
            "names": None if self.names is None else list(self.names),
            "levels": [[level.sha256, level.scale, level.places] for level in levels],
        }

    def as_text(self) -> str:
        """Return the mechanism in words."""
        made = "the binary tree" if self.names is None else "a chain of " + " / ".join(self.names)
        law = (
            "exact discrete Laplace noise"
            if self.budget.law == "laplace"
            else "Gaussian noise, rounded once and exactly,"
        )
        return f"{law} over {made}"


def _norm(budget: Budget) -> str:
    return "l1" if budget.law == "laplace" else "l2"


def _ledger(chain: Chain, budget: Budget, ticks: int, levels: Sequence[SavedLevel] | None) -> Any:
    pairs = None if levels is None else [(level.scale, level.places) for level in levels]
    scales = horizon_scales(chain, ticks, objective="max", norm=_norm(budget)) if pairs is None else None
    change = Fraction(BANK_CHANGE)
    if budget.law == "laplace":
        from trilift.stream.ledger import make_ledger, restore_ledger

        if pairs is None:
            return make_ledger(chain, budget.amount, scales=scales, change=change)
        return restore_ledger(chain, budget.amount, scales=pairs, change=change)
    from trilift.stream.gaussian_ledger import make_gaussian_ledger, restore_gaussian_ledger

    mu = budget.mu or Fraction(0)
    if pairs is None:
        return make_gaussian_ledger(chain, mu, scales=scales, change=change)
    return restore_gaussian_ledger(chain, mu, scales=pairs, change=change)


def make_base(kind: str, *, budget: Budget, ticks: int, seed: int | None = None) -> Base:
    """Return the noise of one bank.

    Args:
        kind: "auto" (a chain of artifacts), "chain", "tree" (binary, any horizon), "toeplitz" (the square
            root of the all-ones triangle, in floating point, with a seed and for simulations only).
        budget: of the bank.
        ticks: number of released steps.
        seed: of a simulation, or None.

    Raises:
        ParameterError: another kind; "toeplitz" without a seed or with Laplace noise.
    """
    chosen = "chain" if choice("base", kind, ("auto", *BASES)) == "auto" else kind
    if chosen == "toeplitz":
        if seed is None:
            raise ParameterError(
                "base='toeplitz' is floating point, for simulations only: give simulation_seed"
            )
        from trilift.counters.turnstile.simulation import ToeplitzBase

        return ToeplitzBase.make(budget, ticks=ticks, seed=seed)
    if chosen == "tree":
        names, chain = None, binary_tree_chain(ticks)
    else:
        names = default_names(ticks, objective="max", norm=_norm(budget))
        chain = chain_of(names, norm=_norm(budget))
    chain.check_horizon(ticks)
    return ChainBase(chosen, ticks, budget, names, chain, _ledger(chain, budget, ticks, None))


def restored_base(record: dict[str, Any], *, budget: Budget, ticks: int, seed: int | None = None) -> Base:
    """Return the noise that a state describes, its integer scales unchanged, its budget proved again.

    Raises:
        ParameterError, ReplayError, KeyError, TypeError, ValueError: a record that is no such noise.
    """
    if record["kind"] == "toeplitz":
        return make_base("toeplitz", budget=budget, ticks=ticks, seed=seed)
    levels = [SavedLevel(str(sha256), int(scale), int(places)) for sha256, scale, places in record["levels"]]
    if choice("kind", record["kind"], BASES) == "tree":
        names, chain = restored_chain(binary_tree_chain(ticks), levels)
    else:
        names, chain = restored_chain(record["names"], levels, norm=_norm(budget))
    chain.check_horizon(ticks)
    return ChainBase(record["kind"], ticks, budget, names, chain, _ledger(chain, budget, ticks, levels))
