"""The books of a run: what it has come to after every round, in one file that is whole at any moment."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from trilift.artifacts import arrays
from trilift.factorize.checkpoint import read_arrays, write_arrays
from trilift.lift.checks import show
from trilift.lift.errors import ArtifactFormatError, ParameterError
from trilift.lift.stage import Stage
from trilift.lift.strict_json import parse_json

__all__ = ["BOOKS", "Books", "load_books", "pack_stage", "save_books", "unpack_stage"]

BOOKS = "run.npz"
_FORMAT = "trilift-run-1"


@dataclass
class Books:
    """Where a run stands.

    Attributes:
        phase, round: what is to be done next, both from 0.
        status: "running", "interrupted", "out of time", "diverged" or "finished".
        seconds: time spent, over all resumed parts.
        now: the stage that the next round goes on from.
        best: the best stage of the job's size by the job's measure.
        best_kappa: its kappa, infinite without one.
        best_rounds: how many records of the lineage led to it.
        kept: stages that later composites are made of, by the numbers of their phases.
        lineage: how the stages were found, one record for every round that gained.
    """

    phase: int = 0
    round: int = 0
    status: str = "running"
    seconds: float = 0.0
    now: Stage | None = None
    best: Stage | None = None
    best_kappa: float = float("inf")
    best_rounds: int = 0
    kept: dict[int, Stage] = field(default_factory=dict)
    lineage: list[dict[str, Any]] = field(default_factory=list)

    @property
    def place(self) -> tuple[int, int]:
        """What is next, for comparing."""
        return (self.phase, self.round)


def save_books(path: Path, books: Books) -> None:
    """Write the books; the file at ``path`` is always a whole one."""
    stages = {"now": books.now, "best": books.best} | {f"kept{n}": stage for n, stage in books.kept.items()}
    meta = {
        "format": _FORMAT,
        "phase": books.phase,
        "round": books.round,
        "status": books.status,
        "seconds": books.seconds,
        "stages": [name for name, stage in stages.items() if stage is not None],
        "best_rounds": books.best_rounds,
        "lineage": books.lineage,
    }
    parts: dict[str, Any] = {"meta": np.array(json.dumps(meta)), "best_kappa": np.float64(books.best_kappa)}
    for name, stage in stages.items():
        if stage is not None:
            parts |= {f"{name}_{part}": getattr(stage, part) for part in "ABwg"}
    write_arrays(path, **parts)


def load_books(source: Path | bytes) -> Books:
    """Read the books from a file or from its contents.

    Raises:
        ParameterError: there is no such file.
        ArtifactFormatError: it is damaged, or something else.
    """
    data = arrays.read_arrays(io.BytesIO(source)) if isinstance(source, bytes) else read_arrays(source)
    try:
        meta = parse_json(str(data["meta"]))
        if meta["format"] != _FORMAT:
            raise ValueError("another format")
        stages = {name: Stage(*(data[f"{name}_{part}"] for part in "ABwg")) for name in meta["stages"]}
        kept = {int(name[4:]): stage for name, stage in stages.items() if name.startswith("kept")}
        return Books(
            phase=int(meta["phase"]),
            round=int(meta["round"]),
            status=str(meta["status"]),
            seconds=float(meta["seconds"]),
            now=stages.get("now"),
            best=stages.get("best"),
            best_kappa=float(data["best_kappa"]),
            best_rounds=int(meta["best_rounds"]),
            kept=kept,
            lineage=list(meta["lineage"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, ParameterError) as error:
        raise ArtifactFormatError(f"{BOOKS} of the run is damaged: {show(error)}") from None


def pack_stage(stage: Stage | None, lineage: dict[str, Any]) -> bytes:
    """Return a stage and how it was found as bytes, exactly.

    Raises:
        ParameterError: there is no stage.
    """
    if stage is None:
        raise ParameterError("there is no stage to hand on")
    file = io.BytesIO()
    parts = {part: getattr(stage, part) for part in "ABwg"}
    np.savez(file, allow_pickle=False, lineage=np.array(json.dumps(lineage)), **parts)
    return file.getvalue()


def unpack_stage(data: bytes) -> tuple[Stage, dict[str, Any]]:
    """Return what :func:`pack_stage` was given."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        lineage: dict[str, Any] = json.loads(str(file["lineage"]))
        return Stage(*(file[part] for part in "ABwg")), lineage
