"""Sentences that the privacy statements of the counters in this room share."""

from __future__ import annotations

from fractions import Fraction

from trilift.counters.edit.ledger import float_above
from trilift.counters.statement import SIMULATION, number, weakness
from trilift.stream.gdp import ln_of

__all__ = ["CONDITIONS", "delta_text", "edit_neighbours", "guarantee", "simulation_lines"]

CONDITIONS = (
    "Conditions: random bits from ChaCha20 under a key drawn from the operating system (ideal bits are"
    " assumed); the key, true counts, true ends of buckets and saved states stay secret; one key serves one"
    " version of one stream; timing and memory use are not covered."
)

_SMALLEST = Fraction(1, 10**300)


def simulation_lines(*, simulated: bool) -> list[str]:
    """Return the line that a simulation's statement begins with, or none.

    >>> simulation_lines(simulated=False)
    []
    """
    return [SIMULATION] if simulated else []


def delta_text(delta: Fraction) -> str:
    """Return a delta as short text, by its logarithm where floats have no such number.

    >>> delta_text(Fraction(1, 10**5)), delta_text(Fraction(1, 10**400))
    ('1e-05', 'e^-921.034 or less')
    """
    return f"{float(delta):.6g}" if delta > _SMALLEST else f"e^{float_above(ln_of(delta)[1]):.6g} or less"


def edit_neighbours(*, horizon: int | None, largest: Fraction) -> str:
    """Return what edit neighbours are, for streams of ``horizon`` steps with inputs up to ``largest``.

    >>> edit_neighbours(horizon=None, largest=Fraction(1))[:49]
    'Neighbours: edit: two streams of any number of st'
    """
    length = "any number of steps" if horizon is None else f"{horizon} steps"
    return (
        f"Neighbours: edit: two streams of {length}, one of which comes from the other by inserting one input"
        f" within [0, {number(largest)}]; what follows moves one step later, up to the first step without an"
        " event (BOT), which disappears, or to the end of the stream. Streams are fixed in advance."
    )


def guarantee(epsilon: Fraction, *, delta: Fraction) -> str:
    """Return what is guaranteed.

    >>> guarantee(Fraction(1, 2), delta=Fraction(1, 8))[-29:]
    'epsilon = 1/2, delta = 0.125.'
    """
    said = (
        "Guarantee: all released values together are (epsilon, delta)-differentially private with epsilon ="
        f" {number(epsilon)}, delta = {delta_text(delta)}."
    )
    return "\n".join([said, *weakness(epsilon)])
