"""The last digits: L-BFGS-B on the smoothed objective, after the annealing has settled (new).

Adam with a falling rate ends near the bottom of its valley, not at it. A quasi-Newton method goes the rest
of the way. The objective has kinks, where entries are zero and where rows share the maximum; there a line
search gets nowhere. So the method walks down a short ladder, from more smoothing to that of the annealing's
end, each rung from where the one before stopped. What is kept is decided by the exact cost, without
smoothing, so that polishing never makes a stage worse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import Bounds, minimize
from trilift.factorize.estimate import step_seconds
from trilift.factorize.objective import Annealed, Kind, objective_and_gradient
from trilift.factorize.precision import check_double, double_precision
from trilift.factorize.state import stage_from
from trilift.lift.checks import choice, fail, finite, integer
from trilift.lift.errors import ParameterError
from trilift.lift.stage import FloatArray, Stage

__all__ = ["Polished", "block_iterations", "polish"]

_LADDER = ((333.0, 0.01), (33.0, 0.1), (1.0, 1.0))  # factors of the smoothing and of the exponent
_MEMORY = 20  # pairs of steps and gradients that L-BFGS keeps
_minimize: Any = minimize  # its stubs know no options but the general ones
_OPTIONS = {"maxcor": _MEMORY, "ftol": 1e-15, "gtol": 1e-10}
_STEEP = 1e3  # added to the value where the objective is not finite, so that the line search turns back

_gradient = jax.jit(objective_and_gradient, static_argnames=("kind",))


@dataclass(frozen=True)
class Polished:
    """What polishing came to.

    Attributes:
        stage: the better of the stage found and the one given.
        cost: its kappa for the objective.
        before: kappa of the one given.
        iterations: L-BFGS iterations done.
        converged: whether the last rung found nothing more to gain.
        stopped: whether it was told to stop before it was done.
    """

    stage: Stage
    cost: float
    before: float
    iterations: int
    converged: bool
    stopped: bool


def block_iterations(size: int) -> int:
    """Iterations of about two seconds: after so many a run stores where it is and begins anew."""
    return int(np.clip(2.0 / step_seconds(size, 1), 20, 500))


def polish(
    stage: Stage,
    *,
    objective: str,
    kind: Kind | None = None,
    iterations: int = 300,
    smoothing: float = 3e-5,
    exponent: float = 1e4,
    stop: Callable[[], bool] | None = None,
) -> Polished:
    """Move V and v of a stage with a square B by L-BFGS-B, v held in [0, 1].

    Args:
        stage: where to begin, exact or float.
        objective: "max" or "mean" squared error.
        kind: "two-sided", "one-sided" or "direct"; default what the stage is.
        iterations: at most so many, on all rungs together.
        smoothing: mu at the last rung, in units of 1/size, where the annealing ends.
        exponent: there, of the power mean that stands for the maximum; not used for the mean.
        stop: asked after every iteration whether to stop there.

    Raises:
        ParameterError: a bad argument, or a B that is not square and invertible.
        PrecisionError: the device has no double precision.

    >>> import numpy as np
    >>> plain = Stage.plain(np.tril(np.ones((4, 4))), np.eye(4))
    >>> polish(plain, objective="mean").cost < 0.7
    True
    """
    if not isinstance(stage, Stage):
        raise fail("stage", "a Stage", stage)
    choice("objective", objective, ("max", "mean"))
    limit = integer("iterations", iterations, minimum=1)
    smoothing = finite("smoothing", smoothing, above=0)
    exponent = finite("exponent", exponent, minimum=1) if objective == "max" else 1.0
    first = stage.to_float()
    kind = kind_of(first) if kind is None else kind
    m = first.size
    if first.inner != m:
        raise ParameterError(f"polishing needs a square B, got one of shape {first.B.shape}")
    before = first.kappa(objective)
    V = first.B / np.abs(first.B).sum(axis=0)
    place = np.concatenate([V.ravel(), np.clip(first.v, 0.0, 1.0)])
    low = np.concatenate([np.full(m * m, -np.inf), np.zeros(m)])
    high = np.concatenate([np.full(m * m, np.inf), np.full(m, 1.0 if kind == "two-sided" else 0.0)])
    place = np.clip(place, low, high)
    best, cost, done, converged = first, before, 0, False
    halt = _Halt(stop)
    with double_precision():
        check_double()
        for rung, (softer, lower) in enumerate(_LADDER):
            left = (limit - done) // (len(_LADDER) - rung)
            if left == 0 or halt.stopped:
                continue
            annealed = Annealed(jnp.asarray(smoothing * softer / m), jnp.asarray(max(1.0, exponent * lower)))
            found: Any = _minimize(
                partial(_value, annealed=annealed, kind=kind, size=m),
                place,
                jac=True,
                method="L-BFGS-B",
                bounds=Bounds(low, high),
                callback=halt,
                options=_OPTIONS | {"maxiter": left, "maxfun": 4 * left},
            )
            place, done, converged = found.x, done + int(found.nit), bool(found.success)
            better = _stage_at(place, m, kind)
            if better is not None and better.kappa(objective) < cost:
                best, cost = better, better.kappa(objective)
    return Polished(best, cost, before, done, converged, halt.stopped)


class _Halt:
    """Ends the method's work after an iteration at which it is told to stop."""

    def __init__(self, stop: Callable[[], bool] | None) -> None:
        self._stop, self.stopped = stop, False

    def __call__(self, intermediate_result: Any) -> None:
        if self._stop is not None and self._stop():
            self.stopped = True
            raise StopIteration


def kind_of(stage: Stage) -> Kind:
    """Return the kind of search that a stage can come from."""
    if stage.is_plain:
        return "direct"
    return "one-sided" if stage.one_sided else "two-sided"


def _value(place: FloatArray, *, annealed: Annealed, kind: Kind, size: int) -> tuple[float, FloatArray]:
    V, v = place[: size * size].reshape(size, size), place[size * size :]
    value, (by_V, by_v) = _gradient(jnp.asarray(V), jnp.asarray(v), annealed, kind=kind)
    gradient = np.concatenate([np.asarray(by_V).ravel(), np.asarray(by_v)])
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        return _STEEP, np.zeros_like(gradient)
    return float(value), gradient


def _stage_at(place: FloatArray, size: int, kind: Kind) -> Stage | None:
    V, v = place[: size * size].reshape(size, size), place[size * size :]
    try:
        found: Any = stage_from(V, v, kind=kind)
    except (np.linalg.LinAlgError, ParameterError):
        return None
    return found if isinstance(found, Stage) else None
