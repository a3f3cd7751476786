"""Warm starts: a stage to begin from, taken from wherever there is one (new)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from trilift.artifacts import find
from trilift.factorize.checkpoint import read_arrays
from trilift.lift.checks import fail, integer
from trilift.lift.errors import ArtifactFormatError, ParameterError
from trilift.lift.stage import Stage

__all__ = ["BEST", "Source", "enlarged", "load_float_stage", "warm_stage"]

Source = str | Path | Stage
"""A stage, the name of an artifact, or the path of an artifact, of a run's best.npz or of a run's folder."""

_REPAIR = 1e-8  # largest product of entries of a row that only repairs rounding

BEST = "best.npz"
"""The file of a run's folder that holds its best stage in floats."""


def load_float_stage(source: Source) -> Stage:
    """Return the float stage that ``source`` stands for, whatever its size and its number of rows.

    A certified artifact has the residuals of its factorisation as further rows of B: they are left out, and
    a search recomputes A.

    Raises:
        ParameterError: no artifact has that name, or there is no such file.
        ArtifactFormatError: the file is damaged.
    """
    if isinstance(source, Stage):
        return source.to_float()
    if not isinstance(source, (str, Path)) or not str(source):
        raise fail("warm_start", "a stage, the name of an artifact, or a path", source)
    path = Path(source)
    if path.is_dir():
        path /= BEST
    if path.suffix == ".npz" and path.exists():
        arrays = _floats(path)
        if arrays is not None:
            return arrays
    return _searched_rows(find(str(path) if path.suffix == ".npz" else str(source)).stage.to_float())


def _searched_rows(stage: Stage) -> Stage:
    """Leave out the rows of B that a certificate adds: they repair what rounding left, below 1e-8."""
    share = np.abs(stage.B).max(axis=1) * np.abs(stage.A).max(axis=0)
    kept = share > _REPAIR
    return Stage(stage.A[:, kept], stage.B[kept], stage.w, stage.g[kept])


def _floats(path: Path) -> Stage | None:
    """Read a file of float factors; None if it holds something else, such as a certified artifact."""
    arrays = read_arrays(path)
    if any(name not in arrays or arrays[name].dtype.kind != "f" for name in "ABwg"):
        return None  # a certified artifact keeps integers under the same names
    try:
        return Stage(*(arrays[name] for name in "ABwg"))
    except ParameterError as error:
        raise ArtifactFormatError(f"{path} does not hold a stage: {error}") from None


def warm_stage(source: Source, *, size: int) -> Stage:
    """Return a stage with a square B of ``size`` to start a search from.

    A smaller stage is enlarged, see :func:`enlarged`.

    Raises:
        ParameterError: the source is larger than ``size``, or its B is not square (as a joint search leaves
            it: such a stage can only be searched jointly); and as :func:`load_float_stage`.
        ArtifactFormatError: as :func:`load_float_stage`.
    """
    size = integer("size", size, minimum=2)
    stage = load_float_stage(source)
    m = stage.size
    if m > size:
        raise ParameterError(f"warm_start is of size {m}, larger than the {size} to be searched")
    if stage.inner != m:
        raise ParameterError(f"warm_start has a B of shape {stage.B.shape}, a search needs a square one")
    return enlarged(stage, size=size)


def enlarged(stage: Stage, *, size: int) -> Stage:
    """Return a stage of ``size`` that keeps the given one (square B) in its first steps.

    The steps that follow are measured one by one: B = diag(B, b I) with b the sensitivity. It is a valid
    start, not a good stage; for sizes that are products, a composite is far better
    (:func:`trilift.factorize.composite.composite_start`).

    >>> import numpy as np
    >>> pair = Stage(np.array([[1.0, 0.0], [1.0, 1.0]]), np.eye(2), np.zeros(2), np.zeros(2))
    >>> enlarged(pair, size=3).B.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    m = stage.size
    if m == size:
        return stage
    more = size - m
    B: Any = np.zeros((size, size))
    B[:m, :m] = stage.B
    B[m:, m:] = np.eye(more) * float(stage.sensitivity())
    L = np.cumsum(np.linalg.inv(B), axis=0)
    if stage.is_plain:
        return Stage.plain(L, B)
    w, v = np.append(stage.w, np.ones(more)), np.append(stage.v, np.zeros(more))
    g = np.append(stage.g, np.zeros(more))
    lower = np.tril(np.ones((size, size)))
    return Stage((lower - np.outer(w, 1.0 - v)) @ np.linalg.inv(B), B, w, g)
