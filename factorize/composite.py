"""Composite starts: a stage of size m1 m2 from a fine and a coarse one (new).

What a fine stage beneath a coarse one does, written as one right factor. Position (j, i), i of the fine and j
of the coarse stage, gets the column

    B column (j, i) = [ e_j x B1_i / s1 ; ((1 - v1_i) B2_j + v1_i B2_{j+1}) / s2 ],
    v = (1 - v1_i) v2_j + v1_i v2_{j+1},     w = (1 - w1_i) w2_{j-1} + w1_i w2_j,

with B2, v2 = 0, 1 past the last position and w2 = 0 before the first. The scales s1, s2 are the best for the
costs of the two levels, with 1/s1 + 1/s2 = 1, so that B's columns have l1 norms of at most 1.

Why this is a good start. For v1 = 0 the identity T_{m1 m2} = A' B + w (1 - v)^T holds with the chain's own
left factor A' (:mod:`trilift.lift.compose`), whose rows are

    [e_j x s1 A1_i | s2 ((1 - w1_i) A2_{j-1} + w1_i A2_j)].

Local rows of different blocks are orthogonal and blends are no longer than what they blend, so by the choice
of scales cost^(2/3) <= cost1^(2/3) + cost2^(2/3). The pseudo-inverse gives the shortest rows of all left
factors of the same B, v and w: the composite costs no more than the chain, and as a rule less, because
A = Y B^+ also uses the fine measurements of other blocks to average out the coarse ones (B has more rows than
columns, so there is something to average). For v1 > 0 the columns of the last coarse position would reach
into the next coarse block. That part is left out, and A = Y B^+ mends the difference exactly; it concerns the
last m1 of m1 m2 columns, and costs the less the larger m2 is (1 % in kappa for 9 x 9). Either way the result
is a valid stage, of which most entries of B are zero, and its entries can then be moved jointly
(:mod:`trilift.factorize.joint`), which a chain cannot do.
"""

from __future__ import annotations

import numpy as np
from trilift.factorize.joint_objective import stage_at
from trilift.factorize.support import used_rows
from trilift.lift.budget import best_scales
from trilift.lift.checks import choice, fail
from trilift.lift.errors import ParameterError
from trilift.lift.interior import interior_row_norms_sq, interior_sensitivity
from trilift.lift.stage import FloatArray, Stage

__all__ = ["composite_start"]


def composite_start(fine: Stage, coarse: Stage, *coarser: Stage, objective: str = "mean") -> Stage:
    """Return the float stage of size m1 m2 that starts a joint search where a chain ends.

    Args:
        fine: the lowest level, of size m1, exact or float.
        coarse: the level above it, of size m2.
        coarser: more levels above; the composite is then made from the top downwards.
        objective: "max" or "mean": the cost that the levels' scales are chosen for.

    Returns:
        A stage with a rectangular, mostly zero B (r1 m2 + r2 rows) and sensitivity at most 1.

    Raises:
        ParameterError: not stages (a plain factorisation has no weights to build on), or a B of the
            composite that lacks full column rank.

    >>> import numpy as np
    >>> pair = Stage(np.diag([1.0, 0.0]), np.eye(2), np.array([0.0, 1.0]), np.zeros(2))
    >>> composite_start(pair, pair).B.shape
    (6, 4)
    """
    choice("objective", objective, ("max", "mean"))
    levels = (fine, coarse, *coarser)
    for level in levels:
        if not isinstance(level, Stage):
            raise fail("every level", "a Stage", level)
        if level.is_plain:
            raise ParameterError("a plain factorisation (w = 0 and g = 0) is no level of a composite")
    *lower, result = (level.to_float() for level in levels)
    for level in reversed(lower):
        result = _pair(level, result, objective)
    return result


def _pair(fine: Stage, coarse: Stage, objective: str) -> Stage:
    s1, s2 = _scales(fine, coarse, objective)
    v1, v2 = np.clip(fine.v, 0.0, 1.0), np.clip(coarse.v, 0.0, 1.0)
    after = np.append(coarse.B[:, 1:], np.zeros((coarse.inner, 1)), axis=1)
    blended = _blend(coarse.B.T, after.T, v1).T
    B = np.concatenate([np.kron(np.eye(coarse.size), fine.B) / s1, blended / s2])
    v = _blend(v2[:, None], np.append(v2[1:], 1.0)[:, None], v1)[:, 0]
    w_before = np.append(0.0, coarse.w[:-1])
    w = _blend(w_before[:, None], coarse.w[:, None], fine.w)[:, 0]
    try:
        return stage_at(used_rows(B), np.clip(v, 0.0, 1.0), np.clip(w, 0.0, 1.0))
    except (np.linalg.LinAlgError, ParameterError):
        raise ParameterError("the composite's B has not full column rank") from None


def _blend(here: FloatArray, there: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the rows (j, i) = (1 - weights_i) here_j + weights_i there_j."""
    rows = here[:, None, :] * (1.0 - weights)[None, :, None] + there[:, None, :] * weights[None, :, None]
    return np.asarray(rows.reshape(-1, here.shape[1]))


def _scales(fine: Stage, coarse: Stage, objective: str) -> FloatArray:
    """Return the scales of the two levels that are best for their costs in a chain."""
    inner = interior_row_norms_sq(coarse, below=fine)
    q = [fine.row_norms_sq(), inner]
    charges = [fine.sensitivity(), interior_sensitivity(coarse, below=fine)]
    return best_scales(charges, [part.max() if objective == "max" else part.mean() for part in q])
