"""Suprema of the coupled difference, against everything tried out."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters.defaults import chain_of, default_names
from trilift.counters.edit.coupling import (
    EPOCH_FACTORS,
    chain_factors,
    column_factors,
    plain_factors,
    toeplitz_factors,
)
from trilift.counters.edit.toeplitz_epochs import LAYOUTS
from trilift.lift import horizon_scales, materialise
from trilift.stream.toeplitz_factor import ROOT_PLACES, toeplitz_root


def root_columns(K: int) -> np.ndarray:
    c = toeplitz_root(K) / 2.0**ROOT_PLACES
    R = np.zeros((K, K))
    for i in range(K):
        R[i:, i] = c[: K - i]
    return R


def count_differences(K: int, steps: int = 2):
    """Every difference of bucket sums on a grid of X, a, b in [0, 1], as vectors of length K."""
    grid = [Fraction(k, steps) for k in range(steps + 1)]
    for p, q in itertools.combinations_with_replacement(range(K + 1), 2):
        for X, a, b in itertools.product(grid, repeat=3):
            d = np.zeros(K + 2)
            d[p] += float(X)
            if q > p:
                d[p + 1] += float(a)
                d[p] -= float(a)
            if q > p + 1:
                d[q] += float(b)
                d[q - 1] -= float(b)
            yield d[:K]


def time_differences(K: int):
    for p, q in itertools.combinations(range(K + 1), 2):
        if q >= p + 3:
            d = np.zeros(K + 2)
            d[p + 1], d[q - 1] = 1.0, -1.0
            yield d[:K]


def brute(R: np.ndarray, ord: int) -> tuple[float, float]:
    K = R.shape[1]
    unit = np.linalg.norm(R, ord=ord, axis=0).max()
    counts = max(np.linalg.norm(R @ d, ord=ord) for d in count_differences(K)) / unit
    times = max((np.linalg.norm(R @ d, ord=ord) for d in time_differences(K)), default=0.0) / unit
    return counts**ord, times**ord


@pytest.mark.parametrize("K", [1, 2, 3, 5, 8])
def test_toeplitz_against_brute_force(K: int) -> None:
    counts, times = brute(root_columns(K), 2)
    found = toeplitz_factors(K)
    assert counts * (1 - 1e-12) <= float(found.counts) <= counts * (1 + 1e-6)
    assert times * (1 - 1e-12) <= float(
        found.times
    )  # all pairs of columns are looked at, a few of which cannot occur
    if K >= 5:
        assert float(found.times) <= 1.15 * times


@pytest.mark.parametrize("K", [16, 17, 40, 200, 1500])
def test_toeplitz_bounds_are_close_to_all_pairs(K: int) -> None:
    exact, found = column_factors(root_columns(K), norm="l2"), toeplitz_factors(K)
    if K > 1024:
        R = root_columns(K)
        gram = np.pad(R.T @ R, (0, 1))
        norms = np.diagonal(gram)
        times = (norms[:, None] + norms[None, :] - 2 * gram).max() / norms.max()
        assert times <= float(found.times) <= 1.02 * times
        return
    assert float(exact.counts) * (1 - 1e-8) <= float(found.counts) <= 1.04 * float(exact.counts)
    assert float(exact.times) * (1 - 1e-8) <= float(found.times) <= float(exact.times) * (1 + 1e-8)


@given(seed=st.integers(0, 10**6), K=st.integers(1, 6), rows=st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_any_columns_against_brute_force(seed: int, K: int, rows: int) -> None:
    R = np.random.default_rng(seed).normal(size=(rows, K))
    for ord, norm in ((1, "l1"), (2, "l2")):
        counts, times = brute(R, ord)
        found = column_factors(R, norm=norm)
        assert counts <= float(found.counts) <= counts * (1 + 1e-7)
        assert times <= float(found.times)


@pytest.mark.parametrize(("K", "norm"), [(90, "l1"), (400, "l1"), (1100, "l2")])
def test_long_chains_against_their_columns(K: int, norm: str) -> None:
    """Beyond a number of columns the triangle bound, whose norms are walked level by level."""
    chain = chain_of(default_names(K + 1, objective="max"))
    scales = horizon_scales(chain, K, objective="max")
    dense = materialise(chain.to_float(), K + 1)
    R = dense.R / scales[dense.level][:, None]
    found = chain_factors(chain, K, tuple(scales.tolist()), norm=norm)
    ord = 1 if norm == "l1" else 2
    norms = np.linalg.norm(R, ord=ord, axis=0)
    steps = np.linalg.norm(np.diff(R, axis=1), ord=ord, axis=0)
    expected = (max(norms.max(), steps.max()) + steps.max()) / norms.max()
    assert float(found.counts) == pytest.approx(expected**ord, rel=1e-8)
    rng = np.random.default_rng(1)
    for _ in range(300):
        p = int(rng.integers(0, K - 3))
        q = int(rng.integers(p + 2, K + 1))
        X, a, b = rng.integers(0, 2, 3)
        d = X * R[:, p] + a * (R[:, p + 1] - R[:, p]) + b * (R[:, q] - R[:, q - 1])
        assert np.linalg.norm(d, ord=ord) ** ord <= float(found.counts) * norms.max() ** ord * (1 + 1e-9)


def test_chains_cost_less_than_group_privacy() -> None:
    chain = chain_of(default_names(500, objective="max"))
    scales = tuple(horizon_scales(chain, 500, objective="max").tolist())
    found = chain_factors(chain, 500, scales, norm="l1")
    assert 2 < float(found.counts) < 2.3
    assert float(found.times) <= 2.001
    assert plain_factors(norm="l1").counts == 4
    assert plain_factors(norm="l2").times == 4


@pytest.mark.parametrize("kind", sorted(LAYOUTS))
def test_epochs_cost_at_most_four_and_two(kind: str) -> None:
    """The columns of the first epochs with their totals, over the norm that has the whole budget."""
    layout = LAYOUTS[kind]
    epochs = 5 if kind == "cc" else 3
    K = layout.ends[epochs - 1]
    blocks = []
    for epoch in range(epochs):
        share, length = float(layout.shares[epoch]), layout.length(epoch)
        R = root_columns(length)
        R *= np.sqrt(1 - share) / np.linalg.norm(R[:, 0])
        total = np.full((1, length), np.sqrt(share))
        block = np.zeros((length + 1, K))
        block[:, layout.start(epoch) : layout.ends[epoch]] = np.concatenate([R, total])
        blocks.append(block)
    columns = np.concatenate(blocks)
    assert np.linalg.norm(columns, axis=0).max() == pytest.approx(1)
    found = column_factors(columns, norm="l2")
    assert float(found.counts) <= float(EPOCH_FACTORS.counts) * (1 + 1e-8)
    assert float(found.times) <= float(EPOCH_FACTORS.times) * (1 + 1e-8)
    assert float(found.counts) > 2.5  # the bound is not idle
