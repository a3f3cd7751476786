"""The state of a joint search, as numbers that can be stored exactly, and its checkpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from trilift.factorize.checkpoint import read_arrays, write_arrays
from trilift.factorize.joint_settings import JointSettings
from trilift.lift.checks import show
from trilift.lift.errors import ArtifactFormatError, ParameterError
from trilift.lift.stage import FloatArray
from trilift.lift.strict_json import parse_json

__all__ = ["JointState", "load_joint_checkpoint", "save_joint_checkpoint"]

_FORMAT = "trilift-joint-search-1"
_ARRAYS = ("place", "first", "second", "best")


@dataclass
class JointState:
    """Where a joint search stands; places are x, v and w in one row (direct: x alone).

    Attributes:
        step: steps done.
        place: the current place.
        first, second: Adam's moments.
        best: the best place seen.
        best_cost: its exact cost (q at sensitivity 1), infinite while nothing finite was seen.
        start_cost: the exact cost of the start.
        history: (step, best kappa so far) after every chunk.
        seconds: time spent so far.
        lost: whether the search ran into NaN or infinity.
    """

    step: int
    place: FloatArray
    first: FloatArray
    second: FloatArray
    best: FloatArray
    best_cost: float
    start_cost: float
    history: list[tuple[int, float]] = field(default_factory=list)
    seconds: float = 0.0
    lost: bool = False


def save_joint_checkpoint(path: Path, settings: JointSettings, state: JointState) -> None:
    """Write the state so that the file at ``path`` is always a whole one, the old or the new."""
    meta = {"format": _FORMAT, "step": state.step, "seconds": state.seconds, "lost": state.lost}
    write_arrays(
        path,
        meta=np.array(json.dumps(meta)),
        settings=np.array(settings.as_json()),
        costs=np.array([state.best_cost, state.start_cost]),
        history=np.array(state.history, dtype=np.float64).reshape(-1, 2),
        **{name: getattr(state, name) for name in _ARRAYS},
    )


def load_joint_checkpoint(path: Path, settings: JointSettings) -> JointState:
    """Read a checkpoint of the joint search with exactly these settings.

    Raises:
        ParameterError: there is no such file, or it belongs to a search with other settings.
        ArtifactFormatError: the file is damaged or not a checkpoint.
    """
    data = read_arrays(path)
    length = settings.entries + (2 * settings.size if settings.kind == "stage" else 0)
    try:
        meta = parse_json(str(data["meta"]))
        step, seconds, lost = meta["step"], float(meta["seconds"]), meta["lost"]
        known = meta["format"] == _FORMAT and type(step) is int and 0 <= step <= settings.steps
        stored = str(data["settings"])
        sound = type(lost) is bool and data["costs"].shape == (2,)
        for name in _ARRAYS:
            sound = sound and data[name].shape == (length,) and data[name].dtype == np.float64
        best_cost, start_cost = (float(cost) for cost in data["costs"])
        history = [(int(at), float(kappa)) for at, kappa in data["history"]]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ArtifactFormatError(f"checkpoint {path} is not one of a joint search: {show(error)}") from None
    if stored != settings.as_json():
        raise ParameterError(f"checkpoint {path} belongs to another search: {stored[:400]!a}")
    if not (known and sound and best_cost > 0 and np.isfinite(data["best"]).all()):
        raise ArtifactFormatError(f"checkpoint {path} is damaged")
    arrays = {name: data[name] for name in _ARRAYS}
    return JointState(
        step=step,
        best_cost=best_cost,
        start_cost=start_cost,
        history=history,
        seconds=seconds,
        lost=lost,
        **arrays,
    )
