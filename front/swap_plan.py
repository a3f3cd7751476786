"""``trilift plan`` with ``--delta`` or ``--unbounded`` for swaps: Gaussian noise, counters without an end."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from trilift.curves import Curve
from trilift.lift.errors import ParameterError
from trilift.output import print_json, print_pairs, print_table, write

__all__ = ["plan_swap", "planned_variances"]

_NOMINAL = 10**5
_POINTS = 1 << 15
_DRAWN = 2000  # points of a picture
_TOEPLITZ_MOST = 1 << 20
_GROWTHS = ("tapered", "relay", "doubling")


def plan_swap(
    epsilon: Fraction,
    *,
    delta: Fraction | None,
    horizon: int | None,
    unbounded: bool,
    objective: str | None,
    html: Path | None,
    json: bool,
) -> None:
    """Price counters with Gaussian noise, or without a horizon, and print them.

    Args:
        epsilon: > 0.
        delta: None for pure differential privacy (then ``unbounded``).
        horizon: number of steps planned for; with ``unbounded``, over which errors are taken.
        unbounded: counters without a horizon.
        objective: "max" or "mean", the error that decides.
        html: file of a report, or None.
        json: print JSON.

    Raises:
        ParameterError: an argument that is missing or not acceptable.
    """
    if horizon is None and not unbounded:
        raise ParameterError("--horizon is needed, or --unbounded")
    steps = _NOMINAL if horizon is None else horizon
    wanted = ("mean" if unbounded else "max") if objective is None else objective
    points = np.unique(np.linspace(0, steps - 1, min(steps, _POINTS)).astype(np.int64))
    variants, curves = [], []
    for options in _options(delta, steps, unbounded):
        variances = planned_variances(
            epsilon, delta, None if unbounded else steps, points, objective=wanted, **options
        )
        label = " ".join(options.values())
        thin = slice(None, None, -(-len(points) // _DRAWN))
        curves.append(Curve(label, points[thin] + 1, np.sqrt(variances[thin])))
        errors = {"max_se": float(variances.max()), "mean_se": float(variances.mean())}
        variants.append({"mechanism": "chain", "growth": None, **options, **errors})
    variants.sort(key=lambda variant: float(variant[f"{wanted}_se"]))
    chosen = next(v for v in variants if v["growth"] in (None, _GROWTHS[0]))  # what trilift count takes
    about = {"neighbours": "swap", "epsilon": str(epsilon), "delta": None if delta is None else str(delta)}
    place = {"horizon": None if unbounded else steps, "steps": steps, "objective": wanted}
    record = {**about, **place, "points": len(points), "variants": variants, "chosen": chosen}
    budget = f"--epsilon {epsilon}" + ("" if delta is None else f" --delta {float(delta):g}")
    length = "--unbounded" if unbounded else f"--horizon {steps}"
    law = "" if delta is None or unbounded else f" --mechanism {chosen['mechanism']}"
    use = f"trilift count FILE {budget} {length}{law} --objective {wanted}"
    if html is not None:
        from trilift.reports import swap_report, written

        written(swap_report(record, curves, use=use), html)
    if json:
        print_json(record)
        return
    noise = "Laplace noise" if delta is None else f"Gaussian noise, delta {float(delta):.6g}"
    print_table(
        f"{noise}, epsilon {epsilon}, {steps} steps{' of a stream without end' if unbounded else ''}",
        ["mechanism", "epochs", "sd of worst step", "typical sd"],
        [
            [v["mechanism"], v["growth"] or "", f"{v['max_se'] ** 0.5:.6g}", f"{v['mean_se'] ** 0.5:.6g}"]
            for v in variants
        ],
        left=("mechanism", "epochs"),
    )
    write(f"taken over {len(points)} evenly spaced steps\n" if len(points) < steps else "")
    print_pairs({"use": use})


def _options(delta: Fraction | None, steps: int, unbounded: bool) -> list[dict[str, Any]]:
    """Return what distinguishes the counters that are compared."""
    if unbounded:
        return [{"growth": growth} for growth in _GROWTHS]
    names = ("chain", "toeplitz") if steps <= _TOEPLITZ_MOST else ("chain",)
    return [{"mechanism": name} for name in names]


def planned_variances(
    epsilon: Fraction, delta: Fraction | None, horizon: int | None, points: Any, **options: Any
) -> Any:
    """Return the variances that a counter's releases would have, which do not depend on its key.

    Args:
        epsilon: > 0.
        delta: None for Laplace noise, else for Gaussian.
        horizon: None for a counter without one.
        points: 0-based steps, shape (k,).
        **options: of :class:`trilift.Counter` or :class:`trilift.GaussianCounter`.

    Returns:
        Shape (k,), in squared units of the count.

    Raises:
        ParameterError, HorizonError: as making the counter.
    """
    from trilift.counters import Counter, GaussianCounter
    from trilift.stream.keys import simulation_key

    if delta is None:
        setup: Any = Counter(epsilon, horizon=horizon, **options).setup
    else:
        setup = GaussianCounter(epsilon, delta, horizon=horizon, **options).setup
    noises, _ = setup.processes(purposes=["plan"], key=simulation_key(0), stream_id=bytes(16), epochs={})
    return noises[0].variance(points)
