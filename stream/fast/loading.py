"""Compiling the kernels, with signatures, and checking them against numpy before they are used.

Numba keeps compiled code in files that it reads with pickle. They are used where whoever can write them could
change the installed package as well: in its own ``__pycache__``, or in a folder that ``NUMBA_CACHE_DIR``
names. Elsewhere (an installation that is read-only) the kernels are compiled anew in every process.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from trilift.lift.errors import StateError
from trilift.stream.draws import Draws, Part
from trilift.stream.fast import kernels

__all__ = ["load"]

_SIGNATURES = {
    "compare": "void(uint32[:,::1], int64, uint32[::1], uint8[::1], uint64[::1], uint8[:,::1], uint8[::1])",
    "decode": "void(uint8[:,::1], int64, int64, int64, int64, float64[:,::1], int64, int64)",
    "decode_wide": "void(uint8[:,::1], int64, int64, int64, int64, float64[::1], float64[:,::1], int64,"
    " int64)",
    "round_half_up": "int64(float64[::1], float64, float64, int64[::1], boolean[::1])",
}


def _may_cache() -> bool:
    if os.environ.get("NUMBA_CACHE_DIR"):
        return True
    folder = Path(kernels.__file__).parent
    cache = folder / "__pycache__"
    return os.access(cache if cache.exists() else folder, os.W_OK)


def load() -> SimpleNamespace:
    """Return the compiled kernels by name, and ``version``.

    Raises:
        StateError: a machine with the other byte order, or kernels that do not do what numpy does.
        ImportError and whatever else numba raises.
    """
    if sys.byteorder != "little":
        raise StateError("the kernels are written for little-endian machines")
    import numba

    compiled: dict[str, Any] = {
        name: numba.njit(signature, nogil=True, cache=_may_cache())(getattr(kernels, name))
        for name, signature in _SIGNATURES.items()
    }
    made = SimpleNamespace(**compiled, version=f"numba {numba.__version__}")
    _check(made)
    return made


def _check(made: SimpleNamespace) -> None:
    """Compare every kernel with numpy on a few thousand words; a wrong compiler must not change noise."""
    rng = np.random.default_rng(1)
    for width in (8, 64, 72, 136):  # words of a row
        rows, nb, skip = 24, 5, 8
        count = rows * width
        limits = rng.integers(0, 1 << 32, count, dtype=np.uint32)
        words = rng.integers(0, 1 << 32, (nb, skip + count), dtype=np.uint32)
        words[1, skip + 3] = limits[3]
        below = words[:, skip:] < limits
        flags, marks = np.empty(count, dtype=np.uint8), np.empty(nb, dtype=np.uint8)
        packed = np.zeros((nb, count // 8 + 8), dtype=np.uint8)
        made.compare(words, skip, limits, flags, flags.view(np.uint64), packed, marks)
        bits = packed[:, :-8]
        same = np.array_equal(bits, np.packbits(below, axis=1, bitorder="little"))
        same = same and marks.tolist() == [0, 1, 0, 0, 0]
        bits[:, :: width // 8] &= 0b11111011  # no tail events
        out = np.empty((nb, rows))
        powers = np.ldexp(1.0, 32 * np.arange(2 * -(-width // 64)))
        if width <= 64:
            made.decode(packed, nb, 0, width // 8, rows, out, 0, 0)
        else:
            made.decode_wide(packed, nb, 0, width // 8, rows, powers, out, 0, 0)
        same = same and np.array_equal(out, _plain(bits, rows, width))
        if not same:
            raise StateError("the compiled sampler differs from the plain one on this machine")
    values = np.array([0.25, 0.5, -0.5, 2.0**52, -1.2, 1e300, np.nan, np.inf, 7.5 + 1e-9])
    whole, unsure = np.empty(9, dtype=np.int64), np.empty(9, dtype=bool)
    count = made.round_half_up(values, 1.0, 1e-12, whole, unsure)
    if (count, whole.tolist(), np.flatnonzero(unsure).tolist()) != (
        6,
        [0, 0, 0, 0, -1, 0, 0, 0, 8],
        [1, 2, 3, 5, 6, 7],
    ):
        raise StateError("the compiled rounding differs from the plain one on this machine")


def _plain(bits: Any, rows: int, width: int) -> Any:
    nb, limbs = len(bits), -(-width // 64)
    padded = np.zeros((nb, rows, 8 * limbs), dtype=np.uint8)
    padded[:, :, : width // 8] = bits.reshape(nb, rows, width // 8)
    return Draws((nb, rows), [Part(range(rows), padded.view("<u8").astype(np.uint64))]).to_float()
