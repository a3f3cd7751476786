"""Tails of the noise of Laplace bases at their buckets, as bounds that many buckets share."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from trilift.counters.edit.base import (
    BaseSpec,
    level_scales,
    public_epochs,
    row_places,
    spec_chain,
    unit_scale,
)
from trilift.counters.edit.tails import grouped_quantiles, laplace_quantile
from trilift.lift import Chain, level_max_row_norms_sq, row_norms_sq
from trilift.lift.rows import row_entries

__all__ = ["laplace_quantiles", "octave_ends"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_EXACT_TAILS = 4096  # with more buckets all share one bound on their tails
_GROUPS = 64


def laplace_quantiles(spec: BaseSpec, start: int, stop: int, wanted: FloatArray) -> FloatArray:
    """Return bounds on the upper quantiles of the noise of buckets start..stop-1.

    Args:
        spec: of a Laplace kind.
        start: 0-based.
        stop: one past the last.
        wanted: ln of what each may fail with, shape (stop - start,).
    """
    if spec.capacity is None:
        pairs = zip(octave_ends(start, stop).tolist(), wanted.tolist(), strict=True)
        unit = np.array([_epoch_quantile(spec.kind, end, failure) for end, failure in pairs])
        return unit * unit_scale(spec)
    chain = spec_chain(spec.kind, spec.names).to_float()
    if spec.capacity > _EXACT_TAILS:
        return _by_groups([_group_bounds(chain, level_scales(spec), spec.capacity)], wanted)
    bounds: dict[int, float] = {}
    group = max(1, -(-spec.capacity // _GROUPS))
    values = []
    for index, failure in zip(range(start, stop), wanted.tolist(), strict=True):
        key = index // group
        if key not in bounds:
            bounds[key] = _group_quantile(spec, key * group, min((key + 1) * group, spec.capacity), failure)
        values.append(bounds[key])
    return np.array(values)


@lru_cache(maxsize=4096)
def _group_quantile(spec: BaseSpec, start: int, stop: int, ln_failure: float) -> float:
    """A bound for buckets start..stop-1 at once.

    The tail of a sum of independent symmetric unimodal variates grows with the size of every coefficient
    (Birnbaum 1948), so the sorted coefficients of all rows, the largest at each place, give a bound for
    every row.
    """
    chain, scales = spec_chain(spec.kind, spec.names).to_float(), level_scales(spec)
    steps = [np.array([math.ldexp(1.0, -p) if p >= 0 else 0.0 for p in entry]) for entry in row_places(spec)]
    largest, lattice = np.zeros(0), 0.0
    for index in range(start, stop):
        coefficients, slack = [], 0.0
        for scale, step, row in zip(scales, steps, row_entries(chain, index), strict=True):
            for block in row.values():
                coefficients.append(scale * np.abs(block))
                slack += float(np.abs(block) @ step)
        mine = np.sort(np.concatenate(coefficients))[::-1]
        size = max(mine.size, largest.size)
        largest = np.maximum(np.pad(mine, (0, size - mine.size)), np.pad(largest, (0, size - largest.size)))
        lattice = max(lattice, slack)
    return laplace_quantile(largest[largest > 0.0], ln_failure, lattice=lattice)


def _group_bounds(chain: Chain, scales: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Return for every level the largest sum a^2 and the largest |a| over the first ``count`` steps.

    A coefficient is a convex combination of entries of A's rows and of g, so no larger than the largest.
    """
    sums = scales**2 * level_max_row_norms_sq(chain, count)
    tops = [
        scale * max(float(np.abs(stage.A).max()), float(np.abs(stage.g).max(initial=0.0)))
        for scale, stage in zip(scales, chain.levels, strict=True)
    ]
    return np.asarray(sums), np.array(tops)


def _by_groups(groups: list[tuple[FloatArray, FloatArray]], wanted: FloatArray) -> FloatArray:
    sums = np.concatenate([sums for sums, _ in groups])
    tops = np.concatenate([tops for _, tops in groups])
    used = sums > 0
    unique, where = np.unique(wanted, return_inverse=True)
    columns = np.repeat(sums[used][:, None], unique.size, axis=1)
    return np.asarray(grouped_quantiles(columns, tops[used], unique)[where])


def octave_ends(start: int, stop: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return for every bucket the end of its quarter octave; those in one share a bound on their tails.

    >>> octave_ends(0, 12).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 10, 12, 12]
    """
    index = np.arange(start, stop, dtype=np.int64)
    bits = np.maximum(np.frexp(np.maximum(index, 1).astype(np.float64))[1] - 3, 0).astype(np.int64)
    return np.asarray(((index >> bits) + 1) << bits)


@lru_cache(maxsize=4096)
def _epoch_quantile(kind: str, end: int, ln_failure: float) -> float:
    """A bound at epsilon = 1 for all buckets of a quarter octave, which ends before ``end``."""
    layout = public_epochs(kind).layout
    first, last = end - max(1 << max((end - 1).bit_length() - 3, 0), 1), end - 1
    worst = 0.0
    for epoch in range(int(layout.epoch_of([first])[0]), int(layout.epoch_of([last])[0]) + 1):
        local = min(last, layout.ends[epoch] - 1) - layout.start(epoch)
        closed = [_closing_bounds(kind, number) for number in range(epoch)]
        cases = []
        if layout.closes_apart(epoch, local):
            cases.append([*closed, _closing_bounds(kind, epoch)])
            local -= 1
        if local >= 0:
            cases.append([*closed, _prefix_bounds(kind, epoch, local + 1)])
        for groups in cases:
            worst = max(worst, float(_by_groups(groups, np.array([ln_failure]))[0]))
    return worst


@lru_cache(maxsize=1024)
def _prefix_bounds(kind: str, epoch: int, count: int) -> tuple[FloatArray, FloatArray]:
    return _group_bounds(*_epoch_chain(kind, "epoch", epoch), count)


@lru_cache(maxsize=256)
def _closing_bounds(kind: str, epoch: int) -> tuple[FloatArray, FloatArray]:
    """The noise that stands for a finished epoch: of its separate total, or of its counter's last step."""
    layout = public_epochs(kind).layout
    apart = layout.shares[epoch] > 0
    chain, scales = _epoch_chain(kind, "total" if apart else "epoch", epoch)
    step = 0 if apart else layout.length(epoch) - 1
    return scales**2 * row_norms_sq(chain, [step])[:, 0], _group_bounds(chain, scales, step + 1)[1]


@lru_cache(maxsize=8)
def _epoch_chain(kind: str, part: str, epoch: int) -> tuple[Chain, FloatArray]:
    process: Any = public_epochs(kind).process(part, epoch)
    return process.chain.to_float(), np.array([float(scale) for scale in process.ledger.scales])
