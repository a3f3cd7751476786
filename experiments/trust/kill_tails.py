"""Journals that end too early, and files with a bit flipped: what opening the folder then does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from trilift.counters.durable import DurableCounter
from trilift.counters.edit import GaussianCC
from trilift.lift.errors import TriliftError

__all__ = ["cut", "flipped"]

_INPUTS = (1, 0, None)


def _begun(path: Path) -> tuple[list[Any], list[tuple[bytes, bytes]]]:
    """Make a folder of three steps; return the values, and (journal, mark) after each step and before."""
    counter = DurableCounter(path, GaussianCC(10, 1e-5, simulation_seed=1))
    files = [_files(path)]
    values = []
    with counter:
        for x in _INPUTS:
            values.append(counter.update(x))
            files.append(_files(path))
    return values, files


def _files(path: Path) -> tuple[bytes, bytes]:
    return (path / "journal.0").read_bytes(), (path / "released").read_bytes()


def put(path: Path, data: bytes) -> None:
    """Write into a file that stays the same file."""
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate()


def _opened(path: Path) -> list[Any] | None:
    """Return the values of all steps of a folder, None if it is refused."""
    try:
        with DurableCounter.open(path) as counter:
            steps = counter.step
            return [counter.update(x, step=step) for step, x in enumerate(_INPUTS[:steps], 1)]
    except TriliftError:
        return None


def cut(path: Path, *, every: int = 1) -> dict[str, tuple[int, int]]:
    """Cut the journal at every byte: (tried, held) by what the mark says.

    Where the mark says that all steps were released, nothing but the whole journal may be continued. Where a
    crash of the machine has taken the mark back to that of the steps that are whole, the folder goes on after
    those, with their values.
    """
    values, files = _begun(path)
    whole, mark = files[-1]
    marked, back = [0, 0], [0, 0]
    for size in range(0, len(whole) + 1, every):
        put(path / "journal.0", whole[:size])
        put(path / "released", mark)
        found = _opened(path)
        marked[0] += 1
        marked[1] += found == values if size == len(whole) else found is None
        steps = sum(size >= len(journal) for journal, _ in files) - 1
        put(path / "journal.0", whole[:size])
        put(path / "released", files[max(steps, 0)][1])
        found = _opened(path)
        back[0] += 1
        back[1] += found is None if steps < 0 else found == values[:steps]
    return {"marked": (marked[0], marked[1]), "back": (back[0], back[1])}


def flipped(
    path: Path, *, every: int = 1, tell: Callable[[str], None] = lambda text: None
) -> dict[str, tuple[int, int]]:
    """Flip one bit after the other of each file: (tried, held) by file. Held: refused, or as if nothing was.

    Args:
        path: a new folder.
        every: only every so many bits; of the snapshot, which is larger, every fourth of these.
        tell: is told how far it is.
    """
    values, _ = _begun(path)
    counts = {}
    for name in ("journal.0", "released", "history.0", "identity", "state.0"):
        data = (path / name).read_bytes()
        bits: Iterable[int] = range(0, 8 * len(data), every * (4 if name == "state.0" else 1))
        tried = held = 0
        for bit in bits:
            broken = bytearray(data)
            broken[bit // 8] ^= 1 << bit % 8
            put(path / name, bytes(broken))
            tried += 1
            held += _opened(path) in (None, values)
        put(path / name, data)
        counts[name.removesuffix(".0")] = (tried, held)
        tell(f"{name}: {held} of {tried}")
        if _opened(path) != values:
            raise RuntimeError(f"{os.fspath(path)}: put right again, the folder does not open")
    return counts
