"""Released steps per second of counters, beside OpenDP's exact sampler, and the time of a first release.

``python -m trilift.experiments.extend_speed --json`` prints one JSON object; without ``--json``, a table.
Both comparisons are made within the run: released steps of ``extend`` against samples of OpenDP's exact
vector sampler (a step of ours needs several samples and a matrix product), and a fresh interpreter that
imports trilift and releases a value against one that imports numpy. Of SimECC, the counter for streams that
shift, it tells the steps per second alone, over a chain of Laplace noise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
from trilift.counters import Counter
from trilift.counters.edit.mechanism import SimECC
from trilift.experiments.sampler_speed import opendp_rate

__all__ = ["main", "measure_edit", "measure_extend", "measure_start"]


def measure_extend(*, horizon: int, peer_draws: int, repeats: int) -> dict[str, Any]:
    """Measure ``extend`` over a whole horizon of ones, and OpenDP's sampler at the same noise scale.

    Args:
        horizon: number of steps, released in one call.
        peer_draws: entries per call of OpenDP's vector sampler.
        repeats: calls of ``extend``, each on a new counter; the fastest counts.

    Returns:
        steps per second, OpenDP's samples per second (None where it is not installed), and their ratio.
    """
    ones = np.ones(horizon, dtype=np.int64)
    best = float("inf")
    for _ in range(repeats):
        counter = Counter(1.0, horizon=horizon)
        begin = time.perf_counter()
        counter.extend(ones)
        best = min(best, time.perf_counter() - begin)
    scale = max(1, round(counter.setup.ledger.scales[0]))
    theirs = opendp_rate(scale, peer_draws)
    return {
        "horizon": horizon,
        "chain": list(counter.setup.names or ()),
        "steps_per_second": horizon / best,
        "opendp_scale": scale,
        "opendp_draws": peer_draws,
        "opendp_samples_per_second": theirs,
        "ratio": None if theirs is None else horizon / best / theirs,
    }


def measure_edit(*, horizon: int, repeats: int) -> dict[str, Any]:
    """Measure ``extend`` of SimECC over a chain of Laplace noise, on a whole horizon of ones.

    Args:
        horizon: number of steps, released in one call; epsilon = 1, delta = 1e-6.
        repeats: calls of ``extend``, each on a new counter; the fastest counts.

    Returns:
        horizon, base and steps per second.
    """
    ones = np.ones(horizon, dtype=np.int64)
    best = float("inf")
    for _ in range(repeats):
        counter = SimECC(1, 1e-6, horizon=horizon, base="chain")
        begin = time.perf_counter()
        counter.extend(ones)
        best = min(best, time.perf_counter() - begin)
    return {"horizon": horizon, "base": counter.design.values.kind, "steps_per_second": horizon / best}


def _seconds(program: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    return time.perf_counter() - begin


def measure_start(*, horizon: int, repeats: int) -> dict[str, Any]:
    """Measure fresh interpreters: nothing, ``import numpy``, and trilift's first release.

    Args:
        horizon: of the counter that releases one value.
        repeats: interpreters of each kind, in turns; medians are returned.

    Returns:
        seconds of each, and the ratio of the last to the second.
    """
    programs = {
        "empty_seconds": "pass",
        "numpy_seconds": "import numpy",
        "release_seconds": f"import trilift; trilift.Counter(1.0, horizon={horizon}).update(1)",
    }
    _seconds(programs["release_seconds"])  # compiles what was never imported before
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(repeats):
        for name, program in programs.items():
            times[name].append(_seconds(program))
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "horizon": horizon,
        **medians,
        "ratio": medians["release_seconds"] / medians["numpy_seconds"],
    }


def main(arguments: list[str] | None = None) -> None:
    """Run the measurements from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--horizon", type=int, default=10**6, help="steps released by extend")
    parser.add_argument("--peer-draws", type=int, default=10**5, help="entries per call of OpenDP's sampler")
    parser.add_argument("--repeats", type=int, default=5, help="calls of extend")
    parser.add_argument(
        "--start-horizon", type=int, nargs="*", default=[1000, 10**6], help="horizons of the first releases"
    )
    parser.add_argument("--starts", type=int, default=9, help="interpreters of each kind")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(arguments)
    result = {
        "extend": measure_extend(
            horizon=chosen.horizon, peer_draws=chosen.peer_draws, repeats=chosen.repeats
        ),
        "edit": measure_edit(horizon=chosen.horizon, repeats=chosen.repeats),
        "start": [measure_start(horizon=n, repeats=chosen.starts) for n in chosen.start_horizon],
    }
    if chosen.json:
        print(json.dumps(result, indent=1))
        return
    _print(result)


def _print(result: dict[str, Any]) -> None:
    extend = result["extend"]
    print(f"extend, n = {extend['horizon']:,}: {extend['steps_per_second']:,.0f} released steps a second")
    if extend["ratio"] is not None:
        rate = extend["opendp_samples_per_second"]
        print(f"OpenDP, {extend['opendp_draws']:,} entries: {rate:,.0f} samples a second")
        print(f"ratio {extend['ratio']:.1f}")
    edit = result["edit"]
    print(
        f"SimECC over a {edit['base']}, n = {edit['horizon']:,}:"
        f" {edit['steps_per_second']:,.0f} released steps a second"
    )
    for start in result["start"]:
        print(
            f"first release, n = {start['horizon']:,}: {start['release_seconds']:.3f} s; import numpy:"
            f" {start['numpy_seconds']:.3f} s; ratio {start['ratio']:.1f}"
        )


if __name__ == "__main__":
    main()
