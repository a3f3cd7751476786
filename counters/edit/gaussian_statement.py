"""The privacy statement of the Gaussian counters of edit neighbours, in words."""

from __future__ import annotations

from trilift.counters.edit.gaussian_laws import FlatLaw
from trilift.counters.edit.gaussian_setup import GaussianSetup
from trilift.counters.edit.words import edit_neighbours, guarantee, simulation_lines
from trilift.counters.statement import CONDITIONS, number

__all__ = ["described", "privacy_statement"]


def privacy_statement(setup: GaussianSetup, *, name: str, simulated: bool) -> str:
    """Return neighbours, guarantee, mechanism, composition, conditions and the ledger as text."""
    flat = isinstance(setup.law, FlatLaw)
    deviation = (
        "the same at every step" if flat else "growing as sqrt(t) ln(t + 1), for all steps there may be"
    )
    lines = [
        *simulation_lines(simulated=simulated),
        edit_neighbours(horizon=setup.horizon, largest=setup.rule.largest),
        guarantee(setup.epsilon, delta=setup.delta),
        f"Mechanism: {name}: independent exactly rounded Gaussian noise on every running sum, {deviation}.",
        f"Composition: every running sum changes by at most {number(setup.rule.largest)} between neighbours;"
        f" the squared changes over the variances add up to at most mu^2, mu = {float(setup.mu):.9g}, and"
        " mu-GDP implies the guarantee (Balle, Wang 2018).",
        CONDITIONS,
        setup.ledger.as_text(),
    ]
    return "\n".join(lines)


def described(setup: GaussianSetup) -> str:
    """Return what the counter will do, as plain text of one sentence a line."""
    grows = "the same at every step" if isinstance(setup.law, FlatLaw) else "growing like sqrt(t) ln(t)"
    return (
        f"Adds independent noise to every running sum, {grows}.\n"
        "Shows a value from the first step on, without delay; neighbouring values differ wildly."
    )
