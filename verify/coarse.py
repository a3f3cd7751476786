"""Choosing the coarse binary places of v, so that rounding it costs as little as possible (new)."""

from __future__ import annotations

import numpy as np
from trilift.lift.stage import FloatArray

__all__ = ["coarse_weights"]

_MOVES = 1000
_WORK = 20_000_000  # entries of the tables of one descent: fewer moves for large sizes
_POWERS = (300.0, 3000.0, 30000.0)  # of power means that stand for the maximum, which has plateaus


def coarse_weights(v: FloatArray, inverse: FloatArray, *, places: int, objective: str) -> FloatArray:
    """Return v on the lattice 2**-places, near the given one, with a low squared error for this B.

    There are two starts: every entry rounded to the nearest, and the entries rounded one after the other so
    that g^T = v^T B^-1 changes little (Babai's nearest plane: for an ill-conditioned B the nearest entries
    are not a near point). Then single entries move by one lattice step, each time the best move, until none
    helps. All 2m moves are valued together: every q_i is a quadratic in v.

    Args:
        v: shape (m,), entries in [0, 1].
        inverse: B^-1, shape (m, m).
        places: binary places.
        objective: "max" or "mean" of the q_i.
    """
    unit = 0.5**places
    quadratics = _Quadratics(inverse)
    powers = (1.0,) if objective == "mean" else _POWERS
    found = []
    for start in (np.floor(v / unit + 0.5) * unit, _nearest_plane(v, inverse, unit)):
        here = start
        found.append(here)
        for power in powers:
            here = _descend(here, quadratics, unit, power=power)
            found.append(here)
    q = quadratics.q(np.array(found))
    values = q.mean(axis=1) if objective == "mean" else q.max(axis=1)
    return found[int(np.argmin(values))]


def _nearest_plane(v: FloatArray, inverse: FloatArray, unit: float) -> FloatArray:
    """Return the lattice point of Babai's algorithm: |(x - v) B^-1| is small, entry by entry."""
    R = np.asarray(np.linalg.qr(inverse.T)[1])
    x, top = np.zeros(len(v)), round(1.0 / unit)
    for k in reversed(range(len(v))):
        ahead = R[k, k + 1 :] @ (v - x)[k + 1 :] / R[k, k]
        x[k] = unit * min(max(np.floor((v[k] + ahead) / unit + 0.5), 0), top)
    return x


def _descend(best: FloatArray, quadratics: _Quadratics, unit: float, *, power: float) -> FloatArray:
    value = _power_mean(quadratics.q(best[None, :]), power)[0]
    for _ in range(min(_MOVES, _WORK // (2 * len(best) ** 2))):
        values = _power_mean(quadratics.q_of_moves(best, unit), power)
        # the first half steps up, the second half down; [0, 1] is not left
        values[np.concatenate([best > 1.0 - unit / 2, best < unit / 2])] = np.inf
        move = int(np.argmin(values))
        if not values[move] < value * (1.0 - 1e-9):
            break
        best, value = best.copy(), values[move]
        best[move % len(best)] += unit if move < len(best) else -unit
    return best


def _power_mean(q: FloatArray, power: float) -> FloatArray:
    top = np.maximum(q.max(axis=1), 1e-300)
    return np.asarray(top * ((q / top[:, None]) ** power).mean(axis=1) ** (1 / power))


class _Quadratics:
    """The q_i of the best w, for many v at once."""

    def __init__(self, inverse: FloatArray) -> None:
        L = np.cumsum(inverse, axis=0)
        self._inverse, self._L = inverse, L
        self._own = (L**2).sum(axis=1)
        self._by_v = L @ inverse.T  # L g, with g = inverse^T v
        self._squares = (inverse**2).sum(axis=1)
        self._last = L @ L[-1]

    def q(self, v: FloatArray) -> FloatArray:
        """Return the q_i for every row of v: shape (k, m) in, (k, m) out."""
        g = v @ self._inverse
        return self._q((g**2).sum(axis=1), g @ self._L.T)

    def q_of_moves(self, v: FloatArray, unit: float) -> FloatArray:
        """Return the q_i after each move of one entry up or down by ``unit``: shape (m,) in, (2m, m) out."""
        g = v @ self._inverse
        slope = 2.0 * unit * (self._inverse @ g)
        squares = g @ g + unit**2 * self._squares
        along, change = self._L @ g, unit * self._by_v.T
        return self._q(
            np.concatenate([squares + slope, squares - slope]),
            np.concatenate([along + change, along - change]),
        )

    def _q(self, gg: FloatArray, along_g: FloatArray) -> FloatArray:
        """Return the q_i from |g|^2, shape (k,), and L g, shape (k, m)."""
        gg = gg[:, None]
        dd = self._last[-1] - 2.0 * along_g[:, -1:] + gg
        along = self._last - along_g
        w = np.clip((along + gg) / np.maximum(dd + gg, 1e-300), 0.0, 1.0)
        return np.asarray(self._own - 2 * w * along + w**2 * dd + (1 - w) ** 2 * gg)
