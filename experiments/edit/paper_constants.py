"""The constants of the paper, in floats and from its formulas alone. FOR SIMULATION ONLY.

Written without the ledgers that calibrate releases, so that each can check the other. The Gaussian constant
is solved in log space: with mu = 1 / sigma,

    ln delta = a + ln(1 - e^(b - a)),  a = ln Phi(mu/2 - eps/mu),  b = eps + ln Phi(-mu/2 - eps/mu).
"""

from __future__ import annotations

import math

__all__ = ["gaussian_constant", "log_delta", "privacy_mu", "textbook_gaussian_constant"]


def log_delta(epsilon: float, *, mu: float) -> float:
    """Return ln delta of a Gaussian mechanism of sensitivity mu and unit noise."""
    from scipy.special import log_ndtr

    a = float(log_ndtr(mu / 2 - epsilon / mu))
    gap = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu)) - a
    return a + math.log(-math.expm1(gap)) if gap < 0 else -math.inf


def privacy_mu(epsilon: float, *, ln_delta: float) -> float:
    """Return the largest mu with delta(epsilon, mu) <= e^ln_delta, by bisection on ln mu.

    >>> round(privacy_mu(10.0, ln_delta=math.log(1e-5)), 5)
    2.00045
    """
    low, high = -60.0, 20.0
    for _ in range(200):
        middle = (low + high) / 2
        if log_delta(epsilon, mu=math.exp(middle)) <= ln_delta:
            low = middle
        else:
            high = middle
    return math.exp(low)


def gaussian_constant(epsilon: float, *, ln_delta: float) -> float:
    """Return C(epsilon, delta), the least standard deviation for sensitivity 1.

    >>> round(gaussian_constant(100 / 9, ln_delta=-120.534), 5)
    1.39014
    """
    return 1 / privacy_mu(epsilon, ln_delta=ln_delta)


def textbook_gaussian_constant(epsilon: float, *, delta: float) -> float:
    """Return what the usual routine returns: Phi as (1 + erf) / 2, and delta to within 1e-12 absolutely.

    Where delta is far below 1e-12 the result is too small: NOT PRIVATE. Nothing here uses it for noise; it
    shows where published figures may come from. The routine is that of Balle and Wang (analytic Gaussian
    mechanism), doubling and bisection as they publish it.

    >>> round(textbook_gaussian_constant(100 / 9, delta=math.exp(-120.534)), 3)
    0.792
    """

    def phi(x: float) -> float:
        return 0.5 * (1 + math.erf(x / math.sqrt(2)))

    def reached(s: float) -> float:
        return phi(sign * math.sqrt(epsilon * s)) - math.exp(epsilon) * phi(-math.sqrt(epsilon * (s + 2)))

    sign = 1
    sign = 1 if delta > reached(0.0) else -1
    low, high = 0.0, 1.0
    while sign * (reached(high) - delta) < 0:
        low, high = high, 2 * high
    middle = (low + high) / 2
    while abs(reached(middle) - delta) > 1e-12 and low < middle < high:
        if sign * (reached(middle) - delta) > 0:
            high = middle
        else:
            low = middle
        middle = (low + high) / 2
    alpha = math.sqrt(1 + middle / 2) - sign * math.sqrt(middle / 2)
    return alpha / math.sqrt(2 * epsilon)
