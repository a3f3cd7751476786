"""One run of all estimators of the number of distinct items, on all streams, under one noise.

Copies are done one after the other, and a copy's noise serves every stream, and every estimator and budget
that may share it: estimators are compared under the same noise, and runs are cheap. Hashes are ideal:
independent random words for every item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.turnstile.bases import Base
from trilift.counters.turnstile.blueprint import Common
from trilift.counters.turnstile.budget import Budget
from trilift.counters.turnstile.closer import cell_estimate
from trilift.counters.turnstile.detection import threshold_of
from trilift.counters.turnstile.distinct import make_sketch, sketch_options
from trilift.counters.turnstile.minhash import level_count, shown
from trilift.counters.turnstile.reading import Readings
from trilift.counters.turnstile.sketch import Sketch
from trilift.experiments.turnstile.detections import Detector, Moments, Placed
from trilift.experiments.turnstile.factors import beyond, least_factor, ratio_quantile
from trilift.experiments.turnstile.noise_rows import Rows, rows_of
from trilift.experiments.turnstile.recompute import Recompute
from trilift.experiments.turnstile.streams import Stream

__all__ = ["DISTINCT", "PURE", "distinct_run", "measured"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

DISTINCT = (
    "A2 source split",
    "A2",
    "A2 centred",
    "A2g",
    "A2g centred",
    "A2g closer",
    "A2g few-heavy",
    "A3s",
    "A3s centred",
    "additive",
    "hybrid",
)
"""Estimators: the paper's MinHash, grouped MinHash and its post-processings, signed groups, recomputation."""

PURE = ("A2g", "A2g centred", "A2g closer", "A2g few-heavy", "additive")
"""Those that pure budgets leave something to: copies share epsilon, so that A2's noise grows with them."""

CELL_TAIL = 0.05
OPTIONS = {"centre": False, "few_heavy": False, "closer": False, "copies": None}


@dataclass
class _Family:
    """One sketch at one budget: what is detected, for every stream."""

    name: str
    sketch: Any
    base: Base
    placing: str
    detectors: list[Detector] = field(default_factory=list)

    @property
    def copies(self) -> int:
        return int(getattr(self.sketch, "copies", 0) or self.sketch.groups)


def _families(rows: Rows, common: Common, budget: Budget, names: Sequence[str], seed: int) -> list[_Family]:
    """Return the sketches at a budget; those of one placing have the same hash functions."""
    wanted = {
        "A2 source split": ("minhash", Fraction(1, 2), "strong"),
        "A2": ("minhash", Fraction(1), "weak"),
        "A2g": ("grouped", Fraction(1), "weak"),
        "A3s": ("general", Fraction(1), "weak"),
        "hybrid": ("grouped", Fraction(1, 2), "weak"),
    }
    families = []
    for name, (method, share, thresholds) in wanted.items():
        if not any(other == name or other.startswith(f"{name} ") for other in names):
            continue
        own = replace(common, failure=common.failure / 2) if name == "hybrid" else common
        options = sketch_options(method, {**OPTIONS, "thresholds": thresholds}, common=own)
        base = rows.base(budget.part(share / options["banks"]))
        key = seed.to_bytes(32, "little")
        sketch = make_sketch(method, base=base, common=own, options=options, key=key, stream_id=bytes(16))
        placing = f"{method} {options['copies']}"
        families.append(_Family(name, sketch, base, placing))
    return families


class _Placing:
    """Where the events of a stream go, one copy after the other."""

    def __init__(self, sketch: Sketch, stream: Stream, words: Any, *, levels: int) -> None:
        where, change = sketch.touched(words)
        change = np.broadcast_to(change, where.shape)
        self._where, self._items = where, stream.items
        self._change = change, stream.signs
        self._levels, self._own = levels, where.shape[1] == 1
        self._grouped: Placed | None = None
        if self._own:  # every event in one group
            total = change[:, 0][stream.items] * stream.signs
            self._grouped = Placed(where[:, 0][stream.items], total, width=sketch.width)

    def sums(self, copy: int) -> list[Any]:
        """Return the counters of a copy or group, or None where nothing touches them."""
        levels = self._levels
        if self._grouped is not None:
            return [self._grouped.sums(copy * levels + level) for level in range(levels)]
        where = self._where[:, copy] - copy * levels
        change = self._change[0][:, copy][self._items] * self._change[1]
        placed = Placed(where[self._items], change, width=levels)
        return [placed.sums(level) for level in range(levels)]


def _detector(family: _Family, rows: Rows, tables: FloatArray) -> Detector:
    strong = None
    if family.name == "A2g":
        tail = CELL_TAIL / family.sketch.width
        strong = threshold_of(family.base.upper(np.arange(len(tables)), failure=tail)).astype(np.float64)
    return Detector(
        tables[:, 1],
        sigma=rows.sigma(family.base),
        levels=family.sketch.levels,
        signed=family.name == "A3s",
        strong=strong,
    )


def _clipped(readings: Readings, estimate: FloatArray) -> Readings:
    """Return readings with another estimate, moved into the interval."""
    return replace(readings, estimate=np.clip(estimate, readings.low, readings.high))


def measured(
    stream: Stream, readings: Readings, *, additive: FloatArray | float, stated: bool = True
) -> dict[str, Any]:
    """Return the figures of one estimator on one stream in one run.

    Args:
        stream: with the truth.
        readings: at all its steps.
        additive: beta, a number or one a step.
        stated: whether the interval is claimed to hold for that stream.
    """
    y = stream.distinct
    missed = bool(np.any((y < readings.low - 1e-9) | (y > readings.high + 1e-9)))
    return {
        "factor": least_factor(y, readings.estimate, additive=additive),
        "additive": float(np.max(additive)),
        "ratio_95": ratio_quantile(y, readings.estimate, share=0.95),
        "largest_error": beyond(y, readings.estimate),
        "missed": missed if stated else None,
    }


def distinct_run(
    streams: Sequence[Stream],
    *,
    base: str,
    budgets: Sequence[Budget],
    failure: Fraction,
    seed: int,
    names: Sequence[str] = DISTINCT,
    report: Callable[[float], None] = lambda share: None,
) -> list[dict[str, Any]]:
    """Do one run.

    Args:
        streams: of one length T.
        base: "toeplitz" (simulated) or "chain" (exact).
        budgets: each spent by every estimator.
        failure: of the intervals.
        seed: decides the noise and the hashes.
        names: estimators.
        report: told the share that is done.

    Returns:
        a record for every budget, estimator and stream: "budget" (index), "estimator", "stream", "words"
        and what :func:`measured` returns.
    """
    steps = len(streams[0].items)
    common = Common(steps, 1, None, failure)
    levels = level_count(common)
    rows = rows_of(base, steps=steps, width=levels, seed=seed)
    families = [_families(rows, common, budget, names, seed) for budget in budgets]
    ticks = np.arange(steps, dtype=np.int64)
    tables = {id(f): f.sketch.tables(ticks) for some in families for f in some}
    rng = np.random.default_rng([seed, 2])
    words = [
        rng.integers(0, 1 << 64, (int(s.items.max()) + 1, 2), dtype=np.uint64, endpoint=False)
        for s in streams
    ]
    placings: dict[tuple[str, int], _Placing] = {}
    moments: dict[tuple[Any, int], Moments] = {}
    for some in families:
        for f in some:
            f.detectors = [_detector(f, rows, tables[id(f)]) for _ in streams]
            for i, stream in enumerate(streams):
                if (f.placing, i) not in placings:
                    placings[f.placing, i] = _Placing(f.sketch, stream, words[i], levels=levels)
    most = max(f.copies for some in families for f in some)
    for copy in range(most):
        for i in range(len(streams)):
            sums: dict[str, list[Any]] = {}
            done = set()
            for some in families:
                for f in some:
                    if copy >= f.copies:
                        continue
                    if f.placing not in sums:
                        sums[f.placing] = placings[f.placing, i].sums(copy)
                    noise = rows.noise(f.base, copy=copy)
                    f.detectors[i].add(noise, sums[f.placing])
                    group = rows.group(f.base)
                    if f.name == "A2g" and group not in done:
                        done.add(group)
                        own = moments.setdefault((group, i), Moments(levels=levels, steps=steps))
                        own.add(noise, sums[f.placing])
        report((copy + 1) / most)
    records = []
    for number, some in enumerate(families):
        budget = budgets[number]
        for i, stream in enumerate(streams):
            readings: dict[str, tuple[Readings, FloatArray | float, int]] = {}
            for f in some:
                sums_of = moments.get((rows.group(f.base), i))
                readings |= _decoded(f, i, tables[id(f)], sums_of, rows=rows, law=budget.law)
            if "additive" in names or "hybrid" in names:
                recompute = Recompute(steps, budget.part(Fraction(1, 2)), failure / 2, exact=base == "chain")
                readings |= _recomputed(stream, recompute, readings, noise=recompute.noise(seed))
            for name in names:
                shown_, beta, size = readings[name]
                stated = stream.strict or name in ("A3s", "A3s centred", "additive")
                record = {"budget": number, "estimator": name, "stream": stream.name, "words": size}
                records.append(record | measured(stream, shown_, additive=beta, stated=stated))
    return records


def _decoded(
    f: _Family, i: int, tables: FloatArray, moments: Moments | None, *, rows: Rows, law: str
) -> dict[str, tuple[Readings, FloatArray | float, int]]:
    """Return what a sketch shows of a stream, raw, centred and so on: name -> (readings, beta, words)."""
    detector, sketch = f.detectors[i], f.sketch
    middle = detector.medians()
    groups = 1 if f.name in ("A2 source split", "A2") else f.copies
    raw = groups * np.exp2(middle)
    steps = np.arange(1, len(raw) + 1, dtype=np.int64)
    size = sketch.width + (2 * sketch.copies if f.name in ("A2 source split", "A2") else 0)
    low = np.where(middle > 0, raw / 16.0, 0.0)
    plain = shown(raw, low, 4.0 * tables[:, 2] * raw, steps=steps, most=sketch.common.most)
    tau = np.maximum(tables[:, 0], 1.0)
    centre = np.sqrt(2.0) * tau if f.name == "A3s" else np.sqrt(tau)
    result: dict[str, tuple[Readings, FloatArray | float, int]] = {f.name: (plain, float(groups), size)}
    centred = _clipped(plain, raw * centre)
    beta = groups * centre
    result[f"{f.name} centred"] = centred, beta, size
    if f.name == "A2g" and moments is not None:
        variance = f.base.variance(np.arange(len(raw)))
        least, most = moments.limits(rows.sigma(f.base), variance, kurtosis=2.0 if law == "gaussian" else 5.0)
        closer = _clipped(plain, np.clip(centred.estimate, least, most))
        result["A2g closer"] = closer, beta, size
        cells = cell_estimate(detector.cells, groups=groups, levels=sketch.levels, most=sketch.common.most)
        few = np.where(middle <= 1, np.maximum(cells, 1.0), centred.estimate)
        result["A2g few-heavy"] = _clipped(plain, np.clip(few, least, most)), beta, size
    return result


def _recomputed(
    stream: Stream,
    recompute: Recompute,
    readings: dict[str, tuple[Readings, FloatArray | float, int]],
    *,
    noise: FloatArray,
) -> dict[str, tuple[Readings, FloatArray | float, int]]:
    """Return the additive estimator at half of the budget, and the hybrid with MinHash at the other half."""
    additive = recompute.readings(stream.distinct, noise=noise)
    size = int(min(len(stream.items), stream.items.max() + 1))
    allowed = recompute.errors()
    result: dict[str, tuple[Readings, FloatArray | float, int]] = {"additive": (additive, allowed, size)}
    if "hybrid" in readings:
        other, _, width = readings["hybrid centred"]
        result["hybrid"] = recompute.combined(additive, other), readings["hybrid centred"][1], size + width
    return result
