"""``trilift reproduce edit-*``: the paper's experiments on edit-neighbouring streams, simulated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["add_to"]

Runs = Annotated[
    str | None,
    typer.Option("--runs", metavar="N", help="Runs of each point (default: 2000, edit-fig1b 100)."),
]
Seed = Annotated[str, typer.Option("--seed", metavar="S", help="Decides everything that is random.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Folder for JSON, CSV, picture, and the finished points to go on from."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Insist that the folder has finished points of these settings.")
]
Jobs = Annotated[str, typer.Option("--jobs", metavar="J", help="Threads.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_HELP = {
    "edit-fig1a": "Error against the advantage of the attack: T = 10^4, 12 epsilons.",
    "edit-fig1b": "Error against the length of the stream: epsilon = 10, rate 0.01.",
    "edit-fig2": "Histograms of the attack's statistic, with and without the insertion.",
    "edit-fig3": "As edit-fig1a for T = 1000 in four settings.",
    "edit-table1": "The least error of each mechanism at an advantage of at most 0.1 and 0.05.",
}


def add_to(app: typer.Typer) -> None:
    """Add the commands to ``trilift reproduce``."""
    for name, text in _HELP.items():
        app.command(name, help=f"{text} Simulated in floating point.")(_command(name))


def _command(name: str) -> Callable[..., None]:
    def command(
        *,
        runs: Runs = None,
        seed: Seed = "0",
        out: Out = None,
        resume: Resume = False,
        jobs: Jobs = "2",
        json: Json = False,
    ) -> None:
        from trilift.arguments import whole
        from trilift.lift.checks import integer

        _reproduce(
            name,
            runs=None if runs is None else whole("runs", runs),
            seed=integer("seed", whole("seed", seed), minimum=0),
            folder=out,
            resume=resume,
            jobs=integer("jobs", whole("jobs", jobs), minimum=1, maximum=64),
            json=json,
        )

    return command


def _reproduce(
    name: str, *, runs: int | None, seed: int, folder: Path | None, resume: bool, jobs: int, json: bool
) -> None:
    from trilift.experiments.edit.plans import experiment
    from trilift.experiments.edit.reports import result_of, write_reports
    from trilift.experiments.edit.runner import SECONDS_A_STEP, do_experiment, points_file, steps_left
    from trilift.lift.errors import ParameterError
    from trilift.output import duration, note, print_json, progress

    chosen = experiment(name)
    if resume and (folder is None or not points_file(chosen, folder=folder).is_file()):
        raise ParameterError("--resume needs an --out folder with finished points of this experiment")
    steps = steps_left(chosen, runs=runs, seed=seed, folder=folder)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    note(
        f"Simulation in floating point, for experiments only: nothing here is a private release. "
        f"{steps / 1e6:.0f} million steps, about {duration(steps * SECONDS_A_STEP)} on one core."
    )
    with progress(f"{name}, million steps") as report:
        records = do_experiment(chosen, runs=runs, seed=seed, folder=folder, jobs=jobs, report=report)
    result = result_of(name, records=records, seed=seed)
    if folder is not None:
        files, missing = write_reports(name, result=result, folder=folder)
        note(f"Written: {', '.join(map(str, files))}")
        if missing is not None:
            note(f"No picture: {missing}")
    if json:
        print_json(result)
    else:
        _print(name, chosen.title, result)


def _number(value: Any, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _print(name: str, title: str, result: dict[str, Any]) -> None:
    from trilift.experiments.edit.tables import published_cell
    from trilift.output import print_table

    if name == "edit-table1":
        columns = ["mechanism", "variant", "adv <=", "rmse", "± 2 se", "epsilon", "advantage", "published"]
        rows = [
            [
                row["mechanism"],
                row["variant"],
                f"{row['bound']:g}",
                _number(row["rmse"], 2),
                _number(None if row["rmse_se"] is None else 2 * row["rmse_se"], 2),
                _number(row["epsilon"]),
                _number(row["advantage"]),
                _number(published_cell(row["mechanism"], variant=row["variant"], bound=row["bound"]), 2),
            ]
            for row in result["table"]
        ]
    else:
        columns, rows = _point_table(result["points"])
    print_table(title, columns, rows, left=("mechanism", "variant", "stream"))


def _point_table(points: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return a row a point; what is the same for all of them is left out."""
    cells: dict[str, Callable[[dict[str, Any]], str]] = {
        "mechanism": lambda r: str(r["mechanism"]),
        "variant": lambda r: str(r["variant"]),
        "stream": lambda r: str(r["stream"]),
        "ln delta": lambda r: _number(r["ln_delta"], 2),
        "T": lambda r: str(r["T"]),
        "epsilon": lambda r: _number(r["epsilon"]),
        "rmse": lambda r: _number(r["rmse"], 2),
        "± 2 se": lambda r: _number(None if r["rmse_se"] is None else 2 * r["rmse_se"], 2),
        "advantage": lambda r: _number(r["advantage"]),
        "95 %": lambda r: "" if r["ci_low"] is None else f"{r['ci_low']:.3f} .. {r['ci_high']:.3f}",
    }
    always = ("mechanism", "variant", "rmse", "± 2 se")
    columns = [n for n, cell in cells.items() if n in always or len({cell(r) for r in points}) > 1]
    return columns, [[cells[n](r) for n in columns] for r in points]
