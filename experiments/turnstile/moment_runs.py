"""One run of the second moment by rows (A4), on all streams and for all budgets, under one noise.

A row's counter is S + sigma U; the sums over rows of S^2, S U and U^2 give mean C^2 for every budget whose
noise is the same but for sigma.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.turnstile.blueprint import hash_words
from trilift.counters.turnstile.budget import Budget
from trilift.counters.turnstile.moment import RowSketch
from trilift.counters.turnstile.moment_bounds import RowPlan, mean_interval, row_plan
from trilift.counters.turnstile.polynomials import Polynomials
from trilift.experiments.turnstile.factors import beyond
from trilift.experiments.turnstile.noise_rows import rows_of
from trilift.experiments.turnstile.streams import Stream

__all__ = ["ACCURACY", "MOMENT", "RELATIVE", "moment_run"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

MOMENT = ("A4 raw", "A4")
"""Estimators: the mean square as it is, and without the noise's own."""

ACCURACY = 0.5
"""What the number of rows is chosen for."""

RELATIVE = 0.625
"""alpha of the errors that are measured: alpha_0 (1 + 1/4)."""

_ROWS = 16  # done at once


def _signs(plan: RowPlan, stream: Stream, *, seed: int) -> Any:
    """Return the signs of a stream's items, int8 of shape (rows, items)."""
    key = seed.to_bytes(32, "little")
    words = hash_words(key, stream_id=bytes(16), purpose="experiments/signs", shape=RowSketch.shape(plan))
    prints = np.random.default_rng([seed, 4]).integers(
        0, 1 << 64, int(stream.items.max()) + 1, dtype=np.uint64, endpoint=False
    )
    return np.ascontiguousarray(Polynomials.drawn(words).signs(prints, rows=plan.rows).T)


def moment_run(
    streams: Sequence[Stream],
    *,
    base: str,
    budgets: Sequence[Budget],
    failure: Fraction,
    seed: int,
    report: Callable[[float], None] = lambda share: None,
) -> list[dict[str, Any]]:
    """Do one run, with the arguments and records of ``distinct_runs.distinct_run``.

    "factor" is 1 + 0.625, and "additive" the error beyond 0.625 F2. "sketch_error" is how far the rows' exact
    mean square is off, relatively.
    """
    steps = len(streams[0].items)
    ticks = np.arange(steps, dtype=np.int64)
    plan = row_plan(steps, failure=float(failure), accuracy=ACCURACY)
    rows = rows_of(base, steps=steps, width=_ROWS, seed=seed)
    bases = [rows.base(budget.part(Fraction(1, plan.rows))) for budget in budgets]
    groups = list(dict.fromkeys(rows.group(b) for b in bases))
    of_group = {rows.group(b): b for b in bases}
    signs = [_signs(plan, stream, seed=seed) for stream in streams]
    exact = [np.zeros(steps) for _ in streams]
    cross = {(g, i): np.zeros(steps) for g in groups for i in range(len(streams))}
    noise_only = {g: np.zeros(steps) for g in groups}
    for start in range(0, plan.rows, _ROWS):
        some = range(start, min(start + _ROWS, plan.rows))
        noises = {g: rows.noise(of_group[g], copy=start // _ROWS) for g in groups}
        for g in groups:
            for row in some:
                noise_only[g] += noises[g][row - start].astype(np.float64) ** 2
        for i, stream in enumerate(streams):
            change = stream.signs.astype(np.int8)
            for row in some:
                sums = np.cumsum(signs[i][row][stream.items] * change, dtype=np.float64)
                for g in groups:
                    cross[g, i] += sums * noises[g][row - start]
                sums *= sums
                exact[i] += sums
        report(some.stop / plan.rows)
    records: list[dict[str, Any]] = []
    for number, law in enumerate(bases):
        g, sigma = rows.group(law), rows.sigma(law)
        shape = RowSketch.shape(plan)
        sketch = RowSketch(law, plan, np.ones(shape, dtype=np.uint64), failure=float(failure))
        tables = sketch.tables(ticks)
        for i, stream in enumerate(streams):
            total = exact[i] + 2.0 * sigma * cross[g, i] + sigma**2 * noise_only[g]
            found = _figures(stream, total / plan.rows, tables, plan)
            sketched = exact[i] / plan.rows
            inside = stream.moment > 0
            off = np.abs(sketched[inside] / stream.moment[inside] - 1.0)
            size = plan.rows + shape[0] * shape[1]
            for name, figures in found.items():
                record = {"budget": number, "estimator": name, "stream": stream.name, "words": size}
                records.append(record | figures | {"sketch_error": float(off.max(initial=0.0))})
    return records


def _figures(
    stream: Stream, square: FloatArray, tables: FloatArray, plan: RowPlan
) -> dict[str, dict[str, Any]]:
    """Return the figures of both estimators."""
    y = stream.moment.astype(np.float64)
    most = np.arange(1, len(y) + 1, dtype=np.float64) ** 2
    unclamped = square - tables[:, 0]
    low, high = mean_interval(unclamped, tables[:, 1], tables[:, 2], tables[:, 3], plan=plan)
    missed = bool(np.any((y < np.clip(low, 0.0, most)) | (y > np.clip(high, 0.0, most))))
    estimates = {"A4 raw": square, "A4": np.clip(unclamped, 0.0, most)}
    return {
        name: {
            "factor": 1.0 + RELATIVE,
            "additive": beyond(y, value, relative=RELATIVE),
            "ratio_95": None,
            "largest_error": beyond(y, value),
            "final_error": abs(float(value[-1]) - float(y[-1])) / max(float(y[-1]), 1.0),
            "missed": missed if name == "A4" else None,
        }
        for name, value in estimates.items()
    }
