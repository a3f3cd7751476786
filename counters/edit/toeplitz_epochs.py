"""Gaussian noise without a horizon whose epochs are all Toeplitz square roots.

The factors by which edit neighbours cost less than group privacy (:mod:`trilift.counters.edit.coupling`)
rest on inner products of columns that fall with their distance. The dyadic square root has them, chains
need not. So the epochs here are :class:`~trilift.stream.toeplitz_noise.ToeplitzNoise`, of at most 2^20
steps, which its factors are proved for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np
from trilift.stream.epoch_layout import Layout
from trilift.stream.epochs import EpochNoise
from trilift.stream.keys import DigestBuilder
from trilift.stream.toeplitz_factor import MAX_SIZE
from trilift.stream.toeplitz_noise import ToeplitzNoise

__all__ = ["LAYOUTS", "ToeplitzEpochs", "toeplitz_epoch_sd", "toeplitz_epochs"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_BITS = 48
_REPEATS = 62


def _tapered() -> Layout:
    """Epochs of 2^2, 2^5, 2^8, 2^12, 2^18 steps, then 2^20 each; shares of the totals min(1/2, 5/(2k))."""
    logs = [2, 5, 8, 12, 18] + [20] * _REPEATS
    ends = tuple(int(x) for x in np.cumsum([1 << k for k in logs]))
    return Layout("tapered-toeplitz", ends, tuple(min(Fraction(1, 2), Fraction(5, 2 * k)) for k in logs))


def _doubling() -> Layout:
    """The paper's epochs, as far as their counters are Toeplitz."""
    whole = Layout.doubling()
    kept = MAX_SIZE.bit_length()
    return Layout("doubling-toeplitz", whole.ends[:kept], whole.shares[:kept])


LAYOUTS = {"cc": _doubling(), "gaussian-tapered": _tapered()}
"""Layouts by kind of base; their last end is the number of buckets that they serve."""


def _root_down(square: Fraction) -> Fraction:
    size = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    unit = Fraction(2) ** (size - _BITS)
    scaled = square / unit**2
    return isqrt(scaled.numerator // scaled.denominator) * unit


@dataclass(frozen=True)
class ToeplitzEpochs:
    """The counters and totals of epochs: an :class:`~trilift.stream.epochs.EpochMechanism`.

    Neighbours: streams that differ in one input, by at most ``change``. Guarantee: mu-GDP for each epoch's
    counter and total together (squares of mu add up), so for the whole stream (parallel composition over
    epochs).

    Attributes:
        mu: the budget of an epoch, exact.
        layout: the epochs and the shares of mu^2 that their totals have.
        change: largest change of one input.
        key: 32 secret bytes.
        stream_id: 16 bytes.
        input_places: inputs are multiples of 2^-input_places.
        places: output lattice.
    """

    mu: Fraction
    layout: Layout
    change: Fraction
    key: bytes = field(repr=False)
    stream_id: bytes = field(repr=False)
    input_places: int = 0
    places: int = 0

    @property
    def identity(self) -> bytes:
        """32 bytes that bind the budget, the change, the layout and the lattices."""
        digest = DigestBuilder("trilift/toeplitz epochs/1").add("mu", self.mu).add("change", self.change)
        digest.add("layout", self.layout.text).add("input places", self.input_places)
        return digest.add("places", self.places).digest()

    def counters(
        self, epoch: int, length: int, share: Fraction, purposes: Sequence[str]
    ) -> list[ToeplitzNoise]:
        """Return the counters of an epoch, one a purpose."""
        return [self._noise(length, _root_down((1 - share) * self.mu**2), purpose) for purpose in purposes]

    def totals(self, epoch: int, share: Fraction, purposes: Sequence[str]) -> list[ToeplitzNoise]:
        """Return the totals of an epoch, one a purpose: processes of one step."""
        return [self._noise(1, _root_down(share * self.mu**2), purpose) for purpose in purposes]

    def _noise(self, length: int, mu: Fraction, purpose: str) -> ToeplitzNoise:
        return ToeplitzNoise(
            length,
            mu=mu,
            key=self.key,
            stream_id=self.stream_id,
            purpose=purpose,
            change=self.change,
            input_places=self.input_places,
            places=self.places,
        )


def toeplitz_epochs(
    kind: str,
    mu: Fraction,
    *,
    key: bytes,
    stream_id: bytes,
    purpose: str,
    change: Fraction = Fraction(1),
    input_places: int = 0,
    places: int = 0,
) -> EpochNoise:
    """Return the noise of a kind of :data:`LAYOUTS`; mu is for one changed input, totals included.

    >>> from trilift.stream.keys import simulation_key
    >>> noise = toeplitz_epochs(
    ...     "cc", Fraction(1), key=simulation_key(1), stream_id=bytes(16), purpose="example"
    ... )
    >>> noise.range(0, 5).size
    5
    """
    layout = LAYOUTS[kind]
    mechanism = ToeplitzEpochs(mu, layout, change, key, stream_id, input_places, places)
    return EpochNoise(layout, mechanism, purpose=purpose)


@lru_cache(maxsize=4)
def _norms(log_size: int) -> FloatArray:
    """S_1 .. S_n of the square root for n = 2^log_size: squared norms of rows, and of columns."""
    size = 1 << log_size
    r = np.cumprod(np.concatenate([[1.0], 1.0 - 0.5 / np.arange(1, size)]))
    return np.asarray(np.cumsum(r * r))


def toeplitz_epoch_sd(kind: str, mu: float, indices: Any, *, change: float = 1.0) -> FloatArray:
    """Return standard deviations at 0-based steps, in floats; the lattice moves them by 1e-4 at most.

    Inside epoch j, with C = change / mu: C^2 (closed + S_N S_m / (1 - a_j)); closed sums 1/a_i over the
    epochs before, or S_N^2 / (1 - a_i) where a_i = 0. At the end of an epoch with a_j > 0 its own total
    counts.
    """
    layout = LAYOUTS[kind]
    where = np.asarray(indices, dtype=np.int64)
    epochs = layout.epoch_of(where)
    result = np.empty(where.shape)
    closed = 0.0
    for epoch in range(int(epochs.max(initial=0)) + 1):
        share, length = float(layout.shares[epoch]), layout.length(epoch)
        here = epochs == epoch
        S = _norms((length - 1).bit_length())
        total = 1.0 / share if share else S[length - 1] ** 2
        if here.any():
            local = where[here] - layout.start(epoch)
            inside = closed + S[length - 1] * S[local] / (1.0 - share)
            ends = (local == length - 1) & (share > 0)
            result[here] = np.where(ends, closed + total, inside)
        closed += total
    return np.asarray(change / mu * np.sqrt(result) * math.sqrt(1.0 + 1e-9))
