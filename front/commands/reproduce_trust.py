"""``trilift reproduce trust``: everything that was tried against trilift, tried again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the command to ``trilift reproduce``."""
    app.command(
        "trust",
        help="Planted faults, audits, kill points, hostile input, samplers, soak and supply chain: how "
        "many cases were tried, and in how many trilift did what it should. Exit code 1 unless in all.",
    )(command)


def command(
    *,
    part: Annotated[
        list[str] | None,
        typer.Option(
            "--part", metavar="PART", help="A part of the page; more than one is fine. All by default."
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Everything, as on the page (an hour); else small versions.")
    ] = False,
    seed: Annotated[
        str, typer.Option("--seed", metavar="S", help="Decides everything that is random.")
    ] = "1",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for trust.md and measurements/trust_*.json; what is there is replaced.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Try everything again."""
    from trilift.arguments import whole
    from trilift.experiments.trust.page import write_page
    from trilift.experiments.trust.parts import PARTS, failures, measure_part, save_result
    from trilift.lift.checks import choice, integer
    from trilift.output import note, print_json, print_table

    chosen = [choice("part", name, PARTS) for name in part or PARTS]
    number = integer("seed", whole("seed", seed), minimum=0)
    measurements = None if out is None else out / "measurements"
    if measurements is not None:
        measurements.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, Any]] = []
    for name in dict.fromkeys(chosen):
        note(f"{name}:")
        results.append(measure_part(name, full=full, seed=number, tell=lambda text: note(f"  {text}")))
        if measurements is not None:
            note(f"Written: {save_result(results[-1], measurements=measurements)}")
    if out is not None:
        note(f"Written: {write_page(out)}")
    if json:
        print_json(results)
    else:
        rows = [
            [r["part"], row["what"], str(row["tried"]), str(row["held"])]
            for r in results
            for row in r["rows"]
        ]
        print_table(
            "What was tried, and what held", ["part", "what", "tried", "held"], rows, left=("part", "what")
        )
    failed = [line for result in results for line in failures(result)]
    for line in failed:
        note(line)
    if failed:
        raise typer.Exit(1)
