"""The state of a running search: numpy arrays and plain numbers only, so that it can be stored exactly."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from trilift.factorize.settings import Settings
from trilift.lift.errors import ParameterError
from trilift.lift.stage import FloatArray, Stage

__all__ = ["State", "initial_state", "stage_from"]


@dataclass
class State:
    """Where a search stands after ``step`` Adam steps.

    Attributes:
        step: steps done.
        arrays: parameters and optimiser moments by name, first axis = starts; while the search
            runs, as they were when they were last stored. "V" (s, m, m) and "v" (s, m)
            are the parameters; "mu_V", "nu_V", "mu_v", "nu_v" are Adam's moments.
        best_V, best_v: the best point seen, (m, m) and (m,).
        best_cost: its exact cost (q at sensitivity 1), infinite while nothing finite was seen.
        history: (step, best kappa so far) after every chunk.
        seconds: time spent so far.
        alive: number of starts whose parameters are still finite.
    """

    step: int
    arrays: dict[str, FloatArray]
    best_V: FloatArray
    best_v: FloatArray
    best_cost: float = float("inf")
    history: list[tuple[int, float]] = field(default_factory=list)
    seconds: float = 0.0
    alive: int = field(default=-1)

    def __post_init__(self) -> None:
        """Count the finite starts, unless their number is known."""
        if self.alive < 0:
            V, v = self.arrays["V"], self.arrays["v"]
            self.alive = int(np.sum(np.isfinite(V).all(axis=(1, 2)) & np.isfinite(v).all(axis=1)))


def initial_state(settings: Settings, initial: Stage | None) -> State:
    """Draw the starts: (identity or the initial B) + sigma * Gaussian / sqrt(m).

    v is uniform in [0, 1/2], or the initial one moved by sigma * Gaussian / sqrt(m) and clipped.
    """
    m, s = settings.size, settings.starts
    if initial is not None:
        initial = initial.to_float()
        best = _cost(initial, settings)
    rng = np.random.default_rng(settings.seed)
    sigma = np.linspace(*settings.spread, s) / np.sqrt(m)
    V = sigma[:, None, None] * rng.standard_normal((s, m, m))
    if initial is None:
        V += np.eye(m)
        v = rng.uniform(0.0, 0.5, size=(s, m))
    else:
        # Columns are scaled so that a sigma means the same as around the identity, whose largest
        # entries are 1: the Gaussian has to be measured against the column's largest entry.
        V += initial.B / np.abs(initial.B).max()
        v = np.tile(_weights(initial, settings), (s, 1))
        if settings.weight_bits is None:
            v = np.clip(v + sigma[:, None] * rng.standard_normal((s, m)), 0.0, 1.0)
    if settings.kind != "two-sided":
        v[:] = 0.0
    moments = {name: np.zeros(shape) for name, shape in (("V", V.shape), ("v", v.shape))}
    arrays = {"V": V, "v": v}
    for prefix in ("mu", "nu"):
        arrays |= {f"{prefix}_{name}": zero.copy() for name, zero in moments.items()}
    state = State(0, arrays, V[0].copy(), v[0].copy())
    if initial is not None:
        # the given stage is the best so far: a search never returns a worse one
        state.best_V, state.best_v, state.best_cost = initial.B.copy(), _weights(initial, settings), best
    return state


def _weights(initial: Stage, settings: Settings) -> FloatArray:
    """v of the given stage, clipped into [0, 1] and rounded if the settings say so."""
    v = np.clip(initial.v, 0.0, 1.0)
    if settings.weight_bits is None:
        return np.asarray(v, dtype=np.float64)
    rounded: FloatArray = np.floor(np.ldexp(v, settings.weight_bits) + 0.5) / 2.0**settings.weight_bits
    return rounded


def _cost(initial: Stage, settings: Settings) -> float:
    """Exact cost of the given stage, or of what it becomes for another kind of search."""
    q = np.array([np.nan])
    if np.abs(initial.B).sum(axis=0).all():
        with suppress(np.linalg.LinAlgError, ParameterError):  # singular, or so nearly that L overflows
            q = stage_from(initial.B, _weights(initial, settings), kind=settings.kind).row_norms_sq()
    cost = float(q.max() if settings.largest else q.mean())
    if not np.isfinite(cost):
        raise ParameterError("initial must have an invertible B")
    return cost


def stage_from(V: FloatArray, v: FloatArray, *, kind: str) -> Stage:
    """Return the stage at (V, v), v in [0, 1]: the numpy twin of ``exact_cost``.

    B has columns of l1 norm 1, and w is the best one.
    """
    B = V / np.abs(V).sum(axis=0)
    L = np.cumsum(np.linalg.inv(B), axis=0)
    if kind == "direct":
        return Stage(L, B, np.zeros(len(B)), np.zeros(len(B)))
    g = np.linalg.solve(B.T, v) if kind == "two-sided" else np.zeros(len(B))
    d = L[-1] - g
    w = np.clip((L @ d + g @ g) / (d @ d + g @ g), 0.0, 1.0)
    return Stage(L - np.outer(w, d), B, w, g)
