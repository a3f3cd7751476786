"""Noise in floating point, many runs at once. FOR SIMULATION ONLY: releases use exact keyed noise.

Every kind has ``draw(rng, runs=, count=)``, its first values in independent runs, (runs, count).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ChainNoise",
    "EpochNoise",
    "FloatNoise",
    "IndependentNoise",
    "ToeplitzNoise",
    "column_mass",
    "square_root",
    "toeplitz_values",
]

Floats = NDArray[np.float64]


class FloatNoise(Protocol):
    """What every kind of noise can do."""

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
class ChainNoise:
    """Noise L z of a chain of stages, evaluated level by level as :mod:`trilift.stream.evaluate` does.

    Attributes:
        levels: (A, g, w) of each level, finest first; the top's g and w are not looked at.
        scales: scale of z at each level.
        laplace: whether z is Laplace of that scale (variance 2 scale^2) instead of normal.
    """

    levels: tuple[tuple[Floats, Floats, Floats], ...]
    scales: tuple[float, ...]
    laplace: bool

    def draw(self, rng: np.random.Generator, *, runs: int, count: int) -> Floats:
        """Draw (runs, count) values."""
        return self._level(0, rng, runs, count)

    def _level(self, level: int, rng: np.random.Generator, runs: int, count: int) -> Floats:
        A, g, w = self.levels[level]
        size = A.shape[0]
        top = level == len(self.levels) - 1
        blocks = 1 if top else -(-count // size)
        shape = (runs * blocks, A.shape[1])
        z = rng.laplace(size=shape) if self.laplace else rng.standard_normal(shape)
        z *= self.scales[level]
        if top:
            return np.asarray(z @ A[:count].T)
        above = self._level(level + 1, rng, runs, blocks)
        carried = (z @ g).reshape(runs, blocks) + above
        before = np.concatenate([np.zeros((runs, 1)), carried[:, :-1]], axis=1)
        values = (z @ A.T).reshape(runs, blocks, size)
        values += before[:, :, None] * (1 - w) + above[:, :, None] * w
        return values.reshape(runs, blocks * size)[:, :count]
