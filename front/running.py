"""Doing a job from the command line: what it will cost, the run, and the certified artifact at its end."""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from trilift.artifacts import Artifact
    from trilift.factorize.jobs import Job
    from trilift.factorize.runs import RunResult

__all__ = ["ARTIFACT", "do_job"]

ARTIFACT = "artifact.npz"
"""The file of a run's folder that holds the certified result."""


def do_job(
    job: Path,
    folder: Path,
    *,
    resume: bool,
    hosts: int,
    host: int,
    coordinator: str | None,
    json: bool,
) -> None:
    """Do a job in a folder, certify what it finds, and report it."""
    from trilift.factorize.hosts import ALONE, connect
    from trilift.factorize.jobs import read_job
    from trilift.factorize.runs import run_job
    from trilift.lift.errors import ParameterError
    from trilift.output import note
    from trilift.signals import last_signal

    checked, _ = read_job(job)
    if coordinator is None:
        if (hosts, host) != (1, 0):
            raise ParameterError("--hosts and --host need the --coordinator where the processes meet")
        together = ALONE
    else:
        together = connect(coordinator, count=hosts, index=host)
    _say_cost(checked, folder)
    with last_signal() as stopped_by:
        result = run_job(job, folder, resume=resume, hosts=together)
        number = stopped_by()
    if result.status == "interrupted":
        note(f"trilift: stopped; the same command with --resume goes on with the run in {folder}")
        raise typer.Exit(128 + (signal.SIGINT if number is None else number))
    if together.index == 0:
        _report(result, json)


def _say_cost(job: Job, folder: Path) -> None:
    from trilift.factorize.jobs import estimate_job
    from trilift.output import duration, note

    cost = estimate_job(job)
    limit = "" if job.seconds is None else f", or the job's limit of {duration(job.seconds)}"
    note(
        f"Searching {job.kind} {job.objective} {job.size} in {len(job.phases)} phases: some seconds of "
        f"compilation for each, about {duration(cost.seconds)} on one core (to a factor of about 2{limit}), "
        f"and {max(cost.memory_bytes / 1e6, 1):.0f} MB of memory beyond what JAX itself needs. The run is "
        f"kept in {folder}."
    )


def _artifact(result: RunResult) -> Artifact:
    """Complete and certify the best stage of a run."""
    from trilift.artifacts import Provenance
    from trilift.lift.errors import ParameterError
    from trilift.verify import from_search

    if result.stage is None:
        raise ParameterError("the run found no finite stage, there is nothing to certify")
    job = result.job
    versions: dict[str, str] = {}
    for record in result.lineage:
        versions |= record.get("versions", {})
    provenance = Provenance(
        objective=job.objective,
        size=job.size,
        seed=job.seed,
        steps=result.steps,
        versions=versions,
        date=datetime.now(UTC).date().isoformat(),
        method=f"job of {len(job.phases)} phases: " + " -> ".join(record["way"] for record in result.lineage),
    )
    return from_search(result.stage, objective=job.objective, provenance=provenance)


def _report(result: RunResult, json: bool) -> None:
    from trilift.artifacts import save
    from trilift.output import note, print_json, print_pairs

    artifact = _artifact(result)
    path = result.folder / ARTIFACT
    save(artifact, path)
    record: dict[str, Any] = {
        "name": artifact.name,
        "path": str(path),
        **artifact.certificate.summary(),
        "status": result.status,
        "steps": result.steps,
        "run": str(result.folder),
        "seconds": round(result.seconds, 3),
    }
    if json:
        print_json(record)
        return
    print_pairs({name: str(value) for name, value in record.items() if value is not None})
    note(f"Certified. {path} goes straight into trilift certify, inspect, and count --chain.")
