"""Runs: a job done in a folder of its own, with a log, and resumed wherever it was cut off (new).

A round of a phase stores its own checkpoint every few seconds; at its end the books are written in one
stroke, and only then is its checkpoint removed. Whatever is killed between two writes is done again from the
last one, with the same numbers: the result does not depend on it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from trilift.factorize.books import BOOKS, Books, load_books, pack_stage, save_books, unpack_stage
from trilift.factorize.checkpoint import read_arrays, write_arrays
from trilift.factorize.hosts import ALONE, Hosts
from trilift.factorize.jobs import Job, Phase, estimate_job, read_job
from trilift.factorize.progress import Report, reporter
from trilift.factorize.result import SearchStatus
from trilift.factorize.rounds import Outcome, Round, do_round, kappa, rounds_of
from trilift.factorize.runlog import LOG, RunLog
from trilift.factorize.sources import BEST, load_float_stage, warm_stage
from trilift.factorize.state import stage_from
from trilift.lift.checks import flag
from trilift.lift.errors import ArtifactFormatError, ParameterError, StateError
from trilift.lift.stage import Stage
from trilift.lift.strict_json import parse_json

__all__ = ["JOB", "RunResult", "is_at_work", "run_job"]

JOB = "job.toml"
_LOCK = "lock"


@dataclass(frozen=True)
class RunResult:
    """What a run has come to.

    Attributes:
        status: "finished", "interrupted", "out of time" or "diverged".
        stage: the best stage of the job's size, in floats, or None.
        kappa: its kappa by the job's measure; infinite without one.
        steps: Adam steps and L-BFGS iterations of the rounds that led to it.
        seconds: time spent, over all resumed parts.
        lineage: how it was found, one record for every round that gained.
        folder: of the run.
        job: what was done.
    """

    status: str
    stage: Stage | None
    kappa: float
    steps: int
    seconds: float
    lineage: list[dict[str, Any]]
    folder: Path
    job: Job


def run_job(
    job: str | Path,
    folder: str | Path,
    *,
    resume: bool = False,
    hosts: Hosts = ALONE,
    progress: bool | Report | None = None,
) -> RunResult:
    """Do a job in a folder, or go on with it.

    The folder gets ``job.toml``, ``log.jsonl``, ``run.npz`` (the books), ``best.npz`` (the best stage so far,
    in floats) and, while a round is under way, its checkpoint. The same job and seed give the same stage on
    the same machine and versions, bit for bit, however often the run was cut off; a time budget that runs out
    is the one thing that makes results depend on the machine's speed.

    Args:
        job: a job file (docs/search.md).
        folder: made if it is not there.
        resume: go on with the run in ``folder``; begin it if there is none.
        hosts: the processes that share the work, each calling this with the same job. All but the first keep
            their books in ``host-1``, ... beneath the folder.
        progress: see :func:`trilift.factorize.progress.reporter`.

    Raises:
        ParameterError: a bad job, a folder with a run in it and no ``resume``, or with a run of another job.
        StateError: another process works in the folder.
        ArtifactFormatError: a file of the run, or a warm start, is damaged.
    """
    checked, text = read_job(job)
    place = Path(folder) if hosts.index == 0 else Path(folder) / f"host-{hosts.index}"
    going_on = _prepare(place, checked, resume=flag("resume", resume))
    with _alone_in(place):
        for partial in place.glob("*.part"):
            partial.unlink(missing_ok=True)  # of a write that was cut off
        _write_text(place / JOB, text)
        run = _Run(checked, place, hosts, progress)
        run.begin(going_on)
        return run.finish(run.work())


def _prepare(folder: Path, job: Job, *, resume: bool) -> bool:
    """Make the folder; return whether there is a run in it to go on with."""
    there = (folder / BOOKS).exists() or (folder / JOB).exists()
    if there and not resume:
        raise ParameterError(f"{folder} has a run in it already: resume it, or name another folder")
    if (folder / JOB).exists():
        before, _ = read_job(folder / JOB)
        if not before.same_work(job):
            raise ParameterError(f"the run in {folder} has another job: only its time budget may change")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"the folder {folder} cannot be made: {error.strerror or error}") from None
    return (folder / BOOKS).exists()


def _write_text(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all."""
    partial = path.with_suffix(".part")
    partial.write_text(text, encoding="utf-8", newline="")
    os.replace(partial, path)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which the system lets go when the process ends in whatever way."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    with (folder / _LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StateError(f"another process works in {folder}") from None
        yield


def is_at_work(folder: Path) -> bool:
    """Whether a process holds the folder's lock."""
    if not (folder / _LOCK).exists():
        return False
    try:
        with _alone_in(folder):
            return False
    except StateError:
        return True


class _Run:
    """A run under way."""

    def __init__(self, job: Job, folder: Path, hosts: Hosts, progress: bool | Report | None) -> None:
        self.job, self.folder, self.hosts, self.progress = job, folder, hosts, progress
        self.log = RunLog(folder / LOG)
        self.books = Books()
        self.began = time.monotonic()
        self.before = 0.0  # seconds of earlier parts

    @property
    def seconds(self) -> float:
        return self.before + time.monotonic() - self.began

    def begin(self, going_on: bool) -> None:
        """Read the books, or open them; drop from the log what will happen again."""
        if going_on:
            self.books = load_books(self.folder / BOOKS)
        elif self.job.warm_start is not None:
            self.books.now = self._warm(self.job.warm_start)
            self._remember(self.books.now)
        self._meet()
        for path in self.folder.glob("phase-*-round-*.npz"):
            if path != self._checkpoint(*self.books.place):
                path.unlink(missing_ok=True)  # of a round that is in the books already
        place = self.books.place
        records = self.log.keep(lambda record: self._is_past(record, place))
        self.before = max([self.books.seconds, *(float(record.get("seconds") or 0.0) for record in records)])
        self.began = time.monotonic()
        if going_on:
            self.log.append(event="resumed", seconds=self.before)
        else:
            cost = estimate_job(self.job)
            estimate = {"memory_bytes": cost.memory_bytes, "estimated_seconds": round(cost.seconds, 3)}
            self.log.append(event="begun", hosts=self.hosts.count, seconds=0.0, **estimate)
            self._save()

    def _is_past(self, record: dict[str, Any], place: tuple[int, int]) -> bool:
        if "phase" not in record:
            return True
        at = (record["phase"] - 1, record["round"] - 1)
        if at != place or record.get("event") == "done":
            return at < place
        step = self._stored_step(place)
        return step is not None and int(record["step"]) <= step

    def _stored_step(self, place: tuple[int, int]) -> int | None:
        """Step of the checkpoint of a round under way, or None."""
        path = self._checkpoint(*place)
        if not path.exists():
            return None
        try:
            return int(parse_json(str(read_arrays(path)["meta"]))["step"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise ArtifactFormatError(f"checkpoint {path} is damaged") from None

    def _warm(self, source: str) -> Stage:
        stage = load_float_stage(source)
        if stage.inner != stage.size:
            if stage.size != self.job.size:
                raise ParameterError(f"warm_start is of size {stage.size}, the job is about {self.job.size}")
            return stage
        stage = warm_stage(stage, size=self.job.size)
        return stage_from(stage.B, np.clip(stage.v, 0.0, 1.0), kind=self.job.kind)

    def _meet(self) -> None:
        """Let every host go on from the books of the one that got furthest.

        Hosts are at most one round apart, since every round ends with an exchange.
        """
        if self.hosts.count == 1:
            return
        places = self.hosts.gather([float(part) for part in self.books.place])
        first = max(range(self.hosts.count), key=lambda host: (*places[host], -host))
        save_books(self.folder / BOOKS, self.books)
        data = self.hosts.broadcast((self.folder / BOOKS).read_bytes(), source=first)
        if tuple(places[first]) != tuple(places[self.hosts.index]):
            self.books = load_books(data)
            save_books(self.folder / BOOKS, self.books)

    def _checkpoint(self, phase: int, index: int) -> Path:
        return self.folder / f"phase-{phase + 1}-round-{index + 1}.npz"

    def _save(self) -> None:
        self.books.seconds = self.seconds
        save_books(self.folder / BOOKS, self.books)
        if self.books.best is not None:
            record = {
                "lineage": self.books.lineage[: self.books.best_rounds],
                "date": datetime.now(UTC).date().isoformat(),
            }
            parts = {part: getattr(self.books.best, part) for part in "ABwg"}
            write_arrays(self.folder / BEST, provenance=np.array(json.dumps(record)), **parts)

    def work(self) -> str:
        """Do round after round; return the status at the end."""
        books, phases = self.books, self.job.phases
        while books.phase < len(phases):
            phase = phases[books.phase]
            if books.now is None and phase.method not in ("search", "composite"):
                break  # every start before this diverged
            end = self._exchange(self._round(phase), phase)
            if end.over:
                self._enter(end, phase)
            elif end.stage is not None:
                self._remember(end.stage)  # not to go on from: the round's own checkpoint does that
            if end.status in (SearchStatus.OUT_OF_TIME, SearchStatus.INTERRUPTED) and books.phase < len(
                phases
            ):
                return self._close(end.status)
        return self._close(SearchStatus.DIVERGED if books.best is None else SearchStatus.FINISHED)

    def _close(self, status: SearchStatus) -> str:
        self.books.status = status.value
        self._save()
        return status.value

    def _round(self, phase: Phase) -> Outcome:
        books = self.books
        number, index = books.phase + 1, books.round
        limit = float("inf") if self.job.seconds is None else self.job.seconds - self.seconds
        task = Round(
            job=self.job,
            phase=phase,
            number=number,
            index=index,
            host=self.hosts.index,
            checkpoint=self._checkpoint(books.phase, index),
            seconds=limit,
        )
        if limit <= 0:
            return Outcome(None, SearchStatus.OUT_OF_TIME, over=False, lineage={})
        what = {"phase": number, "round": index + 1, "method": phase.method, "objective": phase.objective}
        steps = phase.iterations if phase.method == "polish" else phase.steps
        title = f"{number}/{len(self.job.phases)} {phase.method} {phase.objective} {phase.size}"
        with reporter(self.progress, title=title, start=0, steps=steps) as show:

            def report(step: int, total: int, found: float) -> None:
                self.log.append(**what, step=step, steps=total, kappa=found, seconds=round(self.seconds, 3))
                show(step, total, found)

            return do_round(task, now=books.now, kept=books.kept, report=report)

    def _exchange(self, mine: Outcome, phase: Phase) -> Outcome:
        """Return the best outcome of this round among all hosts, the same on each."""
        if self.hosts.count == 1 or mine.status is SearchStatus.INTERRUPTED:
            # an interrupted host leaves; the others cannot go on without it, nor need they: all can resume
            return mine if self.hosts.count == 1 else replace(mine, over=False)
        cost = self._kappa(mine.stage, phase)
        late = mine.status is SearchStatus.OUT_OF_TIME
        everyone = self.hosts.gather([cost, float(late), float(mine.over), self.seconds])
        self.before += max(0.0, float(everyone[:, 3].max()) - self.seconds)
        status = SearchStatus.OUT_OF_TIME if everyone[:, 1].any() else mine.status
        winner = int(np.argmin(everyone[:, 0]))
        if not np.isfinite(everyone[winner, 0]):
            return Outcome(None, status, over=bool(everyone[:, 2].any()), lineage={})
        data = pack_stage(mine.stage, mine.lineage) if winner == self.hosts.index else b""
        stage, lineage = unpack_stage(self.hosts.broadcast(data, source=winner))
        return Outcome(stage, status, over=True, lineage=lineage)

    def _kappa(self, stage: Stage | None, phase: Phase) -> float:
        if stage is None:
            return np.inf
        return kappa(stage, objective=phase.objective, interior=phase.interior)

    def _enter(self, end: Outcome, phase: Phase) -> None:
        """Enter a round into the books, then drop its checkpoint."""
        books = self.books
        path, number, index = self._checkpoint(*books.place), books.phase + 1, books.round + 1
        if end.stage is not None and self._gains(end.stage, phase):
            books.now = end.stage
            books.lineage.append(end.lineage)
            self._remember(end.stage)
        books.round += 1
        if books.round == rounds_of(phase):
            if books.now is not None and any(number in later.parts for later in self.job.phases):
                books.kept[number] = books.now
            books.phase, books.round = books.phase + 1, 0
        self._save()
        path.unlink(missing_ok=True)
        now = self._kappa(books.now, phase)
        what = {"phase": number, "round": index, "method": phase.method, "objective": phase.objective}
        figures = {"kappa": now, "best": books.best_kappa, "seconds": round(self.seconds, 3)}
        self.log.append(**what, event="done", **figures)

    def _gains(self, stage: Stage, phase: Phase) -> bool:
        """Whether to go on from a stage: it costs less, or there was none of its size or way before."""
        now = self.books.now
        if now is None or now.size != phase.size or phase.method == "composite":
            return True
        return self._kappa(stage, phase) < self._kappa(now, phase)

    def _remember(self, stage: Stage) -> None:
        """Keep a stage if it is the best of the job's size by the job's measure."""
        books, job = self.books, self.job
        if stage.size != job.size:
            return
        cost = kappa(stage, objective=job.objective, interior=job.interior)
        if cost < books.best_kappa:
            books.best, books.best_kappa, books.best_rounds = stage, cost, len(books.lineage)

    def finish(self, status: str) -> RunResult:
        """Log the end and put together the result."""
        books = self.books
        self.log.append(event=status, kappa=books.best_kappa, seconds=round(self.seconds, 3))
        return RunResult(
            status=status,
            stage=books.best,
            kappa=books.best_kappa,
            steps=sum(int(record.get("steps", 0)) for record in books.lineage[: books.best_rounds]),
            seconds=self.seconds,
            lineage=books.lineage[: books.best_rounds],
            folder=self.folder,
            job=self.job,
        )
