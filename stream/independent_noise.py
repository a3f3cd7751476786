"""Keyed independent Gaussian noise, one standard deviation a step, without end if wanted.

Every step has one draw at a fixed address: step t is row t mod 256 of block t div 256 of the keystream. The
released integer is z = floor(s_t N + 1/2), exactly (:mod:`trilift.stream.gaussian`), where s_t is the step's
standard deviation in units of the output lattice.

Standard deviations are floats *taken as the exact rationals that they are*: a law computes them by operations
that IEEE 754 rounds correctly (+, -, *, / and square roots), so that they are the same numbers on every
machine, and whoever proves a guarantee proves it for those numbers. Nothing is lost to float arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol, overload

import numpy as np
from trilift.lift.checks import integer, numeric_array
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.lift.integers import shrink
from trilift.stream.gaussian import SAMPLER_ID, GaussianDraws
from trilift.stream.keys import NOISE_LABEL, DigestBuilder, derive_key
from trilift.stream.keystream import TIE, Keystream
from trilift.stream.ledger import MAX_PLACES
from trilift.stream.stepwise import IntArray, Integers, Stepwise

__all__ = ["DeviationLaw", "IndependentNoise"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_BLOCK = 256
_WORDS = 2  # of a row: see the layout of the sampler
_LEAST, _MOST = 2.0**-64, 2.0**480
_INT64_SCALE = 2.0**50  # below it no draw that ever occurs leaves int64


class DeviationLaw(Protocol):
    """The standard deviation of every step: a pure function, the same on every machine."""

    @property
    def label(self) -> str:
        """Text that fixes the law with all its parameters, exactly; bound into the digest."""
        ...

    def deviations(self, steps: IntArray) -> FloatArray:
        """Return the standard deviations of 0-based steps in units of the count, floats > 0."""
        ...


class _Scales(Sequence[Fraction]):
    """The exact values of floats, made one by one: few are asked for."""

    def __init__(self, floats: FloatArray) -> None:
        self._floats = floats

    def __len__(self) -> int:
        return int(self._floats.size)

    @overload
    def __getitem__(self, index: int) -> Fraction: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Fraction]: ...
    def __getitem__(self, index: int | slice) -> Fraction | Sequence[Fraction]:
        if isinstance(index, slice):
            return _Scales(self._floats[index])
        return Fraction(float(self._floats[index]))


class IndependentNoise(Stepwise):
    """Independent rounded Gaussian noise of a given standard deviation at every step.

    Guarantee: adding ``noise.at(t)`` to values f_t on the output lattice is mu-GDP for all streams fixed in
    advance whose values differ by |f_t - f'_t| <= D_t, where the sum of (D_t / s_t)^2 is at most mu^2, given
    ideal random bits. (The Gaussian mechanism, and rounding as post-processing.) Which neighbours have such D
    is for the caller to prove: :mod:`trilift.counters.edit.gaussian_cc` does it for edit neighbours.
    Composition: mu adds up in squares with other Gaussian mechanisms.

    **One key serves one version of one stream**, as for :class:`trilift.stream.noise.Noise`.

    Args:
        law: the standard deviations.
        key: 32 secret bytes (:func:`trilift.stream.keys.new_key`).
        stream_id: 16 bytes drawn together with the key.
        purpose: path that is unique per key.
        places: binary places of the output lattice h = 2^-places, at most 256.
        horizon: number of steps; None for a process without end.

    Raises:
        ParameterError: arguments out of range.

    >>> from trilift.stream.keys import simulation_key
    >>> class Ten:
    ...     label = "ten everywhere"
    ...     def deviations(self, steps):
    ...         return np.full(steps.shape, 10.0)
    >>> noise = IndependentNoise(Ten(), key=simulation_key(1), stream_id=bytes(16), purpose="example")
    >>> bool((noise.range(10**9, 10**9 + 500)[[3, 499]] == noise.at([10**9 + 3, 10**9 + 499])).all())
    True
    """

    def __init__(
        self,
        law: DeviationLaw,
        *,
        key: bytes,
        stream_id: bytes,
        purpose: str,
        places: int = 0,
        horizon: int | None = None,
    ) -> None:
        self.law = law
        self.horizon: int | None = None if horizon is None else integer("horizon", horizon, minimum=1)
        self.places = integer("places", places, minimum=0, maximum=MAX_PLACES)
        digest = DigestBuilder(NOISE_LABEL.decode())
        digest.add("sampler", SAMPLER_ID).add("mechanism", "independent/1").add("block", _BLOCK)
        digest.add("law", law.label).add("output places", self.places)
        self.digest = digest.digest()
        self._stream = Keystream(derive_key(key, stream_id=stream_id, purpose=purpose, digest=self.digest))

    def __repr__(self) -> str:
        return f"IndependentNoise({self.law.label!r}, horizon={self.horizon})"

    def __reduce__(self) -> Any:
        raise StateError(
            "noise is not copied or pickled, because it holds its key: make it again from the key"
        )

    def variance(self, steps: Any) -> FloatArray:
        """Return the variance of the released values at 0-based steps, in squared units of the count.

        s_t^2 plus h^2 / 12 for the rounding (right when the noise is well above h).

        Raises:
            ParameterError: steps that are not integers >= 0.
            HorizonError: a step past the horizon.
        """
        where = numeric_array("steps", steps)
        if where.size and (where.dtype.kind not in "iu" or where.min() < 0):
            raise ParameterError("steps must be integers >= 0")
        if where.size and where.max() >= self._end():
            raise HorizonError(f"step {int(where.max())} lies outside 0..{self._end() - 1}")
        deviations = self._deviations(where.astype(np.int64))
        return np.asarray(deviations**2 + np.ldexp(1.0, -2 * self.places) / 12.0)

    def _deviations(self, steps: IntArray) -> FloatArray:
        deviations = self.law.deviations(steps)
        if not ((deviations >= _LEAST) & (deviations <= _MOST)).all():
            raise ParameterError("the standard deviations must lie between 2^-64 and 2^480")
        return deviations

    def _rounded(self, steps: IntArray) -> Integers:
        draws = self._draws(steps)
        if draws.sigma.max() < _INT64_SCALE:
            return np.asarray(draws.to_int64()[0])
        return shrink(draws.to_objects()[0])

    def _draws(self, steps: IntArray) -> GaussianDraws:
        """Return the draws of strictly increasing steps as one row, read at their own addresses."""
        block, row = np.divmod(steps, _BLOCK)
        blocks = np.unique(block)
        words = np.ascontiguousarray(self._stream.words(0, blocks, _WORDS * _BLOCK), dtype="<u4")
        raw = words.view("<u8").astype(np.uint64, copy=False)
        chosen = raw[np.searchsorted(blocks, block), row][None, :]
        sigma = np.ldexp(self._deviations(steps), self.places)  # exact

        def further(_: int, address: int) -> Iterator[int]:
            k = address // _WORDS
            return self._stream.further(TIE, 0, int(block[k]), _WORDS * int(row[k]))

        return GaussianDraws(_Scales(sigma), sigma, chosen, np.zeros(1, dtype=np.uint64), further)
