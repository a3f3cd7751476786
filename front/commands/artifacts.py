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
    """List the artifacts: those shipped, and your own (folder TRILIFT_ARTIFACTS), which are proved here."""
    from trilift.artifacts import catalogue, user_directory
    from trilift.output import note, one_line, print_json, print_table
    from trilift.verify import refutation

    entries = catalogue()
    failures = [refutation(entry.path) for entry in entries]
    records = [e.to_json(certified=why is None) for e, why in zip(entries, failures, strict=True)]
    if json:
        print_json(records)
    else:
        kappas = ("kappa_max", "kappa_mean", "interior_kappa_max", "interior_kappa_mean")
        rows = [
            [
                record["name"],
                entry.source,
                "yes" if record["certified"] else "NO",
                entry.sha256[:12],
                *["" if record[name] is None else f"{record[name]:.6f}" for name in kappas],
            ]
            for entry, record in zip(entries, records, strict=True)
        ]
        columns = ["name", "source", "certified", "sha256"]
        columns += ["kappa max", "kappa mean", "interior max", "interior mean"]
        left = ("name", "source", "certified")
        print_table("Artifacts (kappa = SE eps^2 / log2(n)^3)", columns, rows, left=left)
        note(f"Your own artifacts are looked for in {user_directory()}")
    for entry, why in zip(entries, failures, strict=True):
        if why is not None:
            note(f"trilift: {entry.name}: not verified: {one_line(why)}")
