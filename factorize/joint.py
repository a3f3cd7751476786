"""The joint search: every entry of a sparse right factor at once, from a start that is good already (new).

Adam on the closed-form gradient of :mod:`trilift.factorize.joint_objective`, annealed, resumable, and stopped
by signals between chunks. It computes with numpy and scipy in double precision; no JAX setting is read or
changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from trilift.factorize.checkpoint import checkpoint_path, read_arrays
from trilift.factorize.interrupt import Interrupt
from trilift.factorize.joint_objective import Point, Problem, stage_at
from trilift.factorize.joint_settings import (
    JointResult,
    JointSettings,
    fingerprint,
    joint_step_seconds,
    make_joint_settings,
)
from trilift.factorize.joint_state import JointState, load_joint_checkpoint, save_joint_checkpoint
from trilift.factorize.progress import Report, reporter
from trilift.factorize.result import SearchStatus
from trilift.factorize.schedule import Schedule
from trilift.factorize.support import THRESHOLD, Support, support_of, used_rows
from trilift.factorize.versions import versions_of
from trilift.lift.checks import fail, finite, flag, integer
from trilift.lift.errors import ParameterError
from trilift.lift.stage import FloatArray, Stage
from trilift.lift.strict_json import parse_json

__all__ = ["run_joint", "search_joint_stage"]

_CHECKPOINT_EVERY = 5.0  # seconds
_DEFAULT_STEPS = 1000
_FEWEST_STEPS = 20  # of a search that is given seconds
_DECAY_1, _DECAY_2, _TINY = 0.9, 0.999, 1e-8  # Adam's usual numbers


def search_joint_stage(
    start: Stage,
    *,
    objective: str,
    interior: bool | None = None,
    weight_range: tuple[float, float] = (0.0, 1.0),
    dilation: int = 0,
    threshold: float = THRESHOLD,
    seed: int = 0,
    spread: float = 0.0,
    steps: int | None = None,
    seconds: float | None = None,
    schedule: Schedule | None = None,
    weight_bits: int | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    progress: bool | Report | None = None,
) -> JointResult:
    """Move B on its support, v and w of a stage together, towards a smaller kappa.

    Source: new. The result's A and g come from the pseudo-inverse of B, so B may have more rows than
    columns. The same arguments on the same machine and versions give the same result, bit for bit, resumed
    or not; the start itself counts as seen, so a search never returns anything worse.

    Args:
        start: where to begin, such as :func:`trilift.factorize.composite.composite_start` of good stages; B
            must have full column rank. Only B, v and w are used.
        objective: "max" or "mean" squared error.
        interior: search the interior cost, in which w is free (default for "mean"); for the plain cost w is
            always the best one.
        weight_range: (least, largest) w. For the largest interior cost only a range within (0, 1) gains
            anything: where w takes 0 and 1, the largest blended row is the largest row itself.
        dilation: by how many neighbours on either side the support of the start's B is widened.
        threshold: entries below this fraction of the largest of their row are dropped.
        seed: of the perturbation.
        spread: Gaussian added to the entries, in units of their mean size; 0 begins at the start itself.
        steps: Adam steps; default 1000, or what fits into ``seconds``.
        seconds: time budget. Without ``steps`` their number is set by timing the first few; in any case
            the search stops, "interrupted", at the first chunk that ends past it.
        schedule: annealing; default :func:`trilift.factorize.joint_settings.gentle`.
        weight_bits: round v to so many binary places and keep it there, as a certificate stores it.
        checkpoint: file to write the state to, every few seconds and at the end.
        resume: go on from ``checkpoint``; the same arguments as before.
        progress: see :func:`trilift.factorize.progress.reporter`.

    Raises:
        ParameterError: a bad argument, before anything is searched.
        ArtifactFormatError: the checkpoint to resume from is damaged.
    """
    if not isinstance(start, Stage):
        raise fail("start", "a Stage", start)
    start = start.to_float()
    if start.is_plain:
        raise ParameterError("start is a plain factorisation: use search_joint_direct")
    v, w = (np.clip(part, 0.0, 1.0) for part in (start.v, start.w))
    return run_joint(
        (start.B, v, w),
        kind="stage",
        objective=objective,
        interior=interior,
        weight_range=weight_range,
        dilation=dilation,
        threshold=threshold,
        seed=seed,
        spread=spread,
        steps=steps,
        seconds=seconds,
        schedule=schedule,
        weight_bits=weight_bits,
        checkpoint=checkpoint,
        resume=resume,
        progress=progress,
    )


def run_joint(
    start: tuple[FloatArray, FloatArray, FloatArray],
    *,
    steps: int | None,
    seconds: float | None,
    checkpoint: str | Path | None,
    resume: bool,
    progress: bool | Report | None,
    **choices: Any,
) -> JointResult:
    """Do the joint search from B, v and w; see :func:`search_joint_stage` for the arguments."""
    B, v, w = used_rows(start[0]), start[1], start[2]
    support = support_of(B, dilation=choices["dilation"], threshold=choices["threshold"])
    budget = np.inf if seconds is None else finite("seconds", seconds, above=0)
    path = checkpoint_path(checkpoint, resume=flag("resume", resume))
    bits = choices["weight_bits"]
    make: Callable[[int], JointSettings] = lambda count: make_joint_settings(  # noqa: E731
        support, start=fingerprint(B, v, w), steps=count, **choices
    )
    settings = make(integer("steps", _DEFAULT_STEPS if steps is None else steps, minimum=1))
    if bits is not None:
        v = np.floor(np.ldexp(v, bits) + 0.5) / 2.0**bits
    ends = settings.weight_range if settings.interior and settings.largest else None
    search = _Search(Problem(support, settings.kind == "direct", settings.interior, ends), settings)
    first = search.first_place(support.values_of(B), v, w)
    if steps is None and seconds is not None:
        stored = _stored_steps(path) if resume and path is not None else None
        settings = make(stored or search.steps_within(budget, first))
        search = _Search(search.problem, settings)
    state = load_joint_checkpoint(path, settings) if resume and path is not None else search.begin(first)
    status = _run(search, state, path, progress, budget)
    return search.result(state, status)


class _Search:
    """A problem with its settings: how a state begins, moves and ends."""

    def __init__(self, problem: Problem, settings: JointSettings) -> None:
        self.problem, self.settings = problem, settings
        self.entries, self.size = problem.support.entries, settings.size

    def first_place(self, x: FloatArray, v: FloatArray, w: FloatArray) -> FloatArray:
        """Return the start, its columns scaled to l1 norm 1."""
        support = self.problem.support
        x = x / support.column_sums(np.abs(x))[support.columns]
        if self.settings.kind == "direct":
            return x
        return np.concatenate([x, v, np.clip(w, *self.settings.weight_range)])

    def point(self, place: FloatArray) -> Point:
        """Split a place into x, v and w."""
        n, m = self.entries, self.size
        if self.settings.kind == "direct":
            return Point(place, np.zeros(m), np.zeros(m))
        return Point(place[:n], place[n : n + m], place[n + m :])

    def cost(self, place: FloatArray) -> float:
        return self.problem.cost(self.point(place), largest=self.settings.largest)

    def kappa(self, cost: float) -> float:
        return float(2.0 * cost / np.log2(self.size) ** 3)

    def begin(self, first: FloatArray) -> JointState:
        """Return the state before the first step.

        Raises:
            ParameterError: the start has no finite cost.
        """
        cost = self.cost(first)
        if not np.isfinite(cost):
            raise ParameterError("start must have a B of full column rank")
        place = first.copy()
        if self.settings.spread > 0:
            rng = np.random.default_rng(self.settings.seed)
            unit = self.settings.spread * np.abs(first[: self.entries]).mean()
            place[: self.entries] += unit * rng.standard_normal(self.entries)
        zero = np.zeros_like(place)
        return JointState(0, place, zero, zero.copy(), first.copy(), cost, cost)

    def steps_within(self, seconds: float, first: FloatArray) -> int:
        """Return how many steps fit into nine tenths of the time, by doing two."""
        began = time.monotonic()
        for _ in range(2):
            self._gradient(first, 0)
        each = (time.monotonic() - began) / 2
        return max(_FEWEST_STEPS, int(0.9 * seconds / max(each, 1e-6)))

    def _gradient(self, place: FloatArray, step: int) -> FloatArray:
        schedule, steps = self.settings.schedule, self.settings.steps
        done = min(step / (schedule.settled * steps), 1.0)
        smoothing, exponent = (
            first * (last / first) ** done for first, last in (schedule.smoothing, schedule.exponent)
        )
        _, by = self.problem.value_and_gradient(
            self.point(place), smoothing=smoothing / self.size, exponent=exponent
        )
        if self.settings.kind == "direct":
            return by.x
        by_v = np.zeros_like(by.v) if self.settings.weight_bits is not None else by.v
        return np.concatenate([by.x, by_v, by.w])

    def advance(self, state: JointState, end: int) -> None:
        """Do the steps up to ``end``, and remember the place if it is the best so far."""
        for step in range(state.step, end):
            gradient = self._gradient(state.place, step)
            if not np.isfinite(gradient).all():
                state.lost = True
                break
            state.first = _DECAY_1 * state.first + (1 - _DECAY_1) * gradient
            state.second = _DECAY_2 * state.second + (1 - _DECAY_2) * gradient * gradient
            mean = state.first / (1 - _DECAY_1 ** (step + 1))
            size = np.sqrt(state.second / (1 - _DECAY_2 ** (step + 1)))
            rate = self.settings.schedule.rate * 0.5 * (1 + np.cos(np.pi * step / self.settings.steps))
            state.place = state.place - rate * (mean / (size + _TINY))
            v, w = np.split(state.place[self.entries :], 2)
            np.clip(v, 0.0, 1.0, out=v)
            np.clip(w, *self.settings.weight_range, out=w)
            state.step = step + 1
        cost = self.cost(state.place)
        if cost < state.best_cost:  # false for NaN and infinity
            state.best_cost, state.best = cost, state.place.copy()
        state.history.append((state.step, self.kappa(state.best_cost)))

    def result(self, state: JointState, status: SearchStatus) -> JointResult:
        """Put together what the search returns."""
        x, v, w = self.point(state.best)
        support: Support = self.problem.support
        B = support.dense(x / support.column_sums(np.abs(x))[support.columns])
        plain = self.settings.kind == "direct"
        stage = stage_at(B, v, w if self.settings.interior else None, plain=plain)
        return JointResult(
            status=status,
            stage=stage,
            cost=self.kappa(state.best_cost),
            start_cost=self.kappa(state.start_cost),
            steps=state.step,
            history=state.history,
            settings=self.settings,
            versions=versions_of("trilift", "numpy", "scipy"),
            seconds=state.seconds,
        )


def _chunk_length(settings: JointSettings) -> int:
    """Steps per chunk: about a second's worth, and a function of the settings alone."""
    return int(np.clip(1.0 / joint_step_seconds(settings.size, settings.inner), 1, 50))


def _run(
    search: _Search, state: JointState, path: Path | None, progress: bool | Report | None, budget: float
) -> SearchStatus:
    settings = search.settings
    length = _chunk_length(settings)
    began, before = time.monotonic(), state.seconds
    saved = began
    title = f"joint {settings.kind} {settings.objective} {settings.size}"
    status = SearchStatus.FINISHED
    with (
        Interrupt() as interrupt,
        reporter(progress, title=title, start=state.step, steps=settings.steps) as report,
    ):
        while state.step < settings.steps and not state.lost:
            if interrupt.requested or time.monotonic() - began > budget:
                status = SearchStatus.INTERRUPTED
                break
            search.advance(state, min(state.step + length, settings.steps))
            now = time.monotonic()
            state.seconds = before + now - began
            if path is not None and now - saved >= _CHECKPOINT_EVERY:
                save_joint_checkpoint(path, settings, state)
                saved = now
            report(state.step, settings.steps, state.history[-1][1])
        if path is not None:
            save_joint_checkpoint(path, settings, state)
    return SearchStatus.DIVERGED if state.lost else status


def _stored_steps(path: Path) -> int | None:
    """Return the number of steps that the checkpointed search was given by its time budget."""
    try:
        return integer("steps", parse_json(str(read_arrays(path)["settings"]))["steps"], minimum=1)
    except (KeyError, TypeError, ValueError):
        return None  # the checkpoint will be refused with a better message
