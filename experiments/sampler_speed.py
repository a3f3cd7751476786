"""Draws per second of the exact discrete Laplace sampler, beside OpenDP's exact sampler in the same run.

``python -m trilift.experiments.sampler_speed --json`` prints one JSON object; without ``--json``, a table.
Both samplers are exact; ours reads its bits from a keyed ChaCha20 stream, OpenDP's from the operating system.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import LaplaceRows

__all__ = ["main", "measure", "opendp_rate"]


def _best_rate(
    call: Callable[[], object],
    draws: int,
    *,
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the draws per second of the fastest of several calls."""
    best = float("inf")
    for _ in range(repeats):
        begin = clock()
        call()
        best = min(best, clock() - begin)
    return draws / best


def opendp_rate(
    scale: int, draws: int, *, repeats: int = 3, clock: Callable[[], float] = time.perf_counter
) -> float | None:
    """Return the draws per second of OpenDP's exact vector sampler, or None where it is not installed.

    Args:
        scale: integer scale of the discrete Laplace distribution.
        draws: entries per call.
        repeats: calls, of which the fastest counts.
        clock: what they are timed by.
    """
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    mechanism = dp.m.make_laplace(*space, scale=float(scale))
    zeros = [0] * draws
    return _best_rate(lambda: mechanism(zeros), draws, repeats=repeats, clock=clock)


def measure(*, scale: int, rows: int, draws: int, peer_draws: int) -> dict[str, Any]:
    """Measure both samplers once.

    Args:
        scale: integer scale of every row.
        rows: rows per block of our sampler.
        draws: draws per call of our sampler, rounded down to whole blocks.
        peer_draws: draws per call of OpenDP's sampler.

    Returns:
        draws per second (conversion to float64 included), of OpenDP's sampler (None where it is not
        installed), and their ratio.
    """
    plan = LaplaceRows([scale] * rows)
    blocks = np.arange(max(1, draws // rows))
    stream = Keystream(simulation_key(0))
    ours = _best_rate(lambda: plan.sample(stream, 0, blocks).to_float(), blocks.size * rows, repeats=5)
    theirs = opendp_rate(scale, peer_draws)
    return {
        "scale": scale,
        "rows": rows,
        "draws": int(blocks.size) * rows,
        "draws_per_second": ours,
        "opendp_draws_per_second": theirs,
        "ratio": None if theirs is None else ours / theirs,
    }


def main(arguments: list[str] | None = None) -> None:
    """Run the measurements from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--scale-bits", type=int, nargs="+", default=[4, 25, 50, 62, 100], help="log2 of the scale"
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 19, 259, 2049], help="rows per block")
    parser.add_argument("--draws", type=int, default=200_000, help="draws per call")
    parser.add_argument("--peer-draws", type=int, default=10_000, help="draws per call of OpenDP's sampler")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(arguments)
    results = [
        measure(scale=(1 << bits) + 1, rows=rows, draws=chosen.draws, peer_draws=chosen.peer_draws)
        for bits in chosen.scale_bits
        for rows in chosen.rows
    ]
    if chosen.json:
        print(json.dumps({"results": results}, indent=1))
        return
    print(f"{'log2 scale':>10} {'rows':>6} {'draws/s':>12} {'OpenDP/s':>12} {'ratio':>8}")
    for result in results:
        peer, ratio = result["opendp_draws_per_second"], result["ratio"]
        shown = "           -        -" if peer is None else f"{peer:12,.0f} {ratio:8.0f}"
        bits = result["scale"].bit_length() - 1
        print(f"{bits:>10} {result['rows']:>6} {result['draws_per_second']:>12,.0f} {shown}")


if __name__ == "__main__":
    main()
