"""One round of one phase of a job: the unit of work between two entries in the books of a run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from trilift.factorize.composite import composite_start
from trilift.factorize.interrupt import Interrupt
from trilift.factorize.jobs import Job, Phase
from trilift.factorize.joint import search_joint_stage
from trilift.factorize.joint_direct import search_joint_direct
from trilift.factorize.joint_settings import JointResult
from trilift.factorize.lbfgs import block_iterations, polish
from trilift.factorize.result import SearchResult, SearchStatus
from trilift.factorize.search import run_search
from trilift.factorize.settings import make_settings
from trilift.factorize.sources import load_float_stage
from trilift.lift.chain import Chain
from trilift.lift.errors import ParameterError
from trilift.lift.interior import interior_row_norms_sq, interior_sensitivity
from trilift.lift.stage import Stage

__all__ = ["Outcome", "Round", "do_round", "kappa", "rounds_of"]


@dataclass(frozen=True)
class Round:
    """Which round, and what it may use.

    Attributes:
        job: the whole job.
        phase: the phase.
        number: of the phase, from 1.
        index: of the round in its phase, from 0.
        host: number of this process.
        checkpoint: where the round stores its own state; if the file is there, the round goes on from it.
        seconds: time left, or infinity.
    """

    job: Job
    phase: Phase
    number: int
    index: int
    host: int
    checkpoint: Path
    seconds: float

    @property
    def seed(self) -> int:
        """A seed of its own for every round of every phase on every host."""
        sequence = np.random.SeedSequence([self.job.seed, self.number, self.index, self.host])
        high, low = (int(word) for word in sequence.generate_state(2, np.uint32))
        return (high >> 1 << 32) + low


@dataclass(frozen=True)
class Outcome:
    """What a round came to.

    Attributes:
        stage: the stage found, or None.
        status: how it ended.
        over: whether the round is over, rather than to be gone on with.
        lineage: how the stage was found, as JSON data.
    """

    stage: Stage | None
    status: SearchStatus
    over: bool
    lineage: dict[str, Any]


Report = Callable[[int, int, float], None]


def kappa(stage: Stage, *, objective: str, interior: bool) -> float:
    """Return kappa of a float stage, or the interior one (of the stage repeated without end)."""
    if not interior:
        return float(stage.kappa(objective))
    q = interior_row_norms_sq(stage, below=stage)
    charge = float(interior_sensitivity(stage, below=stage))
    cost = float(np.max(q) if objective == "max" else np.mean(q)) * charge**2
    return float(2.0 * cost / np.log2(stage.size) ** 3)


def rounds_of(phase: Phase) -> int:
    """Return into how many rounds a phase falls; polishing is cut into blocks that can be stored."""
    if phase.method == "polish":
        return -(-phase.iterations // block_iterations(phase.size))
    return phase.rounds


def do_round(task: Round, *, now: Stage | None, kept: Mapping[int, Stage], report: Report | None) -> Outcome:
    """Do one round, beginning from the stage ``now``.

    Args:
        task: which round.
        now: the stage the phases before came to.
        kept: stages of earlier phases by their numbers, for the parts of a composite.
        report: called as report(step, steps, kappa).
    """
    if task.phase.method == "composite":
        return _composite(task, kept)
    if task.phase.method == "search":
        return _search(task, None, report)
    if now is None:
        raise ParameterError(f"phase {task.number} has nothing to go on from: nothing finite was found")
    if task.phase.method == "joint":
        return _joint(task, now, report)
    if task.phase.method == "polish":
        return _polish(task, now, report)
    return _search(task, now, report)


def _search(task: Round, initial: Stage | None, report: Report | None) -> Outcome:
    phase, job = task.phase, task.job
    settings = make_settings(
        phase.size,
        kind=job.kind,
        objective=phase.objective,
        seed=task.seed,
        steps=phase.steps,
        starts=phase.starts,
        initial=initial,
        spread=phase.spread,
        schedule=phase.schedule,
        weight_bits=phase.weight_bits,
    )
    result = run_search(
        settings,
        initial=initial,
        checkpoint=task.checkpoint,
        resume=task.checkpoint.exists(),
        progress=False if report is None else report,
        seconds=None if np.isinf(task.seconds) else max(task.seconds, 0.0),
        checkpoint_seconds=job.checkpoint_seconds,
        devices=job.devices,
    )
    return _outcome(task, result, result.status)


def _joint(task: Round, now: Stage, report: Report | None) -> Outcome:
    phase, job = task.phase, task.job
    spread = float(
        np.linspace(*phase.spread, phase.rounds)[task.index] if phase.rounds > 1 else phase.spread[1]
    )
    common: dict[str, Any] = {
        "objective": phase.objective,
        "dilation": phase.dilation,
        "seed": task.seed,
        "spread": spread,
        "steps": phase.steps,
        "seconds": None if np.isinf(task.seconds) else max(task.seconds, 1e-3),
        "schedule": phase.schedule,
        "checkpoint": task.checkpoint,
        "resume": task.checkpoint.exists(),
        "progress": False if report is None else report,
    }
    began = time.monotonic()
    if job.kind == "direct":
        result = search_joint_direct(now, **common)
    else:
        result = search_joint_stage(now, interior=phase.interior, weight_bits=phase.weight_bits, **common)
    status = result.status
    if status is SearchStatus.INTERRUPTED and time.monotonic() - began >= task.seconds:
        status = SearchStatus.OUT_OF_TIME
    return _outcome(task, result, status)


def _outcome(task: Round, result: SearchResult | JointResult, status: SearchStatus) -> Outcome:
    over = status in (SearchStatus.FINISHED, SearchStatus.DIVERGED)
    lineage = {
        "way": task.phase.method,
        "settings": json.loads(result.settings.as_json()),
        "steps": result.steps,
        "versions": result.versions,
    }
    return Outcome(result.stage, status, over, lineage)


def _polish(task: Round, now: Stage, report: Report | None) -> Outcome:
    phase = task.phase
    block = block_iterations(phase.size)
    done = task.index * block
    began = time.monotonic()
    with Interrupt() as interrupt:
        found = polish(
            now,
            objective=phase.objective,
            kind=task.job.kind,
            iterations=min(block, phase.iterations - done),
            exponent=phase.exponent,
            stop=lambda: interrupt.requested or time.monotonic() - began >= task.seconds,
        )
        stopped = interrupt.requested
    if report is not None:
        report(done + found.iterations, phase.iterations, found.cost)
    settings = {"objective": phase.objective, "seed": None, "size": phase.size}
    lineage = {"way": "polish", "settings": settings, "steps": found.iterations}
    status = SearchStatus.INTERRUPTED if stopped else SearchStatus.FINISHED
    if found.stopped and not stopped:
        status = SearchStatus.OUT_OF_TIME
    # a block that was stopped is done again from its beginning
    return Outcome(found.stage, status, over=not found.stopped, lineage=lineage)


def _composite(task: Round, kept: Mapping[int, Stage]) -> Outcome:
    phase = task.phase
    parts = [kept[part] if isinstance(part, int) else load_float_stage(part) for part in phase.parts]
    size = int(np.prod([part.size for part in parts]))
    if size != phase.size:
        raise ParameterError(f"phase {task.number}: the parts make up size {size}, not {phase.size}")
    if task.job.kind == "direct":
        # the search begins by putting the best left factor beside the chain's right one
        chain = Chain(parts[-1], tuple(parts[:-1]))
        stage = search_joint_direct(chain, objective=phase.objective, steps=1, progress=False).stage
    else:
        stage = composite_start(*parts, objective=phase.objective)
    settings = {"objective": phase.objective, "seed": None, "size": size, "parts": list(phase.parts)}
    return Outcome(stage, SearchStatus.FINISHED, True, {"way": "composite", "settings": settings, "steps": 0})
