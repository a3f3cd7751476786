"""What OpenDP does, by its own code: reads requests as JSON, prints JSON.

Not imported by trilift: run as a script, by another interpreter if its pins ask for one. The mechanisms are
built from its primitives, with its exact discrete Laplace noise at the scale for which its own privacy map
says epsilon = 1 when one input changes by 1 (l1 distance 1):

    "consistent"   make_b_ary_tree, make_laplace, make_consistent_b_ary_tree, then prefix sums of the leaves
    "tree"         make_b_ary_tree and make_laplace; a step adds up the nodes that its base-b digits name
    "sampler"      make_laplace on a vector: not a counter, its speed alone
"""

from __future__ import annotations

import json
import math
import sys
import time
from importlib import import_module, metadata
from typing import Any

np: Any = import_module("numpy")
dp: Any = import_module("opendp.prelude")


def layers(leaves: int, branching: int) -> int:
    """Return how many layers a tree over these leaves has, the root among them."""
    count, reach = 1, 1
    while reach < leaves:
        count, reach = count + 1, reach * branching
    return count


def noisy_tree(leaves: int, branching: int) -> tuple[Any, float]:
    """Return the measurement of all nodes at epsilon = 1, by its own map, and its scale."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    tree = dp.t.make_b_ary_tree(*space, leaf_count=leaves, branching_factor=branching)
    scale = float(tree.map(1))
    made = tree >> dp.m.then_laplace(scale=scale)
    if made.map(1) > 1.0 + 1e-9:
        raise RuntimeError(f"its map says {made.map(1)}")
    return made, scale


def prefixes(nodes: Any, leaves: int, branching: int) -> Any:
    """Return the prefix sums read from the nodes, which come breadth first, root first."""
    count = layers(leaves, branching)
    values = np.asarray(nodes)
    sums = np.zeros(leaves, dtype=np.int64)
    end = len(values)
    t = np.arange(1, leaves + 1)
    size = 1
    for layer in range(count):  # leaves first
        width = -(-leaves // size) if layer < count - 1 else 1
        above = sum(branching**j for j in range(count - 1 - layer))
        level = values[above : min(above + width, end)]
        running = np.concatenate(([0], np.cumsum(level)))
        whole = t // size
        sums += running[whole] - running[whole // branching * branching]
        size *= branching
    return sums


def released(n: int, kind: str, branching: int) -> Any:
    """Return a function of the inputs: all released values."""
    made, _ = noisy_tree(n, branching)
    consistent = dp.t.make_consistent_b_ary_tree(branching)
    if kind == "tree":
        return lambda x: prefixes(made(x), n, branching)
    return lambda x: np.cumsum(consistent(made(x)))[:n]


def left_factor(n: int, kind: str, branching: int) -> tuple[Any, float]:
    """Return how released values depend on the nodes, column by column, and the scale of the noise."""
    made, scale = noisy_tree(n, branching)
    count = len(made([0] * n))
    consistent = dp.t.make_consistent_b_ary_tree(branching)
    unit = 1 << 20  # it takes integers
    columns = []
    for i in range(count):
        nodes = [0] * count
        nodes[i] = unit
        read = prefixes(nodes, n, branching) if kind == "tree" else np.cumsum(consistent(nodes))[:n]
        columns.append((np.asarray(read, dtype=float) / unit).tolist())
    return columns, scale


def errors(n: int, kind: str, branching: int) -> dict[str, float]:
    """Return the largest and the mean squared error, from every node's weights and the exact variance."""
    columns, scale = left_factor(n, kind, branching)
    norms = (np.asarray(columns) ** 2).sum(axis=0)
    variance = 0.5 / math.sinh(0.5 / scale) ** 2
    return {"max": float(norms.max() * variance), "mean": float(norms.mean() * variance)}


def speed(n: int, kind: str, branching: int, seconds: float) -> dict[str, Any]:
    """Return released steps (of the sampler: samples) a second, the fastest of the calls within some seconds.

    Also the mean squared error of every call, of which the true sums are known.
    """
    if kind == "sampler":
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
        call, x, true = dp.m.make_laplace(*space, scale=float(branching)), [0] * n, np.zeros(n)
    else:
        call, x, true = released(n, kind, branching), [1] * n, np.arange(1, n + 1)
    best, spent = float("inf"), 0.0
    squares: list[float] = []
    if n <= 1 << 16:
        call(x)
    while spent < seconds or not squares:
        begin = time.process_time()
        values = call(x)
        took = time.process_time() - begin
        squares.append(float(((np.asarray(values) - true) ** 2).mean()))
        best, spent = min(best, took), spent + took
    return {"rate": n / best, "squares": squares}


def answer(request: dict[str, Any]) -> Any:
    """Do what one request asks for."""
    n, kind, branching = request["n"], request["kind"], request["branching"]
    if request["do"] == "speed":
        return speed(n, kind, branching, request["seconds"])
    if request["do"] == "scale":
        return noisy_tree(n, branching)[1]
    if request["do"] == "left factor":
        return left_factor(n, kind, branching)
    if request["do"] == "errors":
        return errors(n, kind, branching)
    raise ValueError(f"unknown request {request['do']}")


def main() -> None:
    """Answer a list of requests."""
    dp.enable_features("contrib")
    answers = [answer(request) for request in json.load(sys.stdin)]
    json.dump({"version": metadata.version("opendp"), "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()
