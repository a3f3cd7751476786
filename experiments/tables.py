"""The tables of the README, made from the shipped certificates and from exact costs.

    python -m trilift.experiments.tables            # print them
    python -m trilift.experiments.tables README.md  # write them between the markers of a file

A test compares the README with what this prints.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable
from pathlib import Path

from trilift.artifacts import Entry, catalogue, load_stage
from trilift.counters import chain_of, default_names
from trilift.experiments.published import KAPPA_CERTIFIED, KAPPA_DIRECT
from trilift.lift import Stage, chain_cost, plan
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
    for size in sorted({size for _, size in entries} & set(KAPPA_DIRECT)):
        worst, mean = KAPPA_DIRECT[size]
        ours = [_bound(entries.get((objective, size)), f"kappa_{objective}") for objective in ("max", "mean")]
        lines.append(f"| {size} | {worst:.4f} | {ours[0]} | {mean:.4f} | {ours[1]} |")
    return "\n".join(lines)


def _bound(entry: Entry | None, field: str) -> str:
    value = None if entry is None else getattr(entry.certificate, field)
    return "" if value is None else _up(value)


def stage_table() -> str:
    """Return the certified leading constants of the two-sided stages, repeated for ever."""
    entries = _shipped("stage")
    lines = ["| m | max | max, interior | mean | mean, interior |", "|---|---|---|---|---|"]
    for size in sorted({size for _, size in entries}):
        cells = [
            _bound(entries.get((objective, size)), f"{role}kappa_{objective}")
            for objective in ("max", "mean")
            for role in ("", "interior_")
        ]
        lines.append(f"| {size} | {' | '.join(cells)} |")
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


def horizon_table() -> str:
    """Return how precise a counter with the default chain is, by horizon and epsilon (worst step)."""
    lines = ["| horizon | ε = 0.1 | ε = 1 | ε = 10 |", "|---|---|---|---|"]
    for n in (1_000, 10_000, 100_000, 1_000_000, 1_000_000_000):
        chain = chain_of(default_names(n, objective="max"))
        sd = math.sqrt(chain_cost(chain, n, objective="max").max_se())
        cells = " | ".join(f"± {2 * sd / epsilon:.0f}" for epsilon in (0.1, 1.0, 10.0))
        lines.append(f"| {n:,} | {cells} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {
    "horizons": horizon_table,
    "direct": direct_table,
    "stages": stage_table,
    "errors": error_table,
}
"""The tables by the name of their markers."""


def fill_in(text: str) -> str:
    """Return the text with each table between ``<!-- table: name -->`` and ``<!-- end -->`` made anew."""

    def made(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{TABLES[match[1]]()}\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->.*?<!-- end -->", made, text, flags=re.DOTALL)


def main() -> int:
    """Print the tables, or write them into the files named on the command line."""
    parser = argparse.ArgumentParser(description="The tables of the README.")
    parser.add_argument("files", nargs="*", type=Path, help="files to write them into, between their markers")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON: name -> rows of cells")
    arguments = parser.parse_args()
    for path in arguments.files:
        path.write_text(fill_in(path.read_text(encoding="utf-8")), encoding="utf-8")
    if arguments.json:
        print(json.dumps({name: _cells(table()) for name, table in TABLES.items()}, ensure_ascii=False))
    elif not arguments.files:
        print("\n\n".join(table() for table in TABLES.values()))
    return 0


def _cells(table: str) -> list[list[str]]:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [row for row in rows if not all(set(cell) <= {"-"} for cell in row)]


if __name__ == "__main__":
    raise SystemExit(main())
