"""Candidates for the noise of a design: what a unit of budget gives and costs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from trilift.artifacts import catalogue_l2, load_stage_l2
from trilift.counters.defaults import default_names
from trilift.counters.edit.base import BOUNDED, GAUSSIAN, BaseSpec, spec_chain
from trilift.counters.edit.coupling import (
    EPOCH_FACTORS,
    Factors,
    chain_factors,
    plain_factors,
    toeplitz_factors,
)
from trilift.lift import horizon_scales, plan

__all__ = ["Unit", "round_capacity", "unit_of"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_LARGEST_L2 = 129


@dataclass(frozen=True)
class Unit:
    """A kind of base for a capacity.

    Attributes:
        kind: as in :class:`~trilift.counters.edit.base.BaseSpec`.
        capacity: number of buckets, or None.
        factors: what edit neighbours cost per unit of budget (Gaussian: squares).
        names: artifacts of a chain.
        scales: proportions of its noise scales.
    """

    kind: str
    capacity: int | None
    factors: Factors
    names: tuple[str, ...] = ()
    scales: tuple[float, ...] = ()

    @property
    def gaussian(self) -> bool:
        """Whether budgets are mu (and add up in squares) or epsilon."""
        return self.kind in GAUSSIAN

    def spec(self, budget: Fraction, *, change: Fraction = Fraction(1)) -> BaseSpec:
        """Return the base at a budget: mu or epsilon for one input that changes by ``change``."""
        mu, epsilon = (budget, None) if self.gaussian else (None, budget)
        return BaseSpec(self.kind, self.capacity, mu, epsilon, change, self.names, self.scales)

    def sd(self, indices: Any) -> FloatArray:
        """Return standard deviations at a unit of budget."""
        return self.spec(Fraction(1)).sd(indices)


def round_capacity(buckets: float) -> int:
    """Return a capacity that is at least this, on a coarse grid, so that few are ever computed.

    >>> [round_capacity(x) for x in (1, 9.5, 70, 1000)]
    [1, 10, 72, 1024]
    """
    n = max(1, int(-(-buckets // 1)))
    grain = 1 << max(0, n.bit_length() - 4)
    return -(-n // grain) * grain


@lru_cache(maxsize=256)
def unit_of(kind: str, capacity: int | None) -> Unit:
    """Return the candidate of a kind; chains are the planner's for the largest error over the capacity.

    Gaussian epochs whose counters are Toeplitz: see :data:`~trilift.counters.edit.coupling.EPOCH_FACTORS`;
    a relay has no totals, half of that. Laplace epochs: four inputs and two, by group privacy.
    """
    if kind == "toeplitz":
        return Unit(kind, capacity, toeplitz_factors(capacity or 1))
    if kind not in BOUNDED:
        factors = EPOCH_FACTORS if kind in GAUSSIAN else plain_factors(norm="l1")
        return Unit(kind, None, factors)
    steps = capacity or 1
    norm = "l1" if kind == "chain" else "l2"
    names = default_names(steps, objective="max") if kind == "chain" else _l2_names(steps)
    chain = spec_chain(kind, names)
    scales = tuple(float(s) for s in horizon_scales(chain, steps, objective="max", norm=norm))
    return Unit(kind, capacity, chain_factors(chain, steps, scales, norm=norm), names, scales)


@lru_cache(maxsize=64)
def _l2_names(steps: int) -> tuple[str, ...]:
    stages = {
        entry.name: load_stage_l2(entry.name).to_float()
        for entry in catalogue_l2()
        if entry.source == "shipped" and entry.certificate.size <= _LARGEST_L2
    }
    return plan(stages, steps, objective="max", keep=4, norm="l2").names
