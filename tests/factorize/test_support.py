"""The sparse support: what it keeps, how it widens, what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.factorize import support_of
from trilift.factorize.support import used_rows
from trilift.lift.errors import ParameterError


def mask(support):
    return support.dense(np.ones(support.entries)) > 0


def test_small_entries_are_dropped_row_by_row():
    B = np.array([[1.0, 1e-5, 0.0], [1e-3, 0.0, 1e-4], [0.0, 1.0, 0.0]])
    assert mask(support_of(B)).tolist() == [[True, False, False], [True, False, True], [False, True, False]]
    kept = mask(support_of(B, threshold=0.05))
    assert kept.tolist() == [[True, False, False], [True, False, True], [False, True, False]]
    with pytest.raises(ParameterError, match="column 2"):
        support_of(B, threshold=0.2)


def test_dilation_stays_within_the_row():
    B = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    assert mask(support_of(B, dilation=1)).tolist() == [
        [True, True, False, False],
        [False, False, True, True],
        [True, True, True, True],
    ]
    assert mask(support_of(B, dilation=99)).all()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(0, 3), st.integers(0, 2))
def test_layout_is_that_of_the_dense_matrix(seed, m, more, dilation):
    rng = np.random.default_rng(seed)
    B = np.concatenate([np.eye(m), np.zeros((more, m))]) + rng.normal(size=(m + more, m)) * (
        rng.random((m + more, m)) < 0.3
    )
    B[:m][np.eye(m) > 0] = 3.0
    support = support_of(B, dilation=dilation, threshold=0.0)
    values = support.values_of(B)
    np.testing.assert_array_equal(support.dense(values), B)
    np.testing.assert_array_equal(support.matrix(values).toarray(), B)
    np.testing.assert_allclose(support.column_sums(np.abs(values)), np.abs(B).sum(axis=0))
    assert support.starts.tolist() == [0, *np.cumsum(mask(support).sum(axis=1))]
    assert support.density == support.entries / B.size


def test_rows_of_tiny_entries_are_left_out():
    B = np.array([[1.0, 0.0], [1e-7, -1e-7], [0.0, 1e-3]])
    assert used_rows(B).tolist() == [[1.0, 0.0], [0.0, 1e-3]]


@pytest.mark.parametrize(
    ("matrix", "arguments", "message"),
    [
        (np.ones(3), {}, "dimension"),
        ([[1.0, 0.0], [1.0, 0.0]], {}, "column 1 of the right factor has no entry"),
        ([[np.nan, 1.0]], {}, "finite"),
        (np.eye(2), {"dilation": -1}, "dilation"),
        (np.eye(2), {"dilation": 0.5}, "dilation"),
        (np.eye(2), {"threshold": 2}, "threshold"),
    ],
)
def test_refusals(matrix, arguments, message):
    with pytest.raises(ParameterError, match=message):
        support_of(matrix, **arguments)
