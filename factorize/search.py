"""The search: Adam from many starts at once, annealed, resumable, and stopped by signals between chunks."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from trilift.factorize.checkpoint import checkpoint_path, load_checkpoint, save_checkpoint
from trilift.factorize.devices import Blocks, is_accelerated, local_devices
from trilift.factorize.estimate import step_seconds
from trilift.factorize.interrupt import Interrupt
from trilift.factorize.objective import Kind, exact_cost, objective_and_gradient
from trilift.factorize.precision import check_double, double_precision
from trilift.factorize.progress import Report, reporter
from trilift.factorize.result import SearchResult, SearchStatus
from trilift.factorize.schedule import Schedule
from trilift.factorize.settings import Settings, make_settings
from trilift.factorize.sources import Source, warm_stage
from trilift.factorize.state import State, initial_state, stage_from
from trilift.factorize.versions import versions_of
from trilift.lift.checks import finite, flag, integer
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage

__all__ = ["run_search", "search_direct", "search_stage"]

_CHECKPOINT_EVERY = 5.0  # seconds between checkpoints; chunks are shorter
Arrays = dict[str, jax.Array]


def _pack(state: Any, arrays: Arrays, step: jax.Array) -> Any:
    """Put the stored moments and the step number into the optimiser's own state."""
    names = {"mu": {n: arrays[f"mu_{n}"] for n in "Vv"}, "nu": {n: arrays[f"nu_{n}"] for n in "Vv"}}
    count = step.astype(jnp.int32)
    adam, schedule = state
    return adam._replace(count=count, **names), schedule._replace(count=count)


@partial(jax.jit, static_argnames=("kind", "largest", "steps", "schedule", "frozen"))
def _chunk(
    arrays: Arrays,
    first: jax.Array,
    end: jax.Array,
    *,
    kind: Kind,
    largest: bool,
    steps: int,
    schedule: Schedule,
    frozen: bool,
) -> tuple[Arrays, jax.Array, jax.Array]:
    """Do the steps first, ..., end - 1; return the arrays, every start's exact cost, and which are finite.

    ``frozen`` keeps v where it is.
    """
    optimiser = optax.adam(optax.cosine_decay_schedule(schedule.rate, steps))

    def body(step: jax.Array, carry: Any) -> Any:
        point, moments = carry
        annealed = schedule.annealed(step, steps=steps, size=len(point["v"]))
        _, (by_V, by_v) = objective_and_gradient(point["V"], point["v"], annealed, kind=kind)
        updates, moments = optimiser.update({"V": by_V, "v": by_v}, moments, point)
        moved = optax.apply_updates(point, updates)
        v = point["v"] if frozen else jnp.clip(moved["v"], 0.0, 1.0)
        return {"V": moved["V"], "v": v}, moments

    def one(arrays: Arrays, first: jax.Array, end: jax.Array) -> tuple[Arrays, jax.Array, jax.Array]:
        point = {name: arrays[name] for name in "Vv"}
        moments = _pack(optimiser.init(point), arrays, first)
        point, moments = jax.lax.fori_loop(first, end, body, (point, moments))
        adam = moments[0]
        done = dict(point)
        for name in "Vv":
            done |= {f"mu_{name}": adam.mu[name], f"nu_{name}": adam.nu[name]}
        cost = exact_cost(point["V"], point["v"], kind=kind, largest=largest)
        return done, cost, jnp.isfinite(point["V"]).all() & jnp.isfinite(point["v"]).all()

    return jax.vmap(one, in_axes=(0, None, None))(arrays, first, end)


def _advance(state: State, blocks: Blocks, settings: Settings, *, end: int) -> None:
    """Move every start up to step ``end`` and remember the best one seen.

    All devices are set to work before any is waited for. The arrays stay where they are: ``state.arrays``
    is brought up to date by whoever needs it.
    """
    results = [
        _chunk(
            block,
            np.asarray(state.step),
            np.asarray(end),
            kind=settings.kind,
            largest=settings.largest,
            steps=settings.steps,
            schedule=settings.schedule,
            frozen=settings.weight_bits is not None,
        )
        for block in blocks.blocks
    ]
    blocks.blocks = [done for done, _, _ in results]
    state.step = end
    state.alive = int(sum(np.asarray(finite).sum() for _, _, finite in results))
    _keep_best(state, blocks, np.concatenate([np.asarray(costs) for _, costs, _ in results]))
    state.history.append((end, _kappa(state.best_cost, settings.size)))


def _kappa(cost: float, size: int) -> float:
    return float(2.0 * cost / np.log2(size) ** 3)


def _keep_best(state: State, blocks: Blocks, costs: np.ndarray[Any, Any]) -> None:
    """Remember the best start if it beats the best so far; NaN never wins."""
    costs = np.where(np.isfinite(costs) & (costs > 0), costs, np.inf)
    winner = int(np.argmin(costs))
    if costs[winner] < state.best_cost:
        state.best_cost = float(costs[winner])
        state.best_V, state.best_v = blocks.start(winner, "V"), blocks.start(winner, "v")


def _chunk_length(settings: Settings) -> int:
    """Steps per chunk: about half a second's worth. A function of the settings and the kind of device
    alone, so that a resumed search has the same chunks, and with them the same candidates for the best, as
    an uninterrupted one."""
    each = step_seconds(settings.size, settings.starts, accelerated=is_accelerated())
    return int(np.clip(0.5 / each, 1, 200))


def _run(
    settings: Settings,
    state: State,
    path: Path | None,
    progress: bool | Report | None,
    *,
    seconds: float,
    checkpoint_seconds: float,
    devices: int | None,
) -> SearchStatus:
    length = _chunk_length(settings)
    began, before = time.monotonic(), state.seconds
    saved = began
    title = f"{settings.kind} {settings.objective} {settings.size}"
    status = SearchStatus.FINISHED
    with (
        Interrupt() as interrupt,
        double_precision(),
        reporter(progress, title=title, start=state.step, steps=settings.steps) as report,
    ):
        check_double()
        blocks = Blocks(state.arrays, local_devices(settings.starts, devices))
        while state.step < settings.steps:
            if state.alive == 0:
                break
            if interrupt.requested:
                status = SearchStatus.INTERRUPTED
                break
            if time.monotonic() - began >= seconds:
                status = SearchStatus.OUT_OF_TIME
                break
            _advance(state, blocks, settings, end=min(state.step + length, settings.steps))
            now = time.monotonic()
            state.seconds = before + now - began
            if path is not None and now - saved >= checkpoint_seconds:
                state.arrays = blocks.gathered()
                save_checkpoint(path, settings, state)
                saved = time.monotonic()
            report(state.step, settings.steps, state.history[-1][1])
        state.arrays = blocks.gathered()
        if path is not None:
            save_checkpoint(path, settings, state)
    if state.alive == 0:
        return SearchStatus.DIVERGED
    return status


def run_search(
    settings: Settings,
    *,
    initial: Stage | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    progress: bool | Report | None = None,
    seconds: float | None = None,
    checkpoint_seconds: float = _CHECKPOINT_EVERY,
    devices: int | None = None,
) -> SearchResult:
    """Do the search that these (checked) settings describe; see :func:`search_stage`.

    Args:
        settings: what to do.
        initial: the stage the settings start from, if they do.
        checkpoint, resume, progress, seconds, devices: see :func:`search_stage`.
        checkpoint_seconds: time between checkpoints, as far as the chunks of steps allow.

    Raises:
        ParameterError: the settings start from a stage and ``initial`` is missing, or the reverse; a bad
            checkpoint.
    """
    if bool(settings.initial) != (initial is not None):
        raise ParameterError("initial must be given exactly when the settings start from a stage")
    path = checkpoint_path(checkpoint, resume=flag("resume", resume))
    budget = np.inf if seconds is None else finite("seconds", seconds, minimum=0)
    every = finite("checkpoint_seconds", checkpoint_seconds, minimum=0)
    if devices is not None:
        integer("devices", devices, minimum=1)
    if resume and path is not None:
        state = load_checkpoint(path, settings)
    else:
        state = initial_state(settings, initial)
    status = _run(settings, state, path, progress, seconds=budget, checkpoint_seconds=every, devices=devices)
    stage = None
    if np.isfinite(state.best_cost):
        stage = stage_from(state.best_V, state.best_v, kind=settings.kind)
    return SearchResult(
        status=status,
        stage=stage,
        cost=float("inf") if stage is None else stage.kappa(settings.objective),
        steps=state.step,
        history=state.history,
        dropped=settings.starts - state.alive,
        settings=settings,
        versions=versions_of("trilift", "jax", "jaxlib", "optax", "numpy"),
        seconds=state.seconds,
    )


def _initial(size: Any, initial: Stage | None, warm_start: Source | None) -> Stage | None:
    if warm_start is None:
        return initial
    if initial is not None:
        raise ParameterError("initial and warm_start are two names for one thing: give one of them")
    return warm_stage(warm_start, size=size)


def search_stage(
    size: int,
    *,
    objective: str,
    seed: int = 0,
    steps: int = 4000,
    starts: int = 16,
    initial: Stage | None = None,
    warm_start: Source | None = None,
    one_sided: bool = False,
    spread: tuple[float, float] | None = None,
    schedule: Schedule | None = None,
    weight_bits: int | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    progress: bool | Report | None = None,
    seconds: float | None = None,
    devices: int | None = None,
) -> SearchResult:
    """Search a stage of ``size`` m with a small kappa = 2 (max or mean q) |B|^2 / log2(m)^3.

    Source: new (the bridge lift); the objective is in :mod:`trilift.factorize.objective`. The same
    arguments on the same machine and versions give the same result, bit for bit, resumed or not.

    Args:
        size: m >= 2.
        objective: "max" or "mean" squared error.
        seed: of the random starts.
        steps: Adam steps of every start.
        starts: starts moved together (memory grows with it, see :func:`estimate_cost`).
        initial: a stage with square B that the starts surround, instead of the identity. The "max"
            objective is best started from a "mean" solution.
        warm_start: the same from anywhere: the name of an artifact of the catalogue, the path of an
            artifact, of the ``best.npz`` of a run or of its folder, or a stage; of a smaller size too (see
            :func:`trilift.factorize.sources.warm_stage`).
        one_sided: keep g = 0.
        spread: (least, largest) size of the Gaussian of the starts; default (0.2, 1), around an initial
            stage (0, 0.3), so that its first start is the initial stage itself.
        schedule: annealing; default ``cold`` or, around an initial stage, ``warm``.
        weight_bits: round v of the initial stage to so many binary places and move only B. A certificate
            stores a coarse v; for the "max" objective, whose optimum is a kink, rounding v afterwards
            costs up to 1e-3, and adapting B to the rounded v wins that back.
        checkpoint: file to write the state to, every few seconds and on the last step.
        resume: go on from ``checkpoint``.
        progress: see :func:`trilift.factorize.progress.reporter`.
        seconds: stop with the best so far, "out of time", at the first chunk that ends later than this
            many seconds after the call; the checkpoint holds everything.
        devices: share the starts over so many local devices at most; default all, as many as divide their
            number.

    On SIGTERM or SIGINT (in the main thread) the current chunk is finished, the checkpoint written and
    a result with status "interrupted" returned.

    Raises:
        ParameterError: a bad argument, before anything is computed.
        ArtifactFormatError: the checkpoint to resume from is damaged.
        PrecisionError: the device has no double precision.
    """
    initial = _initial(size, initial, warm_start)
    settings = make_settings(
        size,
        kind="one-sided" if flag("one_sided", one_sided) else "two-sided",
        objective=objective,
        seed=seed,
        steps=steps,
        starts=starts,
        initial=initial,
        spread=spread,
        schedule=schedule,
        weight_bits=weight_bits,
    )
    return run_search(
        settings,
        initial=initial,
        checkpoint=checkpoint,
        resume=resume,
        progress=progress,
        seconds=seconds,
        devices=devices,
    )


def search_direct(
    size: int,
    *,
    objective: str,
    seed: int = 0,
    steps: int = 4000,
    starts: int = 16,
    initial: Stage | None = None,
    warm_start: Source | None = None,
    spread: tuple[float, float] | None = None,
    schedule: Schedule | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    progress: bool | Report | None = None,
    seconds: float | None = None,
    devices: int | None = None,
) -> SearchResult:
    """Search a plain factorisation C D = T_k of ``size`` k, as a stage with w = 0 and g = 0.

    Its kappa is the paper's kappa_direct, 2 (max or mean |C_i|^2) |D|^2 / log2(k)^3. Arguments and errors
    as in :func:`search_stage`. Source: the problem of the paper; the annealing is new.
    """
    kind: Kind = "direct"
    initial = _initial(size, initial, warm_start)
    settings = make_settings(
        size,
        kind=kind,
        objective=objective,
        seed=seed,
        steps=steps,
        starts=starts,
        initial=initial,
        spread=spread,
        schedule=schedule,
    )
    return run_search(
        settings,
        initial=initial,
        checkpoint=checkpoint,
        resume=resume,
        progress=progress,
        seconds=seconds,
        devices=devices,
    )
