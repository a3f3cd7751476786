"""The mechanisms themselves, with exact noise, do what the simulation says."""

import math
from fractions import Fraction

import numpy as np
import pytest
from trilift.counters.edit.design import make_design
from trilift.counters.edit.mechanism import ECC, SimECC
from trilift.experiments.edit.designs import mechanism_of
from trilift.experiments.edit.points import Point, run_point
from trilift.experiments.edit.streams import block_stream

STREAM = block_stream(1500)


@pytest.mark.parametrize(
    ("mechanism", "accounting", "base", "display"),
    [
        ("simecc", "sharp", "toeplitz", "extrapolated"),
        ("simecc", "paper", "cc", "latest"),
        ("ecc", "sharp", "toeplitz", "latest"),
    ],
)
def test_errors(mechanism: str, accounting: str, base: str, display: str) -> None:
    """Mean error of 12 exact runs against 400 simulated ones: 5 standard errors of both.

    With 12 runs the standard error is itself an estimate: false alarm below 1e-3 each; seeds are fixed.
    """
    design = make_design(
        30,
        delta=Fraction(1, 10**5),
        mechanism=mechanism,
        accounting=accounting,
        base=base,
        horizon=STREAM.steps,
        rate=0.5,
        display=display,
    )
    errors = []
    rng = np.random.default_rng(8)
    made = ECC if mechanism == "ecc" else SimECC
    for seed in range(12):
        prefix = STREAM.draw(rng, runs=1, shift=False).prefix[0]
        released = made.of(design, simulation_seed=seed).extend(np.diff(prefix).tolist())
        error = np.asarray(released, dtype=float) - prefix[1:]
        errors.append(math.sqrt(float(error @ error) / error.size))
    simulated = mechanism_of(design)
    point = Point("x", "x", "x", 1.0, -1.0, STREAM, lambda: simulated, attack=False)
    record = run_point(point, runs=400, seed=5)
    allowed = 5 * math.hypot(record["rmse_se"], np.std(errors, ddof=1) / math.sqrt(12))
    assert abs(record["rmse"] - np.mean(errors)) <= allowed
    assert allowed < 0.35 * record["rmse"]
