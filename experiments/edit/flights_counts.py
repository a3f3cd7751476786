"""The running number of late departures as counters for swaps and for edits show it (simulations)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters import Counter
from trilift.counters.edit.gaussian_cc import HorizonGaussian
from trilift.counters.edit.mechanism import ECC, SimECC
from trilift.experiments.edit.departures import BOT_SLOT, Departures

__all__ = ["DELTA", "EPSILON", "RATE", "Counts", "counts_of", "masked_stream"]

EPSILON = Fraction(1)
DELTA = Fraction(1, 10**6)
RATE = 0.1
"""What the planner is told: late departures a slot, a round guess and not the flights' own figure."""

_SEED = 2013


@dataclass(frozen=True)
class Counts:
    """What each mechanism shows.

    Attributes:
        true: running sum after each slot, shape (slots,).
        shown: name of the mechanism to what it shows after each slot.
        records: figures of each, for JSON.
    """

    true: Any
    shown: dict[str, Any]
    records: list[dict[str, Any]]


def masked_stream(queue: Departures, *, slots: int) -> Any:
    """Return the stream as counters take it: 0 and 1, masked where nobody takes off; shape (slots,)."""
    return np.ma.masked_equal(queue.stream(slots=slots), BOT_SLOT)


def counts_of(queue: Departures, *, slots: int) -> Counts:
    """Release the count of late departures by five mechanisms, with public seeds.

    Args:
        queue: the departures.
        slots: length of the stream, which the mechanisms know.
    """
    stream = masked_stream(queue, slots=slots)
    numbers = stream.filled(0)
    true = np.cumsum(numbers)
    edit: dict[str, Any] = {"horizon": slots, "simulation_seed": _SEED}
    counters: dict[str, Any] = {
        "Counter": Counter(EPSILON, horizon=slots, simulation_seed=_SEED),
        "SimECC": SimECC(EPSILON, DELTA, rate=RATE, **edit),
        "SimECC, extrapolated": SimECC(EPSILON, DELTA, rate=RATE, display="extrapolated", **edit),
        "ECC": ECC(EPSILON, DELTA, rate=RATE, **edit),
        "HorizonGaussian": HorizonGaussian(EPSILON, DELTA, **edit),
    }
    shown = {
        name: np.asarray(counter.extend(numbers if name == "Counter" else stream))
        for name, counter in counters.items()
    }
    records = [_record(name, counters[name], values, true) for name, values in shown.items()]
    return Counts(true, shown, records)


def _record(name: str, counter: Any, values: Any, true: Any) -> dict[str, Any]:
    errors = values - true
    design = getattr(counter, "design", None)
    changes = np.flatnonzero(np.diff(values, prepend=0))
    return {
        "mechanism": name,
        "neighbours": "swap" if name == "Counter" else "edit",
        "epsilon": str(counter.epsilon),
        "delta": None if name == "Counter" else str(counter.delta),
        "rmse": float(np.sqrt(np.mean(errors.astype(np.float64) ** 2))),
        "last_error": int(errors[-1]),
        "predicted_rmse": None if design is None else design.predicted_rmse,
        "first_shown": int(changes[0]) + 1 if len(changes) else None,
        "updates": len(changes),
    }
