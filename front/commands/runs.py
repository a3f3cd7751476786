"""``trilift runs``: runs of jobs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["NAME", "command"]

NAME = "runs"

_COLUMNS = ("run", "kind", "objective", "size", "seed", "status", "phase", "seconds", "kappa")


def command(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs.", metavar="DIR...")],
    *,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """Compare runs of optimize --job: what each has come to, finished or not, the best of its kind first."""
    from trilift.factorize.compare import compare_runs
    from trilift.output import print_json, print_table

    runs = compare_runs(folders)
    if json:
        print_json([run.to_json() for run in runs])
        return
    rows = [
        (
            run.run,
            run.kind,
            run.objective + (" interior" if run.interior else ""),
            str(run.size),
            str(run.seed),
            run.status,
            f"{run.phase}/{run.phases} {run.method}",
            f"{run.seconds:.1f}",
            "" if run.kappa is None else f"{run.kappa:.6f}",
        )
        for run in runs
    ]
    left = ("run", "kind", "objective", "status", "phase")
    print_table(f"{len(runs)} runs", _COLUMNS, rows, left=left)
