"""``trilift inspect``: norms, sparsity, provenance and a picture of an artifact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from trilift.artifacts import Artifact
    from trilift.lift import Stage

__all__ = ["NAME", "command"]

NAME = "inspect"

_MAX_PICTURE = 2048


def command(
    file: Annotated[str, typer.Argument(help="An artifact file, or a name of the catalogue.")],
    *,
    png: Annotated[Path | None, typer.Option(help="Draw L and R into this PNG file.")] = None,
    horizon: Annotated[
        int | None,
        typer.Option("--horizon", "-n", help="Draw the factors of this many steps, not the artifact's own."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Show an artifact: norms, sparsity, kappas, how it was found; with --png, L and R as heat maps.

    With --horizon a stage is drawn lifted by the smallest shipped top that reaches, and a plain factorisation
    cut down to its first steps.
    """
    from trilift.arguments import artifact_path
    from trilift.artifacts import load
    from trilift.lift.checks import integer
    from trilift.lift.errors import ParameterError
    from trilift.output import note, print_json, print_pairs

    if horizon is not None:
        integer("horizon", horizon, minimum=1, maximum=_MAX_PICTURE)
        if png is None:
            raise ParameterError("--horizon is about the picture: name its file with --png")
    artifact = load(artifact_path(file))
    record = _record(artifact)
    if png is not None:
        _draw(artifact, png, horizon)
        note(f"Drawn: {png}")
    if json:
        print_json(record)
        return
    provenance = record.pop("provenance")
    print_pairs({name: _shown(value) for name, value in record.items() if value is not None})
    print_pairs(
        {f"found: {name}": _shown(value) for name, value in provenance.items() if value not in (None, "", {})}
    )


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {text}" for name, text in value.items())
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _record(artifact: Artifact) -> dict[str, Any]:
    """Return the figures of an artifact; floats are rounded up where they are claims of the certificate."""
    from trilift.verify import float_up

    claims, stage = artifact.certificate, artifact.stage
    return {
        "name": artifact.name,
        "kind": claims.kind,
        "size": stage.size,
        "inner": stage.inner,
        "tail": stage.tail,
        "one_sided": bool(stage.one_sided),
        "objective": claims.objective,
        "sensitivity": float_up(claims.sensitivity),
        "max_row_norm_sq": float_up(claims.max_row_norm_sq),
        "mean_row_norm_sq": float_up(claims.mean_row_norm_sq),
        "kappa_max": claims.kappa_max,
        "kappa_mean": claims.kappa_mean,
        "interior_kappa_max": claims.interior_kappa_max,
        "interior_kappa_mean": claims.interior_kappa_mean,
        **_sparsity(stage),
        "sha256": claims.sha256,
        "provenance": artifact.provenance.to_json(),
    }


def _sparsity(stage: Stage) -> dict[str, float]:
    """Return the shares of entries that are not zero."""
    import numpy as np

    return {f"nonzero_{name}": float(np.mean(getattr(stage, name).num != 0)) for name in ("A", "B", "w", "g")}


def _draw(artifact: Artifact, png: Path, horizon: int | None) -> None:
    from trilift.pictures import draw_factors

    stage = artifact.stage.to_float()
    name = artifact.name
    if horizon is None:
        title = f"{name}: T = A B" if stage.is_plain else f"{name}: T = A B + w (1 - v)ᵀ"
        return draw_factors(stage.A, stage.B, png, names=("A", "B"), title=title)
    L, R, what = _lifted(artifact, horizon)
    return draw_factors(L, R, png, names=("L", "R"), title=f"{what}: T = L R for {horizon} steps")


def _lifted(artifact: Artifact, horizon: int) -> tuple[Any, Any, str]:
    """Return L and R of ``horizon`` steps, with levels scaled as the objective wants, and what they are."""
    from trilift.artifacts import catalogue, load_stage
    from trilift.lift import Chain, horizon_scales, materialise

    stage, objective = artifact.stage, artifact.certificate.objective
    if stage.is_plain:
        names, chain = [artifact.name], Chain(stage)
    else:
        tops = [
            e
            for e in catalogue()
            if e.kind == "direct" and e.objective == objective and e.source == "shipped"
        ]
        levels, need = [stage], -(-(horizon - stage.tail) // stage.size)
        while need > tops[-1].size:
            levels, need = [*levels, stage], -(-(need - stage.tail) // stage.size)
        top = next(entry for entry in tops if entry.size >= need)
        names, chain = [*[artifact.name] * len(levels), top.name], Chain(load_stage(top.name), levels)
    dense = materialise(chain.to_float(), horizon)
    L, R = dense.scaled(horizon_scales(chain, horizon, objective=objective))
    return L, R, " / ".join(names)
