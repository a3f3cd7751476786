"""The additive estimator, which recomputes the number of distinct items now and then, and the hybrid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from trilift.counters.turnstile.bases import make_base
from trilift.counters.turnstile.budget import Budget
from trilift.counters.turnstile.reading import Readings
from trilift.experiments.turnstile.noise_rows import public_key

__all__ = ["Recompute"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Recompute:
    """Releases D_t + noise every B steps; in between the last release stands.

    An event changes D by at most 2 at every release, so N releases have l1 sensitivity 2 N and squared l2
    sensitivity 4 N: noise of variance 2 N / rho, or Laplace noise of scale 2 N / epsilon.

    Attributes:
        steps: T.
        budget: of all releases.
        failure: of the errors that are stated.
        exact: whether releases have the exact noise of ``DistinctCounter(method="hybrid")``, or noise of the
            same law in floating point, not rounded.
    """

    steps: int
    budget: Budget
    failure: Fraction
    exact: bool = False

    @property
    def period(self) -> int:
        """B: balances what is stale against the noise, as (4.2^2 T / (2 rho))^(1/3); 9.2 for Laplace."""
        amount = float(self.budget.amount)
        if self.budget.law == "gaussian":
            best = math.pow(4.2**2 * self.steps / (2.0 * amount), 1.0 / 3.0)
            return max(1, math.ceil(best))
        tail = math.log(self.steps / float(self.failure)) * 2.0
        return max(1, math.ceil(math.sqrt(tail * self.steps / amount)))

    @property
    def releases(self) -> int:
        """N."""
        return -(-self.steps // self.period)

    @property
    def scale(self) -> float:
        """Standard deviation, or scale of Laplace noise."""
        amount = float(self.budget.amount)
        if self.budget.law == "gaussian":
            return math.sqrt(2.0 * self.releases / amount)
        return 2.0 * self.releases / amount

    @property
    def largest(self) -> float:
        """What no release's noise exceeds, but for the failure."""
        share = float(self.failure) / self.releases
        if self.budget.law == "gaussian":
            tail = self.scale * -NormalDist().inv_cdf(share / 2.0)
        else:
            tail = self.scale * -math.log(share)
        return tail + 0.5 if self.exact else tail  # rounding

    def errors(self) -> FloatArray:
        """Return E_t = (t - last release) + what noise may be, at all steps t = 1..T; t before the first."""
        t = np.arange(1, self.steps + 1)
        stale = t % self.period
        return np.where(t < self.period, t.astype(np.float64), stale + self.largest)

    def noise(self, seed: int) -> FloatArray:
        """Return the noise of the releases; the seed is public."""
        count = self.steps // self.period
        if self.exact:
            base = make_base("tree", budget=self.budget.part(Fraction(1, self.releases)), ticks=1)
            bank = base.bank(count, key=public_key(seed), stream_id=bytes(16), purpose="experiments/releases")
            return np.asarray(bank.at(np.zeros(1, dtype=np.int64))[0], dtype=np.float64)
        rng = np.random.default_rng([seed, 3])
        return (rng.normal if self.budget.law == "gaussian" else rng.laplace)(0.0, self.scale, count)

    def readings(self, truth: IntArray, *, noise: FloatArray) -> Readings:
        """Return what is released for a stream with that number of distinct items, under :meth:`noise`."""
        t = np.arange(1, self.steps + 1)
        count = self.steps // self.period
        released = np.concatenate([[0.0], truth[self.period - 1 :: self.period][:count] + noise])
        value = released[t // self.period]
        error = self.errors()
        low, high = np.maximum(value - error, 0.0), np.clip(value + error, 0.0, t)
        low = np.minimum(low, high)
        return Readings(t, np.clip(value, low, high), low, high)

    def combined(self, additive: Readings, other: Readings) -> Readings:
        """Return the hybrid: the additive value where it exceeds 2 E_t, else the other one in its reach."""
        low = np.maximum(additive.low, other.low)
        high = np.maximum(np.minimum(additive.high, other.high), low)
        inside = np.clip(other.estimate, additive.low, additive.high)
        value = np.where(additive.estimate > 2.0 * self.errors(), additive.estimate, inside)
        return Readings(additive.step, np.clip(value, low, high), low, high)
