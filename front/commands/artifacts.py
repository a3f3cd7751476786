"""``trilift artifacts``: list the catalogue."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["NAME", "command"]

NAME = "artifacts"


def command(
    *,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List the certified artifacts: those shipped, and your own (folder TRILIFT_ARTIFACTS)."""
    from trilift.artifacts import catalogue, user_directory
    from trilift.output import note, print_json, print_table

    entries = catalogue()
    if json:
        print_json([entry.to_json() for entry in entries])
        return

    def shown(kappa: float | None) -> str:
        return "" if kappa is None else f"{kappa:.6f}"

    rows = []
    for entry in entries:
        claims = entry.certificate
        kappas = (claims.kappa_max, claims.kappa_mean, claims.interior_kappa_max, claims.interior_kappa_mean)
        rows.append([entry.name, entry.source, entry.sha256[:12], *map(shown, kappas)])
    columns = ["name", "source", "sha256", "kappa max", "kappa mean", "interior max", "interior mean"]
    print_table("Certified artifacts (kappa = SE eps^2 / log2(n)^3)", columns, rows, left=("name", "source"))
    note(f"Your own artifacts are looked for in {user_directory()}")
