"""The privacy statement of a counter, in words that can be shown to whoever is responsible for the data."""

from __future__ import annotations

import math
from fractions import Fraction

from trilift.counters.setup import Setup
from trilift.counters.streamed import StreamSetup
from trilift.counters.unbounded import UnboundedSetup

__all__ = [
    "ANY_LENGTH",
    "CONDITIONS",
    "SIMULATION",
    "neighbours",
    "number",
    "privacy_statement",
    "weakness",
]

SIMULATION = "SIMULATION: the noise comes from a public seed. NOTHING BELOW PROTECTS ANYBODY."

CONDITIONS = (
    "Conditions: random bits from ChaCha20 under a key drawn from the operating system (ideal bits are"
    " assumed); the key, the true counts and saved states stay secret; one key serves one version of one"
    " stream; timing and memory use are not covered."
)

ANY_LENGTH = (
    "The guarantee holds for any length: the count has no horizon, and the budget does not grow with its"
    " steps."
)


_STRONG = 20
"""Budgets up to here are not called weak (e^20 is 5e8, which is weak already)."""


def weakness(budget: Fraction, *, name: str = "epsilon") -> list[str]:
    """Return the line that says what a huge budget means, or none.

    >>> weakness(Fraction(1)), len(weakness(Fraction(10**9)))
    ([], 1)
    """
    if budget <= _STRONG:
        return []
    return [
        f"WEAK: {name} is past {_STRONG}. Noise may be so small that almost all released values are the true"
        " ones: this is what was asked for, and it protects hardly anybody."
    ]


def number(value: Fraction) -> str:
    """Return a rational as it is written, or rounded where that would be long."""
    if max(abs(value.numerator), value.denominator).bit_length() < _LONG_BITS:
        text = str(value)
        if value.denominator == 1 or len(text) < 16:
            return text
    size = value.numerator.bit_length() - value.denominator.bit_length() + 1
    if abs(size) < 1000:
        return f"{float(value):.12g}"
    power = math.ceil(size * math.log10(2))  # |value| < 2^size
    return f"{'-' * (value < 0)}10^{power} or less"


_LONG_BITS = 2048


def neighbours(setup: StreamSetup) -> str:
    """Return what neighbouring streams are, in words."""
    unit = Fraction(1, 1 << setup.rule.places)
    low, high = number(setup.rule.low * unit), number(setup.rule.high * unit)
    what = "one input" if setup.max_contributions == 1 else f"at most {setup.max_contributions} inputs"
    length = "of any length" if setup.horizon is None else f"of {setup.horizon} steps"
    text = f"two streams {length} that differ in {what}, each within [{low}, {high}]"
    if setup.dimension is not None:
        text += f" in each of {setup.dimension} coordinates"
    if setup.norm_bound is not None:
        text += f" and within l1 distance {number(setup.norm_bound * unit)} of the low corner"
    return text


def privacy_statement(setup: StreamSetup, *, simulated: bool) -> str:
    """Return neighbours, guarantee, composition, conditions and the ledger as text.

    A setup that is none of a :class:`trilift.counters.Counter` says itself what it guarantees
    (``statement_lines``).
    """
    lines = []
    if simulated:
        lines.append(SIMULATION)
    change = f"the total change is at most {number(setup.change)}"
    lines.append(f"Neighbours: {neighbours(setup)}; {change}.")
    if isinstance(setup, Setup):
        lines += [*_bounded(setup), CONDITIONS, setup.ledger.as_text()]
    elif isinstance(setup, UnboundedSetup):
        lines += [*_unbounded(setup), CONDITIONS]
    else:
        lines += [*setup.statement_lines(), CONDITIONS]
    lines += weakness(getattr(setup, "epsilon", Fraction(0)))
    return "\n".join(lines)


def _bounded(setup: Setup) -> list[str]:
    source = "a chain given by the caller" if setup.names is None else " / ".join(setup.names)
    return [
        _pure(setup.epsilon),
        "Mechanism: Laplace matrix mechanism with exact discrete Laplace noise;"
        f" factorisation of T_n by {source}.",
        "Composition: the costs of all measurements add up to the ledger below, in exact rational arithmetic;"
        " the released values are a function of the measurements, rounded by floor(u + 1/2).",
    ]


def _unbounded(setup: UnboundedSetup) -> list[str]:
    return [
        _pure(setup.epsilon),
        ANY_LENGTH,
        f"Mechanism: epochs of growing length ({setup.growth}); in each the Laplace matrix mechanism with"
        " exact discrete Laplace noise and a key of its own, factorisations by shipped artifacts.",
        "Composition: one input lies in one epoch, whose measurements (its total's included) cost at most"
        " epsilon together, in exact rational arithmetic; epochs compose in parallel; the released values are"
        " a function of all measurements, every part rounded by floor(u + 1/2).",
        "Theorem: parallel composition over the epochs of the matrix mechanism (trilift.stream.epochs).",
    ]


def _pure(epsilon: Fraction) -> str:
    return (
        f"Guarantee: all released values together are (epsilon, 0)-differentially private with epsilon = "
        f"{number(epsilon)}, for adaptively chosen inputs too. delta is 0."
    )
