"""The table of docs/turnstile.md: what estimators can tell at a horizon of 100,000 events, before any data.

python -m trilift.experiments.turnstile.expectations
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from trilift.counters.turnstile import DistinctCounter, SecondMoment
from trilift.counters.turnstile.expected import Expected, expected

__all__ = ["HORIZON", "READS", "distinct_table", "moment_table"]

HORIZON = 100_000

_BUDGETS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ρ = 0.1", {"rho": Fraction(1, 10)}),
    ("ρ = 1", {"rho": 1}),
    ("ρ = 10", {"rho": 10}),
    ("ε = 1, pure", {"epsilon": 1}),
)
READS = (1, 1000)


def _of(made: Any, budget: dict[str, Any], **options: Any) -> Expected:
    return expected(made(horizon=HORIZON, **budget, **options).blueprint)


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def distinct_table(reads: Sequence[int] = READS) -> str:
    """Return floors, the least number of items that is told from none, and errors of releases.

    Args:
        reads: rows for a value after every so many events.
    """
    lines = [
        "| budget | every | `grouped`: floor | low end above 0 from | `minhash`: low end above 0 from "
        "| `general`: floor | `hybrid`: released after every | error of a release |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, budget in _BUDGETS:
        for every in reads:
            grouped, minhash, general, hybrid = (
                _of(DistinctCounter, budget, every=every, method=method)
                for method in ("grouped", "minhash", "general", "hybrid")
            )
            lines.append(
                f"| {name} | {every:,} | {_text(grouped.nothing.estimate)} | {_text(grouped.informative)} "
                f"| {_text(minhash.informative)} | {_text(general.nothing.estimate)} "
                f"| {_text(hybrid.block)} | {_text(hybrid.error)} |"
            )
    return "\n".join(lines)


def moment_table(reads: Sequence[int] = READS) -> str:
    """Return the upper end of the interval of an empty stream, and the relative width of large moments."""
    lines = [
        "| budget | every | `bucketed`: from 0 to | large F2 within | `rows`: from 0 to | large F2 within |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, budget in _BUDGETS:
        for every in reads:
            cells = []
            for method in ("bucketed", "rows"):
                words = _of(SecondMoment, budget, every=every, method=method)
                relative = 0.0 if words.relative is None else words.relative
                cells += [f"{words.nothing.high:,.0f}", f"{100 * relative:.0f} %"]
            lines.append(f"| {name} | {every:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(distinct_table())
    print()
    print(moment_table())
