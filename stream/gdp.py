"""Calibration of Gaussian noise: mu-GDP, zCDP and (epsilon, delta), with every rounding on the safe side.

A Gaussian mechanism of sensitivity at most mu standard deviations is mu-GDP (Dong, Roth, Su 2022), and for
every epsilon it is (epsilon, delta)-private exactly for delta at least

    delta(epsilon, mu) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)

(Balle, Wang 2018, theorem 8). Mechanisms mu_1, mu_2, ... compose, adaptively too, to mu^2 = sum mu_i^2.
delta is so small in what is built here that only its logarithm can be held, so deltas are given and returned
as ln delta: rationals, together with the direction in which they were rounded. Proofs are made with balls
(:mod:`trilift.stream.balls`); floats serve plans, and say so in their names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from trilift.lift.checks import fail, finite, rational
from trilift.lift.errors import ParameterError
from trilift.stream.balls import ball, decide, narrow

__all__ = [
    "delta_upper",
    "epsilon_of_rho",
    "gaussian_sigma",
    "ln_delta_bounds",
    "ln_delta_float",
    "ln_of",
    "ln_sum",
    "mu_for",
    "rho_for",
]

MIN_EPSILON, MAX_EPSILON = Fraction(1, 10**7), Fraction(10**7)
MIN_LN_DELTA, MAX_LN_DELTA = Fraction(-(10**7)), Fraction(-1, 10**6)
_MU_BITS = 48
_BOUND_BITS = 64


def _epsilon(value: Any) -> Fraction:
    epsilon = rational("epsilon", value, above=0)
    if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise fail("epsilon", "between 1e-7 and 1e7", value)
    return epsilon


def _ln_delta(value: Any) -> Fraction:
    ln_delta = rational("ln_delta", value)
    if not MIN_LN_DELTA <= ln_delta <= MAX_LN_DELTA:
        raise fail("ln_delta", "between -1e7 and -1e-6 (the logarithm of delta, not delta)", value)
    return ln_delta


def _mu(value: Any) -> Fraction:
    mu = rational("mu", value, above=0)
    if not Fraction(1, 10**12) <= mu <= 10**6:
        raise fail("mu", "between 1e-12 and 1e6", value)
    return mu


def _ln_delta_ball(epsilon: Fraction, mu: Fraction) -> Any:
    """ln delta(epsilon, mu) as a ball; not finite while the two terms cannot be told apart."""
    root = ball(2).sqrt()
    near, far = ball(epsilon / mu - mu / 2) / root, ball(epsilon / mu + mu / 2) / root
    return ((near.erfc() - ball(epsilon).exp() * far.erfc()) / 2).log()


def ln_delta_bounds(epsilon: Any, *, mu: Any) -> tuple[Fraction, Fraction]:
    """Enclose ln delta(epsilon, mu), the exact curve of a mu-GDP Gaussian mechanism (Balle, Wang 2018).

    Args:
        epsilon: between 1e-7 and 1e7, taken as the rational that it is.
        mu: sensitivity over standard deviation, between 1e-12 and 1e6.

    Returns:
        (low, high), proved; within relative 2^-64 (absolute where ln delta is above -1).

    Raises:
        ParameterError: arguments out of range.

    >>> low, high = ln_delta_bounds(1, mu=1)
    >>> round(math.exp(low), 6), high > low
    (0.126937, True)
    """
    e, m = _epsilon(epsilon), _mu(mu)
    return narrow(lambda: _ln_delta_ball(e, m), bits=_BOUND_BITS)


def ln_delta_float(epsilon: float, mu: float) -> float:
    """Return ln delta(epsilon, mu) as a float, for plans: no proof.

    The error is about 2^-50 (1 + |ln delta| + 1/mu + epsilon/mu^2 + mu |x|), x = mu/2 - epsilon/mu.

    Args:
        epsilon: > 0.
        mu: > 0.

    Raises:
        ParameterError: arguments that are not finite and positive.

    >>> round(ln_delta_float(10.0, 2.00045), 3)
    -11.513
    """
    from scipy.special import erfcx, log_ndtr

    e, m = finite("epsilon", epsilon, above=0), finite("mu", mu, above=0)
    near, far = m / 2 - e / m, m / 2 + e / m
    # e^epsilon phi(far) = phi(near), so both terms of delta are phi(near) times a Mills ratio
    mills = math.log(float(erfcx(far * math.sqrt(0.5)))) + 0.5 * math.log(math.pi / 2)
    if near < 0:
        ratio = float(erfcx(far * math.sqrt(0.5)) / erfcx(-near * math.sqrt(0.5)))
        return float(log_ndtr(near)) + math.log1p(-ratio) if ratio < 1 else -math.inf
    first = float(log_ndtr(near))
    second = -near * near / 2 - 0.5 * math.log(2 * math.pi) + mills
    return first + math.log(-math.expm1(second - first))


def mu_for(epsilon: Any, *, ln_delta: Any) -> Fraction:
    """Return the largest mu whose Gaussian mechanism is (epsilon, delta)-private, rounded down.

    Proved: delta(epsilon, mu) <= e^ln_delta for the rational returned. It is within relative 2^-47 of the
    largest such mu, because the curve increases in mu.

    Args:
        epsilon: between 1e-7 and 1e7.
        ln_delta: natural logarithm of delta, between -1e7 and -1e-6; of a rational delta take the lower end
            of :func:`ln_of`.

    Raises:
        ParameterError: arguments out of range.

    >>> round(float(mu_for(10, ln_delta=ln_of(Fraction(1, 10**5))[0])), 5)
    2.00045
    """
    e, target = _epsilon(epsilon), _ln_delta(ln_delta)

    def private(mu: Fraction) -> bool:
        x = e / mu - mu / 2
        if x > 0 and x * x >= -2 * target:
            return True  # delta <= Phi(-x) <= exp(-x^2 / 2), where balls may give up on numbers so small
        return decide(lambda: _ln_delta_ball(e, mu) - ball(target))

    low = Fraction(1)
    while not private(low):
        low /= 2
    high = 2 * low
    while private(high):
        low, high = high, 2 * high
    for _ in range(_MU_BITS):  # one binary digit at a time
        middle = (low + high) / 2
        if private(middle):
            low = middle
        else:
            high = middle
    return low


def gaussian_sigma(epsilon: Any, *, ln_delta: Any) -> Fraction:
    """Return the least standard deviation for sensitivity 1 that is (epsilon, delta)-private, rounded up.

    Args:
        epsilon: between 1e-7 and 1e7.
        ln_delta: natural logarithm of delta, between -1e7 and -1e-6.

    Raises:
        ParameterError: arguments out of range.

    >>> round(float(gaussian_sigma(Fraction(100, 9), ln_delta=Fraction("-120.534"))), 5)
    1.39014
    """
    return 1 / mu_for(epsilon, ln_delta=ln_delta)


# -- zero-concentrated differential privacy -----------------------------------------------------------


def rho_for(epsilon: Any, *, ln_delta: Any) -> Fraction:
    """Return the largest rho with rho + 2 sqrt(rho ln(1/delta)) <= epsilon, rounded down.

    rho-zCDP then implies (epsilon, delta)-privacy (Bun, Steinke 2016, proposition 1.3). mu-GDP is
    mu^2/2-zCDP, but the way over zCDP loses something: use :func:`mu_for` for Gaussian noise alone.

    Args:
        epsilon: between 1e-7 and 1e7.
        ln_delta: natural logarithm of delta, between -1e7 and -1e-6.

    Raises:
        ParameterError: arguments out of range.

    >>> round(float(rho_for(1, ln_delta=ln_of(Fraction(1, 10**6))[0])), 6)
    0.017469
    """
    e, large = _epsilon(epsilon), -_ln_delta(ln_delta)

    def root() -> Any:  # sqrt(large + e) - sqrt(large), without the cancellation
        return ball(e) / (ball(large + e).sqrt() + ball(large).sqrt())

    low, _ = narrow(lambda: root() ** 2, bits=128)
    return _round_down(low)


def epsilon_of_rho(rho: Any, *, ln_delta: Any) -> Fraction:
    """Return epsilon = rho + 2 sqrt(rho ln(1/delta)) of rho-zCDP, rounded up (Bun, Steinke 2016).

    Args:
        rho: > 0.
        ln_delta: natural logarithm of delta, between -1e7 and -1e-6.

    Raises:
        ParameterError: arguments out of range.
    """
    spent, large = rational("rho", rho, above=0), -_ln_delta(ln_delta)
    return narrow(lambda: ball(spent) + 2 * ball(spent * large).sqrt(), bits=_BOUND_BITS)[1]


# -- logarithms and sums of deltas --------------------------------------------------------------------


def ln_of(delta: Any) -> tuple[Fraction, Fraction]:
    """Enclose the natural logarithm of a positive rational.

    Args:
        delta: > 0, taken as the rational that it is.

    Returns:
        (low, high), proved, within relative 2^-64 (absolute for logarithms smaller than 1 in size).

    Raises:
        ParameterError: not a finite number > 0.

    >>> low, high = ln_of(Fraction(1, 2))
    >>> low <= high, round(float(low), 9)
    (True, -0.693147181)
    """
    exact = rational("delta", delta, above=0)
    return narrow(lambda: ball(exact).log(), bits=_BOUND_BITS)


def delta_upper(ln_delta: Any) -> Fraction:
    """Return a rational at least e^ln_delta, within relative 2^-48 of it.

    Args:
        ln_delta: a rational, at least -1e7 and at most 1e4.

    Raises:
        ParameterError: out of range.

    >>> delta_upper(0)
    Fraction(1, 1)
    """
    exact = rational("ln_delta", ln_delta, minimum=int(MIN_LN_DELTA), maximum=10**4)
    shift = int(-exact * Fraction(3, 2)) + 2 if exact < 0 else 0  # e^ln_delta 2^shift is at least 1
    _, high = narrow(lambda: ball(exact).exp() * ball(1 << shift), bits=_BOUND_BITS)
    return -_round_down(-high) / (1 << shift)


def ln_sum(terms: Sequence[Any]) -> tuple[Fraction, Fraction]:
    """Enclose ln(e^t_1 + e^t_2 + ...): how deltas held as logarithms add up.

    A factor e^epsilon is part of its term: e^epsilon eta is the term epsilon + ln eta.

    Args:
        terms: at least one rational, any range.

    Returns:
        (low, high), proved, within relative 2^-64 (absolute for logarithms smaller than 1 in size).

    Raises:
        ParameterError: no terms, or one that is not a finite number.

    >>> low, high = ln_sum([-2000, -2000])
    >>> round(float(high), 6)
    -1999.306853
    """
    exact = [rational("terms", term) for term in terms]
    if not exact:
        raise ParameterError("terms must be at least one")
    largest = max(exact)

    def total() -> Any:
        return ball(largest) + sum(ball(term - largest).exp() for term in exact).log()

    return narrow(total, bits=_BOUND_BITS)


def _round_down(value: Fraction, bits: int = 64) -> Fraction:
    """Return the largest rational of about this many binary digits that is no larger."""
    size = abs(value.numerator).bit_length() - value.denominator.bit_length()
    unit = Fraction(2) ** (size - bits)
    return (value // unit) * unit
