"""trilift's own figures, in a process of their own as the peers': reads requests as JSON, prints JSON.

A counter is {"kind", "n", "objective"}: "default" is ``Counter`` as it comes, "best" its chain of least exact
error among all that are shipped, "averaged" the averaged k-ary tree's streaming relative of an arity;
"gaussian" and "gaussian-best" are the same for ``GaussianCounter``. epsilon = 1, delta = 10^-6. "chain",
names of artifacts, spares the search for the best.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from fractions import Fraction
from importlib.metadata import version
from typing import Any

import numpy as np
from trilift.counters import Counter, GaussianCounter

__all__ = ["DELTA", "answer", "errors", "make", "optimise", "speed"]

DELTA = Fraction(1, 10**6)
_CHUNK = 1 << 16
_SLOW_SETUP = 0.5


def _chain(asked: Mapping[str, Any]) -> Any:
    """Return the chain that a counter is asked to use, None for its own choice."""
    if asked.get("chain"):
        return asked["chain"]
    kind, n, objective = asked["kind"], asked["n"], asked["objective"]
    if kind == "best":
        from trilift.experiments.results import best_chain

        return best_chain(n, objective).names
    if kind == "averaged":
        from trilift.lift.tree_chains import averaged_chain

        return averaged_chain(n, arity=asked["arity"])
    if kind == "gaussian-best":
        from trilift.experiments.gaussian import chain_row

        chains = chain_row(n).chain
        return None if chains is None else chains[objective == "mean"]
    return None


def make(asked: Mapping[str, Any], chain: Any) -> Any:
    """Return a counter over a chain, or over its own choice if None."""
    common: dict[str, Any] = {"horizon": asked["n"], "chain": chain, "simulation_seed": 1}
    if chain is None:
        common["objective"] = asked["objective"]
    if asked["kind"].startswith("gaussian"):
        return GaussianCounter(1, DELTA, **common)
    return Counter(1, **common)


def errors(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the exact largest and mean variance of released values, and the chain's names.

    From the noise scales that are used, in integers, and the rounding of the sum (1/12).
    """
    counter = make(asked, _chain(asked))
    n = asked["n"]
    parts = [
        np.asarray(counter._noises[0].variance(np.arange(begin, min(begin + _CHUNK, n))))
        for begin in range(0, n, _CHUNK)
    ]
    steps = np.concatenate(parts)
    return {"max": float(steps.max()), "mean": float(steps.mean()), "chain": list(counter.setup.names or ())}


def speed(asked: Mapping[str, Any], seconds: float, path: str) -> float:
    """Return released steps a second of one core: the fastest of the runs within some seconds, the first not.

    Args:
        asked: the counter.
        seconds: that runs are repeated for.
        path: "plain" or "fast", the kernels of the extra of that name.
    """
    from trilift.stream import fast

    (fast.enable if path == "fast" else fast.disable)()
    n, chain = asked["n"], _chain(asked)
    begin = time.process_time()
    counter = make(asked, chain)
    setup = time.process_time() - begin
    if setup > _SLOW_SETUP:  # the large ones prove their ledgers for seconds: one counter, in four pieces
        piece = np.ones(n // 4, dtype=np.int64)
        return float(piece.size / min([_extend(counter, piece) for _ in range(4)][1:]))
    ones = np.ones(n, dtype=np.int64)
    _extend(counter, ones)
    best, spent, runs = float("inf"), 0.0, 0
    while spent < seconds or runs < 3:
        took = _extend(make(asked, chain), ones)
        best, spent, runs = min(best, took), spent + took, runs + 1
    return float(n / best)


def _extend(counter: Any, ones: Any) -> float:
    begin = time.process_time()
    counter.extend(ones)
    return time.process_time() - begin


def optimise(n: int) -> dict[str, Any]:
    """Search a factorisation of T_n for the mean squared error under the l2 norm, and time it."""
    from trilift.factorize import search_l2_direct

    begin = time.process_time()
    found = search_l2_direct(n, objective="mean", progress=False)
    return {"n": n, "seconds": time.process_time() - begin, "value": float(found.gamma**2)}


def answer(request: Mapping[str, Any]) -> Any:
    """Do what one request asks for."""
    if request["do"] == "optimise":
        return optimise(request["n"])
    if request["do"] == "errors":
        return errors(request["counter"])
    return speed(request["counter"], request["seconds"], request["path"])


def main() -> None:
    """Answer a list of requests; what is asked twice, for the same chain, is measured once."""
    known: dict[str, Any] = {}
    answers = []
    for request in json.load(sys.stdin):
        same = {**request, "counter": {**request["counter"], "objective": ""}} if _same(request) else request
        name = json.dumps(same)
        if name not in known:
            known[name] = answer(request)
        answers.append(known[name])
    json.dump({"version": version("trilift"), "answers": answers}, sys.stdout)


def _same(request: Mapping[str, Any]) -> bool:
    """Say whether a request names its chain, so that the objective has nothing more to choose."""
    return bool(request["do"] == "speed" and request["counter"].get("chain"))


if __name__ == "__main__":
    main()
