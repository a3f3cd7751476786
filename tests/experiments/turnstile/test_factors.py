"""Factors by hand, and against a search."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.experiments.turnstile.factors import beyond, least_factor, ratio_quantile


def test_by_hand() -> None:
    """The output is the floor g = 29 at D = 5000: (5000 - 29) / 29 = 171.4."""
    assert least_factor([5000.0], [29.0], additive=29.0) == pytest.approx(171.41, abs=0.01)
    assert least_factor([0.0, 3.0], [5.0, 3.0], additive=5.0) == 1.0
    assert least_factor([0.0], [6.0], additive=5.0) == math.inf
    assert least_factor([9.0], [0.0], additive=5.0) == math.inf
    assert least_factor([1.0, 1.0], [4.0, 4.0], additive=np.array([3.0, 2.0])) == 2.0


numbers = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=12)


@settings(max_examples=100, deadline=None)
@given(numbers, st.integers(0, 10))
def test_least(pairs: list[tuple[int, int]], beta: int) -> None:
    y, e = np.array(pairs, dtype=float).T
    alpha = least_factor(y, e, additive=float(beta))

    def valid(a: float) -> bool:
        return bool(((e <= a * y + beta + 1e-9) & (y <= a * e + beta + 1e-9)).all())

    if alpha == math.inf:
        assert not valid(1e9)
        return
    assert valid(alpha)
    assert alpha == 1.0 or not valid(alpha * (1 - 1e-6))


def test_quantiles() -> None:
    y = np.ones(100)
    e = np.concatenate([np.ones(94), np.full(6, 8.0)])
    assert ratio_quantile(y, e, share=0.95) == 8.0
    assert ratio_quantile(y, e, share=0.9) == 1.0
    assert ratio_quantile(np.array([1.0]), np.array([0.0]), share=0.95) == math.inf
    assert ratio_quantile(np.zeros(3), np.ones(3), share=0.95) == 1.0


def test_beyond() -> None:
    assert beyond([100.0], [170.0], relative=0.625) == 7.5
    assert beyond([100.0], [20.0], relative=0.625) == 17.5
