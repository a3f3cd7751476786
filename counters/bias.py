"""One-sided tails of a process at every step: what a counter adds so that it never reports too little.

For many steps at once, so by bounds that need little of each step: of a chain's row at a step the sum of
squared coefficients on every level (exact) and the largest coefficient on every level (from above). That
gives a Chernoff bound for Laplace noise, which holds for the drawn discrete variates too
(:mod:`trilift.counters.tails`): from -ln(1 - a^2 h^2) <= (a / A)^2 (-ln(1 - A^2 h^2)) for |a| <= A, for every
h,

    Pr[sum a_i X_i >= x] <= exp(sum over levels of (sum a^2 / A^2) (-ln(1 - A^2 h^2)) - h x).

For Gaussian noise the quantile itself is used. Privacy rests on the failure being no larger than what is
asked for, accuracy on its being not much smaller.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from trilift.counters.edit.tails import gaussian_quantile
from trilift.lift.costs import row_norms_sq
from trilift.stream.epochs import EpochNoise
from trilift.stream.noise import Noise
from trilift.stream.process import NoiseProcess

__all__ = ["one_sided"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

_UP = 1.0 + 1e-9
_GRID = 64
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
        found = [
            _laplace_groups(process, np.atleast_1d(np.asarray(where, dtype=np.int64)))
            for process, where in parts
        ]
        shape = (-1, ln_failures.size)
        sums = np.concatenate([np.broadcast_to(a, (len(a), shape[1])) for a, _ in found])
        tops = np.concatenate([np.broadcast_to(b, (len(b), shape[1])) for _, b in found])
        return _chernoff(sums, tops, ln_failures) + rounding
    variances = np.zeros(ln_failures.size)
    for process, where in parts:
        steps = np.atleast_1d(np.asarray(where, dtype=np.int64))
        variances += process.variance(steps)
        rounding += _draw_rounding(process, int(steps[-1]))
    return np.sqrt(variances) * gaussian_quantile(ln_failures) * _UP + rounding


def _chernoff(sums: FloatArray, tops: FloatArray, ln_failures: FloatArray) -> FloatArray:
    """Return the least bound over a grid of h; every h gives a valid one. Shapes (groups, n), (n,)."""
    tops = np.maximum(tops, 1e-6 * tops.max(axis=0))
    limit = 1.0 / tops.max(axis=0)
    best = np.full(ln_failures.shape, np.inf)
    for fraction in (1.0 - np.geomspace(0.98, 2e-3, _GRID)).tolist():
        h = fraction * limit
        costs = (sums / tops**2 * -np.log1p(-((tops * h) ** 2))).sum(axis=0)
        best = np.minimum(best, (costs - ln_failures) / h)
    return np.asarray(best * _UP)


def _laplace_groups(process: Noise, steps: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return sum a^2 and a bound on |a| of every level and step, shapes (levels, n).

    A step meets a level at position p with weight s and at p - 1 with weight r, r + s <= 1. Each gives its
    block its weight times a row of A, and the block before its weight times (1 - w) g. If the two are in one
    block, that gets r A_1 + s A_2, and the one before (r (1 - w_1) + s (1 - w_2)) g; if not, the blocks get s
    A_2, r A_1 + s (1 - w_2) g and r (1 - w_1) g. Nothing lies before the first block.
    """
    chain = process.chain.to_float()
    scales = np.array([float(scale) for scale in process.ledger.scales])
    sums = scales[:, None] ** 2 * row_norms_sq(chain, steps)
    tops = np.empty_like(sums)
    place, s, r = steps, np.ones(steps.size), np.zeros(steps.size)
    lost = np.zeros(steps.size, dtype=bool)  # weight at a third position: then largest entries are taken
    for index, (stage, scale) in enumerate(zip(chain.levels, scales.tolist(), strict=True)):
        row, g = np.abs(stage.A).max(axis=1), float(np.abs(stage.g).max(initial=0.0))
        if index == len(chain.stages):
            at = np.minimum(place, stage.size - 1)
            before = np.minimum(np.maximum(place - 1, 0), stage.size - 1)
            bound = s * row[at] + r * row[before]
        else:
            block, digit = np.divmod(place, stage.size)
            own = np.where(digit > 0, digit - 1, stage.size - 1)  # of position p - 1
            same = digit > 0
            earlier = np.where(same, block, block - 1) > 0  # whether p - 1 has a block before its own
            left, right = r * (1.0 - stage.w[own]) * earlier, s * (1.0 - stage.w[digit]) * (block > 0)
            first, second = r * row[own], s * row[digit]
            bound = np.maximum.reduce([first + second, first + right * g, (left + right) * g])
            lost |= ~same & (left > 1e-12)
            s_above = s * stage.w[digit] + np.where(same, r * stage.w[own], 0.0)
            r = right + np.where(same, left, r * stage.w[own])
            place, s = block, s_above
        largest = max(float(row.max()), g)
        tops[index] = scale * np.where(lost, largest, np.minimum(bound, largest)) * _UP
    return np.asarray(sums), tops


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
