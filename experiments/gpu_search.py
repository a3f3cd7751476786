"""A search on whatever accelerator there is: does it agree with the processor, and what does it find?

    experiments/gpu_search.sh [--size 2049] [--agreement 257] [--seconds 400] [--steps N] [--out FILE]

Prints JSON objects, one a line: the device, whether it computes in double precision, how its objective,
gradient and a short search at ``--agreement`` differ from the processor's, the estimate, the progress of a
search of a mean stage of ``--size`` from nothing, and what it came to. Exit code 1: the device disagrees.
Needs jax, optax, numpy and scipy alone. ``--out`` takes the best stage in floats, as a warm start for later.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from trilift.factorize import SearchResult, estimate_cost, search_stage
from trilift.factorize.checkpoint import write_arrays
from trilift.factorize.objective import Annealed, objective_and_gradient
from trilift.factorize.precision import PrecisionError, check_double, double_precision
from trilift.factorize.state import stage_from
from trilift.lift.checks import finite, integer
from trilift.lift.errors import TriliftError
from trilift.lift.stage import FloatArray

__all__ = ["agreement", "main"]

VALUE_TOLERANCE, GRADIENT_TOLERANCE = 1e-11, 1e-8
"""Relative differences that are left to rounding, at condition numbers of some hundreds."""

_MOST_STEPS = 20_000
_TRIAL_STEPS = 10
_PROGRESS_EVERY = 10.0  # seconds


def _say(event: str, **record: Any) -> None:
    print(json.dumps({"event": event, **record}), flush=True)


def agreement(size: int, *, steps: int = 30) -> dict[str, Any]:
    """Compare the default device with the processor, and both with numpy, at one point and after a search.

    The point's differences are rounding and decide; those after a search have grown with every step.
    """
    rng = np.random.default_rng(size)
    V = np.eye(size) + 0.5 * rng.standard_normal((size, size)) / np.sqrt(size)
    v = rng.uniform(0.0, 0.5, size)
    processor = jax.devices("cpu")[0]
    value, gradient = _point(V, v)
    with jax.default_device(processor):
        value_there, gradient_there = _point(V, v)
        there = _short_search(size, steps)
    here = _short_search(size, steps)
    plain = np.log(stage_from(V, v, kind="two-sided").row_norms_sq().mean())
    record = {
        "size": size,
        "value_difference": abs(value - value_there) / abs(value_there),
        "gradient_difference": float(
            np.max(np.abs(gradient - gradient_there)) / np.max(np.abs(gradient_there))
        ),
        "numpy_difference": abs(value - float(plain)) / abs(float(plain)),
        "search_steps": steps,
        "kappa": here.cost,
        "kappa_on_processor": there.cost,
    }
    record["agrees"] = bool(
        record["value_difference"] <= VALUE_TOLERANCE
        and record["numpy_difference"] <= VALUE_TOLERANCE
        and record["gradient_difference"] <= GRADIENT_TOLERANCE
    )
    return record


def _point(V: FloatArray, v: FloatArray) -> tuple[float, FloatArray]:
    with double_precision():
        annealed = Annealed(jnp.asarray(1e-12), jnp.asarray(1.0))
        function = jax.jit(partial(objective_and_gradient, kind="two-sided"))
        value, (by_V, by_v) = function(jnp.asarray(V), jnp.asarray(v), annealed)
        return float(value), np.concatenate([np.asarray(by_V).ravel(), np.asarray(by_v)])


def _short_search(size: int, steps: int) -> SearchResult:
    return search_stage(size, objective="mean", steps=steps, starts=1, seed=1, progress=False)


def _search(size: int, *, steps: int | None, seconds: float, out: Path | None) -> None:
    began = time.perf_counter()
    if steps is None:
        steps = _fitting_steps(size, 0.9 * seconds)
    cost = estimate_cost(size, steps=steps, starts=1)
    _say("estimate", size=size, steps=steps, memory_bytes=cost.memory_bytes)
    last = time.perf_counter()

    def report(step: int, total: int, kappa: float) -> None:
        nonlocal last
        if time.perf_counter() - last >= _PROGRESS_EVERY or step == total:
            last = time.perf_counter()
            shown = kappa if np.isfinite(kappa) else None
            _say("progress", step=step, steps=total, kappa=shown, seconds=round(last - began, 2))

    left = max(1.0, seconds - (time.perf_counter() - began))
    result = search_stage(
        size, objective="mean", steps=steps, starts=1, spread=(0.4, 0.4), seconds=left, progress=report
    )
    stage = result.stage
    if stage is not None and out is not None:
        write_arrays(out, A=stage.A, B=stage.B, w=stage.w, g=stage.g)
    _say(
        "done",
        size=size,
        status=result.status.value,
        steps=result.steps,
        kappa=result.cost if stage is not None else None,
        residual=None if stage is None else stage.residual(),
        seconds=round(time.perf_counter() - began, 2),
        versions=result.versions,
    )


def _fitting_steps(size: int, seconds: float) -> int:
    """Return how many steps fit into the time, by doing a few (twice: the first time compiles)."""
    began = time.perf_counter()
    for _ in range(2):
        trial = time.perf_counter()
        search_stage(size, objective="mean", steps=_TRIAL_STEPS, starts=1, progress=False)
        each = (time.perf_counter() - trial) / _TRIAL_STEPS
    left = seconds - (time.perf_counter() - began)
    return int(np.clip(left / each, 100, _MOST_STEPS))


def main(arguments: list[str] | None = None) -> int:
    """Check the device and search on it; return the exit status."""
    parser = argparse.ArgumentParser(description="A search on the accelerator, compared with the processor.")
    parser.add_argument("--size", type=int, default=2049, help="of the stage to search")
    parser.add_argument("--agreement", type=int, default=257, help="size at which devices are compared")
    parser.add_argument("--seconds", type=float, default=400.0, help="time for the search")
    parser.add_argument("--steps", type=int, default=None, help="steps; default what fits into the time")
    parser.add_argument("--out", type=Path, default=None, help=".npz file for the best stage, in floats")
    options = parser.parse_args(arguments)
    try:
        size = integer("size", options.size, minimum=2)
        compared = integer("agreement", options.agreement, minimum=2)
        seconds = finite("seconds", options.seconds, above=0)
        steps = None if options.steps is None else integer("steps", options.steps, minimum=1)
        device = jax.devices()[0]
        _say(
            "device",
            platform=device.platform,
            kind=device.device_kind,
            count=len(jax.local_devices()),
            jax=jax.__version__,
        )
        with double_precision():
            check_double()
        _say("precision", float64=True)
        record = agreement(compared)
        _say("agreement", **record)
        if not record["agrees"]:
            return 1
        _search(size, steps=steps, seconds=seconds, out=options.out)
    except PrecisionError as error:
        _say("precision", float64=False, reason=str(error))
        return 1
    except TriliftError as error:
        _say("error", reason=str(error))
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
