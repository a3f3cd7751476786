"""The privacy statement of a counter, in words that can be shown to whoever is responsible for the data."""

from __future__ import annotations

from fractions import Fraction

from trilift.counters.setup import Setup

__all__ = ["privacy_statement"]


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 or len(str(value)) < 16 else f"{float(value):.12g}"


def _neighbours(setup: Setup) -> str:
    unit = Fraction(1, 1 << setup.rule.places)
    low, high = _number(setup.rule.low * unit), _number(setup.rule.high * unit)
    what = "one input" if setup.max_contributions == 1 else f"at most {setup.max_contributions} inputs"
    text = f"two streams of {setup.horizon} steps that differ in {what}, each within [{low}, {high}]"
    if setup.dimension is not None:
        text += f" in each of {setup.dimension} coordinates"
    if setup.norm_bound is not None:
        text += f" and within l1 distance {_number(setup.norm_bound * unit)} of the low corner"
    return text


def privacy_statement(setup: Setup, *, simulated: bool) -> str:
    """Return neighbours, guarantee, composition, conditions and the ledger as text."""
    ledger = setup.ledger
    lines = []
    if simulated:
        lines.append("SIMULATION: the noise comes from a public seed. NOTHING BELOW PROTECTS ANYBODY.")
    source = "a chain given by the caller" if setup.names is None else " / ".join(setup.names)
    lines += [
        f"Neighbours: {_neighbours(setup)}; the total change is at most {_number(ledger.change)}.",
        f"Guarantee: all released values together are (epsilon, 0)-differentially private with epsilon = "
        f"{_number(setup.epsilon)}, for adaptively chosen inputs too. delta is 0.",
        "Mechanism: Laplace matrix mechanism with exact discrete Laplace noise;"
        f" factorisation of T_n by {source}.",
        "Composition: the costs of all measurements add up to the ledger below, in exact rational arithmetic;"
        " the released values are a function of the measurements, rounded by floor(u + 1/2).",
        "Conditions: random bits from ChaCha20 under a key drawn from the operating system (ideal bits are"
        " assumed);"
        " the key, the true counts and saved states stay secret; one key serves one version of one stream;"
        " timing and memory use are not covered.",
        ledger.as_text(),
    ]
    return "\n".join(lines)
