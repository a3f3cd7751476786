"""``trilift bench``: peers side by side, by their own code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["NAME", "command"]

NAME = "bench"


def command(
    *,
    n: Annotated[
        list[str] | None,
        typer.Option("--n", metavar="N", help="Steps; more than one is fine. (default: 2^10, 2^16 and 2^20)"),
    ] = None,
    tools: Annotated[
        list[str] | None,
        typer.Option("--tools", metavar="TOOL", help="trilift, dpcrpy, opendp, jax_privacy. All by default."),
    ] = None,
    envs: Annotated[
        Path | None,
        typer.Option("--envs", help="Folder for the peers' environments. (default: in your cache)"),
    ] = None,
    rounds: Annotated[str, typer.Option("--rounds", metavar="R", help="How often speeds are taken.")] = "3",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder for measurements/bench.json, which is replaced if it is there."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the whole record as JSON.")] = False,
) -> None:
    """Compare error and speed with dpcrpy, OpenDP and jax_privacy, each by its own code, in one run.

    The first run makes an environment for each peer with venv and pip (pinned versions, some hundred MB);
    later runs use them again. A peer that cannot be installed is left out, and that is said.
    """
    from trilift.arguments import whole
    from trilift.experiments.bench.page import save_record, shown_rows
    from trilift.experiments.bench.run import HORIZONS, TOOLS, measure
    from trilift.lift.checks import choice, integer
    from trilift.output import note, print_json, print_table

    horizons = [integer("n", whole("n", text), minimum=LEAST, maximum=MOST) for text in n or ()] or HORIZONS
    chosen = [choice("tools", name, TOOLS) for text in tools or TOOLS for name in text.split(",")]
    times = integer("rounds", whole("rounds", rounds), minimum=1, maximum=100)
    folder = None if out is None else out / "measurements"
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    record = measure(
        horizons=list(dict.fromkeys(horizons)),
        tools=list(dict.fromkeys(chosen)),
        environments=envs,
        rounds=times,
        optimisers=not n,
        tell=note,
    )
    if folder is not None:
        note(f"Written: {save_record(record, folder / 'bench.json')}")
    if json:
        print_json(record)
    else:
        header, rows = shown_rows(record)
        print_table("Peers side by side", header, rows, left=("tool", "mechanism"))
    for entry in record["missing"]:
        note(f"missing: {entry['tool']}: {entry['why']}")
    if not record["rows"]:
        raise typer.Exit(1)


LEAST, MOST = 16, 2**22
