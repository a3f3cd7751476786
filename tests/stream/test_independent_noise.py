"""Independent noise: the sampler's own values at the stated addresses, for any deviations, at any steps."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.stream.gaussian import GaussianRows
from trilift.stream.independent_noise import IndependentNoise
from trilift.stream.keys import derive_key, simulation_key
from trilift.stream.keystream import Keystream
from trilift.stream.process import NoiseProcess

STREAM = bytes(range(16))


class Growing:
    """scale * sqrt(t + 1)."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    @property
    def label(self) -> str:
        return f"test {self.scale.hex()} sqrt(t + 1)"

    def deviations(self, steps: Any) -> Any:
        return self.scale * np.sqrt(steps + 1.0)


def make(law: Any = None, *, seed: int = 1, purpose: str = "sums", **options: Any) -> IndependentNoise:
    law = Growing() if law is None else law
    return IndependentNoise(law, key=simulation_key(seed), stream_id=STREAM, purpose=purpose, **options)


@pytest.mark.parametrize(
    ("scale", "places"), [(1.0, 0), (0.3, 5), (1e6, 0), (2.0**40, 0), (2.0**70, 3), (1.0, 60)], ids=str
)
def test_values_are_the_samplers_own(scale: float, places: int) -> None:
    """Row t mod 256 of block t div 256 at level 0, drawn with that step's deviation as an exact scale."""
    noise = make(Growing(scale), places=places)
    key = derive_key(simulation_key(1), stream_id=STREAM, purpose="sums", digest=noise.digest)
    for block in (0, 3):
        steps = np.arange(256 * block, 256 * block + 256)
        exact = [Fraction(sd) * (1 << places) for sd in noise.law.deviations(steps).tolist()]
        drawn = GaussianRows(exact).sample(Keystream(key), 0, [block]).to_objects()[0]
        assert noise.range(int(steps[0]), int(steps[-1]) + 1).tolist() == drawn.tolist()


def test_any_order_and_any_split_give_the_same_values() -> None:
    noise = make(Growing(50.0))
    whole = noise.range(0, 2000)
    steps = np.random.default_rng(2).permutation(2000)[:300]
    assert (noise.at(steps) == whole[steps]).all()
    assert (noise.range(255, 1025) == whole[255:1025]).all()
    far = (1 << 45) + 3
    assert noise.at(far) == noise.range(far - 3, far + 4)[3]


def test_the_same_values_when_floats_decide_nothing() -> None:
    noise = make(Growing(30.0))
    steps = np.arange(100, 400)
    draws = noise._draws(steps)
    fast = draws.to_int64()[0]
    slow = noise._draws(steps)
    slow.excess = 1.0
    assert (slow.to_int64()[0] == fast).all()
    assert len(set(fast.tolist())) > 100


def test_law_and_independence() -> None:
    """Kolmogorov-Smirnov at 1e-6 on 40,000 standardised draws (sd >= 50 keeps rounding below 0.01 sd), and
    correlations of neighbours; the same test rejects a deviation that is 10 % off."""
    count = 40000
    noise = make(Growing(50.0))
    steps = np.arange(count)
    ratio = np.sort(noise.range(0, count) / noise.law.deviations(steps))
    limit = math.sqrt(-math.log(1e-6 / 2) / (2 * count))
    normal = NormalDist()

    def gap(values: Any) -> float:
        theory = np.array([normal.cdf(x) for x in values.tolist()])
        return float(
            max((theory - np.arange(count) / count).max(), (np.arange(1, count + 1) / count - theory).max())
        )

    assert gap(ratio) < limit
    assert gap(ratio * 1.1) > limit
    plain = noise.range(0, count) / noise.law.deviations(steps)
    for lag in (1, 2, 256):
        assert abs(float(np.mean(plain[:-lag] * plain[lag:]))) < 5.0 / math.sqrt(count)  # 6e-7 each


def test_golden_values() -> None:
    """Addresses and sampler may never change under one digest."""
    noise = make(Growing(1000.0))
    assert noise.at([0, 1, 255, 256, 1 << 40]).tolist() == GOLDEN
    assert noise.digest.hex()[:16] == GOLDEN_DIGEST


def test_variance() -> None:
    noise = make(Growing(2.0), places=3)
    assert noise.variance([0, 8]) == pytest.approx([4 + 2.0**-6 / 12, 36 + 2.0**-6 / 12], rel=1e-14)
    assert isinstance(noise, NoiseProcess)
    with pytest.raises(ParameterError):
        noise.variance([-1])
    with pytest.raises(HorizonError):
        make(horizon=5).variance(5)


def test_law_and_lattice_are_bound() -> None:
    digests = {make().digest, make(Growing(2.0)).digest, make(places=1).digest}
    assert len(digests) == 3
    assert make(seed=2).digest == make().digest
    large = Growing(1e4)
    assert (make(large, seed=2).range(0, 9) != make(large).range(0, 9)).any()
    assert (make(large, purpose="other").range(0, 9) != make(large).range(0, 9)).any()


def test_horizon_and_arguments() -> None:
    noise = make(horizon=10)
    assert (noise.range(0, 10) == make().range(0, 10)).all()
    with pytest.raises(HorizonError):
        noise.range(0, 11)
    with pytest.raises(HorizonError):
        make().at(1 << 62)
    for options in ({"horizon": 0}, {"places": -1}, {"places": 1.0}):
        with pytest.raises(ParameterError):
            make(**options)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, 2.0**-70])
def test_deviations_that_are_none_are_refused(value: float) -> None:
    class Broken:
        label = "broken"

        def deviations(self, steps: Any) -> Any:
            return np.where(steps == 3, value, 1.0)

    noise = make(Broken())
    noise.at(2)
    with pytest.raises(ParameterError):
        noise.at(3)


def test_it_is_neither_copied_nor_pickled() -> None:
    for call in (copy.copy, pickle.dumps):
        with pytest.raises(StateError):
            call(make())


GOLDEN = [360, 350, 15915, 14940, 533228501]
GOLDEN_DIGEST = "c986f9b5cbf4b146"
