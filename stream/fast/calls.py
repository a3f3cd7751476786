"""Calls of the compiled kernels: everything that they take for granted is made certain here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trilift.lift.errors import StateError
from trilift.stream.draws import to_float
from trilift.stream.keystream import Keystream
from trilift.stream.laplace_layout import Group, Run
from trilift.stream.laplace_undecided import exact, settle

__all__ = ["MOST_WIDTH", "decode", "laplace_floats", "round_half_up"]

FloatArray = NDArray[np.float64]

MOST_WIDTH = 32
"""Words of fair bits of a row: wider ones, of scales past 2^500, are left to the plain path."""

_NARROW = 2
_BATCH_WORDS = 1 << 17
_ROOM = 1 << 10  # for equal words of a batch: four are expected


def laplace_floats(
    made: SimpleNamespace,
    group: Group,
    source: Keystream,
    level: int,
    numbers: NDArray[np.uint64],
    out: FloatArray,
) -> None:
    """Write the draws of a group's rows into ``out`` as floats, those of the plain path.

    Args:
        made: the compiled kernels.
        group: of a plan; widths at most :data:`MOST_WIDTH`.
        source, level, numbers: where the words are.
        out: float64 (nb, rows of the level).

    Raises:
        ParameterError, StateError: as :meth:`trilift.stream.laplace.LaplaceRows.floats`.
    """
    if any(not 1 <= run.width <= MOST_WIDTH for run in group.runs):
        raise ValueError("rows of another width than the kernels take")
    whole = out.flags.c_contiguous and out.dtype == np.float64 and out.ndim == 2
    if not whole or out.shape[0] != numbers.size or out.shape[1] < group.rows.stop:
        raise ValueError("out must be a contiguous float64 array (nb, rows)")
    limits = np.ascontiguousarray(group.limits, dtype=np.uint16)
    count = limits.size
    most = max(1, min(_BATCH_WORDS // group.words, numbers.size))
    flags, found = np.empty(count, dtype=np.uint8), np.empty((_ROOM, 2), dtype=np.int64)
    octets, packed = flags.view(np.uint64), np.empty((most, count // 8), dtype=np.uint8)
    for first, words in source.batches(level, numbers, group.words, start=group.start, most=most):
        halves = np.ascontiguousarray(words).view(np.uint16)
        equal = made.compare(halves, limits, flags, octets, packed, found)
        places = found[:equal] if equal <= _ROOM else np.argwhere(halves[:, :count] == limits)
        won, rare = settle(
            group, map(tuple, places.tolist()), source, level, numbers[first : first + len(halves)]
        )
        for i, place in won:  # the kernel has left its bit at 0
            packed[i, place // 8] |= 1 << place % 8
        for run in group.runs:
            decode(made, run, halves, packed, out, first, group.rows.start + run.first)
        for (i, k), where in rare.items():
            draw = exact(group, k, packed[i, 3 * k : 3 * k + 3], halves[i], where)
            out[first + i, group.rows[k]] = to_float(draw)
            if not np.isfinite(out[first + i, group.rows[k]]):  # of tests and fair bits alone, below 2^531
                raise StateError("a draw exceeds the range of float64; use to_objects()")


def decode(
    made: SimpleNamespace,
    run: Run,
    halves: NDArray[np.uint16],
    packed: NDArray[np.uint8],
    out: FloatArray,
    first: int,
    column: int,
) -> None:
    """Write the draws of a run, as far as tests and fair bits tell, from row ``first`` of ``out`` on."""
    # run.begin + run.width * run.count <= words of the group, 3 (run.first + run.count) <= octets of results
    shared = halves, packed, len(halves), run.first, run.begin, run.width, run.low
    if run.width <= _NARROW:
        made.decode(*shared, (1 << run.low) - 1, out, first, column)
    else:
        made.decode_wide(*shared, np.ldexp(1.0, 32 * np.arange(2 * run.limbs)), out, first, column)


def round_half_up(
    made: SimpleNamespace, values: FloatArray, *, factor: float, margin: float
) -> tuple[NDArray[np.int64], NDArray[np.bool_], int]:
    """Return floor(factor values + 1/2) where floats decide it, where they do not, and in how many places."""
    flat = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
    whole, unsure = np.empty(flat.size, dtype=np.int64), np.empty(flat.size, dtype=np.bool_)
    count: Any = made.round_half_up(flat, factor, margin, whole, unsure)
    return whole.reshape(values.shape), unsure.reshape(values.shape), int(count)
