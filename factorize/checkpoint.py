"""Checkpoints: one .npz file, written atomically, read without pickle and checked before use."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from trilift.factorize.settings import Settings
from trilift.factorize.state import State
from trilift.lift.errors import ArtifactFormatError, ParameterError

__all__ = ["load_checkpoint", "save_checkpoint"]

_FORMAT = "trilift-search-1"
_ARRAYS = ("V", "v", "mu_V", "mu_v", "nu_V", "nu_v")


def save_checkpoint(path: Path, settings: Settings, state: State) -> None:
    """Write the state so that the file at ``path`` is always a whole one, the old or the new."""
    meta = json.dumps({"format": _FORMAT, "step": state.step, "seconds": state.seconds})
    history = np.array(state.history, dtype=np.float64).reshape(-1, 2)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(
                file,
                allow_pickle=False,
                meta=np.array(meta),
                settings=np.array(settings.as_json()),
                best_V=state.best_V,
                best_v=state.best_v,
                best_cost=np.float64(state.best_cost),
                history=history,
                **state.arrays,
            )
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the renaming itself durable, where the system can (it is not a failure where it cannot)."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def _read(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise ParameterError(f"checkpoint {path} does not exist") from None
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
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
    data = _read(path)
    try:
        meta = json.loads(str(data["meta"]))
        step, seconds = meta["step"], float(meta["seconds"])
        known = meta["format"] == _FORMAT and type(step) is int and 0 <= step <= settings.steps
        stored = str(data["settings"])
        shapes = {name: data[name].shape for name in _shapes(settings)}
        doubles = all(data[name].dtype == np.float64 for name in (*shapes, "history"))
        history = [(int(at), float(kappa)) for at, kappa in data["history"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactFormatError(f"checkpoint {path} is not a search checkpoint: {error}") from None
    if stored != settings.as_json():
        raise ParameterError(f"checkpoint {path} belongs to another search: {stored}")
    best = float(data["best_cost"])
    sound = shapes == _shapes(settings) and doubles and best > 0
    if np.isfinite(best):
        sound = sound and bool(np.isfinite(data["best_V"]).all() and np.isfinite(data["best_v"]).all())
    if not (known and sound):
        raise ArtifactFormatError(f"checkpoint {path} is damaged")
    arrays = {name: data[name] for name in _ARRAYS}
    return State(step, arrays, data["best_V"], data["best_v"], best, history, seconds)
