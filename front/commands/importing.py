"""``trilift import``: other people's factors as a certified artifact."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["NAME", "command"]

NAME = "import"


def command(
    files: Annotated[
        list[Path], typer.Argument(help="R.npy, or L.npy and R.npy, or an .npz with the arrays L and R.")
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Artifact to write, a new .npz file.")],
    objective: Annotated[str, typer.Option(help="max or mean: which squared error it is for.")] = "max",
    kind: Annotated[
        str, typer.Option(help="direct: a top, as the factors are; stage: a level that can be repeated.")
    ] = "direct",
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Complete factors of the prefix sums, L R = T, to exact numbers, prove them and write an artifact.

    R needs as many rows as columns, or more, and full column rank. A pair whose product is exactly T is taken
    as it is; otherwise L is found anew from R, and the given one only has to fit.

    Exit code 0: written; 1: L R is not T, or completing it loses too much; 2: a file cannot be read.
    """
    from trilift.arguments import new_file
    from trilift.artifacts import Provenance, save
    from trilift.lift.checks import choice
    from trilift.lift.errors import ArtifactFormatError, ParameterError
    from trilift.matrices import read_factors
    from trilift.output import note, print_json, print_pairs
    from trilift.verify import from_factors

    if out.suffix != ".npz":
        raise ParameterError(f"--out must end in .npz, got {out}")
    new_file("--out", out)
    choice("objective", objective, ("max", "mean"))
    choice("kind", kind, ("direct", "stage"))
    before = [_sha256(path) for path in files]
    left, right = read_factors(files)
    for path, known in zip(files, before, strict=True):
        if _sha256(path) != known:
            raise ArtifactFormatError(f"{path}: changed while it was read")
    provenance = Provenance(
        objective=objective,
        size=right.shape[1],
        date=datetime.now(UTC).date().isoformat(),
        method="imported factors",
        notes="; ".join(
            f"{path.name[:80]} sha256 {known}" for path, known in zip(files, before, strict=True)
        ),
    )
    artifact = from_factors(right, left=left, objective=objective, kind=kind, provenance=provenance)
    save(artifact, out)
    record = {"name": artifact.name, "path": str(out), "inner": artifact.stage.inner}
    record |= artifact.certificate.summary()
    if json:
        print_json(record)
        return
    print_pairs({name: str(value) for name, value in record.items() if value is not None})
    note(f"Certified. {out} goes straight into trilift certify, inspect, plan --artifact and count --chain.")


def _sha256(path: Path) -> str:
    """Return the hash of a file, "" where reading it will be refused."""
    from trilift.lift.files import open_regular
    from trilift.matrices import MAX_BYTES

    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > MAX_BYTES:
                return ""
            digest = hashlib.sha256()
            while chunk := file.read(1 << 20):
                digest.update(chunk)
            return digest.hexdigest()
    except OSError:
        return ""
