"""Double precision for a search, without touching the caller's JAX configuration.

JAX computes in float32 unless told otherwise. The flag is switched inside a context only, so that a
caller's own arrays and compiled functions behave as before once a search returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from trilift.lift.errors import TriliftError

__all__ = ["PrecisionError", "check_double", "double_precision"]

# A float64 product of well-scaled 16 x 16 matrices is right to about 1e-15; float32 and the reduced
# precisions of accelerators (bfloat16 passes, TF32) are off by 1e-7 or far more.
_TOLERANCE = 1e-13


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
    """Refuse a device whose reference product is not accurate to double precision.

    Call it inside :func:`double_precision`. The reference product is of integers below 2^26, so numpy's
    integer arithmetic has it exactly.

    Raises:
        PrecisionError: the product is wrong, or its type is not float64.
    """
    rng = np.random.default_rng(0)
    left = rng.integers(-(2**26), 2**26, size=(16, 16))
    right = rng.integers(-(2**26), 2**26, size=(16, 16))
    exact = left @ right  # below 2^56: no overflow of int64
    x, y = jnp.asarray(left, dtype=jnp.float64), jnp.asarray(right, dtype=jnp.float64)
    product = np.asarray(jax.jit(jnp.matmul)(x, y))
    if product.dtype != np.float64:
        raise PrecisionError(f"the device multiplies in {product.dtype}, a search needs float64")
    error = float(np.max(np.abs(product - exact))) / float(np.max(np.abs(exact)))
    if not error <= _TOLERANCE:
        raise PrecisionError(f"the device's float64 product is off by {error:.1e}, a search needs 1e-13")
