"""Samplers at the edges: scales, budgets, stuck bits, and noise that is never shared, counted.

The tables and checks are in ``sampler_laws``, ``sampler_budgets``, ``sampler_bits`` and ``sampler_apart``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from trilift.experiments.trust.kinds import KINDS
from trilift.experiments.trust.sampler_apart import apart_cases, forked_cases, thread_cases
from trilift.experiments.trust.sampler_bits import STUCK, stuck_cases
from trilift.experiments.trust.sampler_budgets import BUDGETS, REFUSED, budget_cases
from trilift.experiments.trust.sampler_laws import (
    ALPHA,
    GAUSSIAN_SCALES,
    LAPLACE_SCALES,
    REFUSED_GAUSSIAN,
    REFUSED_LAPLACE,
    comparisons,
    gaussian_integers,
    law,
    refused,
)

__all__ = ["PART", "measure"]

PART = "samplers"

_T = TypeVar("_T")


def measure(*, full: bool, seed: int = 1, tell: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Run all checks.

    Args:
        full: all scales, budgets and kinds; or some of each.
        seed: of the draws.
        tell: is told how far it is.
    """

    def some(table: Sequence[_T], every: int) -> Sequence[_T]:
        return table if full else table[seed % every :: every]

    rows = []

    def add(what: str, results: Iterable[tuple[Any, bool]], detail: str) -> None:
        """Count the cases; a failure is named."""
        done = list(results)
        bad = [str(name) for name, held in done if not held]
        shown = f"{detail}; NOT: {', '.join(bad[:5])}" if bad else detail
        rows.append({"what": what, "tried": len(done), "held": len(done) - len(bad), "detail": shown})
        tell(f"{what}: {len(done) - len(bad)} of {len(done)}")

    laplace, gaussian = some(LAPLACE_SCALES, 4), some(GAUSSIAN_SCALES, 5)
    add(
        "discrete Laplace: comparisons",
        ((f"{scale} {name}", ok) for scale in laplace for name, ok in comparisons(scale)),
        f"{len(laplace)} scales from 1/1024 to 2^1000: 16, 48 and 128 digits of all tests against balls",
    )
    add(
        "rounded Gaussian: integers",
        (
            (scale, ok)
            for scale in gaussian
            for ok in gaussian_integers(scale, blocks=100 if full else 5, seed=seed)
        ),
        f"{len(gaussian)} scales from 2^-64 to 2^1022: each draw against erfc of its bounds, by balls",
    )
    for kind, scales, bad in (
        ("laplace", laplace, REFUSED_LAPLACE),
        ("gaussian", gaussian, REFUSED_GAUSSIAN),
    ):
        count = 8000 if full else 500
        tests = [
            (f"{scale}", p > ALPHA)
            for index, scale in enumerate(scales)
            for p in law(kind, scale, count=count, seed=seed + index)
            if p is not None
        ]
        add(f"{kind}: law", tests, f"chi-square, {count:,} draws a scale, false alarm {ALPHA:g} each")
        add(f"{kind}: no scales", refused(kind, bad), "refused by name")
    budgets = [*some(BUDGETS, 16), *some(REFUSED, 5)]
    tried = list(budget_cases(budgets, kinds=KINDS, seed=seed))
    add(
        "budgets",
        ((f"{kind.name} {budget!r:.30}: {how}", ok) for kind, budget, ok, how in tried),
        f"{len(budgets)} budgets from 5e-324 to 10^700, {len(KINDS)} kinds of counters:"
        f" {sum(how == 'made' for *_, how in tried)} made, with exact noise,"
        f" {sum(how == 'refused' for *_, how in tried)} refused by name",
    )
    add(
        "stuck bits",
        ((f"{kind.name} {bits}: {how}", ok) for kind, bits, ok, how in stuck_cases(some(KINDS, 6))),
        f"{', '.join(STUCK)}: nothing is released",
    )
    add(
        "purposes, levels, addresses",
        ((what, ok) for what, ok, _ in apart_cases(some(KINDS, 5))),
        "all keys differ, and no piece of keystream serves two addresses",
    )
    add("threads", ((what, ok) for what, ok, _ in thread_cases()), "8 threads")
    add(
        "processes",
        ((what, ok) for what, ok, _ in forked_cases(full=full)),
        "forks take no step of their parent's counter, no counter is pickled, new ones have new keys",
    )
    return {
        "part": PART,
        "full": full,
        "seed": seed,
        "rows": rows,
        "note": "Where a budget is so large that noise may vanish (epsilon past 20), the counter's statement "
        "must say so. Distributions are tested with fixed seeds.",
    }
