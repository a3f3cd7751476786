"""Searching stages and factorisations for Gaussian noise: the l2 norm of columns (new).

L-BFGS from random starts on the objective of :mod:`trilift.factorize.l2_objective`, the exponent of the power
mean rising in rounds for "max". The landscape is so much smoother than that of the l1 norm that seconds
suffice for sizes in the tens, and starts mostly agree to a few digits.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import qr
from scipy.optimize import Bounds, minimize
from trilift.factorize.l2_objective import evaluate, gradient
from trilift.factorize.progress import Report, reporter
from trilift.lift.checks import choice, fail, finite, integer
from trilift.lift.errors import ParameterError
from trilift.lift.stage import FloatArray, Stage

__all__ = ["L2Result", "L2Settings", "search_l2_direct", "search_l2_stage"]

_POWERS = (10.0, 100.0, 1e3, 1e4, 1e5)
_MEMORY = 20  # pairs that L-BFGS remembers
_LARGEST_SIZE = 4096


@dataclass(frozen=True)
class L2Settings:
    """What determines a search.

    Attributes:
        size: m of a stage, k of a plain factorisation.
        kind: "stage" or "direct".
        objective: "max" or "mean".
        seed: of the random starts.
        steps: iterations at most, in every round of every start.
        starts: number of starts, one after the other.
        spread: size of the Gaussian added to the identity or the initial B.
        weight_bits: None, or the binary places that v is rounded to, and kept at.
    """

    size: int
    kind: str
    objective: str
    seed: int
    steps: int
    starts: int
    spread: float
    weight_bits: int | None

    def as_json(self) -> dict[str, Any]:
        """Return the settings as JSON values, for provenance."""
        return {**asdict(self), "norm": "l2"}


@dataclass(frozen=True)
class L2Result:
    """The best stage found.

    Attributes:
        stage: in floats, B upper triangular with columns of l2 norm 1.
        gamma: sqrt(max or mean q) times the l2 norm of B's columns: what it adds to a chain.
        starts: the gamma of every start.
        steps: iterations done by all starts together.
        complete: whether the time budget let every round of every start end.
        settings: what determined the search.
        seconds: time spent.
    """

    stage: Stage
    gamma: float
    starts: tuple[float, ...]
    steps: int
    complete: bool
    settings: L2Settings
    seconds: float


class _OutOfTime(Exception):
    """The time budget is spent."""


class _Run:
    """One start: the point, the best one seen by the exact objective, and the calls that L-BFGS makes."""

    def __init__(self, settings: L2Settings, U: FloatArray, v: FloatArray, deadline: float) -> None:
        self.settings, self.deadline = settings, deadline
        self.upper = np.triu_indices(settings.size)
        self.point = np.concatenate([U[self.upper], v]) if self._moves_v else U[self.upper]
        self.fixed_v = v
        self.best, self.best_cost, self.steps = self.point, np.inf, 0

    @property
    def _moves_v(self) -> bool:
        return self.settings.kind == "stage" and self.settings.weight_bits is None

    def unpack(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U and v of a point."""
        m, count = self.settings.size, len(self.upper[0])
        U = np.zeros((m, m))
        U[self.upper] = point[:count]
        return U, point[count:] if self._moves_v else self.fixed_v

    def value(self, point: FloatArray, power: float) -> tuple[float, FloatArray]:
        """Return the objective and its gradient; a huge value where B cannot be inverted."""
        if time.monotonic() > self.deadline:
            raise _OutOfTime
        U, v = self.unpack(point)
        at = evaluate(U, v, plain=self.settings.kind == "direct")
        if at is None or not (at.q.max() > 0 and np.isfinite(at.q).all()):
            return 1e10, np.zeros_like(point)
        cost = float(at.q.max() if self.settings.objective == "max" else at.q.mean())
        if cost < self.best_cost:
            self.best, self.best_cost = point.copy(), cost
        value, by_U, by_v = gradient(at, U, power)
        return value, np.concatenate([by_U[self.upper], by_v] if self._moves_v else [by_U[self.upper]])

    def round(self, power: float, report: Report, done: int, total: int) -> None:
        """Minimise at one exponent, from where the round before ended."""
        free, count = len(self.point), len(self.upper[0])
        least = np.where(np.arange(free) < count, -np.inf, 0.0)
        most = np.where(np.arange(free) < count, np.inf, 1.0)
        iterations = 0

        def after(_: FloatArray) -> None:
            nonlocal iterations
            iterations += 1
            self.steps += 1
            report(done + iterations, total, float(np.sqrt(self.best_cost)))

        steps = self.settings.steps
        options: Any = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": _MEMORY, "ftol": 1e-13, "gtol": 1e-9}
        minimise: Any = minimize  # its stubs know no pair of value and gradient with further arguments
        found = minimise(
            self.value,
            self.point,
            args=(power,),
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(least, most),
            callback=after,
            options=options,
        )
        self.point = np.asarray(found.x, dtype=np.float64)


def search_l2_stage(
    size: int,
    *,
    objective: str,
    seed: int = 0,
    steps: int = 1000,
    starts: int = 1,
    initial: Stage | None = None,
    spread: float | None = None,
    weight_bits: int | None = None,
    time_budget: float | None = None,
    progress: bool | Report | None = None,
) -> L2Result:
    """Search a stage of ``size`` m with a small gamma = sqrt(max or mean q) |B|_(1->2).

    The same arguments on the same machine and versions give the same result, unless time runs out.

    Args:
        size: m >= 2.
        objective: "max" or "mean" squared error.
        seed: of the random starts.
        steps: iterations at most, in every round ("max" has five, with a rising exponent).
        starts: one after the other; the best is returned.
        initial: a stage that the starts surround (any B with m columns), instead of the identity.
        spread: of the Gaussian of the starts, in units of 1/sqrt(m); default 0.3, or 0 around a stage.
        weight_bits: round v of the initial stage to so many binary places and move only B. A certificate
            stores a coarse v; adapting B to the rounded v wins back what rounding costs.
        time_budget: seconds after which the best seen is returned.
        progress: see :func:`trilift.factorize.progress.reporter`.

    Raises:
        ParameterError: a bad argument, or no time even for one evaluation.

    >>> round(search_l2_stage(4, objective="max").gamma, 3)
    0.651
    """
    settings = _settings("stage", size, objective, seed, steps)
    if weight_bits is not None:
        if initial is None:
            raise ParameterError("weight_bits needs an initial stage, whose v is rounded")
        settings = replace(settings, weight_bits=integer("weight_bits", weight_bits, minimum=1, maximum=40))
    return _search(
        settings, starts=starts, initial=initial, spread=spread, limit=time_budget, progress=progress
    )


def search_l2_direct(
    size: int,
    *,
    objective: str,
    seed: int = 0,
    steps: int = 1000,
    starts: int = 1,
    initial: Stage | None = None,
    spread: float | None = None,
    time_budget: float | None = None,
    progress: bool | Report | None = None,
) -> L2Result:
    """Search a plain factorisation C D = T_k; "max" approaches gamma_2(T_k), the least possible.

    Arguments and errors as in :func:`search_l2_stage`.

    >>> round(search_l2_direct(4, objective="max").gamma, 3)
    1.326
    """
    settings = _settings("direct", size, objective, seed, steps)
    return _search(
        settings, starts=starts, initial=initial, spread=spread, limit=time_budget, progress=progress
    )


def _settings(kind: str, size: Any, objective: Any, seed: Any, steps: Any) -> L2Settings:
    return L2Settings(
        size=integer("size", size, minimum=2, maximum=_LARGEST_SIZE),
        kind=kind,
        objective=choice("objective", objective, ("max", "mean")),
        seed=integer("seed", seed, minimum=0),
        steps=integer("steps", steps, minimum=1, maximum=10**6),
        starts=1,
        spread=0.0,
        weight_bits=None,
    )


def _search(
    settings: L2Settings,
    *,
    starts: Any,
    initial: Any,
    spread: Any,
    limit: Any,
    progress: bool | Report | None,
) -> L2Result:
    given = (0.3 if initial is None else 0.0) if spread is None else spread
    settings = replace(
        settings,
        starts=integer("starts", starts, minimum=1, maximum=10**5),
        spread=finite("spread", given, minimum=0),
    )
    base, v = _base(settings, initial)
    began = time.monotonic()
    deadline = np.inf if limit is None else began + finite("time_budget", limit, above=0)
    powers = _POWERS if settings.objective == "max" else (1.0,)
    total = settings.starts * len(powers) * settings.steps
    rng = np.random.default_rng(settings.seed)
    runs: list[_Run] = []
    complete = True
    with reporter(
        progress, title=f"l2 {settings.kind} {settings.objective} {settings.size}", start=0, steps=total
    ) as report:
        for number in range(settings.starts):
            noise = np.triu(rng.standard_normal((settings.size, settings.size)))
            run = _Run(settings, base + settings.spread / np.sqrt(settings.size) * noise, v, deadline)
            runs.append(run)
            try:
                for index, power in enumerate(powers):
                    run.round(power, report, (number * len(powers) + index) * settings.steps, total)
            except _OutOfTime:
                complete = False
                break
    best = min(runs, key=lambda run: run.best_cost)
    if not np.isfinite(best.best_cost):
        raise ParameterError("the search met no invertible B: another start, or more time")
    stage = _stage(*best.unpack(best.best), settings.kind)
    return L2Result(
        stage=stage,
        gamma=stage.gamma(settings.objective),
        starts=tuple(float(np.sqrt(run.best_cost)) for run in runs),
        steps=sum(run.steps for run in runs),
        complete=complete,
        settings=settings,
        seconds=time.monotonic() - began,
    )


def _base(settings: L2Settings, initial: Any) -> tuple[FloatArray, FloatArray]:
    """Return the upper triangular B and the v that the starts surround."""
    if initial is None:
        return np.eye(settings.size), np.full(settings.size, 0.25 if settings.kind == "stage" else 0.0)
    if not isinstance(initial, Stage):
        raise fail("initial", "a Stage or None", initial)
    initial = initial.to_float()
    if initial.size != settings.size or initial.inner < settings.size:
        raise ParameterError(
            f"initial must have B with {settings.size} columns and at least as many rows, "
            f"got {initial.B.shape}"
        )
    (R,) = qr(initial.B, mode="r")  # R^T R = B^T B
    v = np.clip(initial.v, 0.0, 1.0) if settings.kind == "stage" else np.zeros(settings.size)
    if settings.weight_bits is not None:
        v = np.ldexp(np.floor(np.ldexp(v, settings.weight_bits) + 0.5), -settings.weight_bits)
    return np.asarray(R[: settings.size], dtype=np.float64), np.asarray(v, dtype=np.float64)


def _stage(U: FloatArray, v: FloatArray, kind: str) -> Stage:
    B = U / np.sqrt((U**2).sum(axis=0))
    L = np.cumsum(np.linalg.inv(B), axis=0)
    if kind == "direct":
        return Stage.plain(L, B)
    g = np.linalg.solve(B.T, v)
    d = L[-1] - g
    w = np.clip((L @ d + g @ g) / (d @ d + g @ g), 0.0, 1.0)
    return Stage(L - np.outer(w, d), B, w, g)
