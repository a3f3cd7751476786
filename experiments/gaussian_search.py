"""Search, certify and file the shipped artifacts for Gaussian noise.

    python -m trilift.experiments.gaussian_search stage-33 direct-64 ... --target artifacts/l2 --raw DIRECTORY

For every kind and size the mean is searched from the identity, then the maximum from that solution. Float
results are kept in the raw folder, from which an interrupted run goes on. A file that is there already is
kept when its gamma is as small. At last ``index.json`` is rewritten.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from trilift.artifacts import L2Artifact, Provenance, load_l2, save_l2
from trilift.factorize import search_l2_direct, search_l2_stage
from trilift.lift import Stage
from trilift.verify import DEFAULT, from_l2_search
from trilift.verify.l2_build import write_l2_index

__all__ = ["build", "main"]

_NAME = re.compile(r"(stage|direct)-([0-9]+)")
_LARGE = 600  # from here on fewer iterations: each takes seconds


def build(kind: str, size: int, *, raw: Path, target: Path) -> list[tuple[str, float, bool]]:
    """Search and file both objectives of one kind and size; return (name, gamma, written) of each."""
    done: list[tuple[str, float, bool]] = []
    stage: Stage | None = None
    for objective in ("mean", "max"):
        stage, record = _found(kind, size, objective, stage, raw)
        provenance = _provenance(record, objective=objective, size=size)
        artifact = from_l2_search(_adapted(stage, objective), objective=objective, provenance=provenance)
        path = target / f"{artifact.name}.npz"
        written = not path.exists() or _gamma(artifact) < _gamma(load_l2(path))
        if written:
            save_l2(artifact, path)
        done.append((artifact.name, _gamma(artifact), written))
    return done


def _gamma(artifact: L2Artifact) -> float:
    claims = artifact.certificate
    return claims.gamma_max if claims.objective == "max" else claims.gamma_mean


def _found(
    kind: str, size: int, objective: str, initial: Stage | None, raw: Path
) -> tuple[Stage, dict[str, Any]]:
    """Return the float stage of a search and its record, from the raw folder where it is there."""
    path = raw / f"{kind}_{objective}_{size}.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as arrays:
            stage = Stage(*(arrays[name] for name in "ABwg"))
            return stage, json.loads(str(arrays["record"])) if "record" in arrays else {}
    search = search_l2_stage if kind == "stage" else search_l2_direct
    result = search(size, objective=objective, initial=initial, steps=1500 if size < _LARGE else 400)
    record = {"settings": result.settings.as_json(), "steps": result.steps, "seconds": result.seconds}
    stage = result.stage
    np.savez(path, A=stage.A, B=stage.B, w=stage.w, g=stage.g, record=np.array(json.dumps(record)))
    return stage, record


def _adapted(stage: Stage, objective: str) -> Stage:
    """Return the stage with v rounded to what is stored, and B moved to suit it."""
    if stage.is_plain:
        return stage
    steps = 300 if stage.size < _LARGE else 30
    return search_l2_stage(
        stage.size, objective=objective, initial=stage, weight_bits=DEFAULT.v, steps=steps
    ).stage


def _provenance(record: dict[str, Any], *, objective: str, size: int) -> Provenance:
    way = "L-BFGS through B^T B from the identity" if objective == "mean" else "L-BFGS from the mean solution"
    return Provenance(
        objective=objective,
        size=size,
        seed=record.get("settings", {}).get("seed", 0),
        steps=record.get("steps"),
        versions={name: version(name) for name in ("numpy", "scipy")},
        date=datetime.now(UTC).date().isoformat(),
        method=f"{way}, l2 norm",
    )


def main(arguments: list[str] | None = None) -> int:
    """Search and file what the command line names; return the exit status."""
    parser = argparse.ArgumentParser(description="Search and certify artifacts for Gaussian noise.")
    parser.add_argument("names", nargs="+", metavar="KIND-SIZE")
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--raw", type=Path, required=True)
    options = parser.parse_args(arguments)
    for name in options.names:
        match = _NAME.fullmatch(name)
        if match is None:
            parser.error(f"{name}: neither stage-SIZE nor direct-SIZE")
        for filed, gamma, written in build(match[1], int(match[2]), raw=options.raw, target=options.target):
            print(f"{filed}: gamma {gamma:.6f}, {'written' if written else 'kept'}", flush=True)
    write_l2_index(options.target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
