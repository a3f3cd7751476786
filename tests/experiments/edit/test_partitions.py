"""Checkpoints: windows do not matter, and the laws are those of the definitions."""

import math

import numpy as np
import pytest
from trilift.experiments.edit import partitions
from trilift.experiments.edit.partitions import (
    RandomLengths,
    SparseThreshold,
    random_checkpoints,
    threshold_checkpoints,
)


def prefix_of(inputs: np.ndarray) -> np.ndarray:
    runs, steps = inputs.shape
    prefix = np.zeros((runs, steps + 1), dtype=np.int32)
    np.cumsum(inputs, axis=1, out=prefix[:, 1:])
    return prefix


def test_lengths_have_their_law() -> None:
    """Frequencies of 40,000 lengths by chi-square; 11 cells, limit 40 (false alarm below 1e-5)."""
    rule = RandomLengths(3, drift=2.0, scale=1.5)
    count = 40_000
    for l in (1, 6):
        drawn = rule.lengths(np.random.default_rng(3), runs=count, first=l, count=1)[:, 0]
        u = math.exp(-1 / 1.5)
        middle = 3 + math.ceil(2.0 * math.log(l))
        law = {z: (1 - u) / (1 + u) * u ** abs(z) for z in range(-60, 61)}
        cells = [1, *range(2, 11)]
        expected = [sum(p for z, p in law.items() if max(1, middle + z) == cell) for cell in cells]
        expected.append(1 - sum(expected))
        found = [int((drawn == cell).sum()) for cell in cells]
        found.append(count - sum(found))
        chi = sum((f - count * p) ** 2 / (count * p) for f, p in zip(found, expected, strict=True))
        assert chi < 40


def test_random_checkpoints_are_sums_of_lengths() -> None:
    exact = RandomLengths(4, drift=0.0, scale=1e-3)  # no noise to speak of
    found = random_checkpoints(exact, rng=np.random.default_rng(0), runs=3, steps=13)
    assert found.tolist() == [[4, 8, 12]] * 3
    none = random_checkpoints(exact, rng=np.random.default_rng(0), runs=2, steps=3)
    assert none.shape == (2, 0)
    noisy = random_checkpoints(
        RandomLengths(2, drift=1.0, scale=3.0), rng=np.random.default_rng(0), runs=50, steps=500
    )
    real = noisy <= 500
    assert np.all(np.diff(noisy, axis=1)[real[:, 1:]] >= 1)
    assert np.all(noisy[~real] == 501)
    # nobody stops early: the next bucket of every run would go beyond the end
    assert all(500 - row[row <= 500].max() < 60 for row in noisy)


def test_without_noise_a_threshold_is_met_at_the_first_step_that_reaches_it() -> None:
    rule = SparseThreshold(3.0, 1.0, 0.5, 2, 1e-9, 1e-9)
    inputs = np.random.default_rng(1).integers(0, 2, (4, 900))
    found = threshold_checkpoints(rule, prefix=prefix_of(inputs), rng=np.random.default_rng(2))
    for row, run in zip(found, inputs, strict=True):
        expected, total, clock, bucket = [], 0, 0, 1
        for t, x in enumerate(run, start=1):
            total, clock = total + x, clock + 1
            if total >= 3 + math.log(bucket) + 0.5 * math.log(clock + 2):
                expected.append(t)
                total, clock, bucket = 0, 0, bucket + 1
        assert row[row <= 900].tolist() == expected


def test_windows_change_nothing_but_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """First checkpoints with windows of one step and of many: two samples of one law.

    Kolmogorov-Smirnov over 2 * 3000 runs; the limit 0.06 has false alarm probability below 1e-4.
    """
    rule = SparseThreshold(6.0, 0.0, 1.0, 3, 2.0, 4.0)
    prefix = prefix_of(np.random.default_rng(4).integers(0, 2, (3000, 60)))
    wide = threshold_checkpoints(rule, prefix=prefix, rng=np.random.default_rng(5))
    monkeypatch.setattr(partitions, "_LARGEST", 1)
    narrow = threshold_checkpoints(rule, prefix=prefix, rng=np.random.default_rng(6))
    for column in (0, 1, 2):
        a = np.array([(wide[:, column] <= t).mean() for t in range(61)])
        b = np.array([(narrow[:, column] <= t).mean() for t in range(61)])
        assert np.abs(a - b).max() < 0.06
    # and the law has a closed form in the first step: v + Zt - Z0 >= tau + ln(4)
    assert 0.05 < (wide[:, 0] == 1).mean() < 0.25
