"""Double precision inside a search, the caller's JAX settings untouched outside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trilift.factorize import precision, search_stage
from trilift.factorize.precision import PrecisionError, check_double, double_precision
from trilift.lift.errors import TriliftError


def settings():
    return bool(jax.config.jax_enable_x64), jax.config.jax_default_matmul_precision


def test_a_search_leaves_the_callers_flags_and_arrays_alone():
    before = settings()
    doubled = jax.jit(lambda x: 2 * x)
    mine = jnp.arange(3.0)
    kind = mine.dtype
    doubled(mine)
    search_stage(3, objective="mean", steps=5, starts=2, progress=False)
    assert settings() == before
    assert jnp.ones(2).dtype == kind
    assert doubled(mine).dtype == kind
    np.testing.assert_array_equal(np.asarray(doubled(mine)), [0, 2, 4])


def test_flags_are_restored_after_an_error():
    before = settings()

    def fail_inside():
        with double_precision():
            assert jnp.ones(2).dtype == jnp.float64
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert settings() == before


def test_the_device_of_this_machine_has_double_precision():
    with double_precision():
        check_double()


def test_a_product_in_single_precision_is_refused(monkeypatch):
    matmul = jnp.matmul

    def single(x, y):
        return matmul(x.astype(jnp.float32), y.astype(jnp.float32)).astype(jnp.float64)

    monkeypatch.setattr(precision.jnp, "matmul", single)
    with double_precision(), pytest.raises(PrecisionError, match="off by"):
        check_double()
    assert issubclass(PrecisionError, TriliftError)


def test_a_product_of_another_type_is_refused(monkeypatch):
    matmul = jnp.matmul
    monkeypatch.setattr(precision.jnp, "matmul", lambda x, y: matmul(x, y).astype(jnp.float32))
    with double_precision(), pytest.raises(PrecisionError, match="float32"):
        check_double()
