"""The dense factors of an artifact lifted to a small horizon: for pictures and for export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trilift.artifacts import Artifact

__all__ = ["MAX_HORIZON", "lifted_factors"]

MAX_HORIZON = 2048


def lifted_factors(artifact: Artifact, *, horizon: int) -> tuple[Any, Any, str]:
    """Return L and R of ``horizon`` steps, with levels scaled as the objective wants, and what they are.

    A stage is lifted by the smallest shipped top that reaches, a plain factorisation cut down to its first
    steps.

    Args:
        artifact: of either kind.
        horizon: number of steps n.

    Returns:
        L of shape (n, r), R of shape (r, n), both float64, and the names of the chain.

    Raises:
        ParameterError: a horizon that is not in 1..2048.
        HorizonError: a plain factorisation of fewer steps.
    """
    from trilift.artifacts import catalogue, load_stage
    from trilift.lift import Chain, horizon_scales, materialise
    from trilift.lift.checks import integer

    integer("horizon", horizon, minimum=1, maximum=MAX_HORIZON)
    stage, objective = artifact.stage, artifact.certificate.objective
    if stage.is_plain:
        names, chain = [artifact.name], Chain(stage)
    else:
        entries = [entry for entry in catalogue() if entry.source == "shipped"]
        tops = [e for e in entries if e.kind == "direct" and e.objective == objective]
        levels, need = [stage], -(-(horizon - stage.tail) // stage.size)
        while need > tops[-1].size:
            levels, need = [*levels, stage], -(-(need - stage.tail) // stage.size)
        top = next(entry for entry in tops if entry.size >= need)
        names, chain = [*[artifact.name] * len(levels), top.name], Chain(load_stage(top.name), levels)
    dense = materialise(chain.to_float(), horizon)
    L, R = dense.scaled(horizon_scales(chain, horizon, objective=objective))
    return L, R, " / ".join(names)
