"""``trilift optimize``: search a stage or a plain factorisation, and write a certified artifact."""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from trilift.commands import optimize_chain

if TYPE_CHECKING:
    from trilift.artifacts import Artifact
    from trilift.factorize import SearchResult

__all__ = ["app", "artifact_of"]

app = typer.Typer(
    help="Search a factorisation, prove it, and write a certified artifact.",
    invoke_without_command=True,
    rich_markup_mode="markdown",
)

Size = Annotated[int, typer.Option("--size", "-m", help="Number of steps of a block.")]
Objective = Annotated[str, typer.Option(help="max or mean: which squared error to make small.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Artifact to write, a new .npz file.")]
Steps = Annotated[int, typer.Option(help="Steps of every start.")]
Starts = Annotated[int, typer.Option(help="Random starts, moved together.")]
Seed = Annotated[int, typer.Option(help="Seed of the starts.")]
Checkpoint = Annotated[
    Path | None,
    typer.Option(help="Where the search saves its state. (default: OUT with .search in front of .npz)"),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint.")]
Json = Annotated[bool, typer.Option("--json", help="Print a JSON object.")]

app.command(optimize_chain.NAME)(optimize_chain.command)


@app.callback()
def job(
    context: typer.Context,
    *,
    job: Annotated[Path | None, typer.Option(help="A job file: a search in several phases.")] = None,
    run: Annotated[
        Path | None, typer.Option(help="Folder of the run. (default: JOB with .run instead of .toml)")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in the folder, or begin it.")
    ] = False,
    hosts: Annotated[int, typer.Option(help="Number of processes that share the work.")] = 1,
    host: Annotated[int, typer.Option(help="Number of this process, from 0.")] = 0,
    coordinator: Annotated[
        str | None, typer.Option(help="ADDRESS:PORT of process 0, where all of them meet.")
    ] = None,
    json: Json = False,
) -> None:
    """Search a factorisation, prove it, and write a certified artifact."""
    from trilift.lift.errors import ParameterError
    from trilift.output import write

    if context.invoked_subcommand is not None:
        if job is not None:
            raise ParameterError(f"--job is a search of its own, without {context.invoked_subcommand}")
        return
    if job is None:
        write(context.get_help() + "\n")
        return
    from trilift.running import do_job

    folder = job.with_suffix(".run") if run is None else run
    do_job(job, folder, resume=resume, hosts=hosts, host=host, coordinator=coordinator, json=json)


@app.command("stage")
def stage(
    *,
    size: Size,
    out: Out,
    objective: Objective = "max",
    steps: Steps = 4000,
    starts: Starts = 16,
    seed: Seed = 0,
    one_sided: Annotated[
        bool, typer.Option("--one-sided", help="Keep every input in its own block.")
    ] = False,
    checkpoint: Checkpoint = None,
    resume: Resume = False,
    json: Json = False,
) -> None:
    """Search a stage: the repeated level of a chain."""
    options = {"objective": objective, "steps": steps, "starts": starts, "seed": seed, "one_sided": one_sided}
    _optimize("stage", size=size, out=out, options=options, checkpoint=checkpoint, resume=resume, json=json)


@app.command("direct")
def direct(
    *,
    size: Size,
    out: Out,
    objective: Objective = "max",
    steps: Steps = 4000,
    starts: Starts = 16,
    seed: Seed = 0,
    checkpoint: Checkpoint = None,
    resume: Resume = False,
    json: Json = False,
) -> None:
    """Search a plain factorisation of the prefix sums of SIZE steps: the top of a chain."""
    options = {"objective": objective, "steps": steps, "starts": starts, "seed": seed}
    _optimize("direct", size=size, out=out, options=options, checkpoint=checkpoint, resume=resume, json=json)


def _optimize(
    kind: str,
    *,
    size: int,
    out: Path,
    options: dict[str, Any],
    checkpoint: Path | None,
    resume: bool,
    json: bool,
) -> None:
    from trilift.arguments import new_file
    from trilift.artifacts import save
    from trilift.factorize import SearchStatus, search_direct, search_stage
    from trilift.lift.errors import ParameterError
    from trilift.output import note
    from trilift.signals import last_signal

    if out.suffix != ".npz":
        raise ParameterError(f"--out must end in .npz, got {out}")
    new_file("--out", out)
    path = out.with_suffix(".search.npz") if checkpoint is None else checkpoint
    _say_cost(kind, size, options)
    search = search_stage if kind == "stage" else search_direct
    with last_signal() as stopped_by:
        result = search(size, **options, checkpoint=path, resume=resume)
        number = stopped_by()
    if result.status is SearchStatus.INTERRUPTED:
        note(
            f"trilift: stopped at step {result.steps} of {options['steps']}; the same command with --resume "
            f"goes on from {path}"
        )
        raise typer.Exit(128 + (signal.SIGINT if number is None else number))
    if result.dropped:
        note(f"trilift: {result.summary()}")
    artifact = artifact_of(result)
    save(artifact, out)
    if checkpoint is None:
        path.unlink(missing_ok=True)
    _report(artifact, result, out, json)


def _say_cost(kind: str, size: int, options: dict[str, Any]) -> None:
    from trilift.factorize import estimate_cost
    from trilift.output import duration, note

    steps, starts = options["steps"], options["starts"]
    cost = estimate_cost(size, steps=steps, starts=starts)
    note(
        f"Searching {kind} {options['objective']} {size}: {starts} starts of {steps} steps take some seconds "
        f"of compilation and then about {duration(cost.seconds)} on one core (to a factor of about 2), "
        f"and {max(cost.memory_bytes / 1e6, 1):.0f} MB of memory beyond what JAX itself needs."
    )


def artifact_of(result: SearchResult) -> Artifact:
    """Complete and certify what a search has found.

    Raises:
        ParameterError: it has found no finite stage.
        CertificateError: completion to exact numbers loses too much.
    """
    from trilift.artifacts import Provenance
    from trilift.verify import from_search

    settings = result.settings
    provenance = Provenance(
        objective=settings.objective,
        size=settings.size,
        seed=settings.seed,
        steps=result.steps,
        versions=result.versions,
        date=datetime.now(UTC).date().isoformat(),
        method=f"Adam search with annealed smoothing ({settings.kind}, {settings.starts} starts)",
    )
    return from_search(result, objective=settings.objective, provenance=provenance)


def _report(artifact: Artifact, result: SearchResult, out: Path, json: bool) -> None:
    from trilift.output import note, print_json, print_pairs

    record: dict[str, Any] = {
        "name": artifact.name,
        "path": str(out),
        **artifact.certificate.summary(),
        "status": result.status.value,
        "steps": result.steps,
        "starts": result.settings.starts,
        "dropped": result.dropped,
        "seconds": round(result.seconds, 3),
    }
    if json:
        print_json(record)
        return
    print_pairs({name: str(value) for name, value in record.items() if value is not None})
    note(f"Certified. {out} goes straight into trilift certify, inspect, and count --chain.")
