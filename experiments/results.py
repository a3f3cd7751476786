"""The page docs/results.md: every mechanism and every shipped constant, from exact costs and certificates.

    trilift reproduce results --out docs     # write results.md and its pictures there

``table1`` and ``table2`` are what ``trilift reproduce`` prints. A test compares the page with what this
makes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from trilift.artifacts import Entry, catalogue, load_stage
from trilift.experiments.bench import page as peers
from trilift.experiments.edit.unreproduced import why_not_published
from trilift.experiments.published import KAPPA_CERTIFIED, KAPPA_DIRECT
from trilift.lift import Plan, Stage, plan
from trilift.lift.checks import integer
from trilift.lift.mechanisms import NAMES, leading_constants, price
from trilift.lift.plan import MAX_HORIZON
from trilift.lift.tree_costs import smooth_binary_tree_cost
from trilift.verify.bollobas import binary_cost_sq_bound
from trilift.verify.lower_bounds import factorisation_lower_bound, kappa_lower_bound

__all__ = [
    "Report",
    "best_chain",
    "page",
    "published_bound",
    "shipped_constants",
    "table1",
    "table2",
    "write_results",
]

Report = Callable[[int, int], None]
"""Called as report(steps done, steps in all)."""

OURS = "trilift"
HORIZONS = tuple(2**p for p in (10, 16, 20, 30))
_FLOORS = 2**20  # the lower bounds are sums of n terms
TITLES = {
    "binary-tree": "binary tree",
    "smooth-tree": "smooth binary tree",
    "smooth-tree-unbalanced": "smooth binary tree, unbalanced",
    "kary": "k-ary tree",
    "kary-subtraction": "k-ary tree, subtraction",
    "kary-averaged": "k-ary tree, averaged",
    "honaker": "binary tree, optimal weights",
    "honaker-kary": "k-ary tree, optimal weights",
    "toeplitz-sqrt": "Toeplitz square root",
    "paper": "Arkhipov and Kalinin, k = 1024",
    OURS: "trilift, best shipped chain",
}


@cache
def _candidates() -> dict[str, Stage]:
    kinds = ("stage", "direct")
    entries = [entry for entry in catalogue() if entry.source == "shipped" and entry.kind in kinds]
    return {entry.name: load_stage(entry.name).to_float() for entry in entries}


@cache
def best_chain(horizon: int, objective: str) -> Plan:
    """Return the chain of shipped artifacts with the least exact error at a horizon."""
    return plan(_candidates(), horizon, objective=objective)


def _shipped(kind: str) -> dict[int, list[Entry]]:
    found: dict[int, list[Entry]] = {}
    for entry in catalogue():
        if entry.source == "shipped" and entry.kind == kind:
            found.setdefault(entry.size, []).append(entry)
    return dict(sorted(found.items()))


def shipped_constants(kind: str, *, interior: bool = False) -> dict[int, tuple[float, float]]:
    """Return the least certified kappas (max, mean) by size.

    Args:
        kind: "stage" (of the stage repeated for ever) or "direct" (of T_k itself).
        interior: take the interior kappas of stages, which hold for every level but the finest.
    """
    names = ("interior_kappa_max", "interior_kappa_mean") if interior else ("kappa_max", "kappa_mean")
    return {
        size: (
            min(float(getattr(entry.certificate, names[0])) for entry in entries),
            min(float(getattr(entry.certificate, names[1])) for entry in entries),
        )
        for size, entries in _shipped(kind).items()
    }


def _silent(done: int, steps: int) -> None:
    """Report nothing."""


def table1(horizon: int = 2**20, *, report: Report = _silent) -> list[dict[str, Any]]:
    """Return the paper's Table 1 with exact constants at a finite horizon beside the limits.

    Each row has "mechanism", "n", "kappa_max", "kappa_mean" (exact, each with the mechanism's parameters
    chosen for it) and "limit_max", "limit_mean" (for n to infinity). What is not known, or has no limit, is
    None. The limits of "trilift" are the least certified constants of a shipped stage repeated for ever.

    Args:
        horizon: number of steps n.
        report: told after each mechanism.

    Raises:
        ParameterError: a horizon that is not an integer >= 2, or is too large.
    """
    n = integer("horizon", horizon, minimum=2, maximum=MAX_HORIZON)
    rows: list[dict[str, Any]] = []
    for name in NAMES:
        report(len(rows), len(NAMES) + 1)
        kappas = [price(name, n, objective=objective).kappa(objective) for objective in ("max", "mean")]
        rows.append(_row(name, n, kappas, leading_constants(name) or (None, None)))
    report(len(rows), len(NAMES) + 1)
    limits = shipped_constants("stage", interior=True).values()
    least = (min(worst for worst, _ in limits), min(mean for _, mean in limits))
    ours = [best_chain(n, objective).cost.kappa(objective) for objective in ("max", "mean")]
    return [*rows, _row(OURS, n, ours, least)]


def _row(name: str, n: int, kappas: Any, limits: Any) -> dict[str, Any]:
    return {
        "mechanism": name,
        "n": n,
        "kappa_max": kappas[0],
        "kappa_mean": kappas[1],
        "limit_max": limits[0],
        "limit_mean": limits[1],
    }


def table2() -> list[dict[str, Any]]:
    """Return the paper's Table 2: certified constants of T_k itself, for every shipped k that it has.

    Each row has "k", "kappa_direct_max", "kappa_direct_mean" (upper bounds, rounded up), "paper_max",
    "paper_mean", and "certified", which is True: the shipped certificates prove ours.
    """
    return [
        {
            "k": k,
            "kappa_direct_max": worst,
            "kappa_direct_mean": mean,
            "paper_max": KAPPA_DIRECT[k][0],
            "paper_mean": KAPPA_DIRECT[k][1],
            "certified": True,
        }
        for k, (worst, mean) in shipped_constants("direct").items()
        if k in KAPPA_DIRECT
    ]


def _cell(value: float | None, digits: int = 4) -> str:
    if value is None:
        return ""
    return f"{value:.{digits}f}" if value < 100 else f"{value:.0f}"


def _up(value: float) -> str:
    """Show an upper bound: rounded up, never below the value."""
    return f"{math.ceil(value * 10**4) / 10**4:.4f}"


def _down(value: float) -> str:
    """Show a lower bound: rounded down."""
    return f"{math.floor(value * 10**4) / 10**4:.4f}"


def published_bound(horizon: int, objective: str) -> float:
    """Return kappa of the paper's lift at a horizon, by its additive bound with the best k of its Table 2.

    The table's figures are not proved, but for k = 1024 (see "paper" in :mod:`trilift.lift.mechanisms`).
    """
    errors = []
    for k, kappas in KAPPA_DIRECT.items():
        power = 1
        while ((2 * k + 1) ** power - 1) // 2 < horizon:
            power += 1
        errors.append(kappas[objective == "mean"] * (power * math.log2(k)) ** 3)
    return min(errors) / math.log2(horizon) ** 3


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _constants_table() -> str:
    """Table 1 at 2^20 as Markdown; the paper's bound stands where exact figures would."""
    rows = []
    for row in table1():
        name, n = row["mechanism"], row["n"]
        cells = [_cell(row[key]) for key in ("kappa_max", "kappa_mean", "limit_max", "limit_mean")]
        if name == "paper":
            bounds = [price(name, n, objective=o).kappa(o, bound=True) for o in ("max", "mean")]
            cells[:2] = [f"≤ {_up(bound)}" for bound in bounds if bound is not None]
            cells[2:] = [_up(limit) for limit in KAPPA_CERTIFIED]
        if name == OURS:
            cells = [f"**{cell}**" for cell in [*cells[:2], _up(row["limit_max"]), _up(row["limit_mean"])]]
        if name == "toeplitz-sqrt":
            cells[2:] = ["∞", "∞"]
        rows.append([TITLES[name], *cells])
    return _table(["mechanism", "κ max, n = 2^20", "κ mean, n = 2^20", "limit max", "limit mean"], rows)


def _direct_table() -> str:
    rows = [
        [
            str(row["k"]),
            f"{row['paper_max']:.4f}",
            _up(row["kappa_direct_max"]),
            f"{row['paper_mean']:.4f}",
            _up(row["kappa_direct_mean"]),
        ]
        for row in table2()
    ]
    return _table(["k", "max, published", "max, here", "mean, published", "mean, here"], rows)


def _finite_table() -> str:
    """Exact kappas of every mechanism at some horizons."""
    header = ["mechanism"] + [f"2^{n.bit_length() - 1}, {o}" for n in HORIZONS for o in ("max", "mean")]
    rows = []
    for name in (*NAMES, OURS):
        cells = []
        for n in HORIZONS:
            for o in ("max", "mean"):
                if name == OURS:
                    cells.append(f"**{best_chain(n, o).cost.kappa(o):.4f}**")
                elif name == "paper":
                    cells.append(f"≤ {_up(price(name, n, objective=o).kappa(o, bound=True) or math.inf)}")
                else:
                    cells.append(_cell(price(name, n, objective=o).kappa(o), 3))
        rows.append([TITLES[name], *cells])
    published = [f"≤ {_up(published_bound(n, o))}" for n in HORIZONS for o in ("max", "mean")]
    rows.insert(-1, ["Arkhipov and Kalinin, best k of Table 2", *published])
    bounds = [f"≥ {_down(kappa_lower_bound(n))}" if n <= _FLOORS else "" for n in HORIZONS]
    rows.append(["every factorisation", *[cell for bound in bounds for cell in (bound, bound)]])
    return _table(header, rows)


def _chains_table() -> str:
    rows = [
        [f"2^{n.bit_length() - 1}", o, ", ".join(f"`{name}`" for name in best_chain(n, o).names)]
        for n in HORIZONS
        for o in ("max", "mean")
    ]
    return _table(["n", "objective", "chain, finest level first"], rows)


def _binary_table() -> str:
    """Costs |L|_(2->inf) |R|_(1->1) of 0/1 factors and their exact lower bounds."""
    rows = []
    for n in HORIZONS:
        tree = smooth_binary_tree_cost(n, balanced=False)
        bounds = [math.sqrt(binary_cost_sq_bound(n, objective=o)) for o in ("max", "mean")]
        costs = [math.sqrt(row) * tree.sensitivity for row in (tree.max_row_norm_sq, tree.mean_row_norm_sq)]
        cells = [bounds[0], costs[0], bounds[1], costs[1]]
        rows.append([f"2^{n.bit_length() - 1}", *[f"{cell:.3f}" for cell in cells]])
    return _table(["n", "max, bound", "max, unbalanced smooth tree", "mean, bound", "mean, same tree"], rows)


def _gaussian_table() -> str:
    """Errors per unit of Gaussian noise, l2 sensitivity 1."""
    names = ("toeplitz-sqrt", "honaker", "smooth-tree", "binary-tree")
    header = ["mechanism"] + [f"2^{n.bit_length() - 1}, {o}" for n in HORIZONS for o in ("max", "mean")]
    rows = []
    for name in names:
        cells = [_cell(price(name, n, objective=o).gamma(o), 3) for n in HORIZONS for o in ("max", "mean")]
        rows.append([TITLES[name], *cells])
    floors = [f"≥ {_down(factorisation_lower_bound(n))}" if n <= _FLOORS else "" for n in HORIZONS]
    rows.append(["every factorisation", *[cell for floor in floors for cell in (floor, floor)]])
    return _table(header, rows)


def page(record: dict[str, Any] | None = None) -> str:
    """Return docs/results.md; without a record of ``trilift bench``, without its section on peers."""
    others = "" if record is None else peers.section(record) + "\n\n"
    return f"""# Results

This page is made by `trilift reproduce results --out docs` from exact costs and from the
certificates of the shipped artifacts; a test compares it with what that command makes.

κ is the squared error of a released count times ε² / log2(n)³: of the worst step (max) or averaged over
all steps (mean). Trees have, at each length and for each of the two errors, the number of levels that is
best, and for long streams the best arity. Upper bounds are rounded up. What is exact and what is a bound:
trees and our chains are exact at every length; of the paper's lift only norms are published, so it
appears with the bound that they give (for the mean, of the whole lift, as the paper takes it). Our limits
are certified: of the best shipped stage repeated for ever, by its interior cost.

## Table 1: leading constants

{_constants_table()}

The limits are those in the literature, and tests compare them with the growth of the exact costs. Not in
the paper's table are the unbalanced smooth tree, which attains the constant of the paper's lower bound
for 0/1 factors, the Toeplitz square root, and trees read with the weights of least variance. With k = 12
for max and 13 for mean these come close to the paper's lift by mean, but they are no chain and do not
stream in O(log n) memory here.

![κ against the size of the stage](results-constants.png)

## Table 2: T_k itself

κ of a certified factorisation of T_k alone, without lifting:

{_direct_table()}

## Exact constants at finite lengths

{_finite_table()}

(Table 2 of the paper was found numerically and is proved for k = 1024 only. For the Toeplitz square root,
the sensitivity of which grows as the root of n, see the last section. The last row holds for all
factorisations whatever.) Our chains:

{_chains_table()}

![Exact error against the length of the stream](results-errors.png)

## Factors with entries 0 and 1

The cost |L| |R| of any factorisation of T_n into 0/1 matrices is at least the bound here: the skew
Bollobás inequalities, solved exactly for each n. The unbalanced smooth tree is the best possible for the
worst step wherever the two agree (for 97 % of all n up to 4096).

{_binary_table()}

## Gaussian noise, for reference

The same mechanisms under l2 sensitivity: standard deviation per unit of Gaussian noise, |L| times the
largest l2 norm of a column of R. The last row bounds every factorisation, and the Toeplitz square root is
within a constant of it:

{_gaussian_table()}

{others}## Edit-neighbouring streams

Mechanisms for streams in which an event more shifts all later ones, an attack on them, and the experiments of
the paper that they come from are on a page of their own: [edit-results.md](edit-results.md).

{why_not_published()}
"""


def write_results(directory: Path, *, report: Report = _silent) -> list[Path]:
    """Write results.md and its pictures into a directory, over those that are there; return the files.

    Args:
        directory: an existing one; peers are shown if measurements/bench.json is in it.
        report: told after each chain that was planned, which is what takes the time.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OSError: a file cannot be written.
    """
    from trilift.experiments.bench.picture import draw_peers
    from trilift.experiments.figures import new_figure
    from trilift.experiments.results_pictures import OUR_POWERS, draw_constants, draw_errors

    new_figure(1.0, 1.0)  # the extra is looked for before anything takes time
    horizons = sorted({*HORIZONS, *(2**p for p in OUR_POWERS)})
    chains = [(n, objective) for n in horizons for objective in ("max", "mean")]
    for done, (n, objective) in enumerate(chains):
        report(done, len(chains) + 1)
        best_chain(n, objective)
    report(len(chains), len(chains) + 1)
    files = [directory / name for name in ("results.md", "results-constants.png", "results-errors.png")]
    kept = directory / "measurements" / peers.RECORD
    record = peers.load_record(kept) if kept.exists() else None
    files[0].write_text(page(record), encoding="utf-8")
    draw_constants(files[1])
    draw_errors(files[2])
    if record is not None:
        files.append(directory / "results-peers.png")
        draw_peers(record, files[3])
    return files


def main(arguments: Sequence[str] | None = None) -> int:
    """Write results.md and its pictures into a directory."""
    parser = argparse.ArgumentParser(description="Write results.md and its pictures.")
    parser.add_argument("--out", type=Path, required=True, help="directory")
    write_results(parser.parse_args(arguments).out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
