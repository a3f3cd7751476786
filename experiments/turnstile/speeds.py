"""Updates a second of whole turnstile counters, and their memory, for a million events.

    python -m trilift.experiments.turnstile.speeds --out docs/measurements/turnstile_speeds.json

The stream inserts distinct items and removes them again. Times are processor times of all threads, memory is
the growth of the largest resident set. Counters that are read at every step are stopped after a while.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from trilift.experiments.turnstile.streams import make_stream
from trilift.experiments.turnstile.whole_runs import rate

__all__ = ["PLAN", "speeds"]

PLAN: tuple[tuple[str, str, int, int], ...] = (
    ("A2g", "rho", 10**6, 1000),
    ("A2g", "rho", 10**6, 1),
    ("A4s", "rho", 10**6, 1000),
    ("A4s", "rho", 10**5, 1),
    ("A2g", "epsilon", 10**6, 1000),
    ("A4s", "epsilon", 10**6, 1000),
    ("hybrid", "rho", 10**6, 1000),
    ("A4", "rho", 10**6, 1000),
)
"""Estimator, kind of budget (1 of it), T and how many events there are to a read."""


def _resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def speeds(
    *,
    scale: int = 1,
    limit_s: float = 30.0,
    report: Callable[[dict[str, Any]], None] = lambda row: None,
) -> list[dict[str, Any]]:
    """Measure the plan.

    Args:
        scale: divides every T, for a quick look.
        limit_s: seconds after which a counter is stopped.
        report: told every row.

    Returns:
        rows of :func:`trilift.experiments.turnstile.whole_runs.rate` with the budget and "grown_mb": by how
        much the process grew. Counters that need less than the ones before them show 0.
    """
    rows = []
    for name, law, steps, every in PLAN:
        stream = make_stream("unit", steps=max(100, steps // scale), rng=np.random.default_rng(0))
        before = _resident_mb()
        row = rate(
            name,
            stream,
            every=min(every, len(stream.items)),
            amount={law: Fraction(1)},
            limit_s=limit_s,
        )
        rows.append(row | {law: 1.0, "grown_mb": round(_resident_mb() - before, 1)})
        report(rows[-1])
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write JSON."""
    parser = argparse.ArgumentParser(description="Measure updates a second of turnstile counters.")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--scale", type=int, default=1, help="divide every length by this")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds a counter")
    chosen = parser.parse_args(arguments)
    rows = speeds(
        scale=max(1, chosen.scale),
        limit_s=chosen.limit,
        report=lambda row: print(row, file=sys.stderr, flush=True),
    )
    rows = [row | {"updates_per_s": round(row["updates_per_s"])} for row in rows]
    lines = ",\n".join(json.dumps(row) for row in rows)
    text = f'{{"time": "processor time of all threads", "speeds": [\n{lines}\n]}}\n'
    if chosen.out is None:
        print(text, end="")
    else:
        chosen.out.write_text(text, encoding="utf-8")
        print(chosen.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
