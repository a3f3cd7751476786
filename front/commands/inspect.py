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


def command(
    file: Annotated[str, typer.Argument(help="An artifact file, or a name of the catalogue.")],
    *,
    png: Annotated[Path | None, typer.Option(help="Draw L and R into this new PNG file.")] = None,
    horizon: Annotated[
        str | None,
        typer.Option(
            "--horizon",
            "-n",
            metavar="N",
            help="Draw the factors of this many steps, not the artifact's own.",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a report into this new HTML file, which needs no other."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Show an artifact: norms, sparsity, kappas, how it was found; with --png, L and R as heat maps.

    With --horizon a stage is drawn lifted by the smallest shipped top that reaches, and a plain factorisation
    cut down to its first steps.
    """
    from trilift.arguments import artifact_path, new_file, whole
    from trilift.artifacts import load
    from trilift.artifacts.artifact import read_header
    from trilift.lift.checks import integer
    from trilift.lift.errors import ArtifactFormatError, ParameterError
    from trilift.lifted import MAX_HORIZON
    from trilift.output import note, one_line, print_json, print_pairs
    from trilift.verify import refutation

    steps = None if horizon is None else whole("horizon", horizon)
    if steps is not None:
        integer("horizon", steps, minimum=1, maximum=MAX_HORIZON)
        if png is None:
            raise ParameterError("--horizon is about the picture: name its file with --png")
    if png is not None:
        new_file("--png", png)
    if html is not None:
        from trilift.reports import can_report

        can_report(html)
    path = artifact_path(file)
    artifact = load(path)
    failure = refutation(path)
    if read_header(path)[1] != artifact.certificate:  # the numbers have the hash of what was loaded
        raise ArtifactFormatError(f"{path}: the file has just changed")
    record = _record(artifact, failure)
    if failure is not None:
        note(f"trilift: not verified: {one_line(failure)}")
    if png is not None:
        _draw(artifact, png, steps, proved=failure is None)
        note(f"Drawn: {png}")
    if html is not None:
        from trilift.reports import artifact_report, written

        written(artifact_report(artifact, record=record, failure=failure), html)
    if json:
        print_json(record)
        return
    provenance = record.pop("provenance")
    print_pairs({name: _shown(value) for name, value in record.items() if value is not None})
    print_pairs(
        {f"found: {name}": _shown(value) for name, value in provenance.items() if value not in (None, "", {})}
    )


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, dict):
        return ", ".join(f"{name} {text}" for name, text in value.items())
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _record(artifact: Artifact, failure: str | None) -> dict[str, Any]:
    """Return the figures of an artifact; floats are rounded up where they are claims of the certificate.

    Args:
        artifact: what was loaded.
        failure: why its claims do not stand, or None; where they do not, they are not repeated.
    """
    from trilift.verify import float_up

    claims, stage = artifact.certificate, artifact.stage
    norms = ("sensitivity", "max_row_norm_sq", "mean_row_norm_sq")
    summary = claims.summary()
    claimed = {name: float_up(getattr(claims, name)) for name in norms}
    claimed |= {name: value for name, value in summary.items() if "kappa" in name}
    return {
        "name": artifact.name,
        "kind": claims.kind,
        "size": stage.size,
        "inner": stage.inner,
        "tail": stage.tail,
        "one_sided": bool(stage.one_sided),
        "objective": claims.objective,
        "certified": failure is None,
        **(claimed if failure is None else dict.fromkeys(claimed)),
        **_sparsity(stage),
        "sha256": claims.sha256,
        "provenance": artifact.provenance.to_json(),
    }


def _sparsity(stage: Stage) -> dict[str, float]:
    """Return the shares of entries that are not zero."""
    import numpy as np

    return {f"nonzero_{name}": float(np.mean(getattr(stage, name).num != 0)) for name in ("A", "B", "w", "g")}


def _draw(artifact: Artifact, png: Path, horizon: int | None, *, proved: bool) -> None:
    from trilift.experiments.figures import save_png
    from trilift.factor_pictures import artifact_figure

    save_png(artifact_figure(artifact, horizon=horizon, proved=proved), png)
