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
    return jnp.asarray(V), jnp.asarray(rng.uniform(size=m))


def annealed(smoothing, exponent):
    return Annealed(jnp.asarray(smoothing, dtype=jnp.float64), jnp.asarray(exponent, dtype=jnp.float64))


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_is_that_of_autodiff(kind):
    closed = jax.jit(partial(objective_and_gradient, kind=kind))
    auto = jax.jit(jax.value_and_grad(partial(objective, kind=kind), argnums=(0, 1)))
    for seed, numbers in enumerate([(0.3, 1.0), (1e-4, 40.0), (0.05, 7.0)]):
        V, v = point(9, seed=seed)
        a = annealed(*numbers)
        value, (by_V, by_v) = closed(V, v, a)
        expected, (auto_V, auto_v) = auto(V, v, a)
        assert float(value) == pytest.approx(float(expected), rel=1e-13)
        scale = float(jnp.max(jnp.abs(auto_V)))
        assert float(jnp.max(jnp.abs(by_V - auto_V))) < 1e-11 * scale
        assert float(jnp.max(jnp.abs(by_v - auto_v))) < 1e-11 * scale


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("largest", [True, False])
def test_exact_cost_is_the_cost_of_a_valid_stage(kind, largest):
    V, v = point(8, seed=11, sigma=1.0)
    stage = stage_from(np.asarray(V), np.asarray(v), kind=kind)
    assert stage.residual() < 1e-13
    np.testing.assert_allclose(stage.v, v if kind == "two-sided" else 0.0, atol=1e-14)
    assert stage.sensitivity() == pytest.approx(1.0, rel=1e-14)
    assert 0 <= stage.w.min() <= stage.w.max() <= 1
    assert stage.one_sided == (kind != "two-sided")
    assert stage.is_plain == (kind == "direct")
    q = stage.row_norms_sq()
    expected = q.max() if largest else q.mean()
    assert float(exact_cost(V, v, kind=kind, largest=largest)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("largest", [True, False])
def test_at_the_end_of_the_schedule_the_objective_is_the_log_of_the_exact_cost(largest):
    V, v = point(7, seed=5)
    value = objective(V, v, annealed(1e-9, 1e6 if largest else 1.0), kind="two-sided")
    exact = exact_cost(V, v, kind="two-sided", largest=largest)
    assert float(value) == pytest.approx(float(jnp.log(exact)), abs=5e-6 if largest else 1e-7)


def test_the_chosen_w_is_the_best_one():
    V, v = point(6, seed=2)
    stage = stage_from(np.asarray(V), np.asarray(v), kind="two-sided")
    L = np.cumsum(np.linalg.inv(stage.B), axis=0)
    d = L[-1] - stage.g
    for w in np.linspace(0, 1, 101):
        q = np.sum((L - w * d) ** 2, axis=1) + (1 - w) ** 2 * (stage.g @ stage.g)
        assert (q >= stage.row_norms_sq() * (1 - 1e-12)).all()
