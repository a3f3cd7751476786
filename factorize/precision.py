"""Double precision for a search, without touching the caller's JAX configuration.

JAX computes in float32 unless told otherwise. The flag is switched inside a context only, so that a
caller's own arrays and compiled functions behave as before once a search returns.

Lower precision can creep in from many sides: 64-bit types that are off, a default precision of products that
is set elsewhere, an environment that lets a GPU round to TF32 or imitate double precision, a device without
it. Settings are looked at, but what decides is arithmetic: reference products and a reference inverse.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from trilift.lift.errors import TriliftError

__all__ = ["PrecisionError", "check_double", "double_precision"]

# A float64 product of well-scaled matrices is right to about 1e-15; float32 and the reduced precisions of
# accelerators (bfloat16 passes, TF32) are off by 1e-7 or far more.
_TOLERANCE = 1e-13
_INVERSE_TOLERANCE = 1e-11  # of the residual of an inverse, condition number below 100

# GPUs take other kernels for large products than for small ones: (size, largest entry's bits), such that
# products stay below 2^62
_REFERENCES = ((16, 26), (256, 26))

_FULL = (None, "highest", "float32")
"""Default precisions of products that do not round float64; "float32" is JAX's other name for the highest."""

_FORBIDDEN = {
    "NVIDIA_TF32_OVERRIDE": ("1",),
    "CUBLAS_EMULATE_DOUBLE_PRECISION": ("1",),
}
"""Environment variables of CUDA's libraries, with values under which products are not what they say."""


class PrecisionError(TriliftError, ArithmeticError):
    """The device does not multiply matrices in double precision; no search is run on it."""


def _switch() -> AbstractContextManager[object]:
    """The context manager of this JAX version that turns 64-bit types on."""
    home = jax if hasattr(jax, "enable_x64") else import_module("jax.experimental")
    return cast("AbstractContextManager[object]", home.enable_x64(True))


@contextmanager
def double_precision() -> Iterator[None]:
    """Run the body with 64-bit JAX types and full-precision products; restore both afterwards."""
    with _switch(), jax.default_matmul_precision("highest"):
        yield


def check_double() -> None:
    """Refuse a device, or settings, under which products are not accurate to double precision.

    Call it inside :func:`double_precision`. The reference products are of integers below 2^26, so numpy's
    integer arithmetic has them exactly.

    Raises:
        PrecisionError: a product or the inverse is wrong, or its type is not float64, or a setting asks for
            lower precision.
    """
    _check_settings()
    for size, bits in _REFERENCES:
        _check_product(size, bits)
    _check_inverse(128)


def _check_settings() -> None:
    config: Any = jax.config
    asked = config.jax_default_matmul_precision
    if asked not in _FULL:
        raise PrecisionError(f"products are set to the precision {asked!r}, a search needs 'highest'")
    for name, values in _FORBIDDEN.items():
        if os.environ.get(name) in values:
            raise PrecisionError(f"{name}={os.environ[name]} lowers the precision of products: unset it")


def _check_product(size: int, bits: int) -> None:
    rng = np.random.default_rng(size)
    left = rng.integers(-(2**bits), 2**bits, size=(size, size))
    right = rng.integers(-(2**bits), 2**bits, size=(size, size))
    exact = left @ right  # below 2^60: no overflow of int64
    x, y = jnp.asarray(left, dtype=jnp.float64), jnp.asarray(right, dtype=jnp.float64)
    product = np.asarray(jax.jit(jnp.matmul)(x, y))
    if product.dtype != np.float64:
        raise PrecisionError(f"the device multiplies in {product.dtype}, a search needs float64")
    error = float(np.max(np.abs(product - exact))) / float(np.max(np.abs(exact)))
    if not error <= _TOLERANCE:
        raise PrecisionError(f"the device's float64 product is off by {error:.1e}, a search needs 1e-13")


def _check_inverse(size: int) -> None:
    rng = np.random.default_rng(size)
    matrix = np.eye(size) + 0.3 * rng.standard_normal((size, size)) / np.sqrt(size)
    inverse = np.asarray(jax.jit(jnp.linalg.inv)(jnp.asarray(matrix)))
    error = float(np.max(np.abs(matrix @ inverse - np.eye(size))))
    if inverse.dtype != np.float64 or not error <= _INVERSE_TOLERANCE:
        raise PrecisionError(f"the device's float64 inverse is off by {error:.1e}, a search needs 1e-11")
