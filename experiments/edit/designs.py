"""Designs of edit-private mechanisms in floating point, many runs at once. FOR SIMULATION ONLY.

A :class:`~trilift.counters.edit.design.Design` says all that is public about a mechanism, calibrated by its
ledger. Here the same laws are drawn without keys: continuous noise, rounded where the mechanism rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trilift.counters.edit.base import BaseSpec, chain_ledger, spec_chain
from trilift.counters.edit.design import Design
from trilift.counters.edit.rules import PartRule, SimPartRule
from trilift.experiments.edit.float_noise import ChainNoise, EpochNoise, FloatNoise, Floats, ToeplitzNoise
from trilift.experiments.edit.mechanisms import EditCounter
from trilift.experiments.edit.partitions import SparseThreshold
from trilift.stream.keys import simulation_key

__all__ = ["DesignLengths", "LinkedNoise", "RoundedNoise", "float_noise", "mechanism_of"]

_FOREVER = 1 << 40  # steps that no simulation reaches
_LONGEST = 1 << 20  # buckets that are simulated where there is no horizon


@dataclass(frozen=True)
class RoundedNoise:
    """Noise rounded to a lattice by floor(u + 1/2).

    Attributes:
        noise: before rounding.
        places: of the lattice 2^-places.
    """

    noise: FloatNoise
    places: int

    def draw(self, rng: np.random.Generator, *, runs: int, count: int) -> Floats:
        """Draw (runs, count) values."""
        values = self.noise.draw(rng, runs=runs, count=count)
        unit = 2.0**self.places
        values *= unit
        values += 0.5
        np.floor(values, out=values)
        values /= unit
        return values


@dataclass(frozen=True)
class LinkedNoise:
    """Noise of consecutive epochs, each with a process of its own, and of the totals of finished ones.

    Attributes:
        epochs: (length, noise inside it, noise of its separate total or None) in turn. Without a separate
            total the last value of the epoch's own noise stands for it; with one, the epoch's last value has
            totals alone.
    """

    epochs: tuple[tuple[int, FloatNoise, FloatNoise | None], ...]

    def draw(self, rng: np.random.Generator, *, runs: int, count: int) -> Floats:
        """Draw (runs, count) values."""
        values = np.empty((runs, count))
        before = np.zeros(runs)
        begin = 0
        for length, inside, total in self.epochs:
            here = min(length, count - begin)
            if here <= 0:
                break
            own = inside.draw(rng, runs=runs, count=here) + before[:, None]
            if here == length:
                if total is None:
                    before = own[:, -1]
                else:
                    before = before + total.draw(rng, runs=runs, count=1)[:, 0]
                    own[:, -1] = before
            values[:, begin : begin + here] = own
            begin += here
        return values


@dataclass(frozen=True)
class DesignLengths:
    """Bucket lengths of a rule.

    Attributes:
        rule: of a design.
    """

    rule: SimPartRule

    def lengths(self, rng: np.random.Generator, *, runs: int, first: int, count: int) -> NDArray[np.int64]:
        """Draw the lengths of buckets first, ..., first + count - 1, numbered from 1; (runs, count)."""
        chance = -math.expm1(-1 / float(self.rule.scale))
        shape = (count, runs)
        Z = _geometric(rng, chance, shape) - _geometric(rng, chance, shape)
        if not self.rule.drift:
            return np.ascontiguousarray(self.rule.lengths(first - 1, Z).T)
        nominal = self.rule.nominal(first - 1, first - 1 + count)
        return np.ascontiguousarray(np.maximum(nominal[:, None] + Z, 1).T)

    def typical(self, first: int) -> float:
        """Return about how long bucket ``first`` is."""
        return max(self.rule.base + float(self.rule.drift) * math.log(first), 1.0)


def _geometric(rng: np.random.Generator, chance: float, shape: tuple[int, int]) -> NDArray[np.int64]:
    if chance < 1e-12:  # the geometric law is as good as exponential, and numpy's integers overflow
        return np.floor(rng.exponential(1 / chance, shape)).astype(np.int64)
    return rng.geometric(chance, shape)


def float_noise(spec: BaseSpec, *, count: int) -> FloatNoise:
    """Return the law of a base's first ``count`` values, before rounding."""
    if spec.kind == "toeplitz":
        return ToeplitzNoise(float(spec.sd([0])[0]))
    if spec.kind == "cc":
        return EpochNoise(float(spec.sd([0])[0]))  # its first value is a total of deviation C
    if spec.kind in ("l2-chain", "chain"):
        return _chain_noise(
            spec_chain(spec.kind, spec.names), chain_ledger(spec), laplace=spec.kind == "chain"
        )
    process: Any = public_process(spec)
    layout, epochs = process.layout, []
    for epoch, end in enumerate(layout.ends):
        length = layout.length(epoch)
        inside = _process_noise(process.process("epoch", epoch), laplace=not spec.gaussian)
        total = None
        if layout.shares[epoch] > 0:
            total = _process_noise(process.process("total", epoch), laplace=not spec.gaussian)
        epochs.append((length, inside, total))
        if end >= min(count, _FOREVER):
            break
    return LinkedNoise(tuple(epochs))


def public_process(spec: BaseSpec) -> Any:
    """Return the epochs of an unbounded base under a key that everybody knows."""
    built: Any = spec.build(key=simulation_key(0), stream_id=bytes(16), purpose="public")
    return built.fine


def _process_noise(process: Any, *, laplace: bool) -> FloatNoise:
    if hasattr(process, "chain"):
        return _chain_noise(process.chain, process.ledger, laplace=laplace)
    return ToeplitzNoise(math.sqrt(float(process.variance([0])[0])))


def _chain_noise(chain: Any, ledger: Any, *, laplace: bool) -> ChainNoise:
    levels = tuple((stage.A, stage.g, stage.w) for stage in (level.to_float() for level in chain.levels))
    return ChainNoise(levels, tuple(float(scale) for scale in ledger.scales), laplace)


def mechanism_of(design: Design) -> EditCounter:
    """Return a design's mechanism in simulation, for inputs 0 and 1."""
    rule: DesignLengths | SparseThreshold
    if isinstance(design.part, PartRule):
        part = design.part
        rule = SparseThreshold(
            float(part.tau),
            float(part.bucket_drift),
            float(part.clock_drift),
            part.shift,
            float(part.scale0),
            float(part.scale_t),
        )
    else:
        rule = DesignLengths(design.part)
    count = min(design.capacity or _FOREVER, design.horizon or _LONGEST)
    return EditCounter(
        rule,
        RoundedNoise(float_noise(design.values, count=count), design.rule.places),
        RoundedNoise(float_noise(design.times, count=count), 0),
        _alphas(design),
        design.capacity,
        design.display == "extrapolated",
    )


def _alphas(design: Design) -> Callable[[int], Floats]:
    return lambda count: np.asarray(design.alphas(0, count), dtype=np.float64)
