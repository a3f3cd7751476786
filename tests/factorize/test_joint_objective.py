"""The joint objective: its closed-form gradient, and its costs against those of the stage it stands for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trilift.factorize import support_of
from trilift.factorize.joint_objective import Point, Problem, stage_at
from trilift.factorize.precision import double_precision
from trilift.lift.interior import interior_row_norms_sq

M, R = 6, 9
CASES = {
    "direct": (True, False, None),
    "plain": (False, False, None),
    "interior": (False, True, None),
    "interior largest": (False, True, (0.1, 0.9)),
}


def problem(case, seed=0):
    """A random sparse B, and v, w within [0.1, 0.9] that reach both ends."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(R, M)) * (rng.random((R, M)) < 0.6)
    B[:M] += 2.0 * np.eye(M)
    support = support_of(B)
    v, w = rng.uniform(0.1, 0.9, M), rng.uniform(0.1, 0.9, M)
    w[[1, 4]] = 0.1, 0.9
    plain, interior, ends = CASES[case]
    if plain:
        v, w = np.zeros(M), np.zeros(M)
    return Problem(support, plain, interior, ends), Point(support.values_of(B), v, w)


def by_definition(x, v, w, *, problem, smoothing, exponent):
    """The objective from the matrices themselves, in JAX, for autodiff."""
    support = problem.support
    B = jnp.zeros(support.shape).at[support.rows, support.columns].set(x)
    absolute = jnp.zeros(support.shape).at[support.rows, support.columns].set(jnp.sqrt(x**2 + smoothing**2))
    B = B / absolute.sum(axis=0)
    pseudo = jnp.linalg.inv(B.T @ B) @ B.T
    T = jnp.tril(jnp.ones((M, M)))
    g = v @ pseudo
    if not problem.interior and not problem.plain:
        L = T @ pseudo
        d = L[-1] - g
        w = jax.lax.stop_gradient(jnp.clip((L @ d + g @ g) / (d @ d + g @ g), 0.0, 1.0))
    A = (T - w[:, None] * (1.0 - v)[None, :]) @ pseudo
    rest = 1.0 - w
    n = (A**2).sum(axis=1) + rest**2 * (g @ g)
    c = (A * jnp.roll(A, 1, axis=0)).sum(axis=1) + rest * jnp.roll(rest, 1) * (g @ g)
    c = c.at[0].set(rest[0] * (A[-1] @ g))
    blends = [(1.0, 0.0, 0.0)]
    if problem.ends is not None:
        blends = [(y * y, (1 - y) ** 2, y * (1 - y)) for y in problem.ends]
    elif problem.interior:
        blends = [((w**2).mean(), (rest**2).mean(), (w * rest).mean())]
    q = jnp.concatenate([a * n + b * jnp.roll(n, 1) + 2 * e * c for a, b, e in blends])
    return jnp.log((q**exponent).mean()) / exponent


@pytest.mark.parametrize("exponent", [1.0, 7.0])
@pytest.mark.parametrize("case", CASES)
def test_gradient_is_that_of_autodiff(case, exponent):
    found, point = problem(case)
    with double_precision():
        settings = {"problem": found, "smoothing": 0.05, "exponent": exponent}
        value, gradient = jax.value_and_grad(by_definition, argnums=(0, 1, 2))(
            *(jnp.asarray(part) for part in point), **settings
        )
    ours, by = found.value_and_gradient(point, smoothing=0.05, exponent=exponent)
    assert ours == pytest.approx(float(value), abs=1e-12)
    assert found.value(point, smoothing=0.05, exponent=exponent) == ours
    np.testing.assert_allclose(by.x, gradient[0], atol=1e-11)
    if case != "direct":
        np.testing.assert_allclose(by.v, gradient[1], atol=1e-11)
    if found.interior:
        np.testing.assert_allclose(by.w, gradient[2], atol=1e-11)
    else:
        assert not by.w.any()


@pytest.mark.parametrize("exponent", [1.0, 500.0])
@pytest.mark.parametrize("case", CASES)
def test_gradient_is_that_of_differences(case, exponent):
    found, point = problem(case, seed=1)
    _, by = found.value_and_gradient(point, smoothing=0.05, exponent=exponent)
    rng = np.random.default_rng(2)
    for part in range(1 if found.plain else 3 if found.interior else 2):
        way = rng.normal(size=len(point[part]))
        values = []
        for step in (1e-6, -1e-6):
            moved = [*point]
            moved[part] = point[part] + step * way
            values.append(found.value(Point(*moved), smoothing=0.05, exponent=exponent))
        assert (values[0] - values[1]) / 2e-6 == pytest.approx(by[part] @ way, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_cost_is_that_of_the_stage(case, seed):
    found, point = problem(case, seed)
    x = point.x / found.support.column_sums(np.abs(point.x))[found.support.columns]
    B = found.support.dense(x)
    stage = stage_at(B, point.v, point.w if found.interior else None, plain=found.plain)
    assert stage.residual() < 1e-12
    np.testing.assert_allclose(stage.v, point.v, atol=1e-12)
    assert stage.sensitivity() == pytest.approx(1.0)
    q = interior_row_norms_sq(stage) if found.interior else stage.row_norms_sq()
    if found.ends is None:
        assert found.cost(point, largest=False) == pytest.approx(q.mean(), rel=1e-10)
    if found.ends is not None or not found.interior:
        assert found.cost(point, largest=True) == pytest.approx(q.max(), rel=1e-10)


def test_the_pseudo_inverse_gives_the_shortest_rows():
    found, point = problem("plain")
    stage = stage_at(found.support.dense(point.x), point.v, point.w)
    free = np.linalg.svd(stage.B.T)[2][M:]  # rows that add nothing to A B
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = stage.A + rng.normal(size=(M, R - M)) @ free
        np.testing.assert_allclose(other @ stage.B, stage.A @ stage.B, atol=1e-10)
        assert ((other**2).sum(axis=1) >= (stage.A**2).sum(axis=1) - 1e-12).all()


@pytest.mark.parametrize("case", CASES)
def test_nothing_finite_comes_of_a_singular_factor(case):
    found, point = problem(case)
    for x in (np.zeros_like(point.x), np.full_like(point.x, np.nan)):
        bad = point._replace(x=x)
        assert found.cost(bad, largest=True) == np.inf
        assert np.isnan(found.value(bad, smoothing=0.0, exponent=1.0))
        value, by = found.value_and_gradient(bad, smoothing=0.0, exponent=1.0)
        assert np.isnan(value)
        assert np.isnan(by.x).all()
