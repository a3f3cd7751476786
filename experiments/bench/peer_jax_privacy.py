"""What jax_privacy does, by its own code, in its own environment: reads a request as JSON, prints JSON.

Not imported by trilift: run as a script by another interpreter. Requests: {"do": "optimise", "n"}: its
optimiser of buffered linear Toeplitz (BLT) matrices for the worst step; {"do": "dense", "n"}: its optimiser
of dense matrices for the mean; {"do": "errors", "n", "blt"}: squared errors of each step per unit of
Gaussian noise, times the squared sensitivity (one input changed by 1, which is its single participation);
{"do": "speed", "n", "blt", "seconds"}: released steps a second, after compilation; {"do": "sigma", "epsilon",
"delta"}: standard deviation for sensitivity 1.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module, metadata
from typing import Any

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
accounting: Any = import_module("dp_accounting")
blts: Any = import_module("jax_privacy.matrix_factorization.buffered_toeplitz")
dense: Any = import_module("jax_privacy.matrix_factorization.dense")
streaming: Any = import_module("jax_privacy.matrix_factorization.streaming_matrix")
toeplitz: Any = import_module("jax_privacy.matrix_factorization.toeplitz")


def optimise(n: int) -> dict[str, Any]:
    """Return the parameters of the BLT that its optimiser finds by default, and the seconds it takes."""
    begin = time.process_time()
    found = blts.optimize(n=n, error="max")
    seconds = time.process_time() - begin
    return {
        "n": n,
        "seconds": seconds,
        "value": float(blts.max_loss(found, n)),
        "buf_decay": [float(x) for x in found.buf_decay],
        "output_scale": [float(x) for x in found.output_scale],
    }


def optimise_dense(n: int) -> dict[str, Any]:
    """Return the mean squared error per unit of noise that its dense optimiser reaches, and its seconds."""
    begin = time.process_time()
    strategy = dense.optimize(n)
    seconds = time.process_time() - begin
    value = dense.per_query_error(strategy_matrix=strategy).mean()
    return {"n": n, "seconds": seconds, "value": float(value * (strategy**2).sum(axis=0).max())}


def _inverse(blt: dict[str, Any]) -> tuple[Any, Any]:
    made = blts.BufferedToeplitz.build(buf_decay=blt["buf_decay"], output_scale=blt["output_scale"])
    return made, made.inverse()


def errors(n: int, blt: dict[str, Any] | None) -> dict[str, float]:
    """Return max and mean squared error per unit of noise, times the squared sensitivity."""
    if blt is None:  # the square root of the matrix of ones, which is its own left factor
        strategy = toeplitz.optimal_max_error_strategy_coefs(n)
        steps = jnp.cumsum(strategy**2) * toeplitz.sensitivity_squared(strategy)
    else:
        made, inverse = _inverse(blt)
        coefs = inverse.toeplitz_coefs(n)
        steps = toeplitz.per_query_error(noising_coef=coefs) * blts.sensitivity_squared(made, n)
    return {"max": float(steps.max()), "mean": float(steps.mean())}


def _released(n: int, blt: dict[str, Any]) -> Any:
    """Return a compiled function of a key and the inputs: all released values."""
    _, inverse = _inverse(blt)
    matrix = streaming.multiply_streaming_matrices(streaming.prefix_sum(), inverse.as_streaming_matrix())

    def released(key: Any, x: Any) -> Any:
        return jnp.cumsum(x) + streaming.multiply_array(matrix, jax.random.normal(key, (n,)))

    return jax.jit(released)


def speed(n: int, blt: dict[str, Any], seconds: float) -> float:
    """Return released steps a second of one core: the fastest of the calls within some seconds."""
    released, x = _released(n, blt), jnp.ones(n)
    released(jax.random.key(0), x).block_until_ready()
    best, spent, call = float("inf"), 0.0, 1
    while spent < seconds or call < 4:
        begin = time.process_time()
        released(jax.random.key(call), x).block_until_ready()
        took = time.process_time() - begin
        best, spent, call = min(best, took), spent + took, call + 1
    return n / best


def answer(request: dict[str, Any]) -> Any:
    """Do what one request asks for."""
    n, blt = request.get("n", 0), request.get("blt")
    if request["do"] == "sigma":
        return accounting.get_sigma_gaussian(request["epsilon"], request["delta"])
    if request["do"] == "optimise":
        return optimise(n)
    if request["do"] == "dense":
        return optimise_dense(n)
    if request["do"] == "errors":
        return errors(n, blt)
    return speed(n, request["blt"], request["seconds"])


def main() -> None:
    """Answer a list of requests."""
    jax.config.update("jax_enable_x64", True)
    answers = [answer(request) for request in json.load(sys.stdin)]
    json.dump({"version": metadata.version("jax_privacy"), "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()
