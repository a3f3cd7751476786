"""The plain way from words to draws: whole blocks at once, in numpy.

The compiled kernels (:mod:`trilift.stream.fast`) give the same, and are compared with this.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from trilift.stream.draws import FLAGS, NONZERO, TAIL_EVENT, Draws, Part
from trilift.stream.keystream import WordSource
from trilift.stream.laplace_layout import TESTS, Group, Run
from trilift.stream.laplace_undecided import exact, settle

__all__ = ["assemble", "sample_group"]

_CHUNK_WORDS = 1 << 18
_LIMB = 64
_KEPT_TESTS = np.uint64(1 << NONZERO | 1 << TAIL_EVENT)

Limbs = NDArray[np.uint64]


def sample_group(
    group: Group, source: WordSource, level: int, numbers: NDArray[np.uint64], draws: Draws
) -> None:
    """Append the draws of a group's rows in the given blocks to ``draws``.

    Raises:
        ParameterError, StateError: as :meth:`trilift.stream.laplace.LaplaceRows.sample`.
    """
    height, nb = len(group.rows), numbers.size
    count = TESTS * height
    packed = [np.zeros((nb, run.count, run.limbs), dtype=np.uint64) for run in group.runs]
    step = max(1, _CHUNK_WORDS // group.words)
    for begin in range(0, nb, step):
        some = numbers[begin : begin + step]
        words = source.words(level, some, group.words, start=group.start)
        halves = np.ascontiguousarray(words, dtype="<u4").view("<u2")
        bits = halves[:, :count] < group.limits
        ties = halves[:, :count] == group.limits
        won, rare = settle(group, _places(ties), source, level, some)
        for i, place in won:
            bits[i, place] = True
        octets = np.packbits(bits.reshape(-1), bitorder="little").reshape(some.size, height, TESTS // 8)
        for run, target in zip(group.runs, packed, strict=True):
            assemble(run, octets, halves, target[begin : begin + some.size])
        for (i, k), where in rare.items():
            draws.overrides[begin + i, group.rows[k]] = exact(group, k, octets[i, k], halves[i], where)
    for run, target in zip(group.runs, packed, strict=True):
        first = group.rows.start + run.first
        draws.parts.append(Part(range(first, first + run.count), target))


def _places(ties: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield the indices of what is true, few of many."""
    if ties.any():
        flat = ties.reshape(-1)
        eights = np.flatnonzero(flat.view(np.uint64))  # far faster than to look at every one
        near = (8 * eights[:, None] + np.arange(8)).reshape(-1)
        yield from (divmod(place, ties.shape[1]) for place in near[flat[near]].tolist())


def assemble(run: Run, octets: NDArray[np.uint8], halves: NDArray[np.uint16], out: Limbs) -> None:
    """Write the packed draws of a run: sign and low digits where the fair bits have them, results around.

    Args:
        run: the rows.
        octets: uint8 (nb, rows of the group, 3), the results of tests, bit by bit.
        halves: uint16 (nb, words of the group).
        out: uint64 (nb, rows of the run, limbs), zeros.
    """
    rows = slice(run.first, run.first + run.count)
    shape = (len(halves), run.count, run.width)
    fair = halves[:, run.begin : run.begin + run.width * run.count].reshape(shape)
    out.view("<u2")[..., : run.width] = fair
    out &= run.kept
    tests = np.zeros((*shape[:2], 4), dtype=np.uint8)
    tests[..., :3] = octets[:, rows]
    results = tests.view("<u4")[..., 0].astype(np.uint64)
    out[..., 0] |= results & _KEPT_TESTS
    digits = results >> np.uint64(FLAGS)
    if run.limbs == 1:
        out[..., 0] |= digits << (run.low + FLAGS).astype(np.uint64)
        return
    for low in np.unique(run.low).tolist():
        same = np.flatnonzero(run.low == low)
        limb, shift = divmod(low + FLAGS, _LIMB)
        out[:, same, limb] |= digits[:, same] << np.uint64(shift)
        if shift and limb + 1 < run.limbs:
            out[:, same, limb + 1] |= digits[:, same] >> np.uint64(_LIMB - shift)
