"""Lower bounds lie below what factorisations reach, and agree with their definitions."""

import math

import numpy as np
import pytest
from trilift.artifacts import catalogue
from trilift.lift.errors import ParameterError
from trilift.verify import binary_lower_bound, factorisation_lower_bound, kappa_lower_bound


@pytest.mark.parametrize("n", [1, 2, 3, 10, 100])
def test_the_terms_are_the_singular_values(n):
    singular = np.linalg.svd(np.tril(np.ones((n, n))), compute_uv=False)
    assert factorisation_lower_bound(n) == pytest.approx(singular.mean(), rel=1e-12)


def test_rounded_down():
    assert factorisation_lower_bound(2) < math.sqrt(5) / 2  # the golden ratio and its inverse, halved
    assert factorisation_lower_bound(1) < 1.0


def test_growth():
    for n, within in ((1000, 2e-3), (10**5, 5e-5)):
        assert factorisation_lower_bound(n) == pytest.approx(math.log(n) / math.pi + 0.7019, abs=within)


def test_shipped_factorisations_lie_above():
    for entry in catalogue():
        if entry.kind == "direct":
            assert entry.certificate.kappa_mean > kappa_lower_bound(entry.size)


def test_binary_tree_lies_above_the_bound_of_binary_matrices(stages):
    tree = stages.tree.to_float()
    q, b = tree.row_norms_sq(), tree.sensitivity()
    assert math.sqrt(q.max()) * b > binary_lower_bound(4, objective="max") > 0
    assert math.sqrt(q.mean()) * b > binary_lower_bound(4, objective="mean") > 0
    assert binary_lower_bound(1025, objective="max") == pytest.approx(0.29 * 10**1.5)
    assert binary_lower_bound(1025, objective="mean") == pytest.approx(
        (math.log(2) / 6 * 10) ** 1.5, rel=1e-3
    )


@pytest.mark.parametrize("n", [0, -1, 1.5, True])
def test_refusals(n):
    with pytest.raises(ParameterError):
        factorisation_lower_bound(n)
    with pytest.raises(ParameterError):
        binary_lower_bound(n, objective="max")
    with pytest.raises(ParameterError):
        kappa_lower_bound(n)
