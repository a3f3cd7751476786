"""Runs side by side: what each has come to, from its folder alone, whether it is still at work or not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trilift.factorize.books import BOOKS, load_books
from trilift.factorize.jobs import read_job
from trilift.factorize.runlog import LOG, read_log
from trilift.factorize.runs import JOB, is_at_work
from trilift.lift.errors import ParameterError

__all__ = ["RunSummary", "compare_runs", "summarise_run"]


@dataclass(frozen=True)
class RunSummary:
    """One run.

    Attributes:
        run: its folder.
        kind, objective, size, seed, interior: of the job.
        status: "running", "stopped" (nobody works on it), "interrupted", "out of time", "diverged" or
            "finished".
        phase, phases: the phase under way (the last one at the end), and how many there are.
        method: of that phase.
        records: in the log.
        seconds: time spent.
        kappa: the best so far by the job's measure, or None.
    """

    run: str
    kind: str
    objective: str
    size: int
    seed: int
    interior: bool
    status: str
    phase: int
    phases: int
    method: str
    records: int
    seconds: float
    kappa: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON data."""
        return asdict(self)


def summarise_run(folder: str | Path) -> RunSummary:
    """Sum up the run in a folder.

    Raises:
        ParameterError: there is no run in it.
        ArtifactFormatError: a file of the run is damaged.
    """
    folder = Path(folder)
    if not (folder / JOB).exists() or not (folder / BOOKS).exists():
        raise ParameterError(f"{folder} has no run in it")
    job, _ = read_job(folder / JOB)
    books = load_books(folder / BOOKS)
    records = read_log(folder / LOG)
    at = min(books.phase, len(job.phases) - 1)
    status = books.status
    if status in ("running", "interrupted", "out of time"):
        if is_at_work(folder):
            status = "running"
        elif status == "running":
            status = "stopped"
    seconds = max([books.seconds, *(float(record.get("seconds") or 0.0) for record in records)])
    return RunSummary(
        run=str(folder),
        kind=job.kind,
        objective=job.objective,
        size=job.size,
        seed=job.seed,
        interior=job.interior,
        status=status,
        phase=at + 1,
        phases=len(job.phases),
        method=job.phases[at].method,
        records=len(records),
        seconds=round(seconds, 3),
        kappa=None if books.best is None else books.best_kappa,
    )


def compare_runs(folders: list[str | Path] | list[Path]) -> list[RunSummary]:
    """Sum up several runs: alike ones together, the best first, those without a stage last."""
    runs = [summarise_run(folder) for folder in folders]
    return sorted(
        runs,
        key=lambda run: (
            run.kind,
            run.objective,
            run.interior,
            run.size,
            float("inf") if run.kappa is None else run.kappa,
        ),
    )
