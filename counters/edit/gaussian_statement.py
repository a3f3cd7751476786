"""The privacy statement of the Gaussian counters of edit neighbours, in words."""

from __future__ import annotations

from fractions import Fraction

from trilift.counters.edit.gaussian_laws import FlatLaw
from trilift.counters.edit.gaussian_setup import GaussianSetup

__all__ = ["privacy_statement"]


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 or len(str(value)) < 16 else f"{float(value):.12g}"


def privacy_statement(setup: GaussianSetup, *, name: str, simulated: bool) -> str:
    """Return neighbours, guarantee, mechanism, composition, conditions and the ledger as text."""
    lines = []
    if simulated:
        lines.append("SIMULATION: the noise comes from a public seed. NOTHING BELOW PROTECTS ANYBODY.")
    length = "any number of steps" if setup.horizon is None else f"{setup.horizon} steps"
    flat = isinstance(setup.law, FlatLaw)
    deviation = (
        "the same at every step" if flat else "growing as sqrt(t) ln(t + 1), for all steps there may be"
    )
    delta = f"{float(setup.delta):.6g}" if setup.delta > Fraction(1, 10**300) else "below 1e-300"
    lines += [
        f"Neighbours: edit: two streams of {length}, one of which comes from the other by inserting one input"
        f" within [0, {_number(setup.rule.largest)}]; what follows moves one step later, up to the first step"
        " without an event (BOT), which disappears, or to the end of the stream. Streams are fixed in"
        " advance.",
        "Guarantee: all released values together are (epsilon, delta)-differentially private with epsilon = "
        f"{_number(setup.epsilon)}, delta = {delta}.",
        f"Mechanism: {name}: independent exactly rounded Gaussian noise on every running sum, {deviation}.",
        f"Composition: every running sum changes by at most {_number(setup.rule.largest)} between neighbours;"
        f" the squared changes over the variances add up to at most mu^2, mu = {float(setup.mu):.9g}, and"
        " mu-GDP implies the guarantee (Balle, Wang 2018).",
        "Conditions: random bits from ChaCha20 under a key drawn from the operating system (ideal bits are"
        " assumed); the key, the true counts and saved states stay secret; one key serves one version of one"
        " stream; timing and memory use are not covered.",
        setup.ledger.as_text(),
    ]
    return "\n".join(lines)
