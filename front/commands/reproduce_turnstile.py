"""``trilift reproduce turnstile``: factors, intervals and speeds of the turnstile counters, measured."""

from __future__ import annotations

import json as json_module
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the command to ``trilift reproduce``."""
    app.command(
        "turnstile",
        help="Factors, errors, intervals and speeds of all estimators of distinct items and F2, on streams "
        "with insertions and deletions. Over the Toeplitz root noise is simulated, over chains it is exact.",
    )(command)


def command(
    *,
    steps: Annotated[str, typer.Option("--T", "-T", metavar="N", help="Number of events.")] = "10000",
    rho: Annotated[
        list[str] | None,
        typer.Option(
            "--rho", metavar="R", help="Budget of zCDP; more than one is cheap (default 0.1, 1, 10)."
        ),
    ] = None,
    epsilon: Annotated[
        list[str] | None, typer.Option("--epsilon", metavar="E", help="Budget of pure privacy instead.")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="BASE", help="toeplitz (default for --rho) or chain (for --epsilon)."),
    ] = None,
    runs: Annotated[
        str, typer.Option("--runs", metavar="N", help="Runs; factors are medians over them.")
    ] = "5",
    seed: Annotated[
        str, typer.Option("--seed", metavar="S", help="Decides everything that is random.")
    ] = "0",
    part: Annotated[
        list[str] | None,
        typer.Option("--part", metavar="PART", help="Of distinct, moment, maps, tables, default, speed."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for the JSON and the finished runs to go on from."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Insist that the folder has finished runs of these settings.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure."""
    from trilift.arguments import number, whole
    from trilift.experiments.turnstile.measure import PARTS, check_settings, kept_file, measure
    from trilift.lift.errors import ParameterError
    from trilift.output import note, print_json, progress

    settings = check_settings(
        steps=whole("T", steps),
        rho=[Fraction(number("rho", text)) for text in rho or ()],
        epsilon=[Fraction(number("epsilon", text)) for text in epsilon or ()],
        base=base,
        runs=whole("runs", runs),
        seed=whole("seed", seed),
        parts=part or PARTS,
    )
    if resume and (out is None or not kept_file(settings, folder=out).is_file()):
        raise ParameterError("--resume needs an --out folder with finished runs of these settings")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    if settings.base == "toeplitz":
        note("Simulation in floating point, for experiments only: nothing here is a private release.")
    else:
        note("Streams are artificial and keys are public: nothing here is a private release.")
    with progress("turnstile, permille") as report:
        result = measure(settings, folder=out, report=report)
    if out is not None:
        path = out / f"{settings.name}.json"
        path.write_text(json_module.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        note(f"Written: {path}")
    if json:
        print_json(result)
    else:
        _print(result, settings.law)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _print(result: dict[str, Any], law: str) -> None:
    from trilift.output import print_table

    columns = ["estimator", "stream", law, "factor", "beside", "95 %", "misses", "runs", "words", "updates/s"]
    keys = ["factor", "additive", "ratio_95"]
    rows = [
        [
            p["estimator"],
            p["stream"],
            f"{p[law]:g}",
            *[_cell(p[key]) for key in keys],
            "" if p["coverage_misses"] is None else str(p["coverage_misses"]),
            str(p["runs"]),
            "" if p["words"] is None else str(p["words"]),
            _cell(p["updates_per_s"]),
        ]
        for p in result["points"]
    ]
    title = f"Least factors at all steps, T = {result['T']}, {result['base']} ({result['noise']})"
    print_table(title, columns, rows, left=("estimator", "stream"))
