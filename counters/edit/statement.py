"""What an edit-private mechanism guarantees and what it will do, in words."""

from __future__ import annotations

import math

from trilift.counters.edit.design import Design
from trilift.counters.edit.rules import PartRule, SimPartRule
from trilift.counters.edit.words import CONDITIONS, edit_neighbours, guarantee, simulation_lines
from trilift.counters.statement import number

__all__ = ["described", "first_wait", "privacy_statement"]

_PARTITIONS = {
    "simecc": "lengths of buckets are random and read no data (SimPart)",
    "ecc": "a bucket ends when the noisy sum of its events passes a noisy threshold (Part, sparse vectors)",
}


def privacy_statement(design: Design, *, simulated: bool) -> str:
    """Return neighbours, guarantee, composition, conditions and the ledger as text."""
    lines = [
        *simulation_lines(simulated=simulated),
        edit_neighbours(horizon=design.horizon, largest=design.rule.largest),
        guarantee(design.epsilon, delta=design.delta),
        f"Mechanism: {design.mechanism} with the accounting {design.accounting!r}:"
        f" {_PARTITIONS[design.mechanism]}; the running count at the end of each bucket and the time at which"
        f" it is shown are released with noise ({design.values.kind} and {design.times.kind}).",
        "Composition: neighbours are coupled so that bucket sums change in at most four places and gaps"
        " between ends of buckets in at most two; the ledger adds up what noise on counts, noise on times and"
        " the partition spend, epsilons as rationals, deltas rounded up. What is shown is a function of the"
        " released pairs (time, count) alone.",
        CONDITIONS,
        design.ledger.as_text(),
    ]
    return "\n".join(lines)


def first_wait(design: Design) -> tuple[str, int]:
    """Return what the first value waits for ("steps" or "events", of the largest size), and about how many.

    For ECC the delay of about alpha steps that follows the events is not counted.
    """
    if isinstance(design.part, SimPartRule):
        return "steps", int(design.part.nominal(0, 1)[0]) + max(0, int(design.alphas(0, 1)[0]))
    part: PartRule = design.part
    length = design.horizon if design.horizon is not None else 1000
    drift = float(part.clock_drift) * math.log(length / 2 + part.shift) if part.clock_drift else 0.0
    return "events", math.ceil(float(part.tau) + drift)


def described(design: Design) -> str:
    """Return what the mechanism will do, as plain text of one sentence a line."""
    _, wait = first_wait(design)
    delay = max(0, int(design.alphas(0, 1)[0]))
    if isinstance(design.part, SimPartRule):
        length = int(design.part.nominal(0, 1)[0])
        lines = [
            f"Cuts the stream into buckets of about {length} steps, whatever it holds.",
            f"Shows 0 until about step {wait}: a bucket's count is shown about {delay} steps after its end.",
        ]
    else:
        size = number(design.rule.largest)
        lines = [
            f"Ends a bucket after about {wait} events (of size {size}), however long that takes; a stream"
            " without events ends none.",
            f"Shows 0 until then: no update before about {wait} events, and about {delay} steps more.",
        ]
    if design.capacity is not None:
        lines.append(f"Shows at most {design.capacity} different counts; the last one then stays.")
    if design.display == "extrapolated":
        lines.append("Between counts it shows the last one carried on at the mean rate so far.")
    else:
        lines.append("Between counts it shows the last one.")
    if design.predicted_rmse is not None:
        lines.append(f"Predicted error: {design.predicted_rmse:.4g} (root mean square over all steps).")
    return "\n".join(lines)
