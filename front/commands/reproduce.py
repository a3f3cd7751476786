"""``trilift reproduce``: the papers' tables with our figures, and the page of results."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from trilift.commands import reproduce_edit, reproduce_trust, reproduce_turnstile

__all__ = ["NAME", "app"]

NAME = "reproduce"

Json = Annotated[bool, typer.Option("--json", help="Print a JSON list.")]

app = typer.Typer(
    help="Make the tables and pictures of the results anew, from certificates and exact costs.",
    rich_markup_mode="markdown",
    no_args_is_help=True,
)
reproduce_edit.add_to(app)
reproduce_turnstile.add_to(app)
reproduce_trust.add_to(app)


@app.command("table1")
def table1(
    *,
    horizon: Annotated[
        str, typer.Option("--horizon", "-n", metavar="N", help="Number of steps of the exact constants.")
    ] = str(2**20),
    json: Json = False,
) -> None:
    """Constants of every mechanism: exact at a finite number of steps, and their limits."""
    from trilift.arguments import whole
    from trilift.experiments import results
    from trilift.output import print_json, print_table, progress

    steps = whole("horizon", horizon)
    with progress("Table 1") as report:
        rows = results.table1(steps, report=report)
    if json:
        print_json(rows)
        return
    columns = ["mechanism", "kappa max", "kappa mean", "limit max", "limit mean"]
    keys = ["kappa_max", "kappa_mean", "limit_max", "limit_mean"]
    cells = [
        [results.TITLES[row["mechanism"]], *[_shown(row[key], key.startswith("limit")) for key in keys]]
        for row in rows
    ]
    title = f"kappa = SE eps^2 / log2(n)^3: exact for n = {steps}, and for n to infinity"
    print_table(title, columns, cells, left=("mechanism",))


@app.command("table2")
def table2(*, json: Json = False) -> None:
    """Certified constants of T_k itself beside the published ones."""
    from trilift.experiments import results
    from trilift.output import print_json, print_table

    rows = results.table2()
    if json:
        print_json(rows)
        return
    keys = ["kappa_direct_max", "paper_max", "kappa_direct_mean", "paper_mean"]
    cells = [[str(row["k"]), *[_shown(row[key], True) for key in keys]] for row in rows]
    columns = ["k", "max, certified", "max, published", "mean, certified", "mean, published"]
    print_table("kappa of T_k itself (upper bounds, rounded up)", columns, cells, left=())


@app.command("results")
def results(
    *, out: Annotated[Path, typer.Option("--out", "-o", help="Folder; files of these names are replaced.")]
) -> None:
    """Write results.md, results-constants.png and results-errors.png into a folder (some minutes)."""
    from trilift.experiments.results import write_results
    from trilift.output import note, progress

    out.mkdir(parents=True, exist_ok=True)
    with progress("Planning chains") as report:
        files = write_results(out, report=report)
    note(f"Written: {', '.join(map(str, files))}")


def _shown(value: Any, bound: bool) -> str:
    """Show a constant, an upper bound rounded up; nothing where it is not known."""
    if value is None:
        return ""
    return f"{math.ceil(value * 1e6) / 1e6:.6f}" if bound else f"{value:.6f}"
