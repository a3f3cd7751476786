"""Simulated noise of every base has the deviations that the mechanism's own has."""

from fractions import Fraction

import numpy as np
import pytest
from trilift.counters.edit.base import BaseSpec
from trilift.counters.edit.rules import SimPartRule
from trilift.experiments.edit.designs import DesignLengths, LinkedNoise, RoundedNoise, float_noise
from trilift.experiments.edit.float_noise import IndependentNoise
from trilift.stream.keys import simulation_key

COUNT, RUNS = 150, 4000
HALF = Fraction(1, 2)
SPECS = [
    BaseSpec("toeplitz", COUNT, mu=HALF),
    BaseSpec("l2-chain", COUNT, mu=HALF, names=("stage-l2-max-17", "direct-l2-max-16"), scales=(1.0, 1.0)),
    BaseSpec("chain", COUNT, epsilon=HALF, names=("stage-max-17", "direct-max-16"), scales=(1.0, 2.0)),
    BaseSpec("cc", None, mu=HALF),
    BaseSpec("gaussian-tapered", None, mu=HALF),
    BaseSpec("tapered", None, epsilon=HALF),
    BaseSpec("doubling", None, epsilon=HALF),
    BaseSpec("relay", None, epsilon=HALF),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.kind)
def test_deviations(spec: BaseSpec) -> None:
    """Within 7 % of the exact ones: 5 standard errors and more (fourth moments of sums of Laplace values are
    at most twice the normal ones); false alarm below 150 * 6e-7."""
    drawn = float_noise(spec, count=COUNT).draw(np.random.default_rng(3), runs=RUNS, count=COUNT)
    assert drawn.shape == (RUNS, COUNT)
    ratio = drawn.std(axis=0) / spec.sd(np.arange(COUNT))
    assert np.abs(ratio - 1).max() < 0.09
    assert abs(ratio.mean() - 1) < 0.03


@pytest.mark.parametrize("kind", ["toeplitz", "chain"])
def test_increments_are_those_of_the_mechanism(kind: str) -> None:
    """Correlation of neighbouring values, against exact noise under 60 public keys (a loose check)."""
    spec = next(spec for spec in SPECS if spec.kind == kind)
    exact = []
    for seed in range(60):
        process = spec.build(key=simulation_key(seed), stream_id=bytes(16), purpose="test")
        exact.append(process.range(0, COUNT).astype(float))
    drawn = float_noise(spec, count=COUNT).draw(np.random.default_rng(3), runs=1000, count=COUNT)
    for gap in (1, 5):
        one = np.square(np.array(exact)[:, gap:] - np.array(exact)[:, :-gap]).mean()
        two = np.square(drawn[:, gap:] - drawn[:, :-gap]).mean()
        assert two == pytest.approx(one, rel=0.12)


def test_rounding() -> None:
    noise = RoundedNoise(IndependentNoise(np.full(4, 3.0)), 2)
    drawn = noise.draw(np.random.default_rng(0), runs=5, count=4)
    plain = IndependentNoise(np.full(4, 3.0)).draw(np.random.default_rng(0), runs=5, count=4)
    assert np.array_equal(drawn, np.floor(plain * 4 + 0.5) / 4)


def test_links() -> None:
    """Deterministic parts: inside epochs 10, 20, ...; totals are own last values, or apart."""

    class Fixed:
        def __init__(self, *values: float) -> None:
            self.values = values

        def draw(self, rng: object, *, runs: int, count: int) -> np.ndarray:
            return np.tile(np.array(self.values[:count], dtype=float), (runs, 1))

    relay = LinkedNoise(((2, Fixed(10, 20), None), (3, Fixed(1, 2, 3), None), (9, Fixed(*range(9)), None)))
    assert relay.draw(None, runs=2, count=7)[1].tolist() == [10, 20, 21, 22, 23, 23, 24]
    apart = LinkedNoise(((2, Fixed(10, 20), Fixed(7)), (3, Fixed(1, 2, 3), Fixed(5))))
    assert apart.draw(None, runs=1, count=5)[0].tolist() == [10, 7, 8, 9, 12]


@pytest.mark.parametrize("drift", [0, 4])
def test_lengths(drift: int) -> None:
    """Against the rule itself on the same draws."""
    rule = SimPartRule(Fraction(1), 3, Fraction(drift), folded=not drift)
    drawn = DesignLengths(rule).lengths(np.random.default_rng(1), runs=6, first=4, count=5)
    assert drawn.shape == (6, 5)
    rng = np.random.default_rng(1)
    chance = -np.expm1(-0.5)
    Z = rng.geometric(chance, (5, 6)) - rng.geometric(chance, (5, 6))
    for run in range(6):
        assert drawn[run].tolist() == rule.lengths(3, Z[:, run]).tolist()
    assert drawn.min() >= 1
