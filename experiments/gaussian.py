"""The page docs/gaussian.md: chains for Gaussian noise beside the Toeplitz square root and the lower bound.

    python -m trilift.experiments.gaussian            # print the tables
    python -m trilift.experiments.gaussian --json     # the same as JSON
    python -m trilift.experiments.gaussian docs/gaussian.md   # write them between the markers of the page

gamma is the largest (max) or the root mean square (mean) standard deviation of a step per unit of Gaussian
noise: |L|_(2->inf) |R|_(1->2) and |L|_F |R|_(1->2) / sqrt(n). Under rho-zCDP the squared error is
gamma^2 / (2 rho). A test compares the page with what this makes.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from trilift.artifacts import catalogue_l2, load_stage_l2
from trilift.lift import Stage, max_column_charge, plan
from trilift.lift.mechanisms import price
from trilift.verify import factorisation_lower_bound

__all__ = ["HORIZONS", "Row", "chain_row", "compare", "fill_in", "tables"]

HORIZONS = (2**10, 2**16, 2**20)
PUBLISHED_OFFSET = 0.85
"""Explicit factorisations are published whose gamma is about ln(n)/pi + 0.85 (quoted, not computed here)."""
SMALL = 129
"""Steps of a level in a small chain."""
_KEEP = 6
_TITLES = {
    "binary-tree": "binary tree",
    "honaker": "binary tree, optimal weights",
    "toeplitz-sqrt": "Toeplitz square root",
}


@dataclass(frozen=True)
class Row:
    """One mechanism at one horizon.

    Attributes:
        horizon: number of steps n.
        mechanism: its name.
        gamma_max: worst standard deviation of a step per unit of noise.
        gamma_mean: root mean square one.
        memory: numbers kept in streaming, for "max", or None where it is not ours to say.
        chain: for a chain, the artifacts for "max" and for "mean", each finest first.
    """

    horizon: int
    mechanism: str
    gamma_max: float
    gamma_mean: float
    memory: int | None = None
    chain: tuple[tuple[str, ...], tuple[str, ...]] | None = None


@cache
def _candidates() -> dict[str, Stage]:
    return {e.name: load_stage_l2(e.name).to_float() for e in catalogue_l2() if e.source == "shipped"}


@cache
def chain_row(horizon: int, *, small: bool = False) -> Row:
    """Return the best chains of shipped artifacts, by exact cost and exact sensitivity.

    Args:
        horizon: number of steps n.
        small: use levels of at most 129 steps only.
    """
    candidates = {n: s for n, s in _candidates().items() if not small or s.size <= SMALL}
    gammas, names, memories = [], [], []
    for objective in ("max", "mean"):
        found = plan(candidates, horizon, objective=objective, norm="l2", keep=_KEEP)
        charge = max_column_charge(found.chain, horizon, scales=found.cost.scales, norm="l2")
        gammas.append(found.cost.gamma(objective) * math.sqrt(charge))
        names.append(found.names)
        memories.append(sum(level.size + level.inner for level in found.chain.levels))
    return Row(
        horizon, "small-chain" if small else "chain", gammas[0], gammas[1], memories[0], (names[0], names[1])
    )


def compare(horizon: int) -> list[Row]:
    """Return what every mechanism costs at a horizon, the lower bound of all factorisations last."""
    rows = []
    for name in _TITLES:
        costs = {objective: price(name, horizon, objective=objective) for objective in ("max", "mean")}
        gammas = [costs[objective].gamma(objective) for objective in ("max", "mean")]
        if gammas[0] is not None and gammas[1] is not None:
            rows.append(Row(horizon, name, gammas[0], gammas[1]))
    published = math.log(horizon) / math.pi + PUBLISHED_OFFSET
    least = factorisation_lower_bound(horizon)
    return [
        *rows,
        Row(horizon, "published", published, published),
        chain_row(horizon, small=True),
        chain_row(horizon),
        Row(horizon, "lower-bound", least, least),
    ]


def errors_table() -> str:
    """Return gammas, and squared errors relative to the Toeplitz square root, at the horizons."""
    titles = {
        **_TITLES,
        "published": "best explicit ones published, about ln(n)/π + 0.85",
        "small-chain": f"**chain, levels of at most {SMALL} steps**",
        "chain": "**chain, any shipped levels**",
        "lower-bound": "lower bound of every factorisation",
    }
    header = " | ".join(f"n = 2^{round(math.log2(n))}: max | mean | squared" for n in HORIZONS)
    lines = [f"| mechanism | {header} |", "|---" * (1 + 3 * len(HORIZONS)) + "|"]
    tables = {n: {row.mechanism: row for row in compare(n)} for n in HORIZONS}
    for name, title in titles.items():
        cells = []
        for n in HORIZONS:
            row, root = tables[n][name], tables[n]["toeplitz-sqrt"]
            ratios = ((row.gamma_max / root.gamma_max) ** 2, (row.gamma_mean / root.gamma_mean) ** 2)
            cells += [f"{row.gamma_max:.3f}", f"{row.gamma_mean:.3f}", f"{ratios[0]:.3f}, {ratios[1]:.3f}"]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def chains_table() -> str:
    """Return which artifacts make the chains, and what they keep in memory."""
    lines = ["| n | objective | chain, finest first | numbers kept |", "|---|---|---|---|"]
    for n in HORIZONS:
        for small in (True, False):
            row = chain_row(n, small=small)
            for objective, names in zip(("max", "mean"), row.chain or (), strict=False):
                kept = sum(_candidates()[name].size + _candidates()[name].inner for name in names)
                lines.append(f"| 2^{round(math.log2(n))} | {objective} | {', '.join(names)} | {kept} |")
    return "\n".join(lines)


def _best(kind: str, name: str) -> dict[int, float]:
    """Return the least certified value of a claim by size."""
    best: dict[int, float] = {}
    for entry in catalogue_l2():
        value = getattr(entry.certificate, name)
        if entry.source == "shipped" and entry.certificate.kind == kind and value is not None:
            size = entry.certificate.size
            best[size] = min(best.get(size, math.inf), float(value))
    return dict(sorted(best.items()))


def _up(value: float) -> str:
    """Show an upper bound: rounded up, never below the value."""
    return f"{math.ceil(value * 10**4) / 10**4:.4f}"


def direct_table() -> str:
    """Return the certified gammas of T_k beside the lower bound."""
    best = _best("direct", "gamma_max"), _best("direct", "gamma_mean")
    lines = ["| k | lower bound | max | mean | Toeplitz, max | Toeplitz, mean |", "|---|---|---|---|---|---|"]
    for size, worst in best[0].items():
        root = price("toeplitz-sqrt", size)
        least = math.floor(factorisation_lower_bound(size) * 10**4) / 10**4
        lines.append(
            f"| {size} | {least:.4f} | {_up(worst)} | {_up(best[1][size])} "
            f"| {root.gamma('max'):.4f} | {root.gamma('mean'):.4f} |"
        )
    return "\n".join(lines)


def stages_table() -> str:
    """Return the certified gammas of the stages, and what a repeated stage adds per unit of ln(n)."""
    names = ("gamma_max", "interior_gamma_max", "gamma_mean", "interior_gamma_mean")
    best = [_best("stage", name) for name in names]
    lines = [
        "| m | max | max, interior | per ln(n) | mean | mean, interior | per ln(n) |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in best[0]:
        worst, worst_interior, mean, mean_interior = (values[size] for values in best)
        per = [value / math.log(size) for value in (worst_interior, mean_interior)]
        lines.append(
            f"| {size} | {_up(worst)} | {_up(worst_interior)} | {_up(per[0])} "
            f"| {_up(mean)} | {_up(mean_interior)} | {_up(per[1])} |"
        )
    return "\n".join(lines)


def tables() -> dict[str, str]:
    """Return the tables of the page by the names of their markers."""
    return {
        "errors": errors_table(),
        "chains": chains_table(),
        "direct": direct_table(),
        "stages": stages_table(),
    }


def fill_in(text: str, made: dict[str, str]) -> str:
    """Return the text with each table between ``<!-- table: name -->`` and ``<!-- end -->`` made anew."""

    def table(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{made[match[1]]}\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->.*?<!-- end -->", table, text, flags=re.DOTALL)


def main(arguments: list[str] | None = None) -> int:
    """Print the tables, or write them into the files named on the command line."""
    parser = argparse.ArgumentParser(
        description="Chains for Gaussian noise against the Toeplitz square root."
    )
    parser.add_argument("files", nargs="*", type=Path, help="files to write the tables into")
    parser.add_argument("--json", action="store_true", help="print the comparison as a JSON list")
    options = parser.parse_args(arguments)
    if options.json:
        print(json.dumps([asdict(row) for n in HORIZONS for row in compare(n)], indent=1))
        return 0
    made = tables()
    for path in options.files:
        path.write_text(fill_in(path.read_text(encoding="utf-8"), made), encoding="utf-8")
    if not options.files:
        print("\n\n".join(made.values()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
