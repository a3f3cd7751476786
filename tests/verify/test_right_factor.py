"""The certificate of a right factor alone: its bounds hold for the exact left factor."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.artifacts import find
from trilift.lift import Dyadic
from trilift.lift.errors import CertificateError, ParameterError
from trilift.verify import certify_right_factor


def exact_left_factor(R):
    """T R^-1 in Fractions, by Gauss-Jordan."""
    k = R.shape[0]
    rows = [[*R.fractions()[i], *(Fraction(int(i == j)) for j in range(k))] for i in range(k)]
    for c in range(k):
        pivot = next(i for i in range(c, k) if rows[i][c] != 0)
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [x / rows[c][c] for x in rows[c]]
        for i in range(k):
            if i != c:
                rows[i] = [x - rows[i][c] * y for x, y in zip(rows[i], rows[c], strict=True)]
    inverse = [row[k:] for row in rows]
    return [[sum(inverse[p][j] for p in range(i + 1)) for j in range(k)] for i in range(k)]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.integers(2, 7), st.sampled_from([14, 32]))
def test_bounds_hold_for_the_exact_left_factor(random_B, seed, size, places):
    B, _ = random_B(seed, size, spread=0.3)
    bounds = certify_right_factor(B, places=places)
    L = exact_left_factor(bounds.R)
    squares = [sum(x * x for x in row) for row in L]
    assert max(squares) <= bounds.row_norm**2
    assert sum(squares) <= bounds.frobenius**2
    assert bounds.sensitivity == max(sum(abs(x) for x in column) for column in bounds.R.fractions().T)
    # and they are tight, up to the correction
    slack = bounds.correction * 2 + Fraction(1, 2**80)
    assert max(squares) >= (bounds.row_norm - slack) ** 2
    assert bounds.correction < Fraction(1, 2 ** (places - 10))


def test_shipped_matrix_gets_nearly_the_same_constant():
    artifact = find("direct-mean-16")  # searched with a square matrix
    B = artifact.stage.B[:16].to_float()
    bounds = certify_right_factor(B)
    assert bounds.kappa_mean == pytest.approx(artifact.certificate.kappa_mean, rel=1e-4)
    assert bounds.kappa_max == pytest.approx(artifact.certificate.kappa_max, rel=1e-4)


def test_exact_right_factor_is_taken_as_it_is():
    R = Dyadic([[1, 0], [0, 1]])
    bounds = certify_right_factor(R)
    assert bounds.R is R
    assert (bounds.correction, bounds.sensitivity) == (0, 1)
    assert bounds.row_norm**2 >= 2 > (bounds.row_norm - Fraction(1, 2**90)) ** 2
    assert 4.0 <= bounds.kappa_max < 4.0 + 1e-12


def test_a_left_factor_that_floats_cannot_find_proves_nothing():
    hilbert = 1.0 / (np.arange(13)[:, None] + np.arange(13) + 1.0)
    with pytest.raises(CertificateError, match="could not be proved: the bound is"):
        certify_right_factor(hilbert, places=80)


@pytest.mark.parametrize(
    "R", [np.ones((2, 2)), np.ones((2, 3)), [[1.0]], [[np.nan, 0], [0, 1]], [[0.0, 0], [0, 0]]]
)
def test_refusals(R):
    with pytest.raises(ParameterError):
        certify_right_factor(R)
