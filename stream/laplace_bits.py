"""The plain way from words to draws: whole blocks at once, in numpy.

The compiled kernels (:mod:`trilift.stream.fast`) give the same, and are compared with this.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from trilift.stream.draws import FLAGS, NEGATIVE, NONZERO, TAIL_EVENT, Draws, Part
from trilift.stream.keystream import WordSource
from trilift.stream.laplace_layout import TESTS, Group, Run
from trilift.stream.laplace_undecided import RARE, Place, decide, fair_bits, value

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
        where = [Place(source, level, number) for number in some.tolist()] if ties.any() else []
        rare = _settle(group, bits, ties, where)
        octets = np.packbits(bits.reshape(-1), bitorder="little").reshape(some.size, height, TESTS // 8)
        for run, target in zip(group.runs, packed, strict=True):
            assemble(run, octets, halves, target[begin : begin + some.size])
        for i, k in rare:
            tests = int.from_bytes(octets[i, k].tobytes(), "little")
            exact = value(group, k, tests, fair_bits(group, k, halves[i]), where[i])
            draws.overrides[begin + i, group.rows[k]] = exact
    for run, target in zip(group.runs, packed, strict=True):
        first = group.rows.start + run.first
        draws.parts.append(Part(range(first, first + run.count), target))


def _settle(
    group: Group, bits: NDArray[np.bool_], ties: NDArray[np.bool_], where: list[Place]
) -> set[tuple[int, int]]:
    """Decide the tests whose word equals its limit; return where an exception or a tail event was found."""
    rare: set[tuple[int, int]] = set()
    if not where:
        return rare
    eights = np.flatnonzero(ties.reshape(-1).view(np.uint64))  # far faster than to look at every one
    flat = (8 * eights[:, None] + np.arange(8)).reshape(-1)
    hits = flat[ties.reshape(-1)[flat]]
    for i, place in zip(*(index.tolist() for index in np.divmod(hits, ties.shape[1])), strict=True):
        bits[i, place] = decide(group, place, where[i])
        if bits[i, place] and place % TESTS in RARE:
            rare.add((i, place // TESTS))
    return rare


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
    out &= _masks(run)
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


def _masks(run: Run) -> Limbs:
    """Return what is kept of the fair bits, uint64 (rows, limbs): the sign and F low digits."""
    kept = [1 << NEGATIVE | ((1 << low) - 1) << FLAGS for low in run.low.tolist()]
    limbs = [[mask >> (_LIMB * n) & ((1 << _LIMB) - 1) for n in range(run.limbs)] for mask in kept]
    return np.array(limbs, dtype=np.uint64)
