"""The figures of docs/edit-streams.md: its tables, and the sentences of its prose that hold figures."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from trilift.counters.edit.design import make_design
from trilift.counters.edit.gaussian_laws import gaussian_rmse
from trilift.experiments.edit.flights_counts import DELTA
from trilift.experiments.edit.flights_queue import HORIZON

__all__ = ["page_sentences", "page_tables", "price_table"]

_RATES = (0.0001, 0.001, 0.01, 0.1, 0.5)
_TITLES = {
    "Counter": "`Counter` (swaps alone)",
    "SimECC": "SimECC",
    "SimECC, extrapolated": "SimECC, extrapolated",
    "ECC": "ECC",
    "HorizonGaussian": "independent Gaussian noise",
}


def page_sentences(record: dict[str, Any]) -> list[str]:
    """Return the pieces of prose that the page must hold, from the JSON of the figures.

    Args:
        record: what ``python -m trilift.experiments.edit.flights_queue --json`` prints.
    """
    queue, swap = record["queue"], record["swap"]
    example = queue["example"]
    return [
        f"{queue['flights']:,} aircraft",
        f"{queue['late']:,} of them late",
        f"waits {queue['mean_wait_minutes']:.1f} minutes",
        f"moves {queue['moved_mean']:.1f} others on average and up to {queue['moved_max']}",
        f"{example['behind']} others wait behind it",
        f"{example['changed_inputs']} inputs change",
        f"more than that for {swap['share_above_epsilon']:.0%} of the flights",
        f"{swap['loss_max']:.1f} for the worst",
        f"{swap['example_loss']:.1f} for the one of the picture",
    ]


def page_tables(record: dict[str, Any]) -> dict[str, str]:
    """Return the tables of the page by name."""
    return {"counts": _counts(record["counts"]), "prices": price_table()}


def _counts(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| mechanism | protects | error | predicted | first shown at slot | values shown |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        predicted = "" if row["predicted_rmse"] is None else f"{row['predicted_rmse']:.0f}"
        cells = [
            _TITLES[row["mechanism"]],
            row["neighbours"] + "s",
            f"{row['rmse']:,.0f}",
            predicted,
            f"{row['first_shown']:,}",
            f"{row['updates']:,}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def price_table() -> str:
    """Return predicted errors of a year of slots, by rate and epsilon, beside that of showing 0."""
    lines = [
        "| events a step | sum at the end | showing 0 | SimECC, ε = 1 | ECC, ε = 1 | SimECC, ε = 10 "
        "| ECC, ε = 10 |",
        "|---|---|---|---|---|---|---|",
    ]
    for rate in _RATES:
        cells = [f"{rate:g}", f"{rate * HORIZON:,.0f}", f"{rate * HORIZON / 3**0.5:,.0f}"]
        for epsilon in (1, 10):
            cells += [f"{_error(epsilon, rate, name):,.1f}" for name in ("simecc", "ecc")]
        lines.append(f"| {' | '.join(cells)} |")
    flat = [
        gaussian_rmse(Fraction(epsilon), delta=DELTA, horizon=HORIZON, mechanism="flat")
        for epsilon in (1, 10)
    ]
    lines.append(f"| independent noise, any rate | | | {flat[0]:,.0f} | | {flat[1]:,.0f} | |")
    return "\n".join(lines)


def _error(epsilon: int, rate: float, mechanism: str) -> float:
    design = make_design(epsilon, delta=DELTA, mechanism=mechanism, horizon=HORIZON, rate=rate)
    return design.predict().rmse
