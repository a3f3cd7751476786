"""The mechanisms in floating point, many runs at once. FOR SIMULATION ONLY: nothing here is private.

Each takes running sums of shape (runs, T + 1) and returns what it would release, (runs, T).

Source: "Edit-Neighboring Data Streams and Privacy under Continual Observation" (Andersson, Chaturvedi,
Henzinger, Safavi); constants that it leaves out as in docs/edit-streams.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from trilift.experiments.edit.display import extrapolated, latest
from trilift.experiments.edit.float_noise import FloatNoise
from trilift.experiments.edit.partitions import (
    Lengths,
    SparseThreshold,
    random_checkpoints,
    threshold_checkpoints,
)

__all__ = ["EditCounter", "Mechanism", "NoisyCounter", "SegmentCounter", "delays"]

Prefix = NDArray[np.int32]
Floats = NDArray[np.float64]


class Mechanism(Protocol):
    """What every simulated mechanism can do."""

    def simulate(self, prefix: Prefix, *, rng: np.random.Generator) -> Floats:
        """Return released values (runs, T) for running sums (runs, T + 1)."""


@dataclass(frozen=True)
class NoisyCounter:
    """Running sums plus noise that does not depend on them: BaseCC, GaussianCC and the like.

    Attributes:
        noise: its noise, a value a step.
    """

    noise: FloatNoise

    def simulate(self, prefix: Prefix, *, rng: np.random.Generator) -> Floats:
        """Return released values (runs, T)."""
        values = self.noise.draw(rng, runs=prefix.shape[0], count=prefix.shape[1] - 1)
        values += prefix[:, 1:]
        return values


@dataclass(frozen=True)
class SegmentCounter:
    """PartitionCC: segments end where their sum exceeds a noisy threshold; segment sums go into a counter.

    Attributes:
        rule: when a segment ends.
        noise: noise of the counter, a value a segment.
    """

    rule: SparseThreshold
    noise: FloatNoise

    def simulate(self, prefix: Prefix, *, rng: np.random.Generator) -> Floats:
        """Return released values (runs, T)."""
        checkpoints = threshold_checkpoints(self.rule, prefix=prefix, rng=rng)
        values = _noisy_sums(checkpoints, prefix, self.noise, rng)
        return latest(checkpoints, values, steps=prefix.shape[1] - 1)


@dataclass(frozen=True)
class EditCounter:
    """ECC and SimECC: sums at hidden checkpoints, shown after a noisy delay that is never too short.

    Attributes:
        rule: where checkpoints are: drawn (SimECC) or by a threshold on the sums (ECC).
        values: noise of the counts, a value a checkpoint.
        times: noise of the checkpoints' times.
        alphas: alphas(K), the offsets that make noisy times late, shape (K,).
        capacity: checkpoints at most; later ones are not shown.
        extrapolate: whether values are carried on at the mean rate until then, of inputs at most 1, instead
            of standing still.
    """

    rule: Lengths | SparseThreshold
    values: FloatNoise
    times: FloatNoise
    alphas: Callable[[int], Floats]
    capacity: int | None = None
    extrapolate: bool = False

    def checkpoints(self, prefix: Prefix, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw the true checkpoints, (runs, K), T + 1 where there is none."""
        runs, steps = prefix.shape[0], prefix.shape[1] - 1
        if isinstance(self.rule, SparseThreshold):
            found = threshold_checkpoints(self.rule, prefix=prefix, rng=rng)
        else:
            found = random_checkpoints(self.rule, rng=rng, runs=runs, steps=steps)
        return found if self.capacity is None else found[:, : self.capacity]

    def pairs(self, prefix: Prefix, *, rng: np.random.Generator) -> tuple[NDArray[np.int64], Floats]:
        """Return what is released: noisy times and counts of checkpoints, (runs, K); times T + 1 for none."""
        steps = prefix.shape[1] - 1
        checkpoints = self.checkpoints(prefix, rng=rng)
        values = _noisy_sums(checkpoints, prefix, self.values, rng)
        late = self.late(checkpoints, rng=rng)
        late[checkpoints > steps] = steps + 1
        return late, values

    def simulate(self, prefix: Prefix, *, rng: np.random.Generator) -> Floats:
        """Return released values (runs, T)."""
        steps = prefix.shape[1] - 1
        late, values = self.pairs(prefix, rng=rng)
        if self.extrapolate:
            return extrapolated(late, values, steps=steps, delays=self.alphas(late.shape[1]))
        return latest(late, values, steps=steps)

    def late(self, checkpoints: NDArray[np.int64], *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the noisy times max(t, ceil(t + N + alpha))."""
        runs, count = checkpoints.shape
        if not count:
            return checkpoints.copy()
        shift = self.times.draw(rng, runs=runs, count=count) + self.alphas(count)
        return checkpoints + np.maximum(np.ceil(shift).astype(np.int64), 0)


def delays(mechanism: EditCounter, *, prefix: Prefix, rng: np.random.Generator) -> tuple[float, float]:
    """Return the mean delay of a checkpoint in steps and the mean number of checkpoints of a run."""
    checkpoints = mechanism.checkpoints(prefix, rng=rng)
    real = checkpoints < prefix.shape[1]
    late = mechanism.late(checkpoints, rng=rng) - checkpoints
    return float(late[real].mean()) if real.any() else 0.0, float(real.sum(axis=1).mean())


def _noisy_sums(
    checkpoints: NDArray[np.int64], prefix: Prefix, noise: FloatNoise, rng: np.random.Generator
) -> Floats:
    runs, count = checkpoints.shape
    if not count:
        return np.zeros((runs, 0))
    sums = np.take_along_axis(prefix, np.minimum(checkpoints, prefix.shape[1] - 1), axis=1)
    values = noise.draw(rng, runs=runs, count=count)
    values += sums
    return values
