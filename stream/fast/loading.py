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
from trilift.stream.fast.calls import decode
from trilift.stream.laplace_bits import assemble
from trilift.stream.laplace_layout import TESTS, Run

__all__ = ["load"]

_DECODE = "uint16[:,::1], uint8[:,::1], int64, int64, int64, int64, int64[::1]"
_OUT = "float64[:,::1], int64, int64"
_SIGNATURES = {
    "compare": "int64(uint16[:,::1], uint16[::1], uint8[::1], uint64[::1], uint8[:,::1], int64[:,::1])",
    "decode": f"void({_DECODE}, int64[::1], {_OUT})",
    "decode_wide": f"void({_DECODE}, float64[::1], {_OUT})",
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
    low = np.array([*range(14)] * 3 + [*range(14, 30)] * 2 + [*range(62, 78)], dtype=np.int64)
    rows, nb, place = low.size, 5, TESTS * low.size
    widths = np.where(low < 14, 1, np.where(low < 30, 2, 5))
    limits = rng.integers(0, 1 << 16, place, dtype=np.uint16)
    words = rng.integers(0, 1 << 16, (nb, place + int(widths.sum())), dtype=np.uint16)
    words[:, :place] += words[:, :place] == limits
    words[1, 3], words[4, place - 1] = limits[3], limits[-1]
    flags, found = np.empty(place, dtype=np.uint8), np.zeros((4, 2), dtype=np.int64)
    packed = np.zeros((nb, place // 8), dtype=np.uint8)
    equal = made.compare(words, limits, flags, flags.view(np.uint64), packed, found)
    same = (equal, found[:2].tolist()) == (2, [[1, 3], [4, place - 1]])
    same = same and np.array_equal(packed, np.packbits(words[:, :place] < limits, axis=1, bitorder="little"))
    out, plain, first = np.empty((nb, rows)), Draws((nb, rows)), 0
    for width in (1, 2, 5):
        run = Run(first, int((widths == width).sum()), place, width, low[widths == width])
        decode(made, run, words, packed, out, 0, first)
        part = np.zeros((nb, run.count, run.limbs), dtype=np.uint64)
        assemble(run, packed.reshape(nb, rows, TESTS // 8), words, part)
        plain.parts.append(Part(range(first, first + run.count), part))
        first, place = first + run.count, place + width * run.count
    if not (same and np.array_equal(out, plain.to_float())):
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
