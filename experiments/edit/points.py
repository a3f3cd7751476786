"""One point of a figure: a mechanism at an epsilon on a stream, simulated in batches of runs.

Batches are seeded one by one, so results depend on the point, the seed and the number of runs alone: not on
the order of points, on threads, or on what was kept from an earlier call.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trilift.experiments.edit.attack import attack_threshold, clopper_pearson, statistic
from trilift.experiments.edit.display import mean_squares
from trilift.experiments.edit.mechanisms import Mechanism
from trilift.experiments.edit.streams import RateStream

__all__ = ["BINS", "Point", "batches", "run_point"]

_CELLS = 2_000_000
_MOST = 250
BINS = 60
"""Bins of a histogram of the attack's statistic; the outer ones have the half percent beyond, too."""


@dataclass(frozen=True)
class Point:
    """What is simulated.

    Attributes:
        mechanism: "BaseCC", "PartitionCC", "GaussianCC", "SimECC", "ECC", "HorizonGaussian".
        variant: which constants; with "paper" in it for the paper's own budget.
        base: kind of noise beneath.
        epsilon: total epsilon.
        ln_delta: ln delta.
        stream: inputs.
        make: makes the mechanism.
        attack: whether half of the runs get the neighbour, to be told apart.
        histogram: whether the attack's statistics are kept.
    """

    mechanism: str
    variant: str
    base: str
    epsilon: float
    ln_delta: float
    stream: RateStream
    make: Callable[[], Mechanism]
    attack: bool = True
    histogram: bool = False

    @property
    def key(self) -> str:
        """A name that says everything that is simulated."""
        numbers = f"{self.epsilon!r} | {self.ln_delta!r} | {self.stream.steps}"
        kinds = f"{self.attack}, {self.histogram}"
        return f"{self.mechanism} | {self.variant} | {self.base} | {numbers} | {self.stream.name} | {kinds}"


def batches(runs: int, *, steps: int) -> list[int]:
    """Return how many runs each batch has: at most 250, and about two million steps together.

    >>> batches(600, steps=10_000)
    [200, 200, 200]
    """
    size = max(1, min(_MOST, _CELLS // steps))
    return [size] * (runs // size) + ([runs % size] if runs % size else [])


@dataclass(frozen=True)
class _Batch:
    errors: NDArray[np.float64]
    statistics: NDArray[np.float64]
    shifted: NDArray[np.bool_]


def _run_batch(point: Point, mechanism: Mechanism, runs: int, index: int, seed: int) -> _Batch:
    rng = np.random.default_rng([seed, zlib.crc32(point.key.encode()), index])
    drawn = point.stream.draw(rng, runs=runs, shift=point.attack)
    outputs = mechanism.simulate(drawn.prefix, rng=rng)
    errors = np.sqrt(mean_squares(outputs, drawn.prefix))
    found = statistic(outputs, rates=point.stream.all_rates()) if point.attack else np.zeros(runs)
    return _Batch(errors, found, drawn.shifted)


def _in_order(
    work: Callable[[int], _Batch], count: int, jobs: int, done: Callable[[int], None]
) -> Iterator[_Batch]:
    """Do numbered batches, in threads for several jobs: numpy lets go of the lock where it counts."""
    if jobs <= 1 or count == 1:
        for index in range(count):
            yield work(index)
            done(index)
        return
    with ThreadPoolExecutor(jobs) as pool:
        for start in range(0, count, 4 * jobs):  # a few at a time: a signal need not wait for all of them
            for index, batch in enumerate(pool.map(work, range(start, min(start + 4 * jobs, count))), start):
                yield batch
                done(index)


def run_point(
    point: Point,
    *,
    runs: int,
    seed: int,
    jobs: int = 1,
    report: Callable[[int], None] = lambda runs: None,
) -> dict[str, Any]:
    """Simulate a point and return its record.

    Args:
        point: what.
        runs: independent runs.
        seed: of the whole experiment.
        jobs: threads.
        report: told the number of runs after each batch.

    Returns:
        "mechanism", "variant", "base", "epsilon", "ln_delta", "T", "stream", "runs", "rmse" (mean of each
        run's root mean square error), "rmse_se" (standard error of that mean, None for a single run),
        "advantage" (2 q - 1 for the share q of right guesses) with its 95 % Clopper-Pearson interval
        "ci_low", "ci_high" (None without an attack) and "correct", and with a histogram "theta", "edges",
        "original", "shifted" (counts of statistics).
    """
    mechanism = point.make()
    sizes = batches(runs, steps=point.stream.steps)
    found = list(
        _in_order(
            lambda index: _run_batch(point, mechanism, sizes[index], index, seed),
            len(sizes),
            jobs,
            lambda index: report(sizes[index]),
        )
    )
    errors = np.concatenate([batch.errors for batch in found])
    record: dict[str, Any] = {
        "mechanism": point.mechanism,
        "variant": point.variant,
        "base": point.base,
        "epsilon": point.epsilon,
        "ln_delta": point.ln_delta,
        "T": point.stream.steps,
        "stream": point.stream.name,
        "runs": runs,
        "rmse": float(errors.mean()),
        "rmse_se": float(errors.std(ddof=1) / math.sqrt(runs)) if runs > 1 else None,
        "advantage": None,
        "ci_low": None,
        "ci_high": None,
    }
    if point.attack:
        statistics = np.concatenate([batch.statistics for batch in found])
        shifted = np.concatenate([batch.shifted for batch in found])
        theta = attack_threshold(point.stream.all_rates())
        correct = int(((statistics > theta) == shifted).sum())
        low, high = clopper_pearson(correct, trials=runs)
        record |= {"advantage": 2 * correct / runs - 1, "ci_low": low, "ci_high": high, "correct": correct}
        if point.histogram:
            record |= _histogram(statistics, shifted, theta)
    return record


def _histogram(statistics: NDArray[np.float64], shifted: NDArray[np.bool_], theta: float) -> dict[str, Any]:
    low, high = np.quantile(statistics, [0.005, 0.995])
    edges = np.linspace(min(-theta, float(low)), max(3 * theta, float(high)), BINS + 1)
    inside = np.clip(statistics, edges[0], edges[-1])
    counts = [np.histogram(inside[which], edges)[0].tolist() for which in (~shifted, shifted)]
    return {"theta": theta, "edges": edges.tolist(), "original": counts[0], "shifted": counts[1]}
