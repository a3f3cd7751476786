"""The sparse vector technique on a lattice: when does a running sum pass a noisy threshold?

Units. D lattice points make one largest input; D is a multiple of 3, so that 2D/3, 5D/3 and 8D/3 are lattice
points. Running sums v_t (of inputs, each rounded by itself), thresholds th_t and noise are integers in these
units. Z0 and Z_1, Z_2, ... are independent discrete Laplace variates of integer scales b0 for Z0 and b1 for
the Z_t; the answer is the first t with v_t + Z_t >= th_t + Z0 (TOP). A shift of Z0 by s changes its
probabilities by a factor of at most e^(s/b0), one of Z_t by at most e^(s/b1). A budget eps has
b0 = ceil(2D/eps) and b1 = 2 b0, so D costs at most eps/2 in Z0 and eps/4 in Z_t.

Thresholds. th_t = tau + ceil(D f ln(t + c)), with f = 8/eps and c = ceil(12/eps), or any f <= 2c/3. Since
ln(1 + 1/n) <= 1/n and n > c, the real thresholds rise by at most D f/c <= 2D/3, an integer; ceil(u + n) =
ceil(u) + n for integers n, so the rounded ones rise by an integer between 0 and 2D/3 as well. The ceilings
are exact (:func:`ceil_log`), so nothing has to be clamped; they do not depend on data.

Same clock. If |v_t - v'_t| <= D for all t, then Pr[SVT = t] differs by a factor of at most e^eps: Z0 + D and
Z_t + 2D. If moreover v' - v lies in [0, D] throughout, the factors are e^(3 eps/4) from v to v' (Z0 + D,
Z_t + D) and e^(eps/4) back (Z_t + D).

One-step-shift lemma. Let v_1 <= D and |v_(t+1) - v'_t| <= D for all t >= 1. Then for t >= 1

    Pr[SVT(v) = t+1]         <= e^(3 eps/2) Pr[SVT(v') = t],
    Pr[SVT(v') = t and E]    <= e^(7 eps/6) Pr[SVT(v) = t+1],    E = {Z0 >= -g, Y <= g},  2g < th_1,

where Y is one more variate of scale 2 b0, independent of the run over v'. Proof. (1) Give step i of v' the
noise of step i+1 of v. Where v_(i+1) + Z_(i+1) < th_(i+1) + Z0, i < t, one has v'_i + Z_(i+1)
< th_(i+1) + Z0 + D <= th_i + (Z0 + 5D/3). Where v_(t+1) + Z_(t+1) >= th_(t+1) + Z0, one has
v'_t + (Z_(t+1) + 8D/3) >= th_(t+1) + Z0 + 5D/3 >= th_t + (Z0 + 5D/3). So Z0 moves by 5D/3, the last noise by
8D/3: (5/3)/2 + (8/3)/4 = 3/2. (2) Give step i+1 of v the noise of step i of v', and step 1 the noise Y.
With Z0 + D in place of Z0: v_1 + Y <= D + g < D + th_1 - g <= th_1 + (Z0 + D); for i < t,
v_(i+1) + Z_i <= v'_i + D + Z_i < th_i + Z0 + D <= th_(i+1) + (Z0 + D); and
v_(t+1) + (Z_t + 8D/3) >= v'_t + Z_t + 5D/3 >= th_t + Z0 + 5D/3 >= th_(t+1) + (Z0 + D). So 1/2 + (8/3)/4
= 7/6. All shifts are lattice points, hence the sums over lattice points are carried over one to one. With
v_1 + Y < th_1 guaranteed by E alone (Y <= g, v_1 <= D, Z0 >= -g), t may be any step.

Sources: the sparse vector technique (Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Dwork, Roth 2014); the
shift lemma for streams is of Andersson, Chaturvedi, Henzinger, Safavi, "Edit-Neighboring Data Streams and
Privacy under Continual Observation", its form on the lattice is new.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.lift.checks import fail, integer, rational
from trilift.lift.errors import HorizonError, StateError
from trilift.lift.integers import add, multiply
from trilift.stream.draws import Draws
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import LaplaceRows

__all__ = ["MOST_STEPS", "SVT", "SVTNoise", "SVTRule", "ceil_log", "first_top"]

Integers = np.ndarray[Any, np.dtype[Any]]

LATTICE_PLACES = 20
"""At least 3 2^20 lattice points a largest input: rounding up b0 then costs below 10^-6 of epsilon <= 1."""

_FLOAT_MARGIN = 2.0**-47  # numpy's logarithm errs by a few units of 2^-53, the product by two more
_FLOAT_LIMIT = 2.0**50


def ceil_log(factor: Fraction, numbers: Any) -> Integers:
    """Return ceil(factor ln n) exactly: int64, or Python integers where they do not fit.

    Floats decide where they are sure, ball arithmetic of growing precision where they are not: factor ln n is
    irrational for n >= 2 (Lindemann), so that it is never an integer. So every machine gets the same.

    Args:
        factor: >= 0.
        numbers: integers in [1, 2^53), any shape.

    >>> ceil_log(Fraction(10), [1, 2, 3]).tolist()
    [0, 7, 11]
    """
    shape = np.shape(numbers)
    n = np.asarray(numbers, dtype=np.int64).ravel()
    nearest = float(factor) * np.log(n.astype(np.float64))
    if n.size and float(nearest.max()) >= _FLOAT_LIMIT:
        wide = np.empty(n.size, dtype=object)
        wide[:] = [_ceil_log_exactly(factor, int(m)) for m in n]
        return wide.reshape(shape)
    margin = nearest * _FLOAT_MARGIN
    result: Integers = np.ceil(nearest).astype(np.int64)
    for where in np.flatnonzero(np.ceil(nearest - margin) != np.ceil(nearest + margin)):
        result[where] = _ceil_log_exactly(factor, int(n[where]))
    return result.reshape(shape)


def _ceil_log_exactly(factor: Fraction, n: int) -> int:
    if n == 1:
        return 0
    import flint

    bits, before = 128, flint.ctx.prec
    try:
        while True:
            flint.ctx.prec = bits
            ball = flint.arb(n).log() * flint.arb(factor.numerator) / flint.arb(factor.denominator)
            low, high = int(ball.lower().ceil().unique_fmpz()), int(ball.upper().ceil().unique_fmpz())
            if low == high:
                return low
            bits *= 2
    finally:
        flint.ctx.prec = before


@dataclass(frozen=True)
class SVTRule:
    """Everything public about the runs of one partition, in lattice points.

    Attributes:
        weight: lattice points per input step (D = weight * high).
        unit: D, lattice points per largest input, a multiple of 3.
        origin_scale: b0, integer scale of Z0.
        step_scale: b1, integer scale of Z_1, Z_2, ...
        factor: f >= 0, drift of the threshold in largest inputs; 0 for one that does not move.
        offset: c >= 1, with f <= 2c/3.
    """

    weight: int
    unit: int
    origin_scale: int
    step_scale: int
    factor: Fraction
    offset: int

    @classmethod
    def of_scales(
        cls,
        scale0: Any,
        *,
        scale_t: Any,
        factor: Any = 0,
        offset: int = 1,
        high: int = 1,
        lattice_places: int = LATTICE_PLACES,
    ) -> SVTRule:
        """Return the rule of scales given in largest inputs; they are rounded up to the lattice.

        Args:
            scale0: scale of Z0, > 0.
            scale_t: scale of the Z_t, > 0.
            factor: f.
            offset: c.
            high: largest input, in input lattice steps.
            lattice_places: D is the least 3 high 2^j >= 3 2^lattice_places. Coarser ones are for tests.

        Raises:
            ParameterError: an argument out of range.
        """
        first, later = rational("scale0", scale0, above=0), rational("scale_t", scale_t, above=0)
        drift, c = rational("factor", factor, minimum=0), integer("offset", offset, minimum=1)
        if drift > Fraction(2 * c, 3):
            raise fail("factor", f"at most 2/3 of the offset {c}", factor)
        steps = integer("high", high, minimum=1)
        places = integer("lattice_places", lattice_places, minimum=0, maximum=64)
        weight = 3
        while steps * weight < 3 << places:
            weight *= 2
        unit = steps * weight
        return cls(weight, unit, _ceil(unit * first), _ceil(unit * later), drift, c)

    @classmethod
    def make(cls, epsilon: Any, *, high: int = 1, lattice_places: int = LATTICE_PLACES) -> SVTRule:
        """Return the rule of a budget: scales 2/eps and 4/eps, f = 8/eps, c = ceil(12/eps).

        Args:
            epsilon: eps > 0, exact: one run is eps-differentially private when running sums change by at most
                one largest input at every step.
            high: as for :meth:`of_scales`.
            lattice_places: likewise.

        Raises:
            ParameterError: an argument out of range.

        >>> SVTRule.make(1, lattice_places=0).step_scale
        12
        """
        eps = rational("epsilon", epsilon, above=0)
        rule = cls.of_scales(
            2 / eps,
            scale_t=4 / eps,
            factor=8 / eps,
            offset=_ceil(12 / eps),
            high=high,
            lattice_places=lattice_places,
        )
        return replace(rule, step_scale=2 * rule.origin_scale)

    def drift(self, steps: Any) -> Integers:
        """Return th_t - tau = ceil(D f ln(t + c)) at the local steps t >= 1, exactly."""
        return ceil_log(self.factor * self.unit, np.asarray(steps, dtype=np.int64) + self.offset)


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


MOST_STEPS = 1 << 36
"""No stream is longer: steps and buckets then fit the addresses of the noise."""

_PAGE = 64
_HALF = 32
_ORIGINS, _STEPS = 0, 1


class SVTNoise:
    """The noise of all runs, a pure function of (key, bucket, local step).

    Z0 of bucket l is row l mod 64 of (level 0, block l div 64). Z_t is row (t-1) mod 64 of (level
    1 + l div 2^32, block (l mod 2^32) 2^32 + (t-1) div 64). No two runs share an address, whatever their
    lengths.

    Args:
        rule: the rule.
        key: 32 bytes, used for nothing else.
    """

    def __init__(self, rule: SVTRule, *, key: bytes) -> None:
        self._stream = Keystream(key)
        self._origins = LaplaceRows([rule.origin_scale] * _PAGE)
        self._steps = LaplaceRows([rule.step_scale] * _PAGE)
        self._page: tuple[int, int, Integers] | None = None
        self._origin_page: tuple[int, list[int]] = (-1, [])

    def __repr__(self) -> str:
        return "SVTNoise(secret)"

    def origin(self, bucket: int) -> int:
        """Return Z0 of a bucket, numbered from 1."""
        self._check(bucket, 1)
        block, row = divmod(bucket, _PAGE)
        if self._origin_page[0] != block:
            drawn = self._origins.sample(self._stream, _ORIGINS, np.array([block]))
            self._origin_page = (block, drawn.block(0))
        return self._origin_page[1][row]

    def steps(self, bucket: int, *, start: int, stop: int) -> Integers:
        """Return Z_t of the local steps t = start .. stop-1, start >= 1."""
        self._check(bucket, stop)
        first, last = (start - 1) // _PAGE, (stop - 2) // _PAGE + 1
        pages = self._pages(bucket, first, last)
        return pages[start - 1 - first * _PAGE : stop - 1 - first * _PAGE]

    def _pages(self, bucket: int, first: int, last: int) -> Integers:
        if last != first + 1:
            return self._drawn(bucket, first, last)
        if self._page is None or self._page[:2] != (bucket, first):  # single steps read one again and again
            self._page = (bucket, first, self._drawn(bucket, first, last))
        return self._page[2]

    def _drawn(self, bucket: int, first: int, last: int) -> Integers:
        high, low = divmod(bucket, 1 << _HALF)
        blocks = np.arange(first, last, dtype=np.uint64) + np.uint64(low << _HALF)
        return _integers(self._steps.sample(self._stream, _STEPS + high, blocks)).ravel()

    @staticmethod
    def _check(bucket: int, stop: int) -> None:
        if not 1 <= bucket <= MOST_STEPS or stop > MOST_STEPS + 1:
            raise HorizonError("a run is past the 2^36 steps that a stream may have")


def _integers(draws: Draws) -> Integers:
    try:
        return draws.to_int64()
    except StateError:
        return draws.to_objects()


def first_top(
    rule: SVTRule,
    noise: SVTNoise,
    sums: Integers,
    *,
    bucket: int,
    clock: int,
    threshold: int,
    opened: int = 0,
) -> int:
    """Return the index of the first TOP among the next running sums of a run, or -1.

    Args:
        rule: the rule.
        noise: its noise.
        sums: running sums in input lattice steps, after each of k more steps.
        bucket: l, from 1.
        clock: steps that the run has taken before these.
        threshold: tau of the bucket, in lattice points.
        opened: running sum when the bucket began; what is compared are the differences.
    """
    # v w + Z >= th + Z0 as (sum w + Z) - drift >= tau + Z0 + opened w
    limit = np.array(noise.origin(bucket) + threshold + opened * rule.weight)
    weight = np.array(rule.weight)
    begin, width = 0, _PAGE - clock % _PAGE  # the rest of a page, then more and more of them
    while begin < len(sums):
        end = min(begin + width, len(sums))
        drawn = noise.steps(bucket, start=clock + begin + 1, stop=clock + end + 1)
        left = add(multiply(sums[begin:end], weight), drawn)
        if rule.factor:
            left = add(left, rule.drift(np.arange(clock + begin + 1, clock + end + 1)), sign=-1)
        tops = left >= limit
        if tops.any():
            return begin + int(tops.argmax())
        begin, width = end, min(2 * width + _PAGE, 1 << 14) // _PAGE * _PAGE
    return -1


class SVT:
    """One run, step by step; the partition uses :func:`first_top`, which gives the same.

    Neighbours, (epsilon, delta) and proof: see the module. The answer is to be used inside a mechanism whose
    ledger pays for it.

    Args:
        rule: the rule.
        noise: its noise.
        threshold: tau in lattice points.
        bucket: number of the run, from 1: it selects the noise.

    >>> from trilift.stream.keys import simulation_key
    >>> rule = SVTRule.make(100)
    >>> run = SVT(rule, noise=SVTNoise(rule, key=simulation_key(1)), threshold=5 * rule.unit)
    >>> [run.step(v) for v in (1, 2, 40)]
    [False, False, True]
    """

    def __init__(self, rule: SVTRule, *, noise: SVTNoise, threshold: int, bucket: int = 1) -> None:
        self._rule, self._noise, self._threshold, self._bucket = rule, noise, threshold, bucket
        self._clock = 0
        self._done = False

    def step(self, value: int) -> bool:
        """Take the next running sum, in input lattice steps; return whether this is TOP.

        Raises:
            StateError: the run has ended.
        """
        if self._done:
            raise StateError("the run has ended with TOP; a new bucket needs a new run")
        if isinstance(value, bool):
            raise fail("value", "an integer", value)
        index = first_top(
            self._rule,
            self._noise,
            np.array([integer("value", value)]),
            bucket=self._bucket,
            clock=self._clock,
            threshold=self._threshold,
        )
        self._clock += 1
        self._done = index == 0
        return self._done
