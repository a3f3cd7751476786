"""From a search result to a certified artifact, and from a folder of raw results to the shipped files (new).

    python -m trilift.verify.build RAW_DIRECTORY ARTIFACT_DIRECTORY

turns every ``{kind}_{objective}_{size}.npz`` of float arrays into a ``{kind}-{objective}-{size}.npz``. A file
that is there already is kept when it is at least as good. At last ``index.json`` is rewritten.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from trilift.artifacts.arrays import read_arrays
from trilift.artifacts.artifact import Artifact, Provenance, load, save
from trilift.artifacts.certificate import OBJECTIVES
from trilift.artifacts.listing import INDEX, index_record
from trilift.lift.checks import choice, flag, show
from trilift.lift.errors import ArtifactFormatError, CertificateError, ParameterError, TriliftError
from trilift.lift.files import atomic_write
from trilift.lift.interior import interior_row_norms_sq, interior_sensitivity
from trilift.lift.stage import Stage
from trilift.lift.strict_json import parse_json
from trilift.verify.certification import certify
from trilift.verify.completion import DEFAULT, Bits, complete, loss

__all__ = ["MAX_LOSS", "SearchResult", "build_folder", "from_search", "write_index"]

MAX_LOSS = 1e-4
_RAW_NAME = re.compile(r"(stage|direct)_(max|mean)_([0-9]+)\.npz")


class SearchResult(Protocol):
    """What is needed of a search's result: its best float stage, or None."""

    @property
    def stage(self) -> Stage | None:
        """The best stage seen; B has at least as many rows as columns."""


def from_search(
    result: SearchResult | Stage,
    *,
    objective: str,
    provenance: Provenance,
    bits: Bits = DEFAULT,
    interior: bool = False,
) -> Artifact:
    """Complete and certify the best stage of a search.

    Args:
        result: a search result, or its float stage, B of full column rank; A is recomputed, and w is the
            best one for B and g.
        objective: "max" or "mean".
        provenance: how it was found.
        bits: binary places to begin with; finer ones are taken where these lose too much.
        interior: the stage was searched for the interior cost: its w is kept, and the loss is measured there.

    Returns:
        The artifact; its name is ``artifact.name``.

    Raises:
        ParameterError: the search found no stage, or B has not full column rank, or nearly so.
        CertificateError: completion lost more than a relative 1e-4 in kappa.
    """
    choice("objective", objective, OBJECTIVES)
    flag("interior", interior)
    found = result if isinstance(result, Stage) else result.stage
    if found is None:
        raise ParameterError("the search found no finite stage, there is nothing to certify")
    found = found.to_float()
    plain = found.is_plain
    g = None if found.one_sided else found.g
    # an ill-conditioned B needs a finer w, which costs little, or a finer everything, which costs more
    ladder = (bits, replace(bits, w=bits.w + 8), replace(bits, w=bits.w + 8, v=bits.v + 4, B=bits.B + 4))
    for tried in ladder:
        if interior:  # the choice of v on its lattice is about the plain cost: the nearest one does as well
            stage = complete(found.B, g=g, w=found.w, bits=tried)
            lost = _interior_kappa(stage, objective) / _interior_kappa(found, objective) - 1.0
        else:
            stage = complete(found.B, g=g, bits=tried, plain=plain, objective=objective)
            lost = loss(stage, found, objective=objective)
        if lost < MAX_LOSS:
            break
    else:
        raise CertificateError(f"completion loses {lost:.2g} of kappa, more than {MAX_LOSS}")
    certificate = certify(stage, objective=objective, kind="direct" if plain else "stage")
    note = f"completed with a relative change in kappa of {lost:+.1e}"
    notes = "; ".join(text for text in (provenance.notes, note) if text)
    return Artifact(stage, certificate, replace(provenance, notes=notes))


def _interior_kappa(stage: Stage, objective: str) -> float:
    """Return the constant of the stage above itself, in floats and without the logarithms."""
    q = interior_row_norms_sq(stage.to_float())
    b = float(interior_sensitivity(stage.to_float()))
    return float(b * b * (q.max() if objective == "max" else q.mean()))


def build_folder(raw: Path, target: Path, *, report: Any = print) -> list[str]:
    """Build the artifacts of all raw results in a folder; return the names that were written.

    A file already there is kept when its kappa for its objective is at most that of the new one.
    """
    written = []
    for path in sorted(raw.iterdir()):
        match = _RAW_NAME.fullmatch(path.name)
        if match is None:
            continue
        name = f"{match[1]}-{match[2]}-{match[3]}"
        try:
            artifact = _from_raw(path, objective=match[2])
        except TriliftError as error:
            report(f"{name}: not built: {error}")
            continue
        place = target / f"{name}.npz"
        old = _kappa(load(place)) if place.exists() else np.inf
        new = _kappa(artifact)
        if new < old:
            save(artifact, place)
            written.append(name)
        report(f"{name}: kappa {new:.6f} {'written' if new < old else f'not better than {old:.6f}, kept'}")
    return written


def write_index(folder: Path) -> None:
    """Write ``index.json`` from the headers of the artifacts in a folder."""
    records = [index_record(path) for path in sorted(folder.glob("*.npz"))]
    atomic_write(folder / INDEX, (json.dumps(records, indent=1) + "\n").encode("ascii"))


def _kappa(artifact: Artifact) -> float:
    claims = artifact.certificate
    return claims.kappa_max if claims.objective == "max" else claims.kappa_mean


def _from_raw(path: Path, *, objective: str) -> Artifact:
    try:
        arrays = read_arrays(path)
        A, B, w, g = (np.asarray(arrays[name], dtype=np.float64) for name in "ABwg")
        record = parse_json(str(arrays.get("provenance", "{}")))
    except (ArtifactFormatError, KeyError, ValueError) as error:
        raise ArtifactFormatError(f"{path}: no raw result of a search: {show(error)}") from None
    record.setdefault("date", datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat())
    provenance = _provenance(record, objective=objective, size=len(B))
    return from_search(Stage(A, B, w, g), objective=objective, provenance=provenance)


def _provenance(record: dict[str, Any], *, objective: str, size: int) -> Provenance:
    """Sum up the lineage of a raw result: the last search, after those that it started from."""
    lineage = record.get("lineage") or [{}]
    last = lineage[-1]
    settings = last.get("settings", {})
    ways = " -> ".join(
        f"{step.get('way', 'search')} {step.get('settings', {}).get('objective', '')}".strip()
        for step in lineage
    )
    total = sum(int(step.get("steps", 0)) for step in lineage)
    return Provenance(
        objective=objective,
        size=size,
        seed=settings.get("seed"),
        steps=total or None,
        versions={str(name): str(version) for name, version in last.get("versions", {}).items()},
        date=str(record.get("date", "")),
        method=f"Adam search with annealed smoothing ({ways})",
        notes=f"seeds {[step.get('settings', {}).get('seed') for step in lineage]}",
    )


def main(arguments: list[str] | None = None) -> int:
    """Build artifacts from raw search results; return the exit status."""
    parser = argparse.ArgumentParser(description="Build certified artifacts from raw search results.")
    parser.add_argument("raw", type=Path)
    parser.add_argument("target", type=Path)
    options = parser.parse_args(arguments)
    try:
        build_folder(options.raw, options.target)
        write_index(options.target)
    except (TriliftError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
