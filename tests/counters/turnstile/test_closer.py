"""Moments and cells of noisy counters: limits that hold, estimates that are unbiased where they should be."""

import numpy as np
import pytest
from trilift.counters.turnstile.closer import (
    LOW_LEVELS,
    cell_estimate,
    expected_cells,
    limits_of_sums,
    moment_limits,
)

GROUPS, LEVELS = 35, 10


def counters(frequencies: list[int], rng: np.random.Generator, runs: int) -> np.ndarray:
    """Exact counters of independent hashes, shape (runs, groups, levels)."""
    out = np.zeros((runs, GROUPS, LEVELS), dtype=np.int64)
    for x in frequencies:
        level = np.minimum(rng.geometric(0.5, runs) - 1, LEVELS - 1)
        out[np.arange(runs), rng.integers(0, GROUPS, runs), level] += x
    return out


def test_by_hand() -> None:
    """Two groups, one level, no noise: sums 3 and 1, hence F1 = 4 and F2 = (9 + 1 - 16/2) 2/1 = 4."""
    values = np.array([[[3], [1]]])
    low, high = moment_limits(values, np.zeros(1), margin=0.0)
    assert low.tolist() == [4.0]
    assert high.tolist() == [4.0]


def test_margins_by_hand() -> None:
    """v = 1, margin 1: F1 = 4 -+ sqrt(2), F2 = max(4 - 2, 0) + sqrt(2 * 2 + 2 * 4 + 4 * 2)."""
    low, high = moment_limits(np.array([[[3], [1]]]), np.ones(1), margin=1.0)
    f1, f2 = 4 - 2**0.5, 2 + 20**0.5
    assert low[0] == pytest.approx(f1 * f1 / f2)
    assert high[0] == pytest.approx(4 + 2**0.5)


def test_second_moment_is_unbiased() -> None:
    """Mean of the scatter over 4000 hashes within 5 standard errors of F2 (false alarm about 6e-7)."""
    rng = np.random.default_rng(1)
    values = counters([1] * 30 + [5] * 10, rng, 4000).astype(float)
    values += 2.0 * rng.standard_normal(values.shape)
    sums = values.sum(axis=1)
    scatter = ((values**2).sum(axis=1) - sums**2 / GROUPS) * GROUPS / (GROUPS - 1) - GROUPS * 4.0
    total = scatter.sum(axis=1)
    assert abs(total.mean() - 280.0) < 5 * total.std() / 4000**0.5


@pytest.mark.parametrize("frequencies", [[1] * 400, [1] * 100 + [50] * 3, [200] * 20, [], [10**6]])
def test_limits_hold(frequencies: list[int]) -> None:
    """4 standard deviations over 2000 hashes and noises: at most 3 misses of each side."""
    rng = np.random.default_rng(2)
    values = counters(frequencies, rng, 2000)
    values = values + np.floor(3.0 * rng.standard_normal(values.shape) + 0.5).astype(np.int64)
    low, high = moment_limits(values, np.full(2000, 9.0))
    assert (low > len(frequencies)).sum() <= 3
    assert (high < len(frequencies)).sum() <= 3
    assert (low <= high).all()
    assert (low >= 0).all()


def test_limits_are_near_for_unit_frequencies() -> None:
    """That is what they are for: 20000 items of frequency 1 are told within a factor of 3.4."""
    rng = np.random.default_rng(3)
    sizes = rng.poisson(20000 / GROUPS * 0.5 ** np.arange(1, LEVELS + 1), (50, GROUPS, LEVELS))
    values = sizes + np.rint(6.7 * rng.standard_normal(sizes.shape)).astype(np.int64)
    low, high = moment_limits(values, np.full(50, 6.7**2))
    assert (low > 6000).all()
    assert (high < 30000).all()


def test_sums_are_enough() -> None:
    rng = np.random.default_rng(4)
    values = rng.integers(-5, 50, (20, GROUPS, LEVELS))
    squares = (values[:, :, :LOW_LEVELS] ** 2).sum(axis=1).astype(float)
    got = limits_of_sums(
        values.sum(axis=1).astype(float), squares, np.full(20, 3.0), groups=GROUPS, kurtosis=5.0
    )
    for a, b in zip(got, moment_limits(values, np.full(20, 3.0), kurtosis=5.0), strict=True):
        np.testing.assert_array_equal(a, b)


def test_expected_cells_by_simulation() -> None:
    """60 items, 3000 hashes: within 5 standard errors."""
    occupied = (counters([1] * 60, np.random.default_rng(5), 3000) > 0).sum(axis=(1, 2))
    expected = float(expected_cells(60, groups=GROUPS, levels=LEVELS))
    assert abs(occupied.mean() - expected) < 5 * occupied.std() / 3000**0.5


def test_cells_are_inverted() -> None:
    items = np.array([0, 1, 2, 7, 100, 999])
    cells = expected_cells(items, groups=GROUPS, levels=LEVELS)
    np.testing.assert_allclose(
        cell_estimate(cells, groups=GROUPS, levels=LEVELS, most=1000), items, rtol=1e-3
    )
    full = cell_estimate([GROUPS * LEVELS], groups=GROUPS, levels=LEVELS, most=1000)
    assert full.tolist() == [1000.0]


def test_one_counter() -> None:
    assert expected_cells(np.array([0, 3]), groups=1, levels=1).tolist() == [0.0, 1.0]
    low, high = moment_limits(np.array([[[7]]]), np.zeros(1), margin=0.0)
    assert low[0] <= high[0] == 7.0
