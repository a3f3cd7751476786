"""The public matrices are those of the noise, and the scores are likelihood ratios."""

from typing import Any

import numpy as np
import pytest
from trilift import Counter, GaussianCounter
from trilift.experiments.audit.noise_matrices import matrices
from trilift.experiments.audit.ratios import Ratios, masked, trailing_zeros

FINE: dict[str, Any] = {"output_resolution": 2.0**-20, "simulation_seed": 1}
COUNTERS = {
    "chain": lambda: Counter(1, horizon=20, chain=("stage-mean-9", "direct-mean-4"), **FINE),
    "epochs": lambda: Counter(1, growth="doubling", **FINE),
    "tapered": lambda: Counter(1, growth="tapered", **FINE),
    "gaussian": lambda: GaussianCounter(1, 0.01, horizon=20, **FINE),
    "toeplitz": lambda: GaussianCounter(1, 0.01, horizon=20, mechanism="toeplitz", **FINE),
    "gaussian epochs": lambda: GaussianCounter(1, 0.01, **FINE),
}


@pytest.mark.parametrize("kind", COUNTERS)
def test_matrices_factor_prefix_sums_and_have_the_variance(kind: str) -> None:
    process: Any = COUNTERS[kind]()._noises[0]
    known = matrices(process, 20)
    np.testing.assert_allclose(known.L @ known.R, np.tri(20), atol=1e-5)
    factor = 1.0 if known.gaussian else 2.0
    assert factor * known.L**2 @ known.scales**2 == pytest.approx(process.variance(np.arange(20)), rel=1e-3)


def test_the_ratio_of_one_step_is_that_of_laplace_noise() -> None:
    counter = Counter(1, horizon=1, **FINE)
    ratios = Ratios(matrices(counter._noises[0], 1), step=2.0**-20)
    assert ratios.loss(np.ones(1)) == pytest.approx(1.0, rel=1e-3)
    y = np.array([[-3.0], [0.25], [7.0]])
    score = ratios.statistics(np.zeros(1), np.ones(1), y)["likelihood ratio"]
    assert score == pytest.approx(np.abs(y[:, 0]) - np.abs(y[:, 0] - 1), abs=1e-3)


def test_trailing_zeros_and_masks() -> None:
    numbers = np.array([1, -2, 12, 0, 3 << 40])
    assert trailing_zeros(numbers).tolist() == [0, 1, 2, 63, 40]
    found = masked(np.ones(5), numbers[:, None], steps=[0], unit=20)
    assert found["ratio where value 1 has at most 0 trailing zeros"].tolist() == [1, 0, 0, 0, 0]
    assert found["ratio where value 1 has more than 20 trailing zeros"].tolist() == [0, 0, 0, 1, 1]
