"""Choosing the coarse binary places of v, so that rounding it costs as little as possible (new)."""

from __future__ import annotations

import numpy as np
from trilift.lift.stage import FloatArray

__all__ = ["coarse_weights"]

_MOVES = 400
_POWERS = (300.0, 3000.0, 30000.0)  # of power means that stand for the maximum, which has plateaus


def coarse_weights(v: FloatArray, inverse: FloatArray, *, places: int, objective: str) -> FloatArray:
    """Return v on the lattice 2**-places, near the given one, with a low squared error for this B.

    From the nearest lattice point, single entries move by one lattice step, each time the best move, until
    none helps. All 2m moves are valued together: with g^T = v^T B^-1 every q_i is a quadratic in v.

    Args:
        v: shape (m,), entries in [0, 1].
        inverse: B^-1, shape (m, m).
        places: binary places.
        objective: "max" or "mean" of the q_i.
    """
    unit = 0.5**places
    start = np.floor(v / unit + 0.5) * unit
    quadratics = _Quadratics(inverse)
    if objective == "mean":
        return _descend(start, quadratics, unit, power=1.0)
    best = here = start
    for power in _POWERS:
        here = _descend(here, quadratics, unit, power=power)
        best = min(best, here, key=lambda point: float(quadratics.q(point[None, :]).max()))
    return best


def _descend(best: FloatArray, quadratics: _Quadratics, unit: float, *, power: float) -> FloatArray:
    value = _power_mean(quadratics.q(best[None, :]), power)[0]
    moves = unit * np.concatenate([np.eye(len(best)), -np.eye(len(best))])
    for _ in range(_MOVES):
        tried = best + moves
        allowed = np.all((tried >= 0.0) & (tried <= 1.0), axis=1)
        values = np.where(allowed, _power_mean(quadratics.q(tried), power), np.inf)
        k = int(np.argmin(values))
        if not values[k] < value * (1.0 - 1e-9):
            break
        best, value = tried[k], values[k]
    return best


def _power_mean(q: FloatArray, power: float) -> FloatArray:
    top = q.max(axis=1)
    return np.asarray(top * ((q / top[:, None]) ** power).mean(axis=1) ** (1 / power))


class _Quadratics:
    """The q_i of the best w, for many v at once."""

    def __init__(self, inverse: FloatArray) -> None:
        L = np.cumsum(inverse, axis=0)
        self._inverse = inverse
        self._L = L
        self._own = (L**2).sum(axis=1)

    def q(self, v: FloatArray) -> FloatArray:
        """Return the q_i for every row of v: shape (k, m) in, (k, m) out."""
        g = v @ self._inverse
        d = self._L[-1] - g
        gg, dd, along = (g**2).sum(axis=1)[:, None], (d**2).sum(axis=1)[:, None], d @ self._L.T
        w = np.clip((along + gg) / np.maximum(dd + gg, 1e-300), 0.0, 1.0)
        return np.asarray(self._own - 2 * w * along + w**2 * dd + (1 - w) ** 2 * gg)
