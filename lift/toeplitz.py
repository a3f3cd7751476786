"""The Toeplitz square root of T_n: L = R with the coefficients of (1 - x)^(-1/2) below the diagonal.

With r_k = C(2k, k) / 4^k the factors have row norms |L_t|^2 = r_0^2 + ... + r_(t-1)^2, at the last step
G_n = sum of all r_k^2, and a largest column l1 norm S_n = r_0 + ... + r_(n-1). It is the reference for l2
sensitivity (Gaussian noise: Henzinger, Kalinin and Upadhyay): the largest column l2 norm is sqrt(G_n) too, so
that MaxSE is sigma^2 G_n^2, and G_n = ln(n)/pi + 1.0663 + o(1). Under l1 sensitivity S_n grows as
2 sqrt(n/pi), which the lift avoids; it is here for comparison.

Closed forms (new, by telescoping): S = 2n r_n, and sum over k < n of (k + 1/4) r_k^2 = n^2 r_n^2, so that
the mean squared row norm is (1 + 1/(4n)) G - n r_n^2. Up to n = 1024 all are exact and rounded once.
Beyond that r_n and G_n (Landau's constants) come from their asymptotic series in 1/(n +- 1/4), whose first
omitted terms are below 1e-24 there: what is left is the rounding of a few float operations, below 1e-14
relatively.

No chain has these factors (every row of L is dense); at small horizons they are an exact plain stage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.lift.checks import integer
from trilift.lift.dyadic import Dyadic
from trilift.lift.laplace_errors import laplace_se
from trilift.lift.stage import Stage

__all__ = ["ToeplitzCost", "toeplitz_coefficients", "toeplitz_cost", "toeplitz_exact", "toeplitz_stage"]

MAX_HORIZON = 2**60
MAX_DENSE_HORIZON = 512
EXACT_UP_TO = 1024
RELATIVE_ERROR = 1e-14
_EULER = 0.57721566490153286


@dataclass(frozen=True)
class ToeplitzCost:
    """The cost of the Toeplitz square root, within a relative 1e-14 (correctly rounded up to n = 1024).

    Attributes:
        name: what it is, in words.
        horizon: number of steps n.
        sensitivity: S_n, the largest column l1 norm of R.
        l2_sensitivity_sq: G_n, the largest squared column l2 norm of R.
        max_row_norm_sq: G_n, the largest squared row norm of L.
        mean_row_norm_sq: mean of the squared row norms of L over the n steps.
    """

    name: str
    horizon: int
    sensitivity: float
    l2_sensitivity_sq: float
    max_row_norm_sq: float
    mean_row_norm_sq: float

    def max_se(self, epsilon: float = 1.0) -> float:
        """Largest squared error of a step under Laplace noise, 2 G S^2 / epsilon^2."""
        return self._se(self.max_row_norm_sq, epsilon)

    def mean_se(self, epsilon: float = 1.0) -> float:
        """Squared error under Laplace noise, averaged over the steps."""
        return self._se(self.mean_row_norm_sq, epsilon)

    def _se(self, row: float, epsilon: float) -> float:
        return laplace_se(row, sensitivity=self.sensitivity, epsilon=epsilon)

    @property
    def gamma_max(self) -> float:
        """|L|_(2->inf) |R|_(1->2): the worst step's standard deviation per unit of Gaussian noise."""
        return math.sqrt(self.max_row_norm_sq * self.l2_sensitivity_sq)

    @property
    def gamma_mean(self) -> float:
        """|L|_F |R|_(1->2) / sqrt(n): its root mean square over the steps."""
        return math.sqrt(self.mean_row_norm_sq * self.l2_sensitivity_sq)


def toeplitz_coefficients(count: int) -> list[Fraction]:
    """Return r_0, ..., r_(count-1) exactly.

    >>> [str(r) for r in toeplitz_coefficients(4)]
    ['1', '1/2', '3/8', '5/16']
    """
    return [Fraction(math.comb(2 * k, k), 4**k) for k in range(integer("count", count, minimum=0))]


def toeplitz_exact(horizon: int) -> tuple[Fraction, Fraction, Fraction]:
    """Return S_n, G_n and the mean squared row norm exactly (numbers of about 4n bits).

    Raises:
        ParameterError: not an integer from 1 to 1024.
    """
    n = integer("horizon", horizon, minimum=1, maximum=EXACT_UP_TO)
    unit = 16 ** (n - 1)
    numerator = sum(math.comb(2 * k, k) ** 2 * 16 ** (n - 1 - k) for k in range(n))
    G = Fraction(numerator, unit)
    last = Fraction(math.comb(2 * n, n), 4**n)
    return 2 * n * last, G, G * (1 + Fraction(1, 4 * n)) - n * last**2


def toeplitz_cost(horizon: int) -> ToeplitzCost:
    """Return the cost of the Toeplitz square root at any horizon up to 2^60.

    Raises:
        ParameterError: a horizon out of range.

    >>> cost = toeplitz_cost(2)
    >>> cost.sensitivity, cost.max_row_norm_sq, cost.mean_row_norm_sq
    (1.5, 1.25, 1.125)
    """
    n = integer("horizon", horizon, minimum=1, maximum=MAX_HORIZON)
    if n <= EXACT_UP_TO:
        S, G, mean = (float(value) for value in toeplitz_exact(n))
    else:
        last = _central(n)
        S, G = 2.0 * n * last, _landau(n)
        mean = (1.0 + 0.25 / n) * G - n * last**2
    return ToeplitzCost("Toeplitz square root", n, S, G, G, mean)


def _central(n: int) -> float:
    """Return r_n = C(2n, n) / 4^n from its series around n + 1/4."""
    x = 1.0 / (n + 0.25) ** 2
    series = 1.0 - x / 64.0 + 21.0 * x**2 / 8192.0 - 671.0 * x**3 / 524288.0
    return series / math.sqrt(math.pi * (n + 0.25))


def _landau(n: int) -> float:
    """Return G_n = r_0^2 + ... + r_(n-1)^2 from its series around n - 1/4."""
    x = 1.0 / (n - 0.25) ** 2
    series = 11.0 * x / 192.0 - 1541.0 * x**2 / 122880.0 + 63433.0 * x**3 / 8257536.0
    return (math.log(n - 0.25) + _EULER + 4.0 * math.log(2.0) + series) / math.pi


def toeplitz_stage(horizon: int) -> Stage:
    """Return the square root as an exact plain stage: L and R are n x n, their entries have 2n-2 places.

    Raises:
        ParameterError: not an integer from 1 to 512.

    >>> toeplitz_stage(8).residual()
    Fraction(0, 1)
    """
    n = integer("horizon", horizon, minimum=1, maximum=MAX_DENSE_HORIZON)
    exp = 2 * (n - 1)
    column = [math.comb(2 * k, k) << (exp - 2 * k) for k in range(n)]
    root: Any = np.zeros((n, n), dtype=object)
    for k, value in enumerate(column):
        root[np.arange(k, n), np.arange(n - k)] = value
    return Stage.plain(Dyadic(root, exp), Dyadic(root, exp))
