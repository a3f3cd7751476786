"""Doing an experiment: point after point, finished ones kept in its folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from trilift.experiments.edit.kept import Kept
from trilift.experiments.edit.plans import Experiment
from trilift.experiments.edit.points import run_point
from trilift.lift.checks import integer

__all__ = ["MAX_RUNS", "SECONDS_A_STEP", "do_experiment", "points_file", "steps_left"]

MAX_RUNS = 10**7
SECONDS_A_STEP = 1.2e-7
"""What a step of a run takes on one core, on average over the points of edit-table1."""


def points_file(experiment: Experiment, *, folder: Path) -> Path:
    """Return the file of finished points of an experiment in a folder."""
    return folder / f"{experiment.kept}.points.json"


def steps_left(
    experiment: Experiment, *, runs: int | None = None, seed: int = 0, folder: Path | None = None
) -> int:
    """Return how many steps are still to be simulated, all runs together: see :func:`do_experiment`."""
    count, kept = _opened(experiment, runs, seed, folder)
    return count * sum(p.stream.steps for p in experiment.points if p.key not in kept.points)


def _opened(experiment: Experiment, runs: int | None, seed: int, folder: Path | None) -> tuple[int, Kept]:
    count = integer("runs", experiment.runs if runs is None else runs, minimum=1, maximum=MAX_RUNS)
    settings = {"experiment": experiment.kept, "runs": count, "seed": integer("seed", seed, minimum=0)}
    path = None if folder is None else points_file(experiment, folder=folder)
    return count, Kept(path, settings=settings)


def do_experiment(
    experiment: Experiment,
    *,
    runs: int | None = None,
    seed: int = 0,
    folder: Path | None = None,
    jobs: int = 1,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> list[dict[str, Any]]:
    """Simulate all points of an experiment; those that the folder has already are taken from there.

    Args:
        experiment: what.
        runs: runs of each point; None: as many as the experiment says.
        seed: decides everything.
        folder: an existing folder for the file of finished points, or None to keep nothing.
        jobs: threads.
        report: told (million steps simulated, million steps in all).

    Returns:
        a record a point: see :func:`trilift.experiments.edit.points.run_point`.

    Raises:
        ParameterError: runs or seed out of range; a folder with results of other settings.
        OSError: the file cannot be written.
    """
    count, kept = _opened(experiment, runs, seed, folder)
    total = sum(point.stream.steps for point in experiment.points) * count
    done = 0
    records = []
    for point in experiment.points:
        if point.key not in kept.points:

            def tell(finished: int, steps: int = point.stream.steps) -> None:
                nonlocal done
                done += finished * steps
                report(done // 10**6, total // 10**6)

            kept.add(point.key, run_point(point, runs=count, seed=seed, jobs=jobs, report=tell))
        else:
            done += count * point.stream.steps
            report(done // 10**6, total // 10**6)
        records.append(kept.points[point.key])
    return records
