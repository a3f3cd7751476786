"""The picture of an artifact: its own arrays, or the factors that it gives for a number of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trilift.artifacts import Artifact

__all__ = ["artifact_figure"]


def artifact_figure(artifact: Artifact, *, horizon: int | None, proved: bool) -> Any:
    """Return a figure of A and B with the weights w and v of a stage, or with a horizon of L and R.

    Args:
        artifact: of either kind.
        horizon: number of steps, or None for the artifact's own arrays.
        proved: whether its claims stand; if not, the title says so.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ParameterError, HorizonError: a horizon that is too large.
    """
    from trilift.lifted import lifted_factors
    from trilift.pictures import factors_figure

    stage = artifact.stage.to_float()
    more = "" if proved else " (NOT verified)"
    if horizon is not None:
        L, R, what = lifted_factors(artifact, horizon=horizon)
        return factors_figure(L, R, names=("L", "R"), title=f"{what}{more}: T = L R for {horizon} steps")
    if stage.is_plain:
        return factors_figure(stage.A, stage.B, names=("A", "B"), title=f"{artifact.name}{more}: T = A B")
    title = f"{artifact.name}{more}: T = A B + w (1 - v)ᵀ"
    return factors_figure(stage.A, stage.B, names=("A", "B"), title=title, weights=(stage.w, stage.v))
