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


@pytest.mark.parametrize("low", ["bfloat16", "tensorfloat32", "BF16_BF16_F32", "default"])
def test_a_low_default_precision_of_products_is_refused(low):
    """Nothing is patched: JAX itself is told to multiply in low precision."""
    with double_precision(), jax.default_matmul_precision(low), pytest.raises(PrecisionError, match=low):
        check_double()


def test_single_precision_types_are_refused():
    """Nothing is patched: outside the context JAX's 64-bit types are off."""
    if jax.config.jax_enable_x64:
        pytest.skip("this process has 64-bit types on everywhere")
    with pytest.warns(UserWarning, match="float64"), pytest.raises(PrecisionError, match="float32"):
        check_double()


def test_the_callers_low_precision_does_not_reach_a_search():
    arguments = {"objective": "mean", "steps": 20, "starts": 2, "seed": 1, "progress": False}
    alone = search_stage(4, **arguments)
    with jax.default_matmul_precision("bfloat16"):
        inside = search_stage(4, **arguments)
        assert jax.config.jax_default_matmul_precision == "bfloat16"
    assert inside.cost == alone.cost


@pytest.mark.parametrize("name", ["NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_DOUBLE_PRECISION"])
def test_environments_that_lower_precision_are_refused(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    with pytest.raises(PrecisionError, match=name):
        search_stage(4, objective="mean", steps=2, starts=1, progress=False)
    monkeypatch.setenv(name, "0")
    with double_precision():
        check_double()


def test_an_inverse_in_single_precision_is_refused(monkeypatch):
    inverse = jnp.linalg.inv
    single = lambda x: inverse(x.astype(jnp.float32)).astype(jnp.float64)  # noqa: E731
    monkeypatch.setattr(precision.jnp.linalg, "inv", single)
    with double_precision(), pytest.raises(PrecisionError, match="inverse is off"):
        check_double()
