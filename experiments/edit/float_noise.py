"""Noise in floating point, many runs at once. FOR SIMULATION ONLY: releases use exact keyed noise.

Every kind has ``sd(count)``, the exact standard deviations of its first values, and ``draw(rng, runs=,
count=)``, a (runs, count) array of them; the runs are independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EpochNoise",
    "FloatNoise",
    "IndependentNoise",
    "MatrixNoise",
    "ToeplitzNoise",
    "column_mass",
    "square_root",
    "toeplitz_values",
]

Floats = NDArray[np.float64]


class FloatNoise(Protocol):
    """What every kind of noise can do."""

    def sd(self, count: int) -> Floats:
        """Return the standard deviations of the first ``count`` values."""

    def draw(self, rng: np.random.Generator, *, runs: int, count: int) -> Floats:
        """Draw the first ``count`` values, (runs, count)."""


def square_root(count: int) -> Floats:
    """Return r_0, ..., r_(count-1), the coefficients of (1 - x)^(-1/2).

    >>> square_root(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    k = np.arange(1, count)
    return np.concatenate([[1.0], np.cumprod(1 - 1 / (2 * k))])[:count]


def column_mass(count: int) -> Floats:
    """Return S_1, ..., S_count with S_n = r_0^2 + ... + r_(n-1)^2."""
    return np.asarray(np.cumsum(square_root(count) ** 2))


def toeplitz_values(rng: np.random.Generator, *, runs: int, count: int) -> Floats:
    """Draw sum over i <= m of r_(m-i) z_i for m = 1..count, z standard normal, by FFT; (runs, count)."""
    from scipy import fft

    length = fft.next_fast_len(2 * count - 1, real=True)
    kernel = fft.rfft(square_root(count), length)
    spectrum = fft.rfft(rng.standard_normal((runs, count)), length, axis=1)
    spectrum *= kernel
    return np.asarray(fft.irfft(spectrum, length, axis=1)[:, :count])


@dataclass(frozen=True)
class IndependentNoise:
    """Independent normal values.

    Attributes:
        scales: their standard deviations, as many as are ever asked for.
    """

    scales: Floats

    def sd(self, count: int) -> Floats:
        """Return the standard deviations."""
        return self.scales[:count]

    def draw(self, rng: np.random.Generator, *, runs: int, count: int) -> Floats:
        """Draw (runs, count) values."""
        return rng.standard_normal((runs, count)) * self.scales[:count]


@dataclass(frozen=True)
class ToeplitzNoise:
    """The Toeplitz square root for a known number of values: scale * (r * z)_m.

    Attributes:
        scale: standard deviation of z; C sqrt(S_K) in the paper's notation.
    """

    scale: float

    def sd(self, count: int) -> Floats:
        """Return the standard deviations."""
        return self.scale * np.sqrt(column_mass(count))

    def draw(self, rng: np.random.Generator, *, runs: int, count: int) -> Floats:
        """Draw (runs, count) values."""
        return self.scale * toeplitz_values(rng, runs=runs, count=count)


@dataclass(frozen=True)
class EpochNoise:
    """The paper's unbounded counter: epochs of doubling length, a Toeplitz square root each, and totals.

    Value t = 2^j - 1 + m with 1 <= m < 2^j has noise C (sqrt(S_N) (r * z)_m + j independent totals), N = 2^j;
    the last value of an epoch has j + 1 totals and nothing else.

    Attributes:
        scale: C, the standard deviation for sensitivity 1.
    """

    scale: float

    def sd(self, count: int) -> Floats:
        """Return the standard deviations: C^2 (j + S_N S_m), or C^2 (j + 1) at epoch ends."""
        mass = column_mass(2 ** max(count.bit_length(), 1))
        t = np.arange(1, count + 1)
        epoch = np.floor(np.log2(t)).astype(int)
        length = 2**epoch
        within = t - length + 1
        inside = epoch + mass[length - 1] * mass[within - 1]
        return np.asarray(self.scale * np.sqrt(np.where(within == length, epoch + 1, inside)))

    def draw(self, rng: np.random.Generator, *, runs: int, count: int) -> Floats:
        """Draw (runs, count) values."""
        values = np.empty((runs, count))
        totals = np.zeros(runs)
        begin, length = 0, 1
        while begin < count:
            inside = min(length - 1, count - begin)
            if inside:
                root = math.sqrt(float(column_mass(length)[-1]))
                drawn = toeplitz_values(rng, runs=runs, count=inside)
                values[:, begin : begin + inside] = root * drawn + totals[:, None]
            totals += rng.standard_normal(runs)
            if begin + length <= count:
                values[:, begin + length - 1] = totals
            begin, length = begin + length, 2 * length
        values *= self.scale
        return values


@dataclass(frozen=True)
class MatrixNoise:
    """Noise L z for an explicit factor L, with normal or Laplace z.

    Attributes:
        factor: L, (values, coordinates), the coordinates' scales multiplied in.
        laplace: whether z is Laplace of scale 1 (variance 2) instead of standard normal.
    """

    factor: Floats
    laplace: bool = False

    def sd(self, count: int) -> Floats:
        """Return the standard deviations."""
        squares = np.square(self.factor[:count]).sum(axis=1)
        return np.asarray(np.sqrt((2 if self.laplace else 1) * squares))

    def draw(self, rng: np.random.Generator, *, runs: int, count: int) -> Floats:
        """Draw (runs, count) values."""
        shape = (runs, self.factor.shape[1])
        z = rng.laplace(size=shape) if self.laplace else rng.standard_normal(shape)
        return np.asarray(z @ self.factor[:count].T)
