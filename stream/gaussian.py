"""Exact rounded Gaussian variates, vectorised, every one at a fixed address of a keystream.

A variate of scale sigma (a rational, in units of the lattice) is z = floor(sigma N + 1/2), N standard normal.
It has exactly that law given ideal random bits: the sign is one bit, and |N| = sqrt(2) erfcinv(V) for a
uniform V whose binary digits are read as far as needed, so that |z| = floor(sigma |N| + 1/2) is decided.

* 63 digits of V and scipy's ``ndtri`` give |N| within :data:`MARGIN` max(|N|, 1). Unless sigma |N| + 1/2 lies
  so near to an integer, its floor is known.
* Else, and when V < 2^-16 (where 63 digits are few), further digits are read from the address's own further
  words, and balls (:mod:`trilift.stream.balls`) enclose sigma |N| more and more narrowly until one integer is
  left. This ends with probability 1. The values do not depend on which of the two ways found them.
* Digits that are all zeros or all ones decide nothing, whatever their number: a keystream that is stuck ends
  in an error, not in infinite or in no noise.

**What is assumed of scipy**: that ``ndtri(y)``, 2^-17 <= y <= 1/2, errs by at most 2^-45 max(|ndtri(y)|, 1).
The tests measure less than 2^-49 against balls at more than 10^5 points. Nothing else is in floating point.

**Rounded, not discrete Gaussians.** What a Gaussian mechanism releases is Rx + sigma N. Since Rx lies on the
lattice, Rx + z = floor(Rx + sigma N + 1/2) is a function of it: post-processing. So z costs exactly what the
continuous Gaussian costs, mu-GDP and the curve of Balle and Wang included. Discrete Gaussians (Canonne,
Kamath, Steinke 2020) satisfy zCDP with the same parameter, but not that curve.

Layout of a block (bound to :data:`SAMPLER_ID`; golden values in the tests hold it fast): rows in order, two
words a row, together a little-endian integer of 64 bits; its top bit is the sign (1: negative), the others
are the first digits of V, the highest first. Further digits are the words of region ``TIE`` whose address is
the row's first word.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trilift.lift.checks import fail, rational
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.balls import at_precision, ball
from trilift.stream.keystream import MAX_WORDS, TIE, Blocks, WordSource, stream_blocks

__all__ = ["MARGIN", "SAMPLER_ID", "GaussianDraws", "GaussianRows", "variance"]

SAMPLER_ID = "trilift/gaussian/1"

MARGIN = 2.0**-44
"""Bound on the error of |N| over max(|N|, 1): 2^-45 of ndtri, 2^-46 of the cut after 63 digits, roundings."""

WORDS = 2
_DIGITS = 63
_DIGIT_MASK = np.uint64((1 << _DIGITS) - 1)
_DEEP = 1 << 47  # V below 2^-16
_FINE = 2.0**36  # for larger scales, floats stay rounded reals: most of their floors would be undecided
_LARGEST = 5.0  # |N| where V >= 2^-16 is below 4.4
_UNIT = 2.0**-53
_WORD_BITS = 32


def variance(scale: Any) -> float:
    """Return the variance of the rounded Gaussian of a scale: sigma^2 + 1/12 up to what nobody sees.

    Args:
        scale: sigma > 0 in units of the lattice, a finite real number.

    Raises:
        ParameterError: not a number > 0, or a variance past the range of a float.

    >>> round(variance(1), 9)
    1.083333322
    """
    sigma = _scale(scale)
    if sigma >= 4:  # the difference is below 8 sigma^2 exp(-2 pi^2 sigma^2) < 1e-130
        return sigma**2 + 1 / 12
    odd = np.arange(1, 121, 2)  # E z^2 = sum over m >= 1 of (2m - 1) P(|z| >= m)
    return math.fsum(int(m) * math.erfc(int(m) / (2 * math.sqrt(2) * sigma)) for m in odd)


def _scale(scale: Any) -> float:
    value = float(_rational_scale(scale))
    if not math.isfinite(value * value):
        raise fail("scale", "a number whose variance is within the range of a float", scale)
    return value


def _rational_scale(scale: Any) -> Fraction:
    sigma = rational("scale", scale, above=0)
    if not Fraction(1, 1 << 64) <= sigma <= 1 << 1022:
        raise fail("scale", "between 2^-64 and 2^1022", scale)
    return sigma


class GaussianRows:
    """The sampling plan of the rows of a level.

    Args:
        scales: sigma of every row, in units of its lattice: rationals between 2^-64 and 2^1022.

    Raises:
        ParameterError: a scale out of range, or more than 2^31 rows.

    >>> from trilift.stream.keys import simulation_key
    >>> from trilift.stream.keystream import Keystream
    >>> rows = GaussianRows([3, Fraction(7, 2), 2**70])
    >>> stream = Keystream(simulation_key(1))
    >>> both = rows.sample(stream, level=0, blocks=[5, 9]).to_objects()
    >>> bool((rows.sample(stream, level=0, blocks=[9]).to_objects() == both[1:]).all())
    True
    """

    def __init__(self, scales: Sequence[Any] | NDArray[Any]) -> None:
        known: dict[Any, Fraction] = {}
        if not isinstance(scales, (list, tuple, np.ndarray)) or np.ndim(scales) != 1:
            raise fail("scales", "a sequence of numbers", scales)
        for scale in scales:
            if not isinstance(scale, Hashable) or (type(scale), scale) not in known:
                known[type(scale), scale] = _rational_scale(scale)
        self._scales = tuple(known[type(scale), scale] for scale in scales)
        if WORDS * len(self._scales) > MAX_WORDS:
            raise ParameterError(
                f"scales must need at most 2^32 words per block, got {len(self._scales)} rows"
            )
        floats = {id(scale): float(scale) for scale in known.values()}  # banks repeat a scale very often
        self._sigma = np.array([floats[id(scale)] for scale in self._scales], dtype=np.float64)

    @property
    def scales(self) -> tuple[Fraction, ...]:
        """The scales, one per row."""
        return self._scales

    @property
    def words(self) -> int:
        """Number of 32-bit keystream words that one block reads (further words aside)."""
        return WORDS * len(self._scales)

    def sample(self, source: WordSource, level: int, blocks: Blocks) -> GaussianDraws:
        """Draw the variates of all rows in the given blocks.

        Args:
            source: the keystream; the result is a function of it and of the addresses alone.
            level: level of the chain, part of the address.
            blocks: nb block numbers in [0, 2^64), any order, repetitions allowed (and equal).

        Returns:
            :class:`GaussianDraws` of shape (nb, rows). Further words are read when its values are asked for.

        Raises:
            ParameterError: if level or a block does not fit its address field.
        """
        numbers = stream_blocks(blocks)
        words = np.ascontiguousarray(source.words(level, numbers, self.words), dtype="<u4")
        raw = words.view("<u8").astype(np.uint64, copy=False)
        return GaussianDraws(self._scales, self._sigma, raw, numbers, partial(source.further, TIE, level))


@dataclass
class GaussianDraws:
    """Exact integers of shape (nb, r): one row of the array per block, one column per row of the level.

    Attributes:
        scales: exact scales of the rows.
        sigma: the same as floats.
        raw: uint64 (nb, r), the 64 bits of every draw.
        blocks: the nb block numbers.
        further: gives the further words of (block number, address).
        excess: added to the margin, to force the exact way in tests.
    """

    scales: Sequence[Fraction]
    sigma: NDArray[np.float64]
    raw: NDArray[np.uint64]
    blocks: NDArray[np.uint64]
    further: Callable[[int, int], Iterator[int]] = field(repr=False)
    excess: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """(nb, r)."""
        return self.raw.shape[0], self.raw.shape[1]

    @property
    def float_error(self) -> NDArray[np.float64]:
        """Bound on the error of a row's :meth:`to_float` beyond relative 2^-52, shape (r,).

        Zero below scale 2^36. Above it, half a unit (the real sigma N stands for the integer) and the margin.
        """
        return np.where(self._fine, 0.5 + self.real_error, 0.0)

    def to_float(self) -> NDArray[np.float64]:
        """Return float64 (nb, r), each within relative 2^-52 and :attr:`float_error` of the exact integer.

        Raises:
            StateError: if a value exceeds the range of a float; use ``to_objects``. Or if a draw's 2^14
                further words leave it undecided; random ones do so with probability below 2^-500000.
        """
        fine = self._fine
        if fine.all():
            return self.to_real()
        size, unsure = self._sizes
        values = np.floor(size + 0.5)
        for i, k in _places(unsure & ~fine):
            values[i, k] = self._magnitude(i, k)
        values = np.where(self._negative, -values, values) + 0.0  # no negative zeros
        return np.where(fine, self.to_real(), values) if fine.any() else values

    def to_real(self) -> NDArray[np.float64]:
        """Return sigma N itself, not rounded: float64 (nb, r), each within :attr:`real_error`.

        Raises:
            StateError: as :meth:`to_float`.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            size = self._normals()
            size *= self.sigma
        for i, k in _places(self._deep):
            size[i, k] = self._deep_real(i, k)
        if not np.isfinite(size).all():
            raise StateError("a draw exceeds the range of float64")
        # the sign of a draw is the top bit of its 64, as that of a float is
        return np.asarray(np.copysign(size, self.raw.view(np.float64), out=size))

    @property
    def real_error(self) -> NDArray[np.float64]:
        """Bound on the errors of :meth:`to_real` beyond relative 2^-52, one a row."""
        return MARGIN * _LARGEST * self.sigma

    def finer(self, bits: int) -> GaussianDraws:
        """Return the same reals rounded to a lattice finer by 2^-bits: floor(2^bits sigma N + 1/2)."""
        scales = tuple(scale * (1 << bits) for scale in self.scales)
        return GaussianDraws(scales, np.ldexp(self.sigma, bits), self.raw, self.blocks, self.further)

    def to_int64(self) -> NDArray[np.int64]:
        """Return int64 (nb, r), exact. Fast for scales below 2^36; larger ones are decided one by one.

        Raises:
            StateError: if a value does not fit; use ``to_objects``. Or as :meth:`to_float`.
        """
        values, exact = self._integers()
        for (i, k), value in exact.items():
            if value >= 1 << 63:
                raise StateError("a draw does not fit int64; use to_objects()")
            values[i, k] = value
        return np.where(self._negative, -values, values)

    def to_objects(self) -> NDArray[np.object_]:
        """Return the exact Python integers, an object array (nb, r).

        Raises:
            StateError: as :meth:`to_float`, if the further words end.
        """
        values, exact = self._integers()
        out = values.astype(object)
        for where, value in exact.items():
            out[where] = value
        return np.asarray(np.where(self._negative, -out, out), dtype=object)

    def block(self, index: int) -> list[int]:
        """Return the exact integers of one block, given by its place in the batch."""
        one = slice(index, index + 1) if index >= 0 else slice(index, index + 1 or None)
        alone = GaussianDraws(
            self.scales, self.sigma, self.raw[one], self.blocks[one], self.further, self.excess
        )
        values: list[int] = alone.to_objects()[0].tolist()
        return values

    # -- how ------------------------------------------------------------------------------------------

    @cached_property
    def _fine(self) -> NDArray[np.bool_]:
        return np.asarray(self.sigma >= _FINE)

    @cached_property
    def _negative(self) -> NDArray[np.bool_]:
        return np.asarray(self.raw > _DIGIT_MASK)

    @cached_property
    def _deep(self) -> NDArray[np.bool_]:
        digits = self.raw & _DIGIT_MASK
        return np.asarray((digits < np.uint64(_DEEP)) | (digits == _DIGIT_MASK))

    def _normals(self) -> NDArray[np.float64]:
        """Return |N| in floats; where V is small they are not near enough."""
        from scipy.special import ndtri

        normal = (self.raw & _DIGIT_MASK).astype(np.float64)
        normal += 0.5
        normal *= 2.0 ** -(_DIGITS + 1)  # half of V
        ndtri(normal, out=normal)
        return np.negative(normal, out=normal)

    @cached_property
    def _sizes(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return sigma |N| in floats, and where the floor of it and a half is not known from that."""
        normal = self._normals()
        with np.errstate(over="ignore", invalid="ignore"):  # only where V is small, and that is set right
            size = normal * self.sigma
            scaled = size + 0.5
            margin = np.maximum(normal, 1.0)
            margin *= MARGIN * self.sigma
            margin += 4.0 * _UNIT * scaled
            margin += self.excess
            np.abs(scaled - np.rint(scaled), out=scaled)
        return size, ~(scaled > margin) | self._deep  # what overflows compares with nothing: undecided

    def _integers(self) -> tuple[NDArray[np.int64], dict[tuple[int, int], int]]:
        """Return magnitudes, and those of them apart that floats do not decide."""
        size, unsure = self._sizes
        values = np.floor(np.where(unsure, 0.0, size) + 0.5).astype(np.int64)
        return values, {(i, k): self._magnitude(i, k) for i, k in _places(unsure)}

    def _deep_real(self, i: int, k: int) -> float:
        """Return sigma |N| for a small V: the integer of a lattice 2^-64 times as fine as the scale."""
        one = GaussianDraws(
            (Fraction(1 << 64),),
            np.ones(1),
            self.raw[i : i + 1, k : k + 1],
            self.blocks[i : i + 1],
            self.further,
        )
        return math.ldexp(one._magnitude(0, 0, address=WORDS * k), -64) * float(self.sigma[k])

    def _magnitude(self, i: int, k: int, *, address: int | None = None) -> int:
        """Return |z| of one draw, by balls alone; ``address`` if it is not the row's."""
        digits, bits = int(self.raw[i, k] & _DIGIT_MASK), _DIGITS
        scale = self.scales[k]
        wanted = max(_DIGITS, scale.numerator.bit_length() - scale.denominator.bit_length() + _WORD_BITS)
        words = self.further(int(self.blocks[i]), WORDS * k if address is None else address)
        while True:
            while bits < wanted:
                word = next(words, None)
                if word is None:
                    raise StateError("the further words ended before a draw was decided")
                digits, bits = digits << _WORD_BITS | word, bits + _WORD_BITS
            if 0 < digits < (1 << bits) - 1:  # else nothing is known of |N|, or that it is near 0
                value = at_precision(bits + 2 * _WORD_BITS, partial(_floor, scale, digits, bits))
                if value is not None:
                    return value
            wanted = 2 * bits


def _floor(scale: Fraction, digits: int, bits: int) -> int | None:
    """Return floor(scale |N| + 1/2) for V in [digits, digits + 1] / 2^bits, if it is one integer there."""
    import flint

    middle = flint.arb(2 * digits + 1, 1) / flint.arb(2) ** (bits + 1)
    size = ball(scale) * ball(2).sqrt() * middle.erfcinv() + ball(Fraction(1, 2))
    if not size.is_finite():
        return None
    whole = size.floor().unique_fmpz()
    return None if whole is None else max(int(whole), 0)  # erfcinv(1) = 0 may be enclosed with a little below


def _places(mask: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    yield from zip(*(index.tolist() for index in np.nonzero(mask)), strict=True)
