"""Checkpoints: one .npz file, written atomically, read without pickle and checked before use."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from trilift.artifacts import arrays
from trilift.factorize.settings import Settings
from trilift.factorize.state import State
from trilift.lift.checks import fail, show
from trilift.lift.errors import ArtifactFormatError, ParameterError
from trilift.lift.files import atomic_write
from trilift.lift.strict_json import parse_json

__all__ = ["checkpoint_path", "load_checkpoint", "read_arrays", "save_checkpoint", "write_arrays"]

_FORMAT = "trilift-search-1"
_ARRAYS = ("V", "v", "mu_V", "mu_v", "nu_V", "nu_v")


def checkpoint_path(checkpoint: Any, *, resume: bool) -> Path | None:
    """Return where a search keeps its checkpoint, or None, checked before anything is computed.

    Raises:
        ParameterError: not a path, no such folder, nothing to resume from, or a file that is there already
            and is not to be resumed.
    """
    if checkpoint is None:
        if resume:
            raise ParameterError("resume needs a checkpoint to resume from, got checkpoint None")
        return None
    if not isinstance(checkpoint, (str, Path)):
        raise fail("checkpoint", "a path or None", checkpoint)
    path = Path(checkpoint)
    if not path.parent.is_dir():
        raise ParameterError(f"checkpoint must lie in an existing folder, got {path}")
    if path.exists() and not resume:
        raise ParameterError(f"checkpoint {path} exists: resume from it, or remove it first")
    return path


def save_checkpoint(path: Path, settings: Settings, state: State) -> None:
    """Write the state so that the file at ``path`` is always a whole one, the old or the new."""
    meta = json.dumps({"format": _FORMAT, "step": state.step, "seconds": state.seconds})
    history = np.array(state.history, dtype=np.float64).reshape(-1, 2)
    write_arrays(
        path,
        meta=np.array(meta),
        settings=np.array(settings.as_json()),
        best_V=state.best_V,
        best_v=state.best_v,
        best_cost=np.float64(state.best_cost),
        history=history,
        **state.arrays,
    )


def write_arrays(path: Path, **parts: Any) -> None:
    """Write arrays by name into an .npz file that appears whole or not at all."""
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **parts)
    atomic_write(path, packed.getvalue())


def read_arrays(path: Path) -> dict[str, Any]:
    """Read all arrays of an .npz file, without pickle.

    Raises:
        ParameterError: there is no such file.
        ArtifactFormatError: it cannot be read.
    """
    try:
        return arrays.read_arrays(path)
    except FileNotFoundError:
        raise ParameterError(f"checkpoint {path} does not exist") from None
    except ArtifactFormatError as error:
        raise ArtifactFormatError(f"checkpoint {path} cannot be read: {error}") from None


def _shapes(settings: Settings) -> dict[str, tuple[int, ...]]:
    s, m = settings.starts, settings.size
    shapes: dict[str, tuple[int, ...]] = {"best_V": (m, m), "best_v": (m,), "best_cost": ()}
    return shapes | {name: (s, m, m) if name.endswith("V") else (s, m) for name in _ARRAYS}


def load_checkpoint(path: Path, settings: Settings) -> State:
    """Read a checkpoint of the search with exactly these settings.

    Raises:
        ParameterError: there is no such file, or it belongs to a search with other settings.
        ArtifactFormatError: the file is damaged or not a checkpoint.
    """
    data = read_arrays(path)
    try:
        meta = parse_json(str(data["meta"]))
        step, seconds = meta["step"], float(meta["seconds"])
        known = meta["format"] == _FORMAT and type(step) is int and 0 <= step <= settings.steps
        stored = str(data["settings"])
        shapes = {name: data[name].shape for name in _shapes(settings)}
        doubles = all(data[name].dtype == np.float64 for name in (*shapes, "history"))
        history = [(int(at), float(kappa)) for at, kappa in data["history"]]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ArtifactFormatError(f"checkpoint {path} is not a search checkpoint: {show(error)}") from None
    if stored != settings.as_json():
        raise ParameterError(f"checkpoint {path} belongs to another search: {stored[:400]!a}")
    best = float(data["best_cost"])
    sound = shapes == _shapes(settings) and doubles and best > 0
    if np.isfinite(best):
        sound = sound and bool(np.isfinite(data["best_V"]).all() and np.isfinite(data["best_v"]).all())
    if not (known and sound):
        raise ArtifactFormatError(f"checkpoint {path} is damaged")
    parts = {name: data[name] for name in _ARRAYS}
    return State(step, parts, data["best_V"], data["best_v"], best, history, seconds)
