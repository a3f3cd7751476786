"""What an edit-private mechanism guarantees and what it will do, in words."""

from __future__ import annotations

import math
from fractions import Fraction

from trilift.counters.edit.design import Design
from trilift.counters.edit.rules import PartRule, SimPartRule

__all__ = ["described", "first_wait", "number_text", "privacy_statement"]

_PARTITIONS = {
    "simecc": "lengths of buckets are random and read no data (SimPart)",
    "ecc": "a bucket ends when the noisy sum of its events passes a noisy threshold (Part, sparse vectors)",
}


def number_text(value: Fraction) -> str:
    """Return an exact number as short text."""
    return str(value) if value.denominator == 1 or len(str(value)) < 16 else f"{float(value):.12g}"


def _delta(design: Design) -> str:
    delta = float(design.delta)
    return f"{delta:.6g}" if delta > 1e-300 else f"e^{design.ledger.spent_ln_delta:.6g} or less"


def privacy_statement(design: Design, *, simulated: bool) -> str:
    """Return neighbours, guarantee, composition, conditions and the ledger as text."""
    lines = []
    if simulated:
        lines.append("SIMULATION: the noise comes from a public seed. NOTHING BELOW PROTECTS ANYBODY.")
    length = "any number of steps" if design.horizon is None else f"{design.horizon} steps"
    largest = number_text(design.rule.largest)
    lines += [
        f"Neighbours: edit: two streams of {length}, one of which comes from the other by inserting one input"
        f" within [0, {largest}]; what follows moves one step later, up to the first step without an event"
        " (BOT), which disappears, or to the end of the stream. Streams are fixed in advance.",
        "Guarantee: all released values together are (epsilon, delta)-differentially private with epsilon ="
        f" {number_text(design.epsilon)}, delta = {_delta(design)}.",
        f"Mechanism: {design.mechanism} with the accounting {design.accounting!r}:"
        f" {_PARTITIONS[design.mechanism]}; the running count at the end of each bucket and the time at which"
        f" it is shown are released with noise ({design.values.kind} and {design.times.kind}).",
        "Composition: neighbours are coupled so that bucket sums change in at most four places and gaps"
        " between ends of buckets in at most two; the ledger adds up what noise on counts, noise on times and"
        " the partition spend, epsilons as rationals, deltas rounded up. What is shown is a function of the"
        " released pairs (time, count) alone.",
        "Conditions: random bits from ChaCha20 under a key drawn from the operating system (ideal bits are"
        " assumed); the key, true counts, true ends of buckets and saved states stay secret; one key serves"
        " one version of one stream; timing and memory use are not covered.",
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
        size = number_text(design.rule.largest)
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
