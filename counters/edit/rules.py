"""How a stream is cut into buckets: lengths that read no data, or thresholds on running sums.

Buckets are numbered 0, 1, ... in arrays; bucket l = 1, 2, ... of the papers is index l - 1. Both rules know
what they cost edit neighbours (``cost``) and what their good event may fail with (``ln_failure``); the
proofs are in their docstrings. Sources: Andersson, Chaturvedi, Henzinger, Safavi, "Edit-Neighboring Data
Streams and Privacy under Continual Observation", for the mechanisms; the costs and failures marked new are
ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from trilift.counters.edit.svt import ceil_log
from trilift.lift.checks import fail, rational
from trilift.lift.errors import ParameterError
from trilift.stream.balls import ball, narrow

__all__ = ["ALARM", "SCALE_RATIO", "PartRule", "SimPartRule", "constant_tau"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]

_BITS = 64
_LATTICE = Fraction(1, 1 << 20)  # at most one lattice step of the sparse vector technique, in largest inputs
_GRID = 1 << 10  # thresholds are multiples of 2^-10 largest inputs
_STEP = Fraction(2, 3)

SCALE_RATIO = Fraction(4, 5)
"""b_0 / b_1 of constant thresholds."""

ALARM = 1e-3
"""What constant thresholds may end a bucket without events with, within a known horizon."""


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


@dataclass(frozen=True)
class SimPartRule:
    """Lengths of buckets: raw_l = nominal_l + Z_l with Z discrete Laplace of scale b = 2/eps_p.

    Attributes:
        epsilon: eps_p > 0.
        base: nominal length mu >= 1 of the first bucket.
        drift: d; bucket l has nominal length mu + ceil(d ln l). Either 0 or at least 4/eps_p.
        folded: what raw lengths below 1 become: 1 (the paper's max(1, raw), with a drift) or 1 - raw (new,
            without). Without a drift max(1, raw) would lump the tail at 1, and 1 -> 2 would cost more.

    **Cost.** Let E say that the one bucket that the coupling shortens is at least 2 long before. The
    coupling lengthens one bucket by a step and shortens another one; neighbouring lengths differ in
    probability by a factor of at most e^(eps_p/2) each (raw lengths: the discrete Laplace law; folded: with
    u = e^(-eps_p/2), Pr[length = k] is proportional to u^-k + u^(k-1), that is to cosh((k - 1/2)/b), for k
    <= mu, and to u^k beyond; neighbouring values of cosh(y), 1/b apart, differ by at most e^(1/b)). So the
    partition costs eps_p: the drift depends on l alone and l does not change, the unfinished last bucket
    starts where it did.

    **Failure of E, drift > 0** (paper's argument, with the notes' "raw >= 2 suffices"): all raw_l >= 2 is
    enough; Pr[raw_l <= 1] = u^(nominal_l - 1)/(1+u) <= l^-2 u^(mu-1)/(1+u), summed (pi^2/6) u^(mu-1)/(1+u).

    **Failure of E, drift = 0** (new): only *one* bucket is ever shortened, and it is a neighbour of the
    bucket that holds a fixed step. From the insertion x to x' it is the bucket after the one that holds the
    step i of the insertion; from x' to x it is the one before the bucket that holds the step j of the
    absorbing BOT. The chance that it has length 1 is pi_1 = Pr[length = 1], without any union over buckets,
    because lengths are independent and all of one law. After: sum_l Pr[bucket l holds i] Pr[length_(l+1) =
    1] = pi_1. Before: with A(s) = Pr[some bucket ends with step s] and h(k) = Pr[length >= k], sum_s A(s)
    pi_1 h(j - s - 1) over s <= j - 2, and sum_s A(s) h((j - 1) - s) = Pr[some bucket holds step j - 1] = 1.
    pi_1 = Pr[raw in {0, 1}] = (1-u) u^(mu-1).
    """

    epsilon: Fraction
    base: int
    drift: Fraction = Fraction(0)
    folded: bool = False

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.base < 1:
            raise ParameterError("lengths need epsilon > 0 and a nominal length of at least 1")
        if self.folded == bool(self.drift) or (self.drift and self.drift < 4 / self.epsilon):
            raise ParameterError("lengths are folded without drift, or have a drift of at least 4/epsilon")
        if self.epsilon > 2048:  # the least scale of exact Laplace noise is 2^-10
            spent = f"{float(self.epsilon):.6g}"
            raise ParameterError(
                f"epsilon is too large: {spent} of it for the lengths of buckets, at most 2048"
            )

    @property
    def scale(self) -> Fraction:
        """b = 2 / eps_p, the scale of Z."""
        return 2 / self.epsilon

    @property
    def cost(self) -> Fraction:
        """What edit neighbours cost: eps_p."""
        return self.epsilon

    @property
    def ln_failure(self) -> Fraction:
        """An upper bound on ln Pr[not E], proved."""
        return _simpart_failure(self.epsilon, self.base, self.folded)

    def nominal(self, start: int, stop: int) -> IntArray:
        """Return the nominal lengths of buckets start..stop-1, int64."""
        drift = ceil_log(self.drift, np.arange(start + 1, stop + 1, dtype=np.int64))
        return np.asarray(self.base + drift, dtype=np.int64)

    def lengths(self, start: int, draws: Any) -> IntArray:
        """Return the lengths >= 1 of buckets start, start+1, ... for their draws Z, int64.

        >>> SimPartRule(Fraction(1), 3, folded=True).lengths(0, [4, -2, -3, -5]).tolist()
        [7, 1, 1, 3]
        """
        z = np.asarray(draws, dtype=np.int64)
        raw = self.nominal(start, start + len(z)) + z if self.drift else self.base + z
        return np.where(raw >= 1, raw, 1 - raw) if self.folded else np.maximum(raw, 1)

    def moments(self) -> tuple[float, float, float]:
        """Return E[length], E[length^2], E[length^3] of the first bucket (floats, for predictions)."""
        scale = float(self.scale)
        reach = self.base + math.ceil(45.0 * scale) + 2
        if reach > 1 << 22:  # so wide a law is continuous for all that matters
            mu = float(self.base)
            return mu, mu * mu + 2 * scale**2, mu**3 + 6 * mu * scale**2
        z = np.arange(-reach, reach + 1)
        weights = np.exp(-np.abs(z) / scale)
        weights /= weights.sum()
        raw = self.base + z
        k = np.where(raw >= 1, raw, 1 - raw if self.folded else 1).astype(np.float64)
        return tuple(float(weights @ k**power) for power in (1, 2, 3))  # type: ignore[return-value]

    @classmethod
    def paper(cls, epsilon: Fraction, *, ln_failure: Fraction, least: int = 3) -> SimPartRule:
        """Return mu = least + ceil((2/eps_p) ln(pi^2 / (12 delta_E))) with the drift 4/eps_p.

        Args:
            epsilon: eps_p.
            ln_failure: ln delta_E, or a bound below it.
            least: 3 as in the paper (raw >= 3), or 2, which suffices.
        """

        def need() -> Any:
            import flint

            return (ball(2 / epsilon)) * ((flint.arb.pi() ** 2 / 12).log() - ball(ln_failure))

        extra = _ceil(narrow(need, bits=_BITS)[1])
        return cls(epsilon, max(1, least + extra), 4 / epsilon)

    @classmethod
    def renewal(cls, epsilon: Fraction, *, ln_failure: Fraction) -> SimPartRule:
        """Return the shortest folded lengths of one law whose failure is at most e^ln_failure (new)."""

        def need() -> Any:
            return ball(2 / epsilon) * ((-((-ball(epsilon / 2)).expm1())).log() - ball(ln_failure))

        rule = cls(epsilon, max(1, 1 + _ceil(narrow(need, bits=_BITS)[1])), folded=True)
        while rule.ln_failure > ln_failure:  # the ceiling of a bound above: at most once
            rule = cls(epsilon, rule.base + 1, folded=True)
        return rule


@lru_cache(maxsize=256)
def _simpart_failure(epsilon: Fraction, base: int, folded: bool) -> Fraction:
    def bound() -> Any:
        import flint

        rest = ball(-epsilon * (base - 1) / 2)
        u = (-ball(epsilon / 2)).exp()
        if folded:
            return rest + (1 - u).log()
        return rest - (1 + u).log() + (flint.arb.pi() ** 2 / 6).log()

    return narrow(bound, bits=_BITS)[1]


@dataclass(frozen=True)
class PartRule:
    """Thresholds: bucket l ends at its local step t once v_t + Z_t >= th_l(t) + Z_0, v_t its running sum.

    th_l(t) = tau + d_l ln l + d_t ln(t + c) in units of the largest input; Z_0 and Z_t are Laplace of
    scales b_0 and b_1 on a lattice of at least 2^20 points a unit, scales and thresholds rounded up
    (:mod:`trilift.counters.edit.svt`).

    Attributes:
        tau: threshold of the first bucket, before the drift of its clock; > 1. scale0: b_0 (2/eps_p in the
        paper). scale_t: b_1 (4/eps_p in the paper). bucket_drift: d_l: 0, or at least 4 b_1 (the paper's
        16/eps_p). clock_drift: d_t, 8/eps_p in the paper; 0 for thresholds that do not move. shift: c >= 1
        with d_t <= 2c/3, so that consecutive thresholds differ by at most s = 2/3 (0 if d_t = 0).

    **Cost** (the notes' bound for monotone running sums, for any scales; new with s = 0). x is the
    insertion of x'; X, a, b in [0, 1] as in :mod:`trilift.counters.edit.coupling`. Noise is moved by what
    is named.

    - Buckets p and q, whose clocks agree: v - v' lies in [X-1, X] (in q: [b-1, b]). Z_0 moves by 1-X or X,
      the last Z_t by 1: at most 1/b_0 + 1/b_1 each.
    - p+1, x to x' (ends one step earlier): noise Z_(t+1) serves step t, the inserted a in front is lost:
      Z_0 by s-a and Z_t by s if a <= s, else only Z_t, by a: at most max(s/b_0 + s/b_1, 1/b_1). Back (one
      step later): Z_0 by a, Z_t by s, and the first step gets a fresh noise Y: 1/b_0 + s/b_1.
    - q-1, x to x' (same start, ends one step later): a fresh Y in front, Z_0 by 1, Z_t by 1+s:
      1/b_0 + (1+s)/b_1. Back: the last Z moves by b: 1/b_1.
    - An unfinished bucket pays for Z_0 alone; where q <= p+2 there are fewer buckets, of the first kind.

    In all max over directions = 3/b_0 + (3+s)/b_1 + max(s/b_0 + s/b_1, 1/b_1): 35/12 eps_p for the paper's
    scales and drift, 5/2 eps_p without drift. (The paper charges 17/3.)

    **Good event E and its failure, with drifts** (paper): in every bucket Z_0 >= -g_l, Y <= g_l, Z_1 <= g_l,
    2 g_l = tau_l - 1. Then no bucket is 1 long and no fresh Y ends one. Three tails, summed over l: with
    d_l >= 4 b_1 they are l^-2 times those of l = 1, (pi^2/6) (e^(-g/b_0)/2 + e^(-g/b_1)).

    **Failure, constant thresholds** (new). Only two buckets can fail: the one after the bucket that holds i
    and the one before the bucket that holds j. Let f = Pr[Z_1 - Z_0 >= tau - 1], a bound on ending at the
    first step, and f_0 = Pr[Y - Z_0 >= tau], on a fresh Y in front ending the bucket after Z_0 has moved by
    its a (or 1).

    - The bucket after: its noise is independent of all before, so f (x to x') or f_0 (back) summed against
      Pr[bucket l holds i], which add up to at most 1.
    - The one before, l = q-1, with bad event B_l (probability f_0, x to x', or at most f, back). Let it
      begin after step s, end at u, and let h(u) = Pr[a bucket that begins after u reaches j], which does
      not fall in u < j: with the same noise a later start has smaller running sums and, thresholds being
      constant, no other disadvantage. B_l makes the bucket end earlier, stochastically: in the one case Z_0
      given B_l is stochastically smaller (B_l falls in Z_0), in the other the bucket ends at once. Couple
      it with a fresh run: u <= u*. Then 1(u < j) h(u) <= 1(u* >= j) + 1(u* < j) h(u*). Sum over l and s
      with the probabilities that bucket l begins after s < j: the right side adds up to Pr[some bucket
      holds j] twice, so to at most 2. Hence sum_l Pr[B_l, bucket l+1 holds j] <= 2 Pr[B].

    Together at most max(f + 2 f_0, f_0 + 2 f) = f_0 + 2 f. With Laplace laws and b_0 != b_1, Pr[Z_1 - Z_0
    >= w] = (b_1^2 e^(-w/b_1) - b_0^2 e^(-w/b_0)) / (2 (b_1^2 - b_0^2)), w >= 0; on the lattice a variate
    exceeds its continuous relative by less than a point, and integer scales by at most a point, which the
    bound allows for.
    """

    tau: Fraction
    scale0: Fraction
    scale_t: Fraction
    bucket_drift: Fraction = Fraction(0)
    clock_drift: Fraction = Fraction(0)
    shift: int = 1

    def __post_init__(self) -> None:
        if self.tau <= 1 or self.scale0 <= 0 or self.scale_t <= self.scale0 or self.shift < 1:
            raise ParameterError("a partition needs tau > 1, 0 < scale0 < scale_t and shift >= 1")
        if self.clock_drift < 0 or self.clock_drift > Fraction(2 * self.shift, 3):
            raise fail("clock_drift", f"between 0 and 2/3 of the shift {self.shift}", self.clock_drift)
        drifts = self.bucket_drift >= 4 * self.scale_t
        if not drifts and (self.bucket_drift or self.clock_drift):
            raise ParameterError("drifts must be none at all, or at least 4 scale_t ln(l) over the buckets")

    @property
    def epsilon(self) -> Fraction:
        """eps_p = 2 / b_0: a run is eps_p-private for running sums within 1 if b_1 is at least 2 b_0."""
        return 2 / self.scale0

    @property
    def cost(self) -> Fraction:
        """What edit neighbours cost."""
        b0, b1 = self.scale0, self.scale_t
        s = _STEP if self.clock_drift else Fraction(0)
        return 3 / b0 + (3 + s) / b1 + max(s / b0 + s / b1, 1 / b1)

    @property
    def ln_failure(self) -> Fraction:
        """An upper bound on ln Pr[not E], proved."""
        return _part_failure(self)

    def threshold(self, buckets: Any, steps: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return th at 0-based buckets and local steps t >= 1 in floats, for simulation and prediction."""
        l = np.asarray(buckets, dtype=np.float64) + 1.0
        t = np.asarray(steps, dtype=np.float64) + self.shift
        start = float(self.tau) + float(self.bucket_drift) * np.log(l)
        return np.asarray(start + (float(self.clock_drift) * np.log(t) if self.clock_drift else 0.0))

    @classmethod
    def paper(cls, epsilon: Fraction, *, ln_failure: Fraction) -> PartRule:
        """Return the paper's: tau = 1 + (8/eps_p) ln(pi^2 / (4 delta_E)), rounded up, and its drifts."""

        def need() -> Any:
            import flint

            return 1 + ball(8 / epsilon) * ((flint.arb.pi() ** 2 / 4).log() - ball(ln_failure))

        tau = Fraction(_ceil(narrow(need, bits=_BITS)[1] * _GRID), _GRID)
        tau = max(tau, 1 + Fraction(1, _GRID))
        return cls(tau, 2 / epsilon, 4 / epsilon, 16 / epsilon, 8 / epsilon, _ceil(12 / epsilon))

    @classmethod
    def constant(
        cls, cost: Fraction, *, ln_failure: Fraction, horizon: int | None = None, alarm: float = ALARM
    ) -> PartRule:
        """Return the least constant thresholds of a cost whose failure is at most e^ln_failure (new).

        b_0 = 4/5 b_1, near the best proportion. With a horizon, tau is also so large that a stream without
        events ends no bucket within it, except with probability ``alarm``: a matter of use, not of privacy.
        """
        b1 = (3 / SCALE_RATIO + 4) / rational("cost", cost, above=0)
        b0 = SCALE_RATIO * b1
        least = constant_tau(b0, b1, ln_failure=float(ln_failure), horizon=horizon, alarm=alarm)
        tau = max(Fraction(math.ceil(least * _GRID), _GRID), 1 + Fraction(1, _GRID))
        rule = cls(tau, b0, b1)
        while rule.ln_failure > ln_failure:
            rule = cls(rule.tau + Fraction(1, _GRID), b0, b1)
        return rule


def constant_tau(
    b0: Fraction, b1: Fraction, *, ln_failure: float, horizon: int | None, alarm: float = ALARM
) -> float:
    """Return about the least constant threshold: see :meth:`PartRule.constant` (floats, for plans)."""
    least = _tau_float(b0, b1, ln_failure, extra=3.0)
    if horizon is not None:
        least = max(least, _tau_float(b0, b1, math.log(alarm / horizon), extra=1.0))
    return least


def _tau_float(b0: Fraction, b1: Fraction, ln_target: float, *, extra: float) -> float:
    """Return 1 + w with extra * Pr[Z_1 - Z_0 >= w] about e^ln_target, w >= 0."""
    x0, x1 = float(b0), float(b1)
    low, high = 0.0, x1 * (max(0.0, -ln_target) + 10.0)
    for _ in range(80):
        w = (low + high) / 2
        inner = 1.0 - (x0 / x1) ** 2 * math.exp(w / x1 - w / x0)
        tail = -w / x1 + math.log(inner / (2 * (1 - (x0 / x1) ** 2)))
        low, high = (w, high) if tail + math.log(extra) > ln_target else (low, w)
    return 1.0 + high


@lru_cache(maxsize=256)
def _part_failure(rule: PartRule) -> Fraction:
    b0, b1 = rule.scale0 + _LATTICE, rule.scale_t + _LATTICE

    def difference(w: Fraction) -> Any:  # Pr[Z_1 - Z_0 >= w]
        w = max(w - 2 * _LATTICE, Fraction(0))
        top = ball(b1 * b1) * ball(-w / b1).exp() - ball(b0 * b0) * ball(-w / b0).exp()
        return top / ball(2 * (b1 * b1 - b0 * b0))

    def bound() -> Any:
        import flint

        if not rule.bucket_drift:
            return (difference(rule.tau) + 2 * difference(rule.tau - 1)).log()
        g = (rule.tau - 1) / 2
        tails = ball(-g / b0).exp() / 2 + ball(-g / b1).exp()
        # l^(-d_l / (2 b_1)) with the rounded-up scale: a hair above l^-2
        power = ball(rule.bucket_drift / (2 * b1))
        return (tails * power.zeta()).log() if power > 1 else flint.arb(0)

    return narrow(bound, bits=_BITS)[1]
