"""Counters without an end beside the counter that was made for the step: exact variances.

``python -m trilift.experiments.unbounded`` prints, for t = 2^5 .. 2^40, the largest variance of a step in
(t/2, t] under epsilon = 1 (or mu = 1), as a multiple of the largest variance of the bounded counter of
horizon t.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from trilift.counters.defaults import chain_of
from trilift.counters.epoch_mechanisms import epoch_names, gaussian_epochs, laplace_epochs
from trilift.lift.budget import chain_cost
from trilift.stream.epoch_layout import GROWTHS
from trilift.stream.epochs import EpochNoise
from trilift.stream.keys import simulation_key

__all__ = ["Comparison", "bounded_variance", "compare", "main"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_FIRST, _LAST = 5, 40
_PLACES = 64  # a lattice so fine that rounding does not show in variances


@dataclass(frozen=True)
class Comparison:
    """Variances at one t, over that of the bounded counter.

    Attributes:
        log2_t: logarithm of t.
        bounded: largest variance of the bounded counter of horizon t.
        worst: for each growth the largest variance of a step in (t/2, t] over ``bounded``.
        mean: for each growth the mean variance of those steps over ``bounded``.
    """

    log2_t: int
    bounded: float
    worst: dict[str, float]
    mean: dict[str, float]


def bounded_variance(horizon: int, *, law: str) -> float:
    """Return the largest variance of a step of the default bounded counter, epsilon = 1 or mu = 1."""
    norm = "l1" if law == "laplace" else "l2"
    chain = chain_of(epoch_names(horizon, objective="max", norm=norm), norm=norm)
    cost = chain_cost(chain, horizon, objective="max", norm=norm)
    return cost.max_se() if law == "laplace" else cost.gaussian_se("max", rho=0.5)


def _noise(growth: str, law: str) -> EpochNoise:
    options: dict[str, Any] = {
        "key": simulation_key(0),
        "stream_id": bytes(16),
        "purposes": ["experiment"],
        "growth": growth,
        "places": _PLACES,
    }
    if law == "laplace":
        return laplace_epochs(1, **options)[0][0]
    return gaussian_epochs(1, **options)[0][0]


def _octave(log2_t: int, points: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return 0-based steps of (t/2, t], evenly spread, with the ends of dyadic epochs among them."""
    t = 1 << log2_t
    spread = np.linspace(t // 2, t - 1, points).astype(np.int64)
    return np.unique(np.concatenate([spread, [t // 2, t - 2, t - 1]]))


def compare(
    *, law: str = "laplace", logs: Any = range(_FIRST, _LAST + 1), points: int = 48
) -> list[Comparison]:
    """Return the comparison at every t = 2^log.

    Args:
        law: "laplace" or "gaussian".
        logs: logarithms of t, from 2 on.
        points: steps of each octave that are looked at.
    """
    noises = {growth: _noise(growth, law) for growth in GROWTHS}
    result = []
    for log in logs:
        bounded = bounded_variance(1 << log, law=law)
        steps = _octave(log, points)
        ratios = {growth: noise.variance(steps) / bounded for growth, noise in noises.items()}
        result.append(
            Comparison(
                log,
                bounded,
                {growth: float(values.max()) for growth, values in ratios.items()},
                {growth: float(values.mean()) for growth, values in ratios.items()},
            )
        )
    return result


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m trilift.experiments.unbounded", description=__doc__)
    parser.add_argument("--law", choices=("laplace", "gaussian"), default="laplace")
    parser.add_argument("--step", type=int, default=5, help="every how many powers of two")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    rows = compare(law=chosen.law, logs=range(_FIRST, _LAST + 1, chosen.step))
    if chosen.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    print(f"{chosen.law} noise; variance over that of the bounded counter of horizon t: worst (mean) step")
    print("log2 t  bounded  " + "  ".join(f"{growth:>13}" for growth in GROWTHS))
    for row in rows:
        cells = [f"{row.worst[growth]:5.2f} ({row.mean[growth]:4.2f})" for growth in GROWTHS]
        print(f"{row.log2_t:6d} {row.bounded:8.1f}  " + "  ".join(f"{cell:>13}" for cell in cells))


if __name__ == "__main__":
    main()
