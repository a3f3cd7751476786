"""The joint search of a plain factorisation of T_n, from a chain or from any right factor (new)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from trilift.factorize.joint import run_joint
from trilift.factorize.joint_settings import JointResult
from trilift.factorize.progress import Report
from trilift.factorize.schedule import Schedule
from trilift.factorize.support import THRESHOLD
from trilift.lift.budget import chain_cost
from trilift.lift.chain import Chain
from trilift.lift.checks import choice, integer, numeric_array
from trilift.lift.dense import materialise
from trilift.lift.errors import ParameterError
from trilift.lift.stage import FloatArray, Stage

__all__ = ["search_joint_direct"]

_UNUSED = 1e-9  # rows of R that no released step uses, or that no input reaches


def search_joint_direct(
    start: Chain | Stage | Any,
    *,
    objective: str,
    size: int | None = None,
    dilation: int = 0,
    threshold: float = THRESHOLD,
    seed: int = 0,
    spread: float = 0.0,
    steps: int | None = None,
    seconds: float | None = None,
    schedule: Schedule | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    progress: bool | Report | None = None,
) -> JointResult:
    """Move all entries of R on its support, L = T_n R^+, towards a smaller kappa of T_n itself.

    A chain at a horizon n is a factorisation L R = T_n whose R is mostly zero. Its left factor is far from
    the best one for that R, and its entries were searched level by level: the pseudo-inverse mends the
    first at once, and the search the second.

    Args:
        start: a chain, cut at ``size`` steps; a plain factorisation; or R itself, shape (r, n).
        objective: "max" or "mean" squared error.
        size: n, for a chain (default: its capacity); otherwise it must be the start's.

    The other arguments, the result and the errors are those of
    :func:`trilift.factorize.joint.search_joint_stage`; the result's stage is plain, with r >= n rows in B.
    """
    choice("objective", objective, ("max", "mean"))
    R = _right_factor(start, objective, size)
    nothing = np.zeros(R.shape[1])
    return run_joint(
        (R, nothing, nothing),
        kind="direct",
        objective=objective,
        interior=False,
        weight_range=(0.0, 1.0),
        dilation=dilation,
        threshold=threshold,
        seed=seed,
        spread=spread,
        steps=steps,
        seconds=seconds,
        schedule=schedule,
        weight_bits=None,
        checkpoint=checkpoint,
        resume=resume,
        progress=progress,
    )


def _right_factor(start: Any, objective: str, size: int | None) -> FloatArray:
    if isinstance(start, Chain):
        return _of_chain(start.to_float(), objective, start.capacity if size is None else size)
    if isinstance(start, Stage):
        if not start.is_plain:
            raise ParameterError("start must be a plain factorisation (w = 0 and g = 0) or a chain")
        start = start.to_float().B
    R = numeric_array("start", start, ndim=2).astype(np.float64)
    if size is not None and integer("size", size) != R.shape[1]:
        raise ParameterError(f"size must be the start's {R.shape[1]}, got {size}")
    return R


def _of_chain(chain: Chain, objective: str, size: int) -> FloatArray:
    """Return S^-1 R of the chain at its best scales, without the rows that no step needs."""
    n = chain.check_horizon(size)
    scales = chain_cost(chain, n, objective=objective).scales
    L, R = materialise(chain, n).scaled(scales)
    used = (np.abs(L).sum(axis=0) > _UNUSED) & (np.abs(R).sum(axis=1) > _UNUSED)
    return np.asarray(R[used])
