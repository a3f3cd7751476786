"""``trilift export``: an artifact as plain numpy arrays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from trilift.lift import Dyadic, Stage

__all__ = ["NAME", "command"]

NAME = "export"


def command(
    artifact: Annotated[str, typer.Argument(help="An artifact file, or a name of the catalogue.")],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for .npy files, or a new .npz file for all of them.")
    ],
    horizon: Annotated[
        str | None,
        typer.Option(
            "--horizon", "-n", metavar="N", help="Write L and R of so many steps, lifted and scaled."
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Write the exact integers too: X = X_num / 2^X_exp.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Write an artifact as float64 arrays: L and R of a plain factorisation, A, B, w and g of a stage.

    Every number is rounded to the nearest float64, so that L R = T may hold up to rounding only: what is
    certified are the exact numbers. An artifact with a false claim is refused with exit code 1.
    """
    from trilift.arguments import artifact_path, whole
    from trilift.artifacts import load
    from trilift.lift.errors import ParameterError
    from trilift.lifted import lifted_factors
    from trilift.output import note, print_json, print_pairs
    from trilift.verify import require_proof

    if exact and horizon is not None:
        raise ParameterError("--exact is about the artifact's own numbers: leave --horizon out")
    path = artifact_path(artifact)
    loaded = load(path)
    require_proof(path)
    if horizon is None:
        arrays = _arrays(loaded.stage, exact=exact)
        rounded = any(_rounded(getattr(loaded.stage, name)) for name in "ABwg")
        residual = float(loaded.stage.to_float().residual())
    else:
        L, R, _ = lifted_factors(loaded, horizon=whole("horizon", horizon))
        arrays, rounded, residual = {"L": L, "R": R}, True, _residual(L, R)
    files = _write(arrays, out)
    record = {
        "name": loaded.name,
        "files": [str(file) for file in files],
        "shapes": {name: list(array.shape) for name, array in arrays.items()},
        "rounded": rounded,
        "residual": residual,
    }
    if json:
        print_json(record)
    else:
        print_pairs({name: _shown(value) for name, value in record.items()})
    if rounded:
        note(
            f"Rounded to float64: in floats, T is met up to {residual:.2g}. The certificate is about the "
            "exact numbers of the artifact, not about these."
        )


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {' x '.join(map(str, shape))}" for name, shape in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def _arrays(stage: Stage, *, exact: bool) -> dict[str, Any]:
    """Return the arrays to write by name."""
    import numpy as np
    from trilift.lift.errors import ParameterError

    parts = {"L": stage.A, "R": stage.B}
    if not stage.is_plain:
        parts = {name: getattr(stage, name) for name in "ABwg"}
    arrays: dict[str, Any] = {name: part.to_float() for name, part in parts.items()}
    for name, part in parts.items() if exact else ():
        least = part.normalized()
        if least.num.dtype == object:
            raise ParameterError(f"{name} has integers beyond 64 bits: take them from the artifact itself")
        arrays |= {f"{name}_num": least.num, f"{name}_exp": np.array([least.exp])}
    return arrays


def _rounded(part: Dyadic) -> bool:
    from trilift.lift import Dyadic

    return not Dyadic.exact(part.to_float()).equals(part)


def _residual(L: Any, R: Any) -> float:
    import numpy as np

    return float(np.abs(L @ R - np.tril(np.ones((len(L), len(L))))).max())


def _write(arrays: dict[str, Any], out: Path) -> list[Path]:
    """Write one archive, or one file an array into a folder; nothing that exists is written over."""
    import numpy as np
    from trilift.arguments import new_file

    if out.suffix == ".npz":
        np.savez_compressed(new_file("--out", out), **arrays)
        return [out]
    places = {name: out / f"{name}.npy" for name in arrays}
    if out.exists():
        for place in places.values():
            new_file("--out", place)
    out.mkdir(parents=True, exist_ok=True)
    for name, place in places.items():
        np.save(place, arrays[name], allow_pickle=False)
    return list(places.values())
