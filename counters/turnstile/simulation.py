"""The Toeplitz square root in floating point: noise for simulations only, which protects nobody.

The square root of the all-ones triangle, c_0 = 1, c_k = c_{k-1} (2k - 1) / (2k), has the least noise known at
every step (Fichtenberger, Henzinger, Upadhyay 2023), but its entries lie on no usable lattice, and streaming
it takes memory in proportion to the steps. So its noise is drawn here by a fast Fourier transform from a
public seed, all steps at once, and rounded to integers like exact noise.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
from trilift.counters.turnstile.budget import BANK_CHANGE, Budget
from trilift.lift.errors import HorizonError, ParameterError
from trilift.stream.keys import DigestBuilder, length_prefixed

__all__ = ["ToeplitzBank", "ToeplitzBase", "toeplitz_rows", "unit_noise"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]

_MOST_CELLS = 1 << 28
_MOST_TICKS = 1 << 21
_TRANSFORMED = 1 << 22  # entries that are transformed at once


@lru_cache(maxsize=8)
def toeplitz_root_floats(ticks: int) -> FloatArray:
    """Return c_0..c_(ticks-1)."""
    index = np.arange(1, ticks)
    return np.cumprod(np.concatenate([[1.0], (2.0 * index - 1.0) / (2.0 * index)]))


@lru_cache(maxsize=8)
def toeplitz_rows(ticks: int) -> FloatArray:
    """Return S_1..S_ticks, S_t the sum of c_k^2 over k < t: squared row norms; the last is the column's.

    >>> round(float(toeplitz_rows(10_000)[-1]), 2)
    4.0
    """
    return np.cumsum(toeplitz_root_floats(ticks) ** 2)


def unit_noise(ticks: int, *, width: int, rng: np.random.Generator) -> Floats:
    """Return L z of independent counters for standard normal z, float32 of shape (ticks, width).

    Multiply by sigma = 2 sqrt(S_T) / mu (a change of 2).

    Args:
        ticks: number of steps.
        width: number of counters.
        rng: source of z.
    """
    if width * ticks > _MOST_CELLS or ticks > _MOST_TICKS:
        raise ParameterError(
            f"simulated noise of {width} counters and {ticks} steps does not fit into memory"
        )
    size = 1 << (2 * ticks - 1).bit_length()
    root = np.fft.rfft(toeplitz_root_floats(ticks).astype(np.float32), size)
    out = np.empty((ticks, width), dtype=np.float32)
    each = max(1, _TRANSFORMED // size)
    for start in range(0, width, each):
        z = rng.standard_normal((min(each, width - start), ticks), dtype=np.float32)
        out[:, start : start + len(z)] = np.fft.irfft(np.fft.rfft(z, size) * root, size)[:, :ticks].T
    return out


class ToeplitzBank:
    """Noise of many counters from a public seed; simulations only.

    Args:
        sigma: standard deviation of z.
        ticks: number of steps.
        width: number of counters.
        seed: bytes that the noise is a function of.
    """

    def __init__(self, sigma: float, *, ticks: int, width: int, seed: bytes) -> None:
        self._sigma, self._ticks, self._width, self._seed = sigma, ticks, width, seed
        digest = DigestBuilder("trilift/simulated toeplitz/1").add("ticks", ticks).add("width", width)
        self.digest = digest.add("sigma", Fraction(sigma)).digest()

    @cached_property
    def _values(self) -> Integers:
        rng = np.random.default_rng(int.from_bytes(hashlib.sha256(self._seed).digest(), "little"))
        noise = unit_noise(self._ticks, width=self._width, rng=rng)
        noise *= np.float32(self._sigma)
        noise += np.float32(0.5)
        np.floor(noise, out=noise)
        largest = float(np.abs(noise).max(initial=0.0))
        return noise.astype(np.int16 if largest < 1 << 15 else np.int64)

    def at(self, steps: IntArray) -> Integers:
        """Return floor(N + 1/2) at 0-based ticks, shape (k, width)."""
        where = np.asarray(steps)
        if where.size and not 0 <= int(where.min()) <= int(where.max()) < self._ticks:
            raise HorizonError(f"steps must lie within 0..{self._ticks - 1}")
        return self._values[where].astype(np.int64)


@dataclass(frozen=True)
class ToeplitzBase:
    """The law of simulated noise over the Toeplitz square root.

    Attributes:
        ticks: number of released steps.
        budget: of one bank; Gaussian.
        seed: public.
        sigma: standard deviation of z: 2 sqrt(S_T) / mu.
    """

    ticks: int
    budget: Budget
    seed: int
    sigma: float

    kind = "toeplitz"
    simulated = True

    @classmethod
    def make(cls, budget: Budget, *, ticks: int, seed: int) -> Self:
        """Return the law of a budget.

        Raises:
            ParameterError: a pure budget, or more steps than fit.
        """
        if budget.law != "gaussian" or budget.mu is None:
            raise ParameterError("base='toeplitz' is for Gaussian noise: give rho, or epsilon and delta")
        if ticks > _MOST_TICKS:
            raise ParameterError(f"base='toeplitz' is for at most {_MOST_TICKS} released steps")
        sigma = BANK_CHANGE * math.sqrt(float(toeplitz_rows(ticks)[-1])) / float(budget.mu)
        return cls(ticks, budget, seed, sigma)

    @property
    def spent(self) -> Fraction:
        """All of the share; floating point proves nothing."""
        return self.budget.amount

    def bank(self, width: int, *, key: bytes, stream_id: bytes, purpose: str) -> ToeplitzBank:
        """Return the noise of ``width`` counters."""
        parts = (bytes(key), stream_id, purpose.encode())  # the key is a function of the seed
        seed = b"".join(map(length_prefixed, parts))
        return ToeplitzBank(self.sigma, ticks=self.ticks, width=width, seed=seed)

    def variance(self, ticks: Any) -> FloatArray:
        """Return E[N^2] before the rounding."""
        return np.asarray(self.sigma**2 * toeplitz_rows(self.ticks)[np.asarray(ticks)])

    def upper(self, ticks: Any, *, failure: float, terms: int = 1) -> FloatArray:
        """Return x with Pr[N >= x] <= failure, N the sum of the noises of ``terms`` counters."""
        from trilift.counters.turnstile.bases import normal_upper

        return np.asarray(np.sqrt(terms * self.variance(ticks)) * normal_upper(failure))

    def record(self) -> dict[str, Any]:
        """Return what a state keeps."""
        return {"kind": "toeplitz"}

    def as_text(self) -> str:
        """Return the mechanism in words."""
        return "floating-point Gaussian noise (simulation) over the Toeplitz square root"
