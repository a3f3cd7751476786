"""Somebody else's factors: bounds of a right factor, and exact artifacts of anything that factors T."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.artifacts import Provenance, digest, find
from trilift.lift.errors import CertificateError, ParameterError
from trilift.verify import certify_right_factor, check_certificate, from_factors, right_factor_record

SOURCE = Provenance("max", 8, method="by hand")


def tree(size):
    """The binary tree: a 0/1 pair with more measurements than steps."""
    L, R = [[1]], [[1]]
    while len(L) < size:
        k, r = len(L), len(R)
        both = np.zeros((2 * k, 2 * r + 1), dtype=int)
        both[:k, :r], both[k:, r : 2 * r] = L, L
        both[k:, 2 * r] = 1
        right = np.zeros((2 * r + 1, 2 * k), dtype=int)
        right[:r, :k], right[r : 2 * r, k:], right[2 * r, :k] = R, R, 1
        L, R = both, right
    return np.array(L), np.array(R)


def sqrt_toeplitz(size):
    coefficients = np.cumprod([1.0, *[(2 * k - 1) / (2 * k) for k in range(1, size)]])
    lags = np.subtract.outer(np.arange(size), np.arange(size))
    return np.where(lags >= 0, coefficients[np.maximum(lags, 0)], 0.0)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**32), st.integers(2, 7), st.integers(-40, 40))
def test_the_scale_of_a_right_factor_does_not_matter(random_B, seed, size, power):
    B, _ = random_B(seed, size, spread=0.3)
    record, other = right_factor_record(B), right_factor_record(np.ldexp(B, power))
    for name, value in record.items():
        if "kappa" in name or name in ("kind", "size"):
            assert other[name] == value
    unit = Fraction(2) ** power
    assert Fraction(other["sensitivity"]) == Fraction(record["sensitivity"]) * unit
    assert other["row_norm"] == pytest.approx(record["row_norm"] / float(unit), rel=1e-15)
    assert Fraction(record["sensitivity"]) == pytest.approx(np.abs(B).sum(axis=0).max(), rel=1e-8)
    assert Fraction(record["rounding"]) <= Fraction(1, 2**30)


def test_kappas_are_those_of_the_direct_use_and_of_the_lift():
    k, R = 16, sqrt_toeplitz(16)
    record, bounds = right_factor_record(R), certify_right_factor(R)
    assert record["kappa_direct_max"] == pytest.approx(bounds.kappa_max, rel=1e-8)
    cost = float(bounds.row_norm * bounds.sensitivity) ** 2
    assert record["kappa_lifted_max"] == pytest.approx(2 * cost / np.log2(2 * k + 1) ** 3, rel=1e-8)
    ratio = (np.log2(k) / np.log2(2 * k + 1)) ** 3
    assert record["kappa_lifted_mean"] == pytest.approx(record["kappa_direct_mean"] * ratio, rel=1e-12)


def test_an_exact_pair_is_taken_as_it_is():
    L, R = tree(8)
    artifact = from_factors(R, left=L, provenance=SOURCE)
    assert (artifact.kind, artifact.stage.inner) == ("direct", 15)
    assert np.array_equal(artifact.stage.B.to_float(), R)
    assert np.array_equal(artifact.stage.A.to_float(), L)
    check_certificate(artifact)
    ours = find("direct-max-8")
    again = from_factors(ours.stage.B.to_float(), left=ours.stage.A.to_float(), provenance=SOURCE)
    assert again.certificate == ours.certificate
    assert digest(again.stage) == digest(ours.stage)


def test_a_tall_right_factor_alone_gets_the_best_left_one():
    """For the tree that is a better one than its own: the pseudo-inverse averages."""
    L, R = tree(8)
    artifact = from_factors(R, provenance=SOURCE)
    check_certificate(artifact)
    # columns of the tree have l1 norm 4, which are scaled to 1
    assert artifact.certificate.mean_row_norm_sq < 4**2 * np.mean((L**2).sum(axis=1))
    assert artifact.certificate.sensitivity == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize("kind", ["direct", "stage"])
def test_a_rounded_pair_is_completed(kind):
    R = sqrt_toeplitz(12) * 3.3
    L = np.linalg.solve(R.T, np.tril(np.ones((12, 12))).T).T
    single = from_factors(R.astype(np.float32), left=L.astype(np.float32), kind=kind, provenance=SOURCE)
    check_certificate(single)
    assert single.kind == kind
    b, q = np.abs(R).sum(axis=0).max(), (L**2).sum(axis=1).max()
    kappa = 2 * b * b * q / np.log2(12) ** 3
    assert single.certificate.kappa_max <= kappa * (1 + 1e-4)
    if kind == "direct":
        assert single.certificate.kappa_max == pytest.approx(kappa, rel=1e-4)


def test_what_is_no_factorisation_is_refused():
    L, R = tree(4)
    wrong = L.astype(float)
    wrong[3, 2] += 0.01
    with pytest.raises(CertificateError, match=r"L R = T fails at \(3, \d\): off by 0.01"):
        from_factors(R, left=wrong, provenance=SOURCE)
    with pytest.raises(CertificateError, match="fails"):
        from_factors(R * 1e200, left=L * 1e200, provenance=SOURCE)


@pytest.mark.parametrize(
    ("R", "arguments", "message"),
    [
        (np.zeros((2, 2)), {}, "column l1 norm > 0, got 0.0"),
        (np.full((2, 2), 1e308), {}, "column l1 norm > 0, got inf"),
        (np.ones((2, 2)), {}, "singular"),
        (np.ones((2, 3)), {}, "at least as many rows"),
        (np.zeros((0, 0)), {}, "column l1 norm"),
        (np.eye(2), {"left": np.eye(3)}, "shape"),
        (np.eye(2), {"left": [[np.nan, 0], [0, 1]]}, "finite"),
        (np.eye(2), {"kind": "top"}, "kind must be"),
        (np.eye(2), {"objective": "both"}, "objective"),
        ([[1.0]], {}, "size of at least 2"),
    ],
)
def test_refusals(R, arguments, message):
    with pytest.raises(ParameterError, match=message):
        from_factors(R, provenance=SOURCE, **arguments)
