"""The tables of the README, made from the shipped certificates and from exact costs.

    python -m trilift.experiments.tables            # print them
    python -m trilift.experiments.tables README.md  # write them between the markers of a file

A test compares the README with what this prints.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from pathlib import Path

from trilift.artifacts import Entry, catalogue, load_stage
from trilift.experiments.published import KAPPA_CERTIFIED, KAPPA_DIRECT
from trilift.lift import Stage, plan
from trilift.lift.tree_costs import (
    TreeCost,
    averaged_kary_tree_cost,
    binary_tree_cost,
    kary_tree_subtraction_cost,
    smooth_binary_tree_cost,
)

__all__ = ["TABLES", "fill_in"]

_HORIZONS = (1_000, 1_000_000, 1_000_000_000)


def _up(value: float, digits: int = 4) -> str:
    """Show an upper bound: rounded up, never below the value."""
    return f"{math.ceil(value * 10**digits) / 10**digits:.{digits}f}"


def _shipped(kind: str) -> dict[tuple[str, int], Entry]:
    return {(e.objective, e.size): e for e in catalogue() if e.source == "shipped" and e.kind == kind}


def direct_table() -> str:
    """Return the certified constants of T_k beside the published ones."""
    entries = _shipped("direct")
    lines = ["| k | max, published | max, here | mean, published | mean, here |", "|---|---|---|---|---|"]
    for size in sorted({size for _, size in entries}):
        worst, mean = KAPPA_DIRECT[size]
        ours = entries["max", size].certificate, entries["mean", size].certificate
        lines.append(
            f"| {size} | {worst:.4f} | {_up(ours[0].kappa_max)} | {mean:.4f} | {_up(ours[1].kappa_mean)} |"
        )
    return "\n".join(lines)


def stage_table() -> str:
    """Return the certified leading constants of the two-sided stages, repeated for ever."""
    entries = _shipped("stage")
    lines = ["| m | max | max, interior | mean | mean, interior |", "|---|---|---|---|---|"]
    for size in sorted({size for _, size in entries}):
        a, b = entries["max", size].certificate, entries["mean", size].certificate
        if a.interior_kappa_max is None or b.interior_kappa_mean is None:
            continue
        lines.append(
            f"| {size} | {_up(a.kappa_max)} | {_up(a.interior_kappa_max)} "
            f"| {_up(b.kappa_mean)} | {_up(b.interior_kappa_mean)} |"
        )
    lines.append(f"| published | {KAPPA_CERTIFIED[0]:.4f} | | {KAPPA_CERTIFIED[1]:.4f} | |")
    return "\n".join(lines)


def _candidates() -> dict[str, Stage]:
    return {e.name: load_stage(e.name) for e in catalogue() if e.source == "shipped"}


def error_table() -> str:
    """Return exact root-mean-squared errors at epsilon = 1 beside the tree mechanisms."""
    trees: list[tuple[str, Callable[[int, str], tuple[float, float]]]] = [
        ("binary tree", lambda n, o: _both(binary_tree_cost(n, objective=o))),
        ("smooth binary tree", lambda n, _: _both(smooth_binary_tree_cost(n))),
        ("smooth binary tree, unbalanced", lambda n, _: _both(smooth_binary_tree_cost(n, balanced=False))),
        (
            "17-ary tree, subtraction",
            lambda n, o: _both(kary_tree_subtraction_cost(n, arity=17, objective=o)),
        ),
        ("17-ary tree, averaged", lambda n, o: _both(averaged_kary_tree_cost(n, arity=17, objective=o))),
    ]
    header = " | ".join(f"n = 10^{round(math.log10(n))}, max | mean" for n in _HORIZONS)
    lines = [f"| mechanism | {header} |", "|---" * (1 + 2 * len(_HORIZONS)) + "|"]
    for name, cost in trees:
        cells = [f"{math.sqrt(cost(n, o)[o == 'mean']):.1f}" for n in _HORIZONS for o in ("max", "mean")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    candidates = _candidates()
    cells = []
    for n in _HORIZONS:
        for objective in ("max", "mean"):
            found = plan(candidates, n, objective=objective).cost
            cells.append(f"**{math.sqrt(found.max_se() if objective == 'max' else found.mean_se()):.1f}**")
    lines.append(f"| trilift | {' | '.join(cells)} |")
    return "\n".join(lines)


def _both(tree: TreeCost) -> tuple[float, float]:
    return tree.max_se(), tree.mean_se()


TABLES: dict[str, Callable[[], str]] = {"direct": direct_table, "stages": stage_table, "errors": error_table}
"""The tables by the name of their markers."""


def fill_in(text: str) -> str:
    """Return the text with each table between ``<!-- table: name -->`` and ``<!-- end -->`` made anew."""

    def made(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{TABLES[match[1]]()}\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->.*?<!-- end -->", made, text, flags=re.DOTALL)


def main() -> int:
    """Print the tables, or write them into the files named on the command line."""
    files = [Path(name) for name in sys.argv[1:]]
    for path in files:
        path.write_text(fill_in(path.read_text(encoding="utf-8")), encoding="utf-8")
    if not files:
        print("\n\n".join(table() for table in TABLES.values()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
