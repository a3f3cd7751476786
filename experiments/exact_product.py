"""Prove L R = T_n for a whole chain by the exact dense product: the slow check of the level-wise code.

    python -m trilift.experiments.exact_product --horizon 4096 stage-mean-17 stage-mean-17 direct-mean-16

The levels are multiplied one after the other, L R = sum over levels of L_l R_l, in integers; nothing of the
recursive structure is used but the matrices that :func:`trilift.lift.materialise` builds.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from fractions import Fraction

import numpy as np
from trilift.counters import chain_of
from trilift.lift import Chain, Dyadic, lower_ones, materialise

__all__ = ["ProductCheck", "exact_product"]


@dataclass(frozen=True)
class ProductCheck:
    """The outcome of one dense check.

    Attributes:
        horizon: n.
        sizes: sizes of the levels, finest first.
        inner: number of inner coordinates of L R.
        equal: whether L R = T_n in every entry.
        largest_defect: largest absolute entry of L R - T_n, exact, as "p/q".
        seconds: time taken.
    """

    horizon: int
    sizes: tuple[int, ...]
    inner: int
    equal: bool
    largest_defect: str
    seconds: float


def exact_product(chain: Chain, horizon: int) -> ProductCheck:
    """Multiply the dense exact factors of a chain and compare with T_n.

    Memory and time grow as n^2 and n^3: n = 4096 takes minutes and several GiB.
    """
    begun = time.perf_counter()
    dense = materialise(chain, horizon)
    total = Dyadic.zeros((horizon, horizon))
    for level in range(len(chain.levels)):
        chosen = dense.level == level
        total = total + dense.L[:, chosen].normalized() @ dense.R[chosen].normalized()
    defect = abs(total - Dyadic(lower_ones(horizon)))
    largest: Fraction = defect.max()
    return ProductCheck(
        horizon=horizon,
        sizes=chain.sizes,
        inner=int(np.asarray(dense.level).size),
        equal=largest == 0,
        largest_defect=str(largest),
        seconds=round(time.perf_counter() - begun, 1),
    )


def main() -> int:
    """Run the check from the command line; exit code 1 when the product is not T_n."""
    parser = argparse.ArgumentParser(description="Exact dense product of a chain.")
    parser.add_argument("names", nargs="+", help="artifacts, finest first, the top last")
    parser.add_argument("--horizon", type=int, required=True)
    arguments = parser.parse_args()
    result = exact_product(chain_of(arguments.names), arguments.horizon)
    print(json.dumps(asdict(result)))
    return 0 if result.equal else 1


if __name__ == "__main__":
    raise SystemExit(main())
