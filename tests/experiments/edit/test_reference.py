"""Reference numbers, computed independently elsewhere, at a few hundred runs.

Each comparison is within 4.5 standard errors of both sides together: false alarm probability 7e-6 each.
"""

import math

import numpy as np
import pytest
from trilift.experiments.edit import reference
from trilift.experiments.edit.float_noise import IndependentNoise
from trilift.experiments.edit.mechanisms import EditCounter, delays
from trilift.experiments.edit.paper_constants import textbook_gaussian_constant
from trilift.experiments.edit.partitions import RandomLengths
from trilift.experiments.edit.plans import LN_DELTA
from trilift.experiments.edit.points import Point, run_point
from trilift.experiments.edit.streams import block_stream, constant_stream
from trilift.experiments.edit.unreproduced import why_not_published

BLOCKS = block_stream(10_000)
SPARSE = {T: constant_stream(T, rate=0.01) for T in (10**3, 10**4, 10**5)}


def error(make, stream, runs: int) -> tuple[float, float]:
    record = run_point(Point("x", "x", "x", 1.0, -1.0, stream, make, attack=False), runs=runs, seed=11)
    return record["rmse"], record["rmse_se"]


@pytest.mark.parametrize(
    ("make", "runs", "expected", "expected_se"),
    [
        (lambda: reference.gaussian_cc(150.0, ln_delta=LN_DELTA, steps=10**4), 100, 83.79, 0.01),
        (lambda: reference.base_cc(0.1, ln_delta=LN_DELTA), 600, 279.6, 1.1),
        (
            lambda: reference.partition_cc(0.1 * 1500 ** (2 / 11), ln_delta=LN_DELTA, steps=10**4),
            400,
            106.5,
            0.8,
        ),
        (
            lambda: reference.partition_cc(0.1 * 1500 ** (1 / 11), ln_delta=LN_DELTA, steps=10**4),
            400,
            186.1,
            1.4,
        ),
        (lambda: reference.simecc(150.0, ln_delta=LN_DELTA), 300, 49.7, 0.2),
        (lambda: reference.simecc(10.0, ln_delta=LN_DELTA), 300, 134.2, 0.8),
        (lambda: reference.simecc_joint(150.0, ln_delta=LN_DELTA, share=51), 300, 22.9, 0.1),
        (lambda: reference.simecc_joint(150.0, ln_delta=LN_DELTA, share=9), 300, 21.2, 0.1),
        (lambda: reference.simecc_joint(10.0, ln_delta=LN_DELTA, share=51), 300, 94.0, 0.5),
        (lambda: reference.simecc_joint(10.0, ln_delta=LN_DELTA, share=9), 300, 61.9, 0.5),
        (lambda: reference.ecc(150.0, ln_delta=LN_DELTA), 100, 70.0, 0.5),
    ],
)
def test_block_stream(make, runs: int, expected: float, expected_se: float) -> None:
    found, se = error(make, BLOCKS, runs)
    assert abs(found - expected) <= 4.5 * math.hypot(se, expected_se)


@pytest.mark.parametrize(
    ("make", "steps", "expected", "expected_se"),
    [
        (reference.simecc, 10**4, 18.9, 0.5),
        (reference.simecc, 10**5, 24.9, 1.0),
        (reference.ecc, 10**3, 5.8, 0.2),
        (reference.ecc, 10**4, 56.9, 0.6),
        (reference.ecc, 10**5, 458.0, 4.0),
    ],
)
def test_sparse_streams(make, steps: int, expected: float, expected_se: float) -> None:
    found, se = error(lambda: make(10.0, ln_delta=LN_DELTA), SPARSE[steps], 100 if steps < 10**5 else 20)
    assert abs(found - expected) <= 4.5 * math.hypot(se, expected_se)


def test_closed_forms() -> None:
    grid = 0.1 * 1500 ** (8 / 11)
    assert reference.gaussian_rmse(20.412, ln_delta=LN_DELTA, steps=10**4) == pytest.approx(325.98, abs=0.015)
    assert reference.gaussian_rmse(grid, ln_delta=LN_DELTA, steps=10**4) == pytest.approx(325.98, abs=0.02)
    assert reference.gaussian_rmse(150.0, ln_delta=LN_DELTA, steps=10**4) == pytest.approx(83.79, abs=0.01)
    for steps, expected in ((10**3, 133.0), (10**4, 570.6), (10**5, 2279.7), (10**6, 8713.5)):
        found = reference.gaussian_rmse(10.0, ln_delta=LN_DELTA, steps=steps)
        assert found == pytest.approx(expected, abs=0.06)
    for steps, expected in ((10**3, 15.8), (10**4, 50.0), (10**5, 158), (10**6, 500)):
        scales = reference.horizon_gaussian(10.0, ln_delta=LN_DELTA, steps=steps).noise.scales
        assert scales[-1] == pytest.approx(expected, rel=2e-3)


def test_the_published_error_comes_with_a_careless_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(epsilon: float, *, ln_delta: float) -> float:
        return textbook_gaussian_constant(epsilon, delta=math.exp(ln_delta))

    monkeypatch.setattr(reference, "gaussian_constant", careless)
    found, se = error(lambda: reference.simecc(150.0, ln_delta=LN_DELTA), BLOCKS, 300)
    assert abs(found - 30.7) <= 4.5 * math.hypot(se, 0.1)
    text = why_not_published()
    for figure in ("1e-52", "C = 1.390", "C = 0.792", "from 83.79 to 84.09"):
        assert figure in " ".join(text.split())


def test_delays_and_buckets_of_simecc() -> None:
    drawn = BLOCKS.draw(np.random.default_rng(0), runs=40)
    mechanism = reference.simecc(150.0, ln_delta=LN_DELTA)
    assert mechanism.rule.nominal == 13
    delay, buckets = delays(mechanism, prefix=drawn.prefix, rng=np.random.default_rng(1))
    assert delay == pytest.approx(88, abs=1)
    assert buckets == pytest.approx(485, abs=2)


@pytest.mark.parametrize("capacity", [None, 3])
def test_without_noise_the_last_checkpoint_that_is_due_is_shown(capacity: int | None) -> None:
    """Checkpoints every 4 steps, shown 2 steps later."""
    none = IndependentNoise(np.zeros(100))
    rule = RandomLengths(4, drift=0.0, scale=1e-3)
    mechanism = EditCounter(rule, none, none, lambda count: np.full(count, 2.0), capacity)
    prefix = BLOCKS.draw(np.random.default_rng(0), runs=2).prefix[:, :51]
    outputs = mechanism.simulate(prefix, rng=np.random.default_rng(1))
    last = 50 if capacity is None else 12
    for row, sums in zip(outputs, prefix, strict=True):
        assert row.tolist() == [float(sums[min(max(t - 2, 0) // 4 * 4, last)]) for t in range(1, 51)]
