"""Exact integer arrays: int64 where every entry fits, Python integers (dtype object) where not.

Nothing here rounds or wraps. Products of matrices are split into limbs small enough for a float64
matrix product to be exact, which makes them as fast as BLAS allows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.lift.checks import show
from trilift.lift.errors import ParameterError

__all__ = ["IntArray", "add", "as_integers", "bit_width", "matmul", "multiply", "shift_left", "shrink"]

IntArray = np.ndarray[Any, np.dtype[Any]]

_INT64_BITS = 63
_FLOAT_BITS = 53


def as_integers(values: Any) -> IntArray:
    """Return ``values`` as an int64 or object array of integers; refuse anything else.

    Raises:
        ParameterError: for floats, booleans, strings and objects that are not integers.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise ParameterError("numerators must be integers, got a masked array")
    array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    if array.dtype.kind in "iu":
        if array.dtype == np.uint64:
            return shrink(array.astype(object))
        return array.astype(np.int64)
    if array.dtype != object:
        raise ParameterError(f"numerators must be integers, got dtype {array.dtype}")
    for entry in array.flat:
        if not isinstance(entry, (int, np.integer)) or isinstance(entry, (bool, np.timedelta64)):
            raise ParameterError(f"numerators must be integers, got {show(entry)}")
    exact = np.empty(array.shape, dtype=object)
    exact[...] = [int(entry) for entry in array.flat] if array.ndim == 1 else _to_python(array)
    return shrink(exact)


def _to_python(array: IntArray) -> IntArray:
    out = np.empty(array.size, dtype=object)
    out[:] = [int(entry) for entry in array.flat]
    return out.reshape(array.shape)


def bit_width(array: IntArray) -> int:
    """Return the bit length of the largest absolute entry (0 for an empty or zero array)."""
    if array.size == 0:
        return 0
    return max(int(array.max()), -int(array.min()), 0).bit_length()


def shrink(array: Any) -> IntArray:
    """Return the int64 form of an object array when every entry fits, else the array itself."""
    if isinstance(array, np.ndarray):
        result: IntArray = array
    else:  # numpy hands results without dimensions back as scalars
        result = np.empty((), dtype=object)
        result[()] = int(array)
    if result.dtype == object and bit_width(result) <= _INT64_BITS:
        result = result.astype(np.int64)
    return result


def _widened(array: IntArray, bits: int) -> IntArray:
    """Give the array the type in which a result of ``bits`` bits is exact."""
    return array if bits <= _INT64_BITS or array.dtype == object else array.astype(object)


def add(left: IntArray, right: IntArray, *, sign: int = 1) -> IntArray:
    """Return ``left + sign*right`` exactly (broadcasting)."""
    bits = max(bit_width(left), bit_width(right)) + 1
    left, right = _widened(left, bits), _widened(right, bits)
    return shrink(left + right if sign > 0 else left - right)


def multiply(left: IntArray, right: IntArray) -> IntArray:
    """Return the entrywise product exactly (broadcasting)."""
    bits = bit_width(left) + bit_width(right)
    return shrink(_widened(left, bits) * _widened(right, bits))


def shift_left(array: IntArray, bits: int) -> IntArray:
    """Return ``array * 2**bits`` exactly, ``bits >= 0``."""
    if bits == 0:
        return array
    return shrink(_widened(array, bit_width(array) + bits) << bits)


def _limbs(array: IntArray, bits: int) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    """Split into float64 limbs of ``bits`` bits: array = sum_k limb_k 2**(bits*k), the top one signed."""
    width, parts = bit_width(array) + 1, []
    while width > bits:
        parts.append((array & ((1 << bits) - 1)).astype(np.float64))
        array = array >> bits
        width -= bits
    parts.append(array.astype(np.float64))
    return parts


def matmul(left: IntArray, right: IntArray) -> IntArray:
    """Return the exact matrix product of integer arrays (1-D or 2-D operands, as ``@``).

    Every limb has at most ``s`` bits with ``inner * 4**s <= 2**53``, so each float64 product and each
    of its partial sums is an exact integer, in whatever order BLAS adds them.
    """
    inner = left.shape[-1]
    if inner != right.shape[0]:
        raise ParameterError(f"shapes {left.shape} and {right.shape} do not fit for a product")
    if inner == 0:
        return np.zeros(left.shape[:-1] + right.shape[1:], dtype=np.int64)
    limb_bits = (_FLOAT_BITS - inner.bit_length()) // 2
    total_bits = bit_width(left) + bit_width(right) + inner.bit_length()
    # Within int64 the shifted partial products may wrap, but modulo 2**64 their sum is right, and it fits.
    wide = total_bits > _INT64_BITS
    result: Any = None
    for i, a in enumerate(_limbs(left, limb_bits)):
        for j, b in enumerate(_limbs(right, limb_bits)):
            term: IntArray = np.asarray(a @ b).astype(np.int64)
            term = (term.astype(object) if wide else term) << (limb_bits * (i + j))
            result = term if result is None else result + term
    return shrink(result)
