"""Closed-form mechanisms stream: as chains at long horizons, as plain stages at short ones."""

import numpy as np
import pytest
from trilift.lift import Chain, row_norms_sq
from trilift.lift.mechanisms import plain_stage, price, stream_chain
from trilift.lift.tree_chains import averaged_chain, interpolated_chain
from trilift.stream import Noise
from trilift.stream.keys import simulation_key
from trilift.stream.ledger import make_ledger


def noise_of(chain: Chain, horizon: int) -> Noise:
    ledger = make_ledger(chain, 1, scales=np.ones(len(chain.levels)))
    key = simulation_key(7)
    return Noise(chain, ledger, horizon=horizon, key=key, stream_id=bytes(16), purpose="test")


@pytest.mark.parametrize("name", ["binary-tree", "kary", "kary-subtraction"])
def test_chains_at_a_long_horizon(name: str) -> None:
    n = 10**9
    chain = stream_chain(name, n)
    noise, cost = noise_of(chain, n), price(name, n)
    values = noise.range(n - 500, n)
    assert np.array_equal(values[100:110], noise.at(np.arange(n - 400, n - 390)))
    assert np.unique(values).size > 10
    steps = np.array([0, 12345, n // 3, n - 1])
    wanted = 2.0 * float(cost.sensitivity) ** 2 * row_norms_sq(chain, steps).sum(axis=0)
    assert noise.variance(steps) == pytest.approx(wanted + 1 / 12, rel=2e-3)  # scales are rounded up
    assert noise.variance(steps).max() <= cost.max_se() * 1.002 + 1


@pytest.mark.parametrize("make", [averaged_chain, interpolated_chain])
def test_new_relatives_at_a_long_horizon(make) -> None:
    n = 10**9
    noise = noise_of(make(n), n)
    assert np.array_equal(noise.range(n - 3, n), noise.at([n - 3, n - 2, n - 1]))


@pytest.mark.parametrize("name", ["smooth-tree", "kary-averaged", "honaker", "toeplitz-sqrt"])
def test_plain_stages_at_a_short_horizon(name: str) -> None:
    n = 40
    noise, cost = noise_of(Chain(plain_stage(name, n)), n), price(name, n)
    values = noise.range(0, n)
    assert np.array_equal(values[5:9], noise.at([5, 6, 7, 8]))
    assert noise.variance(np.arange(n)).max() == pytest.approx(cost.max_se() + 1 / 12, rel=2e-3)
