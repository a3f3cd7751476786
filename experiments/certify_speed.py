"""How much faster a stage is certified than by rational sympy matrices of the same size, in the same run.

    python -m trilift.experiments.certify_speed [--sizes 9 33 129] [--json]

``certify`` does everything: the product over the integers, ranges, norms, interior norms, kappas, hash. It is
compared with three things that a verifier on sympy ``Matrix`` objects of Rationals may do:

* the same task: build the matrices, multiply them, compare, add up row and column norms (no interior norms);
* one product of full matrices of the same shapes and numbers of binary places;
* one product A B of the stage itself, most of whose entries are zero, which sympy's sparse form leaves out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from trilift.artifacts import find
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import CertificateError
from trilift.lift.stage import Stage
from trilift.verify import certify

__all__ = ["compare", "main"]


def compare(size: int, *, repeats: int = 3) -> dict[str, Any]:
    """Time certification of the shipped mean stage of ``size`` and its rivals; seconds and ratios.

    Raises:
        ParameterError: no stage of that size is shipped.
        CertificateError: the exact product is not the one that sympy gets.
    """
    stage = find(f"stage-mean-{size}").stage
    ours = min(_seconds(lambda: certify(stage, objective="mean")) for _ in range(repeats))
    task = _seconds(lambda: _certify_by_sympy(stage))
    rng = np.random.default_rng(0)
    full = [rng.integers(-(2**34), 2**34, part.shape) for part in (stage.A, stage.B)]
    C, D = (_rational(Dyadic(num, part.exp)) for num, part in zip(full, (stage.A, stage.B), strict=True))
    A, B = _rational(stage.A), _rational(stage.B)
    times = {"sympy_task": task, "sympy_full_product": _product(C, D), "sympy_sparse_product": _product(A, B)}
    record: dict[str, Any] = {"size": size, "inner": stage.inner, "certify_seconds": ours}
    record.update({f"{name}_seconds": value for name, value in times.items()})
    record.update({f"{name}_ratio": value / ours for name, value in times.items()})
    return record


def _rational(values: Dyadic) -> Any:
    from sympy import Matrix, Rational

    return Matrix([[Rational(x.numerator, x.denominator) for x in row] for row in values.fractions()])


def _product(left: Any, right: Any) -> float:
    return _seconds(lambda: left * right)


def _certify_by_sympy(stage: Stage) -> None:
    """Prove T = A B + w (1 - v)^T and take the norms, with rational matrices."""
    A, B = _rational(stage.A), _rational(stage.B)
    w, g = _rational(stage.w[:, None]), _rational(stage.g[:, None])
    m, r = A.shape
    rest = (B.T * g).applyfunc(lambda x: 1 - x)
    product = A * B + w * rest.T
    if any(product[i, j] != int(j <= i) for i in range(m) for j in range(m)):
        raise CertificateError("the product of rational matrices is not T")
    gram = sum(x**2 for x in g)
    max(sum(A[i, k] ** 2 for k in range(r)) + (1 - w[i]) ** 2 * gram for i in range(m))
    max(sum(abs(B[k, j]) for k in range(r)) for j in range(m))


def _seconds(task: Callable[[], Any]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def main(arguments: list[str] | None = None) -> int:
    """Print a line per size, or JSON."""
    parser = argparse.ArgumentParser(description="Certification against rational sympy matrices, as ratios.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[9, 17, 33, 65, 129])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    records = [compare(size) for size in options.sizes]
    if options.json:
        print(json.dumps(records, indent=1))
        return 0
    print("   m     r  certify   same task        full product     sparse product")
    for record in records:
        rivals = ("sympy_task", "sympy_full_product", "sympy_sparse_product")
        cells = [f"{record[f'{name}_seconds']:7.3f} s {record[f'{name}_ratio']:5.1f}x" for name in rivals]
        print(
            f"{record['size']:4d}  {record['inner']:4d} {record['certify_seconds']:7.4f} s {'  '.join(cells)}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
