"""Keyed Gaussian noise of the exact Toeplitz square root: N = L z, rounded, at any step of a fixed horizon.

z are rounded Gaussians on the lattice of R~ x, L = T R~^-1, and what is released is x's prefix sum plus
floor(N / h + 1/2) h, decided exactly. The arithmetic is that of integers:

1. Draws as floats, with their own error bound E (:class:`trilift.stream.gaussian.GaussianDraws`); the
   coefficients of L as integers g over 2^bits with residual e (:mod:`trilift.stream.toeplitz_factor`). The
   product M = g * z^ is exact (integer polynomials), and with N^ = l * z^

       |N_t - M_t| <= |l * (z - z^)| + |l * z^ - M| <= |l|_1 E + |e|_1 / (1 - |e|_1) max |M|,
       |l|_1 <= |g|_1 / (1 - |e|_1).

   floor(N / h + 1/2) is known unless a rounding boundary lies within that of M_t.
2. For the other steps the same with the exact integers z, E = 0.
3. For what is still undecided twice the bits, and so on. From 32 (n - 1) bits on the residual is 0 and M is N
   itself, so this ends, ties included.

So an answer never depends on how it was reached, nor on which steps were asked for together.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from trilift.lift.checks import fail, integer, numeric_array, rational, show
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.lift.integers import shrink
from trilift.stream.gaussian import SAMPLER_ID, GaussianRows
from trilift.stream.keys import NOISE_LABEL, DigestBuilder, derive_key
from trilift.stream.keystream import Keystream
from trilift.stream.ledger import MAX_PLACES
from trilift.stream.stepwise import IntArray, Integers, Stepwise
from trilift.stream.toeplitz_factor import (
    MAX_SIZE,
    ROOT_PLACES,
    left_factor,
    left_floats,
    left_row_norms_sq,
    root_norm_sq,
    toeplitz_root,
)

__all__ = ["ToeplitzNoise", "toeplitz_sigma"]

_BLOCK = 256  # draws at a keystream address
_SIGMA_BITS = 40  # sigma is rounded up by less than a relative 2^-39
_LEAST_LOG, _MOST_LOG = -90, 256  # sigma stays within 2^-90 .. 2^256, which the sampler takes
_LEAST_BITS = 96
_MARGIN_BITS = 72  # places of M below h, so that the bits of L leave a step undecided about once in 2^40
_EXACT_FLOATS = 1 << 53
_HALF = Fraction(1, 2)


def toeplitz_sigma(size: int, *, mu: Any, change: Any = 1) -> Fraction:
    """Return sigma with change^2 |R~|^2 / sigma^2 <= mu^2, |R~| the norm of its longest column.

    The least one is rounded up by less than a relative 2^-39, in integers.

    Args:
        size: number of steps, from 1 to 2^20.
        mu: > 0, taken as the rational that it is.
        change: > 0, the largest change of one input.

    Raises:
        ParameterError: arguments out of range, sigma outside 2^-90 .. 2^256 among them.

    >>> round(float(toeplitz_sigma(2, mu=1)) ** 2, 9)
    1.25
    """
    wanted, moved = rational("mu", mu, above=0), rational("change", change, above=0)
    square = moved**2 * root_norm_sq(size) / wanted**2
    log = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    if not _LEAST_LOG <= log <= _MOST_LOG:
        raise ParameterError(f"mu and change must give noise between 2^{_LEAST_LOG} and 2^{_MOST_LOG}")
    unit = Fraction(2) ** (log - _SIGMA_BITS)
    scaled = square / unit**2
    least = -(-scaled.numerator // scaled.denominator)
    root = isqrt(least - 1) + 1  # the least integer whose square is at least that
    sigma = root * unit
    if moved**2 * root_norm_sq(size) > wanted**2 * sigma**2:
        raise StateError("the scale of the noise does not prove mu")
    return sigma


class ToeplitzNoise(Stepwise):
    """Noise N = L z of the Toeplitz square root over a fixed number of steps, rounded to the output lattice.

    Neighbours: two streams that differ in one input, by at most ``change``. Guarantee: adding
    ``noise.at(t)`` to every exact prefix sum is mu-GDP (Dong, Roth, Su 2022), hence (epsilon, delta)-private
    for every pair with mu <= mu(epsilon, delta) (:func:`trilift.stream.gdp.mu_for`), for all steps together
    and for adaptively chosen inputs (row t of R~ uses inputs up to t only), given ideal random bits. Theorem:
    the Gaussian mechanism on R~ x, whose longest column satisfies change^2 |R~|^2 / sigma^2 <= mu^2 in
    rationals; z are rounded, not discrete, Gaussians, and R~ x lies on their lattice, so R~ x + z is
    R~ x + sigma N(0, I) rounded: post-processing. So is the released value, because L R~ = T holds exactly
    and floor(u + k) = floor(u) + k. Composition: mu adds up in squares with other Gaussian mechanisms.

    Other neighbours: the noise protects any difference d of streams with |R~ d| <= change |R~|.

    Factorisation: Fichtenberger, Henzinger, Upadhyay 2023 and Henzinger, Kalinin, Upadhyay 2025. Standard
    deviation at step t (from 1): sigma |L_t|, sigma = change |R~| / mu, about
    (change / mu) (ln(n)/pi + 1.066)^(1/2) (ln(t)/pi + 1.066)^(1/2). What the lattice costs: the norm is that
    of R~ instead of R, within a relative 1e-6 up to 10^4 steps; no (epsilon, delta) is lost to it.

    Cost: the first n' steps are computed together, n' the next power of two (random access is by table):
    some 0.15 s for 10^4 steps and 2.5 s for 10^5, mostly for the coefficients of L; those are kept, and more
    noises of the size take a quarter of that. 8 bytes a step stay, about 1000 are used meanwhile: 1.1 GB and
    about a minute at the largest size.

    **One key serves one version of one stream**, as for :class:`trilift.stream.noise.Noise`.

    Args:
        size: number of steps n, from 1 to 2^20. More need epochs, or a chain, whose memory is O(log n).
        mu: > 0, taken as the rational that it is.
        key: 32 secret bytes (:func:`trilift.stream.keys.new_key`).
        stream_id: 16 bytes drawn together with the key.
        purpose: path that is unique per key, such as "counter".
        change: largest change of one input between neighbours, > 0.
        input_places: gamma; inputs lie on the lattice 2^-gamma.
        places: binary places of the output lattice h = 2^-places; at least the input places (the default), at
            most 256.

    Raises:
        ParameterError: arguments out of range.

    >>> from trilift.stream.keys import simulation_key
    >>> noise = ToeplitzNoise(1000, mu=1, key=simulation_key(3), stream_id=bytes(16), purpose="example")
    >>> bool((noise.range(0, 1000)[[999, 5]] == noise.at([999, 5])).all())
    True
    """

    horizon: int

    def __init__(
        self,
        size: int,
        *,
        mu: Any,
        key: bytes,
        stream_id: bytes,
        purpose: str,
        change: Any = 1,
        input_places: int = 0,
        places: int | None = None,
    ) -> None:
        if isinstance(size, int) and size > MAX_SIZE:
            most = f"at most 2^{MAX_SIZE.bit_length() - 1} (use epochs or a chain beyond)"
            raise fail("size (the horizon)", most, size)
        self.horizon = integer("size", size, minimum=1)
        self.mu, self.change = rational("mu", mu, above=0), rational("change", change, above=0)
        self.input_places = integer("input_places", input_places, minimum=0, maximum=MAX_PLACES)
        wanted = self.input_places if places is None else places
        self.places = integer("places", wanted, minimum=self.input_places, maximum=MAX_PLACES)
        self.sigma = toeplitz_sigma(self.horizon, mu=self.mu, change=self.change)
        self.digest = self._digest()
        self._stream = Keystream(derive_key(key, stream_id=stream_id, purpose=purpose, digest=self.digest))
        self._lattice = ROOT_PLACES + self.input_places
        self._rows = GaussianRows([self.sigma * (1 << self._lattice)] * _BLOCK)
        self._known: Integers = np.zeros(0, dtype=np.int64)

    def _digest(self) -> bytes:
        """Bind everything that the noise depends on; the factor by its entries."""
        digest = DigestBuilder(NOISE_LABEL.decode())
        digest.add("sampler", SAMPLER_ID).add("mechanism", "toeplitz/1").add("block", _BLOCK)
        digest.add("root places", ROOT_PLACES).add("root", toeplitz_root(self.horizon))
        digest.add("sigma", self.sigma).add("mu", self.mu).add("change", self.change)
        digest.add("input places", self.input_places).add("output places", self.places)
        return digest.digest()

    def __repr__(self) -> str:
        return f"ToeplitzNoise({self.horizon}, mu={float(self.mu):.6g}, sigma={float(self.sigma):.6g})"

    def __reduce__(self) -> Any:
        raise StateError(
            "noise is not copied or pickled, because it holds its key: make it again from the key"
        )

    @property
    def spent_mu_sq(self) -> Fraction:
        """change^2 |R~|^2 / sigma^2, exact: at most mu^2."""
        return self.change**2 * root_norm_sq(self.horizon) / self.sigma**2

    def variance(self, steps: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the variance of the released values at 0-based steps, in squared units of the count.

        sigma^2 |L_t|^2 plus h^2 / 12 for the rounding (right when the noise is well above h).

        Raises:
            HorizonError, ParameterError: as :meth:`at`.
        """
        where = numeric_array("steps", steps)
        if where.size and (where.dtype.kind not in "iu" or where.min() < 0):
            raise ParameterError("steps must be integers >= 0")
        if where.size and where.max() >= self.horizon:
            raise HorizonError(f"step {int(where.max())} lies outside 0..{self.horizon - 1}")
        norms = left_row_norms_sq(self.horizon)[where.astype(np.int64)]
        return np.asarray(float(self.sigma) ** 2 * norms + np.ldexp(1.0, -2 * self.places) / 12.0)

    def covariance(self, first: int, second: int) -> float:
        """Return the covariance of the noise of two 0-based steps a <= b (before rounding).

        sigma^2 sum_{i <= a} l_i l_{i + b - a}, l the coefficients of L.

        Raises:
            HorizonError, ParameterError: as :meth:`at`.
        """
        a, b = sorted(integer("step", step, minimum=0) for step in (first, second))
        if b >= self.horizon:
            raise HorizonError(f"step {show(b)} lies outside 0..{self.horizon - 1}")
        factor = left_floats(self.horizon)
        return float(self.sigma) ** 2 * float(factor[: a + 1] @ factor[b - a : b + 1])

    # -- evaluation ---------------------------------------------------------------------------------

    def _rounded(self, steps: IntArray) -> Integers:
        count = int(steps[-1]) + 1
        known = self._known
        if known.size < count:
            length = min(self.horizon, max(_BLOCK, 1 << (count - 1).bit_length()))
            self._known = known = self._prefix(length)
        result: Integers = known[steps]
        return result

    def _prefix(self, length: int, *, inflate: int = 0) -> Integers:
        """Return the released integers of the steps 0..length-1.

        ``inflate`` widens the first bound by this many h, to force the exact ways in tests.
        """
        bits = self._bits()
        factor = left_factor(length, bits=bits)
        z, error = self._float_draws(length)
        values, bound = factor.apply(z)
        total = sum(map(abs, factor.numerators)) / (1 - factor.residual)  # 2^bits |l|_1 at most
        bound += -int(-(total * error) // 1) + (inflate << (bits + self._lattice - self.places))
        out, unsure = self._decide(values, bound, bits)
        if unsure:
            exact = self._exact_draws(unsure[-1] + 1)
        while unsure:
            values, bound = factor.apply(exact[: unsure[-1] + 1])
            decided, still = self._decide(values, bound, bits)
            for t in unsure:
                out[t] = decided[t]
            unsure = sorted(set(unsure) & set(still))
            if unsure:
                bits *= 2
                factor = left_factor(unsure[-1] + 1, bits=bits)
        result = np.empty(len(out), dtype=object)
        result[:] = out
        return shrink(result)

    def _bits(self) -> int:
        """Places of L: enough for the noise's size and the output lattice; a multiple of 32, to be shared."""
        size = self.sigma.numerator.bit_length() - self.sigma.denominator.bit_length() + 1
        return max(_LEAST_BITS, -(-(_MARGIN_BITS + self.places + max(size, 0)) // 32) * 32)

    def _decide(self, values: list[int], bound: int, bits: int) -> tuple[list[int], list[int]]:
        """Return floor(N / h + 1/2) from integers within ``bound`` of N, and the steps where it is open."""
        shift = bits + self._lattice - self.places
        half = 1 << (shift - 1)
        below, above = half - bound, half + bound
        low = [(value + below) >> shift for value in values]
        high = [(value + above) >> shift for value in values]
        return low, [t for t, (a, b) in enumerate(zip(low, high, strict=True)) if a != b]

    def _float_draws(self, length: int) -> tuple[list[int], Fraction]:
        """Return z_0..z_(length-1) as the nearest integers of floats, and a bound on their errors."""
        draws = self._rows.sample(self._stream, 0, self._blocks(length))
        floats = draws.to_float().ravel()[:length]
        error = Fraction(float(np.max(draws.float_error, initial=0.0)))
        largest = Fraction(float(np.abs(floats).max(initial=0.0)))
        if error or largest >= _EXACT_FLOATS:  # else they are integers, and these are their floats
            error += largest / (1 << 51) + _HALF
        return [int(x) for x in np.rint(floats).tolist()], error

    def _exact_draws(self, length: int) -> list[int]:
        draws = self._rows.sample(self._stream, 0, self._blocks(length))
        z: list[int] = draws.to_objects().ravel()[:length].tolist()
        return z

    @staticmethod
    def _blocks(length: int) -> IntArray:
        return np.arange(-(-length // _BLOCK), dtype=np.int64)
