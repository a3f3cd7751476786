"""Errors of planned counters, of every step, of the worst one, and on average: for pictures and reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.lift.checks import fail
from trilift.lift.errors import ParameterError
from trilift.lift.mechanisms import NAMES, price, step_errors_sq

__all__ = ["MECHANISMS", "OURS", "Curve", "Planned", "deviation", "planned"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

OURS = "trilift"
_GAUSSIAN = {"gaussian": "chain", "gaussian-toeplitz": "toeplitz"}
_ENDLESS = ("unbounded", "gaussian-unbounded")
MECHANISMS = (OURS, "unbounded", *_GAUSSIAN, "gaussian-unbounded", *NAMES)
"""What can be drawn: the best chain, counters without a horizon, Gaussian ones, and those of `plan`."""

_POINTS = 1000
_TOEPLITZ_MOST = 1 << 20


@dataclass(frozen=True)
class Curve:
    """Standard deviations of released values over time.

    Attributes:
        label: of the planned counter.
        steps: 1-based steps, shape (k,).
        sd: standard deviations there, shape (k,).
    """

    label: str
    steps: np.ndarray[Any, np.dtype[np.int64]]
    sd: FloatArray

    def record(self) -> dict[str, Any]:
        """Return the curve for JSON."""
        return {"label": self.label, "steps": self.steps.tolist(), "sd": self.sd.tolist()}


class _Shared:
    """The catalogue, loaded once, and the chains that were chosen from it."""

    def __init__(self) -> None:
        self._known: Any = None
        self._found: dict[Any, Any] = {}

    def best(self, horizon: int, objective: str, files: tuple[str, ...]) -> Any:
        from trilift.commands.plan import best_plan, catalogued

        wanted = (horizon, objective, files)
        if wanted not in self._found:
            if self._known is None:
                self._known = catalogued()
            best = best_plan(horizon, objective=objective, files=files, known=self._known)
            self._found[wanted] = best
        return self._found[wanted]


@dataclass(frozen=True)
class Planned:
    """A counter that might be made.

    Attributes:
        mechanism: one of :data:`MECHANISMS`.
        epsilon: exact, > 0.
        horizon: number of steps; of a counter without a horizon, those that are looked at.
        objective: "max" or "mean", the error that it was chosen for.
        delta: of Gaussian noise, else None.
        files: artifacts that chains may use beside the catalogue's.
        arity: of a k-ary tree, None for the best.
        shared: what plans that are made together load once.
    """

    mechanism: str
    epsilon: Fraction
    horizon: int
    objective: str = "max"
    delta: Fraction | None = None
    files: tuple[str, ...] = ()
    arity: int | None = None
    shared: _Shared = field(default_factory=_Shared, repr=False, compare=False)

    def label(self, differing: Iterable[str] = ("mechanism",)) -> str:
        """Return a name of those attributes that matter, for a legend."""
        words = {
            "mechanism": "paper (bound)" if self.mechanism == "paper" else self.mechanism,
            "epsilon": f"ε = {self.epsilon}",
            "horizon": f"n = {self.horizon:,}",
            "objective": f"chosen by {self.objective}",
            "delta": "" if self.delta is None else f"δ = {float(self.delta):g}",
        }
        wanted = set(differing)
        return ", ".join(word for name, word in words.items() if name in wanted and word)

    def curve(self, label: str, *, points: int = _POINTS) -> Curve:
        """Return the standard deviations at evenly spaced steps, the first and the last among them.

        Raises:
            ParameterError: "paper", of which no single step is known; a horizon that it cannot serve.
        """
        steps = np.unique(np.linspace(1, self.horizon, min(points, self.horizon)).round().astype(np.int64))
        return Curve(label, steps, np.sqrt(self._variances(steps)))

    def errors(self) -> tuple[float | None, float | None]:
        """Return the squared error of the worst step and the mean one; None where it is not known.

        Exact for mechanisms with Laplace noise and a horizon (bounds for "paper"), for the others at evenly
        spaced steps.
        """
        epsilon = float(self.epsilon)
        if self.mechanism == OURS:
            cost = self.shared.best(self.horizon, self.objective, self.files).cost
            return cost.max_se(epsilon), cost.mean_se(epsilon)
        if self.mechanism in NAMES:
            other = price(self.mechanism, self.horizon, objective=self.objective, arity=self.arity)
            return other.bound_max_se(epsilon), other.bound_mean_se(epsilon)
        variances = self.curve("", points=4 * _POINTS).sd ** 2
        return float(variances.max()), float(variances.mean())

    def _variances(self, steps: Any) -> FloatArray:
        epsilon = float(self.epsilon)
        if self.mechanism == OURS:
            from trilift.lift.costs import row_norms_sq

            found = self.shared.best(self.horizon, self.objective, self.files)
            scales = np.asarray(found.cost.scales) / epsilon
            return np.asarray(2.0 * scales**2 @ row_norms_sq(found.chain, steps - 1))
        if self.mechanism in NAMES:
            at_one = step_errors_sq(
                self.mechanism, steps, horizon=self.horizon, objective=self.objective, arity=self.arity
            )
            return at_one / epsilon**2
        return _swap_variances(self, steps - 1)


def _swap_variances(what: Planned, points: Any) -> FloatArray:
    from trilift.swap_plan import planned_variances

    delta = what.delta if what.mechanism.startswith("gaussian") else None
    horizon = None if what.mechanism in _ENDLESS else what.horizon
    options: dict[str, Any] = {"objective": what.objective}
    if what.mechanism in _GAUSSIAN:
        options["mechanism"] = _GAUSSIAN[what.mechanism]
    return np.asarray(planned_variances(what.epsilon, delta, horizon, points, **options), dtype=np.float64)


def planned(
    mechanisms: Sequence[str],
    *,
    epsilons: Sequence[Fraction],
    horizons: Sequence[int],
    objectives: Sequence[str],
    delta: Fraction | None = None,
    files: Sequence[str] = (),
    most: int = 24,
    beside: Planned | None = None,
) -> list[Planned]:
    """Return every combination of what is given, each once; with ``beside``, what it has loaded is shared.

    Raises:
        ParameterError: an unknown mechanism or objective, Gaussian noise without a delta or a delta without
            it, artifacts without chains, or too many combinations.
    """
    for name in mechanisms:
        if name not in MECHANISMS:
            raise fail("mechanism", f"one of {', '.join(MECHANISMS)}", name)
    for objective in objectives:
        if objective not in ("max", "mean"):
            raise fail("objective", "'max' or 'mean'", objective)
    noisy = [name for name in mechanisms if name.startswith("gaussian")]
    if noisy and delta is None:
        raise ParameterError(f"--mechanism {noisy[0]} needs --delta, such as 1e-6")
    if delta is not None and not noisy:
        raise ParameterError("--delta is about Gaussian noise: add --mechanism gaussian, or leave it out")
    if files and OURS not in mechanisms:
        raise ParameterError(f"--artifact is about chains: add --mechanism {OURS}, or leave it out")
    if "gaussian-toeplitz" in mechanisms and max(horizons) > _TOEPLITZ_MOST:
        raise ParameterError(f"gaussian-toeplitz serves horizons up to {_TOEPLITZ_MOST}")
    shared = _Shared() if beside is None else beside.shared
    found = [
        Planned(
            name, epsilon, horizon, objective, delta if name in noisy else None, tuple(files), shared=shared
        )
        for name in dict.fromkeys(mechanisms)
        for horizon in dict.fromkeys(horizons)
        for epsilon in dict.fromkeys(epsilons)
        for objective in dict.fromkeys(objectives)
    ]
    if len(found) > most:
        raise ParameterError(f"{len(found)} counters are too many for a picture of at most {most}")
    return found


def deviation(squared: float | None) -> float:
    """Return the root of a squared error, NaN where it is not known."""
    return math.nan if squared is None else math.sqrt(squared)
