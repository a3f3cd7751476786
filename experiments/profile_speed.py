"""Where the time of a million released steps goes, with the compiled kernels and without, and the floor.

``OMP_NUM_THREADS=1 python -m trilift.experiments.profile_speed --out docs/measurements/speed_profile.json``
measures and writes; ``--page docs/speed.md`` writes the page from a record. Every part is timed alone, in
short runs of which the fastest counts. Times of one thread are processor times, so that other work on the
machine matters less; with several threads, wall times are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from trilift.counters import Counter
from trilift.counters.position import running_sums
from trilift.experiments.sampler_speed import opendp_rate
from trilift.experiments.speed_page import page
from trilift.lift.integers import add
from trilift.stream import fast
from trilift.stream.fast import parallel

__all__ = ["main", "measure"]

_CHUNK = 1 << 16
_BLOCKS, _BATCH = 512, 32
_CLOCKS = {"processor": time.process_time, "wall": time.perf_counter}


def _best(call: Callable[[], object], *, seconds: float) -> float:
    """Return the seconds of the fastest of many calls."""
    best, end = float("inf"), time.process_time() + seconds
    while time.process_time() < end or best == float("inf"):
        begin = time.process_time()
        call()
        best = min(best, time.process_time() - begin)
    return best


def _parts(counter: Any, *, seconds: float, repeats: int) -> dict[str, float]:
    """Return nanoseconds a released step of every part, by the path that is switched on."""
    n = counter.horizon
    noise = counter._noises[0]
    evaluator = noise._evaluator
    source, levels = evaluator._source, evaluator.levels
    rows, stream = source._rows[0], source._stream
    m = levels[0].size
    blocks = np.arange(_BLOCKS)

    def words() -> None:
        for _ in stream.batches(0, blocks, rows.words, most=_BATCH):
            pass

    def a_block(call: Callable[[], object], count: int) -> float:
        return _best(call, seconds=seconds) / (count * int(m)) * 1e9

    z = np.random.default_rng(0).normal(size=(_CHUNK // m + 1, levels[0].blend.shape[1]))
    chunk, ones = np.arange(_CHUNK), np.ones(_CHUNK, dtype=np.int64)
    sums = running_sums(np.zeros(1, dtype=np.int64), ones[:, None])
    keystream = a_block(words, _BLOCKS)
    draws = a_block(lambda: source.draws(0, blocks).to_float(), _BLOCKS)
    upper = _best(lambda: evaluator._span(1, 0, _CHUNK // m), seconds=seconds) / _CHUNK * 1e9
    products = _best(lambda: z[1:] @ levels[0].blend.T, seconds=seconds) / _CHUNK * 1e9
    floats = _best(lambda: evaluator.floats(chunk), seconds=seconds) / _CHUNK * 1e9
    rounded = _best(lambda: evaluator.rounded(chunk, places=0), seconds=seconds) / _CHUNK * 1e9
    inputs = _best(lambda: counter.setup.many(ones), seconds=seconds)
    adding = _best(lambda: add(sums, sums), seconds=seconds)
    summing = _best(lambda: running_sums(np.zeros(1, dtype=np.int64), ones[:, None]), seconds=seconds)
    whole = 1e9 / _rate(n, threads=1, repeats=repeats)
    return {
        "keystream": keystream,
        "comparisons": max(draws - keystream, 0.0),
        "upper_levels": upper,
        "products": products,
        "blending": max(floats - draws - upper - products, 0.0),
        "rounding": max(rounded - floats, 0.0),
        "inputs_and_sums": (inputs + adding + summing) / _CHUNK * 1e9,
        "extend": whole,
    }


def _whole(horizon: int, clock: Callable[[], float]) -> float:
    counter = Counter(1.0, horizon=horizon, simulation_seed=1)
    ones = np.ones(horizon, dtype=np.int64)
    begin = clock()
    counter.extend(ones)
    return clock() - begin


def _rate(horizon: int, *, threads: int, repeats: int) -> float:
    """Return released steps a second of whole ``extend`` calls, the fastest of several."""
    before = os.environ.get(parallel.VARIABLE)
    os.environ[parallel.VARIABLE] = str(threads)
    try:
        clock = time.process_time if threads == 1 else time.perf_counter
        return horizon / min(_whole(horizon, clock) for _ in range(repeats))
    finally:
        if before is None:
            del os.environ[parallel.VARIABLE]
        else:
            os.environ[parallel.VARIABLE] = before


def _floor(counter: Any, *, seconds: float) -> dict[str, float]:
    """Return what a step needs in any case, at the best rates measured here."""
    entries = counter.setup.ledger.levels
    evaluator = counter._noises[0]._evaluator
    words, macs, below = 0.0, 0.0, 1.0
    for rows, level, entry in zip(evaluator._source._rows, evaluator.levels, entries, strict=True):
        if level.is_top:
            words += rows.words / counter.horizon
            macs += len(entry.row_scales) / below
        else:
            below *= level.size
            words += rows.words / below
            macs += (len(entry.row_scales) * (level.size + 1) + 2 * level.size) / below
    stream = evaluator._source._stream

    def read() -> None:
        for _ in stream.batches(0, [0], 1 << 16, most=1):
            pass

    left, right = np.ones((512, 512)), np.ones((512, 512))
    bytes_per_ns = (4 << 16) / _best(read, seconds=seconds) / 1e9
    macs_per_ns = 512**3 / _best(lambda: left @ right, seconds=seconds) / 1e9
    return {
        "keystream_bytes": 4 * words,
        "multiply_adds": macs,
        "chacha_bytes_per_ns": bytes_per_ns,
        "multiply_adds_per_ns": macs_per_ns,
        "ns": 4 * words / bytes_per_ns + macs / macs_per_ns,
    }


def _load() -> str:
    """Say how busy the machine is: wall times mean little if it has other work."""
    if not hasattr(os, "getloadavg"):
        return "unknown load"
    return f"load {os.getloadavg()[0]:.0f}"


def measure(*, horizon: int, seconds: float, repeats: int, peer_draws: int) -> dict[str, Any]:
    """Measure the parts by both paths, the floor, and whole calls beside OpenDP's exact vector sampler.

    Args:
        horizon: released steps; epsilon = 1.
        seconds: that every part is repeated for.
        repeats: whole calls of each kind.
        peer_draws: entries per call of OpenDP's sampler.

    Raises:
        ParameterError: numba is not installed.
    """
    usable = parallel.threads()
    fast.disable()
    counter = Counter(1.0, horizon=horizon, simulation_seed=1)
    parts = {"plain": _parts(counter, seconds=seconds, repeats=repeats)}
    rates: list[dict[str, Any]] = [
        {"path": "plain", "threads": 1, "steps_per_s": 1e9 / parts["plain"]["extend"]}
    ]
    begin = time.perf_counter()
    fast.enable()
    loading = time.perf_counter() - begin
    parts["fast"] = _parts(counter, seconds=seconds, repeats=repeats)
    floor = _floor(counter, seconds=seconds)
    rates.append({"path": "fast", "threads": 1, "steps_per_s": 1e9 / parts["fast"]["extend"]})
    if usable > 1:
        rate = _rate(horizon, threads=usable, repeats=repeats)
        rates.append({"path": "fast", "threads": usable, "steps_per_s": rate})
    scale = max(1, round(counter.setup.ledger.scales[0]))
    peers = [opendp_rate(scale, peer_draws, repeats=4 * repeats, clock=c) for c in _CLOCKS.values()]
    for row in rates:
        row["clock"], peer = ("processor", peers[0]) if row["threads"] == 1 else ("wall", peers[1])
        row["times_opendp"] = None if peer is None else float(row["steps_per_s"]) / peer
    return {
        "horizon": horizon,
        "chain": list(counter.setup.names or ()),
        "machine": f"{platform.machine()}, {usable} processors, {_load()}",
        "ns_a_step": parts,
        "floor": floor,
        "loading_s": loading,
        "opendp_samples_per_s": dict(zip(_CLOCKS, peers, strict=True)),
        "rates": rates,
    }


def main(arguments: list[str] | None = None) -> None:
    """Run the measurements from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--horizon", type=int, default=1 << 20, help="released steps")
    parser.add_argument("--seconds", type=float, default=1.0, help="that every part is repeated for")
    parser.add_argument("--repeats", type=int, default=9, help="whole calls of each kind")
    parser.add_argument("--peer-draws", type=int, default=20_000, help="entries per call of OpenDP's sampler")
    parser.add_argument("--out", type=Path, help="JSON file to write instead of printing")
    parser.add_argument("--page", type=Path, help="only write the page, from the record named by --out")
    chosen = parser.parse_args(arguments)
    if chosen.page is not None:
        if chosen.out is None:
            parser.error("--page needs --out, the record")
        record = json.loads(chosen.out.read_text(encoding="utf-8"))
        chosen.page.write_text(page(record), encoding="utf-8")
        return
    result = measure(
        horizon=chosen.horizon,
        seconds=chosen.seconds,
        repeats=chosen.repeats,
        peer_draws=chosen.peer_draws,
    )
    text = json.dumps(result, indent=1) + "\n"
    if chosen.out is None:
        sys.stdout.write(text)
    else:
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
