"""Mechanisms by name, for the attack."""

import numpy as np
import pytest
from trilift.experiments.edit.attack import block_rates, run_attack
from trilift.experiments.edit.simulated import SIMULATED, simulated
from trilift.lift.errors import ParameterError


@pytest.mark.parametrize("name", SIMULATED)
def test_every_mechanism_releases(name: str) -> None:
    mechanism = simulated(name, epsilon=50.0, ln_delta=-11.5, horizon=300)
    stream = np.tile([1, 0, 1], 100)
    one = mechanism.release(stream, 3)
    assert one.shape == (300,)
    assert np.array_equal(one, mechanism.release(stream, 3))
    assert not np.array_equal(one, mechanism.release(stream, 4)) or not one.any()
    assert np.array_equal(mechanism.release_many(stream[None], 3)[0], one)


def test_what_the_attack_finds() -> None:
    rates = block_rates(1000)
    plain = simulated("BaseCC", epsilon=20.0, ln_delta=-11.5, horizon=1000)
    assert run_attack(rates, mechanism=plain, runs=100).advantage > 0.9
    hidden = simulated("SimECC", epsilon=20.0, ln_delta=-11.5, horizon=1000)
    found = run_attack(rates, mechanism=hidden, runs=100)
    assert found.ci_low < 0 < found.ci_high  # false alarm 5 %; the seed is fixed


def test_refusals() -> None:
    good = {"epsilon": 1.0, "ln_delta": -5.0, "horizon": 4}
    for bad in ({"epsilon": 0}, {"ln_delta": 0.0}, {"ln_delta": float("nan")}, {"horizon": 0}):
        with pytest.raises(ParameterError):
            simulated("BaseCC", **{**good, **bad})
    with pytest.raises(ParameterError):
        simulated("basecc", **good)
    mechanism = simulated("BaseCC", **good)
    for stream in ([0, 1], [0, 1, 2, 0], [0.5, 0, 0, 0]):
        with pytest.raises(ParameterError):
            mechanism.release(stream, 0)
