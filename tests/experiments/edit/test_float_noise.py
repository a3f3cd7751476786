"""Simulated noise has the covariances that its definition gives."""

import math

import numpy as np
import pytest
from trilift.artifacts import load_stage
from trilift.experiments.edit.float_noise import (
    ChainNoise,
    EpochNoise,
    IndependentNoise,
    ToeplitzNoise,
    column_mass,
    square_root,
    toeplitz_values,
)
from trilift.lift import Chain, materialise

RUNS = 20_000


def dense_epochs(count: int) -> np.ndarray:
    """The covariance of the doubling counter at C = 1, row by row from the algorithm."""
    rows, epochs = [], count.bit_length()
    r = square_root(2**epochs)
    for t in range(1, count + 1):
        j = t.bit_length() - 1
        length = 2**j
        m = t - length + 1
        row = np.zeros((epochs, 2**epochs + 1))  # one z a step of an epoch, and the total at the end
        row[:j, -1] = 1
        if m == length:
            row[j, -1] = 1
        else:
            root = math.sqrt(sum(r[k] ** 2 for k in range(length)))
            row[j, :m] = root * r[:m][::-1]
        rows.append(row.ravel())
    factor = np.array(rows)
    return factor @ factor.T


def check(drawn: np.ndarray, covariance: np.ndarray) -> None:
    """Every entry of the empirical covariance, within 5.5 standard errors.

    False alarm probability below 400 entries * 4e-8 = 2e-5 a call for (nearly) normal averages.
    """
    runs = drawn.shape[0]
    found = drawn.T @ drawn / runs
    spread = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / runs)
    assert np.all(np.abs(found - covariance) <= 5.5 * spread)


def test_square_root_squares_to_ones() -> None:
    r = square_root(50)
    assert np.convolve(r, r)[:50] == pytest.approx(np.ones(50))
    assert column_mass(3) == pytest.approx([1, 1.25, 1.25 + 0.375**2])


def test_epochs_have_the_covariance_of_the_algorithm() -> None:
    noise = EpochNoise(2.0)
    for count in (1, 3, 10):
        covariance = 4 * dense_epochs(count)
        assert noise.sd(count) == pytest.approx(np.sqrt(np.diag(covariance)))
        check(noise.draw(np.random.default_rng(7), runs=RUNS, count=count), covariance)


def test_sds_in_a_long_stream() -> None:
    """sigma_t^2 = j + S_N S_m inside an epoch, j + 1 at its end."""
    sds, mass = EpochNoise(1.0).sd(5000), column_mass(4096)
    for t in (4095, 4096, 4999):
        j = t.bit_length() - 1
        m = t - 2**j + 1
        expected = j + 1 if m == 2**j else j + mass[2**j - 1] * mass[m - 1]
        assert sds[t - 1] ** 2 == pytest.approx(expected)


def test_toeplitz_is_the_product_with_the_square_root() -> None:
    values = toeplitz_values(np.random.default_rng(5), runs=3, count=37)
    z = np.random.default_rng(5).standard_normal((3, 37))
    expected = [np.convolve(row, square_root(37))[:37] for row in z]
    assert values == pytest.approx(np.array(expected))
    assert ToeplitzNoise(3.0).sd(2) == pytest.approx([3, 3 * math.sqrt(1.25)])
    drawn = ToeplitzNoise(3.0).draw(np.random.default_rng(5), runs=3, count=37)
    assert drawn == pytest.approx(3 * values)


def test_independent_noise() -> None:
    scales = np.array([1.0, 2.0, 0.5])
    drawn = IndependentNoise(scales).draw(np.random.default_rng(1), runs=RUNS, count=3)
    check(drawn, np.diag(scales**2))


@pytest.mark.parametrize("laplace", [False, True])
def test_a_chain_is_its_dense_factor(laplace: bool) -> None:
    """The level by level form against L of the whole chain, on the same draws and by covariance."""
    levels = [load_stage(name).to_float() for name in ("stage-max-9", "direct-max-8")]
    chain = Chain(levels[-1], levels[:-1])
    noise = ChainNoise(tuple((s.A, s.g, s.w) for s in chain.levels), (2.0, 0.5), laplace)
    dense = materialise(chain, 20)
    factor = np.asarray(dense.L) * np.where(dense.level == 0, 2.0, 0.5)
    covariance = (2 if laplace else 1) * factor @ factor.T
    drawn = noise.draw(np.random.default_rng(2), runs=RUNS, count=20)
    assert drawn.shape == (RUNS, 20)
    if laplace:  # fourth moments of sums of Laplace values are at most twice the normal ones
        drawn, covariance = drawn[:, :10], covariance[:10, :10]
        found = drawn.T @ drawn / RUNS
        spread = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / RUNS)
        assert np.all(np.abs(found - covariance) <= 8 * spread)
    else:
        check(drawn, covariance)
