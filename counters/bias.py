"""One-sided tails of a process at every step: what a counter adds so that it never reports too little.

For many steps at once, so by bounds that need little of each step: of a chain's row at a step the sum of
squared coefficients on every level (exact) and the largest coefficient on every level (of all steps). That
gives a Chernoff bound for Laplace noise (:func:`trilift.counters.edit.tails.grouped_quantiles`) which is a
little above the step's own best one; for Gaussian noise the quantile itself is used. Privacy rests on the
failure being no larger than what is asked for, accuracy on its being not much smaller.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from trilift.counters.edit.tails import gaussian_quantile, grouped_quantiles
from trilift.lift.costs import row_norms_sq
from trilift.stream.epochs import EpochNoise
from trilift.stream.noise import Noise
from trilift.stream.process import NoiseProcess

__all__ = ["one_sided"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

_UP = 1.0 + 1e-9
_TOEPLITZ_LATTICE = 2.0**-32


def one_sided(noise: NoiseProcess, steps: IntArray, ln_failures: FloatArray) -> FloatArray:
    """Return x with Pr[noise of step <= -x] <= e^ln_failure, every rounding of released values included.

    Args:
        noise: a process of Laplace or of Gaussian noise.
        steps: 0-based, strictly increasing, shape (n,).
        ln_failures: shape (n,), below ln(1/2).
    """
    if not isinstance(noise, EpochNoise):
        return _of_parts([(noise, steps)], noise.places, ln_failures)
    result = np.empty(steps.size)
    layout = noise.layout
    epochs = layout.epoch_of(steps)
    for epoch in np.unique(epochs).tolist():
        inside = epochs == epoch
        local = steps - layout.start(epoch)
        apart = inside & (local == layout.length(epoch) - 1) & bool(layout.shares[epoch] > 0)
        for chosen in (inside & ~apart, apart):
            if not chosen.any():
                continue
            found = noise.parts(int(steps[chosen][-1]))
            parts = [
                (noise.process(kind, number), local[chosen] if (kind, number) == ("epoch", epoch) else where)
                for kind, number, where in found
            ]
            result[chosen] = _of_parts(parts, noise.places, ln_failures[chosen])
    return result


def _of_parts(parts: list[tuple[Any, Any]], places: int, ln_failures: FloatArray) -> FloatArray:
    rounding = len(parts) * math.ldexp(0.5, -places)
    if all(isinstance(process, Noise) for process, _ in parts):
        groups, largest = [], []
        for process, where in parts:
            sums, tops = _laplace_groups(process, np.atleast_1d(np.asarray(where, dtype=np.int64)))
            groups.append(np.broadcast_to(sums, (len(sums), ln_failures.size)))
            largest.append(tops)
        sums, tops = np.concatenate(groups), np.concatenate(largest)
        used = sums.max(axis=1) > 0
        return grouped_quantiles(sums[used], tops[used], ln_failures) + rounding
    variances = np.zeros(ln_failures.size)
    for process, where in parts:
        steps = np.atleast_1d(np.asarray(where, dtype=np.int64))
        variances += process.variance(steps)
        rounding += _draw_rounding(process, int(steps[-1]))
    return np.sqrt(variances) * gaussian_quantile(ln_failures) * _UP + rounding


def _laplace_groups(process: Noise, steps: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return sum a^2 of every level and step, shape (levels, n), and every level's largest |a|, (levels,).

    A step meets a level at two positions at most, with weights that add up to at most 1, and each gives a
    block its weight times a row of A, or (the block before) at most its weight times g.
    """
    chain = process.chain.to_float()
    scales = np.array([float(scale) for scale in process.ledger.scales])
    sums = scales[:, None] ** 2 * row_norms_sq(chain, steps)
    tops = [
        scale * max(float(np.abs(stage.A).max()), float(np.abs(stage.g).max(initial=0.0)))
        for scale, stage in zip(scales, chain.levels, strict=True)
    ]
    return np.asarray(sums), np.array(tops)


def _draw_rounding(process: Any, step: int) -> float:
    """Return how far the noise of rounded draws lies from that of unrounded ones: half a step a draw.

    Chains: a level's scale is at least 2^10 of its rows' lattice steps, so |row|_1 scale / 2^11.
    """
    if not hasattr(process, "chain"):
        return (2.0 * math.sqrt(step + 1) + 1.0) * 0.5 * _TOEPLITZ_LATTICE
    scales = np.array([float(scale) for scale in process.ledger.scales])
    rows = [
        float(np.abs(stage.A).sum(axis=1).max() + np.abs(stage.g).sum())
        for stage in process.chain.to_float().levels
    ]
    return float(scales @ np.array(rows)) * 2.0**-11 * _UP
