"""Audits of every shipped mechanism: what it spends at least, beside what it claims."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from trilift.experiments.audit.engine import CONFIDENCE, LEAST_RUNS, audit
from trilift.experiments.audit.shipped import MECHANISMS, make_subject

__all__ = ["PART", "measure"]

PART = "audits"

_QUICK = ("biased", "noise-bank")
_QUICK_RUNS = 2048
_MOST_RUNS = 1_000_000
_SECONDS = 9.0
_JUDGING = 6  # streams of three pairs
_LONGER = {"simecc": 5.0, "simecc-endless": 8.0, "ending": 3.0, "partition-cc": 5.0, "moment-rows": 2.0}
"""How many times that: runs are dear, and show little each."""
_SEED = 11  # audits were designed with an eye on those of the seeds 1 to 3, which therefore say nothing


def measure(
    *,
    full: bool,
    seed: int = _SEED,
    tell: Callable[[str], None] = lambda text: None,
    seconds: float = _SECONDS,
) -> dict[str, Any]:
    """Audit all mechanisms at epsilon 1 (a few unless ``full``).

    Args:
        full: all of them, each with as many runs as its processor time allows, at most 10^6.
        seed: decides all keys; the number of runs depends on the machine.
        tell: is told which one comes.
        seconds: processor time for each, about; more where runs are dear.
    """
    rows = []
    for name in MECHANISMS if full else _QUICK:
        tell(f"audit: {name}")
        subject = make_subject(name, epsilon=Fraction(1))
        runs = _affordable(subject, seconds * _LONGER.get(name, 1.0)) if full else _QUICK_RUNS
        found = audit(subject, runs=runs, seed=seed)
        delta = f" and delta >= {found.delta_lower_bound:.3g}" if found.claimed_delta else ""
        rows.append(
            {
                "what": name,
                "tried": 1,
                "held": int(not found.violated),
                "detail": f"{found.pair}; {found.event}{delta}",
                "claimed": f"{found.claimed_epsilon:g}"
                + (f", {found.claimed_delta:g}" if found.claimed_delta else ""),
                "spent": f">= {found.epsilon_lower_bound:.3f}",
                "runs": found.runs,
                "pairs": found.pairs,
            }
        )
    note = (
        f"Lower bounds with confidence {CONFIDENCE:g} a mechanism, on what it spends at a claim of epsilon 1"
        " (and delta 0.01 where it has one), from runs of the shipped code; as many of them as about"
        f" {seconds:g} s of processor time allowed for each (two to eight times that for a few whose runs"
        " are dear), at most 10^6. A bound below the claim is evidence and no proof; how close it can come"
        " depends on the mechanism, on the pairs that are tried and on the number of runs (docs/audit.md)."
    )
    columns = {"claimed": "claimed", "spent": "spends at least", "runs": "runs", "pairs": "pairs"}
    return {"part": PART, "full": full, "rows": rows, "note": note, "columns": columns}


def _affordable(subject: Any, seconds: float) -> int:
    """Return how many runs fit into the time, from one batch of all streams and one of those that judge."""
    pairs = subject.pairs()
    streams = list(dict.fromkeys(stream for pair in pairs for stream in (pair.first, pair.second)))
    subject.release(streams[:2], seed=0)  # what is made once, first
    began = time.process_time()
    released = subject.release(streams, seed=1)
    screened = time.process_time() - began
    began = time.process_time()
    for values in released[:2]:
        subject.statistics(pairs[0], values)
    scored = time.process_time() - began
    began = time.process_time()
    subject.release(streams[:_JUDGING], seed=2)
    judged = time.process_time() - began
    # an eighth of the runs with all pairs, a quarter with 8 of them at most, then the judging of 3
    early = screened + scored * len(pairs)
    later = screened * min(1.0, 16 / len(streams)) + scored * min(8, len(pairs))
    batches = (seconds - screened) / max(early / 8 + later / 4 + (judged + 3 * scored) * 5 / 8, 1e-6)
    return int(min(max(batches * subject.batch, 4 * subject.batch, LEAST_RUNS), _MOST_RUNS))
