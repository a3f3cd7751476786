"""The closed-form gradient against autodiff, and the exact cost against the stage it stands for."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from trilift.factorize.objective import Annealed, exact_cost, objective, objective_and_gradient
from trilift.factorize.precision import double_precision
from trilift.factorize.state import stage_from

KINDS = ("two-sided", "one-sided", "direct")


@pytest.fixture(autouse=True)
def _double():
    with double_precision():
        yield


def point(m, seed, sigma=0.6):
    rng = np.random.default_rng(seed)
    V = np.eye(m) + sigma * rng.standard_normal((m, m)) / np.sqrt(m)
    return jnp.asarray(V), jnp.asarray(sigma * rng.standard_normal(m))


def annealed(smoothing, exponent, penalty):
    return Annealed(*(jnp.asarray(value, dtype=jnp.float64) for value in (smoothing, exponent, penalty)))


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_is_that_of_autodiff(kind):
    closed = jax.jit(partial(objective_and_gradient, kind=kind))
    auto = jax.jit(jax.value_and_grad(partial(objective, kind=kind), argnums=(0, 1)))
    for seed, numbers in enumerate([(0.3, 1.0, 3.0), (1e-4, 40.0, 100.0), (0.05, 7.0, 0.0)]):
        V, g = point(9, seed=seed)
        a = annealed(*numbers)
        value, (by_V, by_g) = closed(V, g, a)
        expected, (auto_V, auto_g) = auto(V, g, a)
        assert float(value) == pytest.approx(float(expected), rel=1e-13)
        scale = float(jnp.max(jnp.abs(auto_V)))
        assert float(jnp.max(jnp.abs(by_V - auto_V))) < 1e-11 * scale
        assert float(jnp.max(jnp.abs(by_g - auto_g))) < 1e-11 * scale


def test_penalty_acts_on_both_sides_of_the_unit_interval():
    # v = B^T g: g is made so that v is below 0, inside and above 1
    V, _ = point(5, seed=3)
    B = V / jnp.sum(jnp.sqrt(V * V + 0.01), axis=0)
    v = jnp.asarray([-0.5, 0.0, 0.4, 1.0, 1.7])
    g = jnp.linalg.solve(B.T, v)
    with_penalty = objective(V, g, annealed(0.1, 1.0, 2.0), kind="two-sided")
    without = objective(V, g, annealed(0.1, 1.0, 0.0), kind="two-sided")
    assert float(with_penalty - without) == pytest.approx(2.0 * (0.25 + 0.49 + 0.01 * 1.2), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("largest", [True, False])
def test_exact_cost_is_the_cost_of_a_valid_stage(kind, largest):
    V, g = point(8, seed=11, sigma=1.0)
    stage = stage_from(np.asarray(V), np.asarray(g), kind=kind)
    assert stage.residual() < 1e-13
    assert stage.sensitivity() == pytest.approx(1.0, rel=1e-14)
    assert stage.v.min() >= -1e-14
    assert stage.v.max() <= 1 + 1e-14
    assert 0 <= stage.w.min() <= stage.w.max() <= 1
    assert stage.one_sided == (kind != "two-sided")
    assert stage.is_plain == (kind == "direct")
    q = stage.row_norms_sq()
    expected = q.max() if largest else q.mean()
    assert float(exact_cost(V, g, kind=kind, largest=largest)) == pytest.approx(expected, rel=1e-12)


def test_without_smoothing_and_penalty_the_objective_is_the_log_of_the_exact_mean():
    V, g = point(7, seed=5)
    # inside [0, 1] nothing is clipped
    B = V / jnp.sum(jnp.abs(V), axis=0)
    g = jnp.linalg.solve(B.T, jnp.linspace(0.1, 0.9, 7))
    value = objective(V, g, annealed(1e-9, 1.0, 1e4), kind="two-sided")
    assert float(value) == pytest.approx(
        float(jnp.log(exact_cost(V, g, kind="two-sided", largest=False))), abs=1e-7
    )


def test_the_chosen_w_is_the_best_one():
    V, g = point(6, seed=2)
    stage = stage_from(np.asarray(V), np.asarray(g), kind="two-sided")
    L = np.cumsum(np.linalg.inv(stage.B), axis=0)
    d = L[-1] - stage.g
    for w in np.linspace(0, 1, 101):
        q = np.sum((L - w * d) ** 2, axis=1) + (1 - w) ** 2 * (stage.g @ stage.g)
        assert (q >= stage.row_norms_sq() * (1 - 1e-12)).all()
