"""Every variant of the edit-private mechanisms on a grid of epsilons, lengths and rates, simulated.

    python -m trilift.experiments.edit.grid --out docs/measurements/edit_grid.json

For each cell all variants of :mod:`trilift.counters.edit.choose` get the same streams. Those that come near
the best one get more runs, so that they can be told apart. Cells that the file has already are kept: a
run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trilift.counters.edit.base import BOUNDED
from trilift.counters.edit.choose import choose_design
from trilift.counters.edit.choose import variants as choose_variants
from trilift.counters.edit.design import Design
from trilift.experiments.edit.designs import mechanism_of
from trilift.experiments.edit.display import shown_at
from trilift.experiments.edit.mechanisms import EditCounter, NoisyCounter
from trilift.experiments.edit.page import compact
from trilift.experiments.edit.reference import gaussian_cc, horizon_gaussian
from trilift.experiments.edit.streams import RateStream, block_stream, constant_stream
from trilift.lift.errors import ParameterError

__all__ = ["CELLS", "DELTA", "Cell", "Variant", "cell_errors", "do_cell", "summary"]

DELTA = "1/100000"
_EPSILONS = ("1/2", "1", "3", "10", "30")
_LENGTHS = (10**4, 10**6)
_RATES = (0.01, 0.1, 0.5)
_SAMPLED = 50_000
"""Longer streams are looked at in this many equally spaced steps, from a random one on."""

_NEAR = 1.3
_CLOSE = 1.06
_RUNS = {10**4: (20, 150, 2500), 10**6: (2, 8, 32)}
"""By length: runs of every variant, of those within 1.3 times the least error, of those within 1.06 times."""


@dataclass(frozen=True)
class Cell:
    """One place of the grid.

    Attributes:
        epsilon: as a ratio of integers, "1/2".
        steps: T.
        rate: of all inputs, or None for the block stream.
    """

    epsilon: str
    steps: int
    rate: float | None

    @property
    def key(self) -> str:
        """A name."""
        return f"{self.epsilon} | {self.steps} | {self.rate}"

    @property
    def stream(self) -> RateStream:
        """Its inputs."""
        return block_stream(self.steps) if self.rate is None else constant_stream(self.steps, rate=self.rate)

    @property
    def mean_rate(self) -> float:
        """Events a step, which variants are chosen for."""
        return 0.5 if self.rate is None else self.rate


CELLS = (
    *(Cell(e, T, rate) for T in _LENGTHS for e in _EPSILONS for rate in _RATES),
    Cell("10", 10**4, None),
)
"""The grid, and the block stream at epsilon = 10."""


@dataclass(frozen=True)
class Variant:
    """One mechanism of a cell.

    Attributes:
        names: "mechanism", "accounting", "values", "times" (kinds of noise), "display".
        predicted_rmse: its predicted error.
        simulated: the mechanism in simulation.
    """

    names: dict[str, str]
    predicted_rmse: float
    simulated: EditCounter | NoisyCounter

    @classmethod
    def of(cls, design: Design, *, predicted_rmse: float) -> Variant:
        """Return the variant of a design."""
        names = {
            "mechanism": design.mechanism,
            "accounting": design.accounting,
            "values": design.values.kind,
            "times": design.times.kind,
            "display": design.display,
        }
        return cls(names, predicted_rmse, mechanism_of(design))


def cell_errors(
    mechanisms: Sequence[EditCounter | NoisyCounter],
    *,
    cell: Cell,
    first: int,
    runs: int,
    seed: int,
    index: int = 0,
) -> NDArray[np.float64]:
    """Return root mean square errors, (mechanisms, runs), of runs first, ..., first + runs - 1 of a cell.

    All mechanisms get the same streams. Runs are done one by one; their errors are taken at all steps of a
    short stream and at equally spaced ones of a long stream. The noise of a mechanism depends on its number,
    which is ``index`` for the first one.
    """
    place = zlib.crc32(cell.key.encode())
    errors = np.empty((len(mechanisms), runs))
    for run in range(first, first + runs):
        inputs = np.random.default_rng([seed, place, run])
        prefix = cell.stream.draw(inputs, runs=1, shift=False).prefix
        spacing = -(-cell.steps // _SAMPLED)
        at = np.arange(1 + int(inputs.integers(spacing)), cell.steps + 1, spacing)
        for row, mechanism in enumerate(mechanisms):
            rng = np.random.default_rng([seed, place, run, index + row])
            if isinstance(mechanism, NoisyCounter):
                error = mechanism.noise.draw(rng, runs=1, count=cell.steps)[0, at - 1]
            else:
                times, values = mechanism.pairs(prefix, rng=rng)
                delays = mechanism.alphas(times.shape[1]) if mechanism.extrapolate else None
                error = shown_at(times[0], values[0], at=at, delays=delays) - prefix[0, at]
            errors[row, run - first] = math.sqrt(float(error @ error) / at.size)
    return errors


def do_cell(
    cell: Cell,
    *,
    variants: Sequence[Variant],
    chosen: int,
    seed: int = 0,
    runs: tuple[int, int, int] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Simulate all variants of a cell.

    Args:
        cell: which.
        variants: all of them.
        chosen: index of the automatic choice.
        seed: of everything.
        runs: of all, of those near the best, of those close to it; None: as the grid has them.
        say: told a line a variant.

    Returns:
        "epsilon", "delta", "T", "stream", "variants" (by error: "mechanism", "accounting", "values", "times",
        "display", "predicted_rmse", "rmse", "rmse_se", "runs", "chosen"), "chosen_rmse", "best_rmse" and
        "excess" (chosen / best - 1).
    """
    tiers = _RUNS[cell.steps] if runs is None else runs
    mechanisms = [variant.simulated for variant in variants]
    begun = time.perf_counter()
    errors = list(cell_errors(mechanisms, cell=cell, first=0, runs=tiers[0], seed=seed))
    for within, more in ((_NEAR, tiers[1]), (_CLOSE, tiers[2])):
        limit = within * min(float(found.mean()) for found in errors)
        near = [i for i, found in enumerate(errors) if i == chosen or float(found.mean()) <= limit]
        for i in near if len(near) > 1 or within == _NEAR else ():
            have = errors[i].size
            if have < more:
                further = cell_errors(
                    [mechanisms[i]], cell=cell, first=have, runs=more - have, seed=seed, index=i
                )
                errors[i] = np.concatenate([errors[i], further[0]])
    for variant, found in zip(variants, errors, strict=True):
        names = " ".join(variant.names.values())
        say(f"{cell.key}: {names}: {found.mean():.4g}, predicted {variant.predicted_rmse:.4g}")
    say(f"{cell.key}: {time.perf_counter() - begun:.1f} s")
    rows: list[dict[str, Any]] = [
        {
            **variant.names,
            "predicted_rmse": variant.predicted_rmse,
            "rmse": float(found.mean()),
            "rmse_se": float(found.std(ddof=1) / math.sqrt(found.size)) if found.size > 1 else None,
            "runs": int(found.size),
            "chosen": index == chosen,
        }
        for index, (variant, found) in enumerate(zip(variants, errors, strict=True))
    ]
    rows.sort(key=lambda row: float(row["rmse"]))
    mine = next(float(row["rmse"]) for row in rows if row["chosen"])
    best = float(rows[0]["rmse"])
    return {
        "epsilon": cell.epsilon,
        "delta": DELTA,
        "T": cell.steps,
        "stream": cell.stream.name,
        "variants": rows,
        "chosen_rmse": mine,
        "best_rmse": best,
        "excess": mine / best - 1,
    }


def summary(cells: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Return the largest excess of the choice over the best variant, and the largest relative error of a
    prediction (over variants within 1.3 times the best of their cell).

    >>> row = {"rmse": 2.0, "predicted_rmse": 2.2, "chosen": True}
    >>> [round(x, 6) for x in summary([{"excess": 0.0, "best_rmse": 2.0, "variants": [row]}])]
    [0.0, 0.1]
    """
    off = [
        abs(row["predicted_rmse"] / row["rmse"] - 1)
        for cell in cells
        for row in cell["variants"]
        if row["rmse"] <= _NEAR * cell["best_rmse"]
    ]
    return max((cell["excess"] for cell in cells), default=0.0), max(off, default=0.0)


def _variants(cell: Cell) -> tuple[list[Variant], int]:
    """Return all variants of a cell and the index of the automatic choice."""
    asked: dict[str, Any] = {"delta": Fraction(DELTA), "horizon": cell.steps, "rate": cell.mean_rate}
    epsilon, ln_delta = Fraction(cell.epsilon), math.log(Fraction(DELTA))
    automatic = choose_design(epsilon, **asked)
    found: list[Variant] = []
    chosen = -1
    for choice in choose_variants(epsilon, bases=BOUNDED, **asked):
        if choice.design is not None:
            if (choice.design.display, choice.design.digest) == (automatic.display, automatic.digest):
                chosen = len(found)
            found.append(Variant.of(choice.design, predicted_rmse=choice.predicted_rmse))
            continue
        make = gaussian_cc if choice.mechanism == "gaussian" else horizon_gaussian
        counter = make(float(epsilon), ln_delta=ln_delta, steps=cell.steps)
        names = {"mechanism": choice.mechanism, "accounting": choice.accounting, "values": choice.base}
        names |= {"times": choice.base, "display": choice.display}
        found.append(Variant(names, choice.predicted_rmse, counter))
    if chosen < 0:
        chosen = len(found)
        error = automatic.predict(horizon=cell.steps, rate=cell.mean_rate).rmse
        found.append(Variant.of(automatic, predicted_rmse=error))
    return found, chosen


def _read(path: Path, seed: int) -> dict[str, Any]:
    if not path.exists():
        return {"simulation": "floating-point noise", "seed": seed, "cells": {}}
    held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if held.get("seed") != seed:
        raise ParameterError(f"{path} has results of another seed: choose another file")
    return held


def _write(path: Path, held: dict[str, Any]) -> None:
    """Replace the file as a whole; a variant a line."""
    lines = []
    for key, cell in held["cells"].items():
        rows = ",\n  ".join(json.dumps(compact(row)) for row in cell["variants"])
        rest = json.dumps(compact({name: value for name, value in cell.items() if name != "variants"}))
        lines.append(f'{json.dumps(key)}: {rest[:-1]}, "variants": [\n  {rows}]}}')
    head = json.dumps({name: value for name, value in held.items() if name != "cells"})
    part = path.with_suffix(".part")
    part.write_text(head[:-1] + ', "cells": {\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    part.replace(path)


def _left(held: dict[str, Any], only: str | None) -> Iterator[Cell]:
    for cell in CELLS:
        if cell.key not in held["cells"] and (only is None or only in cell.key):
            yield cell


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the cells that the file does not have; exit code 1 if the choice is ever 5 % worse than the best."""
    parser = argparse.ArgumentParser(description="All variants on a grid, simulated.")
    parser.add_argument("--out", type=Path, required=True, help="JSON file; cells that it has are kept")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="only cells whose key ('epsilon | T | rate') has this in it")
    chosen = parser.parse_args(arguments)
    held = _read(chosen.out, chosen.seed)
    for cell in _left(held, chosen.only):
        variants, index = _variants(cell)
        held["cells"][cell.key] = do_cell(
            cell,
            variants=variants,
            chosen=index,
            seed=chosen.seed,
            say=lambda text: print(text, file=sys.stderr, flush=True),
        )
        _write(chosen.out, held)
    excess, off = summary(list(held["cells"].values()))
    print(f"choice at most {excess:.1%} above the best; predictions within {off:.1%} near the best")
    return 1 if excess > 0.05 else 0


if __name__ == "__main__":
    raise SystemExit(main())
