"""What dpcrpy does, by its own code, in its own environment: reads requests as JSON, prints JSON.

Not imported by trilift: run as a script by another interpreter. A mechanism is {"name", "order", "arity"}:
its "BinMech", "Honaker" and "KTCR" are repeated over blocks of arity^order steps by its own framework, "FDA"
over blocks of 2^order - 1, "AuBCR" is one block of 2^order. Noise is Laplace, epsilon = 1, for one input
changed by 1, which is what its getL1Sens is about.

KTCR is made for Gaussian noise: its getL1Sens raises AttributeError in this version, and its budgets are the
best under the l2 norm. It is taken with equal budgets 1/(h+1) for its h+1 levels, of which a column's l1
norm is sqrt(h+1), and with the least variances that it computes itself.
"""

from __future__ import annotations

import json
import math
import sys
import time
from importlib import import_module, metadata
from typing import Any

dpcrpy: Any = import_module("dpcrpy")


class _EqualBudgets(dpcrpy.KTCR):  # type: ignore[misc]
    """KTCR with equal budgets and the l1 sensitivity that its own method fails to return."""

    def getL1Sens(self) -> float:
        return math.sqrt(self.h + 1)


def _block(mechanism: dict[str, Any]) -> Any:
    name, order = mechanism["name"], mechanism["order"]
    if name == "KTCR":
        made = _EqualBudgets(h=order, k=mechanism["arity"], withPrivateBudget=False)
    else:
        made = getattr(dpcrpy, name)(order)
    return made.setNoiMech(dpcrpy.noiMech.LapNoiMech(epsilon=1.0))


def errors(n: int, mechanism: dict[str, Any]) -> dict[str, float]:
    """Return the largest and the mean squared error of n steps, from those that the package states.

    They repeat with the blocks, and those of finished blocks add up, as in its framework.
    """
    block = _block(mechanism)
    own: list[float] = []
    for _ in range(min(n, block.size())):
        own.append(float(block.dpRelease(0)[1]))
    size, last = len(own), own[-1]
    worst = max((t // size) * last + max(own[: min(size, n - t)]) for t in range(0, n, size))
    total = math.fsum(
        (t // size) * last * min(size, n - t) + math.fsum(own[: min(size, n - t)]) for t in range(0, n, size)
    )
    return {"max": worst, "mean": total / n}


def speed(n: int, mechanism: dict[str, Any], seconds: float) -> float:
    """Return released steps a second of one core: the fastest of the runs within some seconds."""
    best, spent, runs = float("inf"), 0.0, 0
    steps = min(n, 1 << 13)
    while spent < seconds or runs < 3:
        whole = dpcrpy.dpCrFw(lambda _: _block(mechanism))
        whole.dpRelease(1)  # makes the block
        begin = time.process_time()
        for _ in range(steps - 1):
            whole.dpRelease(1)
        took = time.process_time() - begin
        best, spent, runs = min(best, took), spent + took, runs + 1
    return (steps - 1) / best


def answer(request: dict[str, Any]) -> Any:
    """Do what one request asks for."""
    if request["do"] == "errors":
        return errors(request["n"], request["mechanism"])
    return speed(request["n"], request["mechanism"], request["seconds"])


def main() -> None:
    """Answer a list of requests."""
    answers = [answer(request) for request in json.load(sys.stdin)]
    json.dump({"version": metadata.version("dpcrpy"), "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()
