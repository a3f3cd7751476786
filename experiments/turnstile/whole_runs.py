"""Whole counters, as they are used: their speed, and estimators that only they show."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.turnstile.distinct import DistinctCounter
from trilift.counters.turnstile.moment_bounds import table_shape
from trilift.counters.turnstile.second_moment import SecondMoment
from trilift.experiments.turnstile.factors import beyond, ratio_quantile
from trilift.experiments.turnstile.moment_runs import ACCURACY, RELATIVE
from trilift.experiments.turnstile.streams import Stream

__all__ = ["COUNTERS", "default_run", "make_counter", "rate", "tables_run"]

COUNTERS = ("A2", "A2g", "A3s", "hybrid", "A4", "A4s")
"""Estimators whose speed is measured."""

_BATCH = 1 << 15
_RARE = 100  # events a read from which on whole batches are passed


def make_counter(
    name: str, *, horizon: int, every: int, amount: dict[str, Fraction], base: str = "auto", seed: int = 1
) -> Any:
    """Return a whole counter of an estimator.

    Args:
        name: one of :data:`COUNTERS`.
        horizon, every: of the counter.
        amount: {"rho": ...} or {"epsilon": ...}.
        base: of the counter.
        seed: public.
    """
    common: dict[str, Any] = {
        **amount,
        "horizon": horizon,
        "every": every,
        "base": base,
        "simulation_seed": seed,
    }
    if name in ("A4", "A4s"):
        return SecondMoment(method="rows" if name == "A4" else "bucketed", **common)
    methods = {"A2": "minhash", "A2g": "grouped", "A3s": "general", "hybrid": "hybrid"}
    return DistinctCounter(method=methods[name], **common)


def rate(
    name: str,
    stream: Stream,
    *,
    every: int,
    amount: dict[str, Fraction],
    base: str = "auto",
    limit_s: float | None = None,
) -> dict[str, Any]:
    """Return how many updates a whole counter takes in a second of one core's time.

    Args:
        name: one of :data:`COUNTERS`.
        stream: its items and signs are passed in batches of 2^15, or 2^9 if every step is read.
        every: of the counter.
        amount: the budget.
        base: of the counter.
        limit_s: after so many seconds the rest of the stream is left out.

    Returns:
        "estimator", "T", "every", "updates" (timed), "updates_per_s" and "words" where known. The time is the
        processor time of all threads: other work on the machine does not count.
    """
    counter = make_counter(name, horizon=len(stream.items), every=every, amount=amount, base=base)
    size = _BATCH if every >= _RARE else _BATCH // 64
    start, done = time.process_time(), 0
    while done < len(stream.items):
        part = slice(done, done + size)
        counter.extend(stream.items[part], stream.signs[part])
        done = min(done + size, len(stream.items))
        if limit_s is not None and time.process_time() - start > limit_s:
            break
    spent = time.process_time() - start
    return {
        "estimator": name,
        "T": len(stream.items),
        "every": every,
        "updates": done,
        "updates_per_s": done / max(spent, 1e-9),
    }


def tables_run(
    stream: Stream, *, amount: dict[str, Fraction], every: int, seed: int, base: str = "chain"
) -> dict[str, Any]:
    """Return the figures of one run of A4s: those of :mod:`trilift.experiments.turnstile.moment_runs`."""
    counter = make_counter("A4s", horizon=len(stream.items), every=every, amount=amount, base=base, seed=seed)
    shown = counter.extend(stream.items, stream.signs)
    true = stream.moment[shown.step - 1].astype(np.float64)
    law = "laplace" if "epsilon" in amount else "gaussian"
    rows, buckets = table_shape(law, reads=len(shown), failure=float(counter.failure), accuracy=ACCURACY)
    return {
        "estimator": "A4s",
        "stream": stream.name,
        "words": rows * buckets + 4 * rows,
        "factor": 1.0 + RELATIVE,
        "additive": beyond(true, shown.estimate, relative=RELATIVE),
        "ratio_95": None,
        "largest_error": beyond(true, shown.estimate),
        "missed": bool(np.any((true < shown.low) | (true > shown.high))),
        "every": every,
    }


def default_run(
    stream: Stream, *, amount: dict[str, Fraction], every: int, seed: int, base: str
) -> dict[str, Any]:
    """Return the figures of one run of the default counter of distinct items, with its narrowed interval."""
    counter = make_counter("A2g", horizon=len(stream.items), every=every, amount=amount, base=base, seed=seed)
    shown = counter.extend(stream.items, stream.signs)
    true = stream.distinct[shown.step - 1]
    return {
        "estimator": "default",
        "stream": stream.name,
        "words": None,
        "factor": None,
        "additive": None,
        "ratio_95": ratio_quantile(true, shown.estimate, share=0.95),
        "largest_error": beyond(true, shown.estimate),
        "missed": bool(np.any((true < shown.low) | (true > shown.high))),
        "every": every,
    }
