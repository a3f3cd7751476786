"""c_2 and c_F of T_2, their failure to be norms, and the bound for norms."""

import math

import numpy as np
import pytest
import sympy
from trilift.lift.errors import CertificateError, ParameterError
from trilift.verify import structure
from trilift.verify.structure import norm_bound, sign_averages, triangle_failure, two_step_cost


@pytest.mark.parametrize(("objective", "square"), [("max", 2), ("mean", sympy.Rational(3, 2))])
def test_costs_of_two_steps(objective: str, square: object) -> None:
    found = two_step_cost(objective)
    assert found.value**2 == square
    assert found.steps[0] == "attained"
    assert len(found.steps) > 3


@pytest.mark.parametrize("objective", ["max", "mean"])
def test_no_random_factorisation_is_cheaper(objective: str) -> None:
    """Random factors, half of them near those that attain the cost (fixed seed)."""
    rng = np.random.default_rng(5)
    R = rng.normal(size=(20000, 2, 2))
    R[::2] = np.eye(2) + 0.05 * R[::2]
    b = np.abs(R).sum(axis=1).max(axis=1)
    L = np.array([[1.0, 0.0], [1.0, 1.0]]) @ np.linalg.inv(R)
    norms = (L**2).sum(axis=2)
    rows = norms.max(axis=1) if objective == "max" else norms.mean(axis=1)
    costs = np.sqrt(rows) * b
    value = float(two_step_cost(objective).value)
    assert costs.min() >= value - 1e-9
    assert costs.min() < value + 0.05


@pytest.mark.parametrize("objective", ["max", "mean"])
def test_the_triangle_inequality_fails(objective: str) -> None:
    found = triangle_failure(objective)
    assert sum(found.parts) == (1 + sympy.sqrt(2)) / 2
    assert found.excess.is_positive
    assert float(found.excess) == pytest.approx(
        (2**0.5 if objective == "max" else 1.5**0.5) - (1 + 2**0.5) / 2
    )


def test_sign_of_polynomials() -> None:
    x = sympy.Symbol("x")
    assert structure._nonnegative(x**2 * (1 - x), x, 0, 1)
    assert structure._nonnegative((2 * x - 1) ** 2, x, 0, 1)
    assert structure._nonnegative(sympy.Integer(0), x, 0, 1)
    assert not structure._nonnegative(2 * x - 1, x, 0, 1)
    assert not structure._nonnegative(-(x**2), x, 0, 1)
    assert not structure._nonnegative((x - 1) * (3 * x - 1) * (3 * x - 2), x, 0, 1)


def test_a_false_step_is_refused() -> None:
    with pytest.raises(CertificateError, match="'wishful'"):
        structure._require("wishful", False)


@pytest.mark.parametrize("n", range(1, 65))
def test_norm_bound(n: int) -> None:
    parts = sign_averages(n)
    assert norm_bound(n) == len(parts) == math.ceil(math.log2(n)) + 1
    assert np.array_equal(sum(part.matrix() for part in parts), np.tri(n))
    for part in parts:
        assert set(np.unique(part.left)) | set(np.unique(part.right)) <= {-1, 1}
        matrix = part.matrix()
        assert set(np.unique(matrix)) <= {0, 1}
        # disjoint blocks of ones: equal rows or rows without a common column
        meet = matrix @ matrix.T
        same = (matrix[:, None, :] == matrix[None, :, :]).all(axis=2)
        assert np.all(same | (meet == 0))


def test_an_average_that_is_no_matrix_of_integers_is_refused() -> None:
    part = structure.SignAverage(np.array([[1, 1, 1]]), np.array([[1, 1, -1]]))
    with pytest.raises(CertificateError):
        part.matrix()


@pytest.mark.parametrize("n", [0, 4097, 2.0, True])
def test_refusals(n: object) -> None:
    with pytest.raises(ParameterError):
        norm_bound(n)
    with pytest.raises(ParameterError):
        two_step_cost("both")
