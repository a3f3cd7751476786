"""Domain reduction (A3) at some steps: it keeps too many counters to be read at every step.

At one step the noise of all counters is independent and normal, so what a step shows is simulated exactly
without the steps before it; the steps of one run are not independent of each other in their hashes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.turnstile.blueprint import Common
from trilift.counters.turnstile.budget import Budget
from trilift.counters.turnstile.distinct import make_sketch, sketch_options
from trilift.counters.turnstile.simulation import ToeplitzBase
from trilift.experiments.turnstile.distinct_runs import OPTIONS
from trilift.experiments.turnstile.streams import Stream

__all__ = ["maps_run"]


def frequencies(stream: Stream, step: int) -> Any:
    """Return the frequency of every item after ``step`` events."""
    size = int(stream.items.max()) + 1
    sums = np.bincount(stream.items[:step], weights=stream.signs[:step], minlength=size)
    return np.rint(sums).astype(np.int64)


def maps_run(
    streams: Sequence[Stream],
    *,
    budgets: Sequence[Budget],
    failure: Fraction,
    seed: int,
    steps: Sequence[int],
) -> list[dict[str, Any]]:
    """Do one run over the simulated Toeplitz root.

    Args:
        streams: of one length T.
        budgets: Gaussian ones.
        failure: of the intervals.
        seed: decides noise and hashes.
        steps: numbers of events after which it is read.

    Returns:
        a record for every budget and stream, as of the other runs; "factor" is for the last of the steps with
        a true answer of at least 1, beside additive 1.
    """
    horizon = len(streams[0].items)
    common = Common(horizon, 1, None, failure)
    options = sketch_options("general-maps", {**OPTIONS, "thresholds": "weak"}, common=common)
    rng = np.random.default_rng([seed, 5])
    laws = [
        ToeplitzBase.make(budget.part(Fraction(1, options["banks"])), ticks=horizon, seed=seed)
        for budget in budgets
    ]
    keyed: dict[str, Any] = {"key": seed.to_bytes(32, "little"), "stream_id": bytes(16)}
    sketches = [
        make_sketch("general-maps", base=law, common=common, options=options, **keyed) for law in laws
    ]
    records = []
    for stream in streams:
        words = rng.integers(0, 1 << 64, (int(stream.items.max()) + 1, 2), dtype=np.uint64, endpoint=False)
        worst = [1.0] * len(budgets)
        missed = [False] * len(budgets)
        for step in steps:
            x = frequencies(stream, step)
            present = np.flatnonzero(x)
            true = float(len(present))
            exact = sketches[0].increments(
                words[present], x[present], np.zeros(len(present), dtype=np.int64), count=1
            )[0]
            unit = rng.standard_normal(len(exact), dtype=np.float32)
            for k, (law, sketch) in enumerate(zip(laws, sketches, strict=True)):
                at = np.array([step - 1])
                sd = np.float32(np.sqrt(law.variance(at))[0])
                values = (exact + np.floor(sd * unit + np.float32(0.5)).astype(np.int64))[None]
                shown = sketch.read(values, sketch.tables(at), steps=at + 1)
                estimate = float(shown.estimate[0])
                missed[k] |= not float(shown.low[0]) <= true <= float(shown.high[0])
                if true > 0:
                    worst[k] = max((true - 1.0) / estimate, (estimate - 1.0) / true, 1.0)
        records += [
            {
                "budget": k,
                "estimator": "A3",
                "stream": stream.name,
                "words": sketches[0].width,
                "factor": worst[k],
                "additive": 1.0,
                "ratio_95": None,
                "largest_error": None,
                "missed": missed[k],
            }
            for k in range(len(budgets))
        ]
    return records
