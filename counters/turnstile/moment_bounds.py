"""How far noisy estimates of the second moment F2 = sum x_j^2 can be off: moments, tails, intervals.

Two estimators, from counters C = S + N: exact signed sums S = sum sigma(j) x_j, and noise N with E N^2 = v.

**Rows** (A4): m counters over all items, E = mean C^2 - v. Three parts, each given a third of the failure:

* mean S^2 / F2 - 1 exceeds alpha in size. For an even q its q-th moment involves at most 2q items, so that
  2q-wise independent signs give the moment of independent ones, and E|X|^q <= (q / (e l))^q E e^(l |X|) for
  every l > 0. The exponential moments are Achlioptas' (2003): per row E e^(sZ^2) <= (1 - 2s)^(-1/2) and
  E e^(-sZ^2) <= 1 - s + 3 s^2 / 2. For q = l alpha this is exactly the bound of independent signs, so m is
  what independent signs would need, 2 exp(-m (alpha^2/4 - alpha^3/6)) (new).
* mean N^2 leaves [v - down, v + up]: Laurent, Massart (2000) for Gaussian noise. Laplace: squares are not
  negative, hence a sub-Gaussian lower tail from E N^4; Bernstein's inequality for squares cut at a tail
  bound.
* the product, 2 mean SN: given the noise it is a signed sum, whose 2p-th moment is at most the normal one
  (Khintchine), 2p <= 2q. So it is at most 2 t sqrt(F2 mean N^2 / m), whatever the law of the noise.

**Tables** (A4s): s rows of w buckets, E = the median of sum_b C^2 - w v. A row has mean F2 and variance

    2 F2^2 / w + 4 v F2 + w Var(N^2),    Var(N^2) = kappa v^2, kappa = 2 (Gaussian), at most 5 (Laplace)

(4-wise signs, pairwise buckets), so it is off by more than sqrt(variance / p) with probability at most p
(Chebyshev), and the median of s independent ones with that of s tosses of p giving (s + 1)/2 hits. The
largest p that the failure allows is taken: the one inequality instead of a separate one for each of the three
parts (new).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.lift.errors import ParameterError

__all__ = [
    "RowPlan",
    "chebyshev_interval",
    "mean_interval",
    "median_failure",
    "row_plan",
    "row_share",
    "square_tails",
    "table_shape",
]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_UP = 1.0 + 1e-9  # float arithmetic of bounds
_MOST_MOMENT = 256
_GRID = 400


# -- rows ---------------------------------------------------------------------------------------------


def _ln_sketch_failure(rows: int, accuracy: float, moment: int) -> float:
    """Return the least ln of the moment bound on |mean S^2 / F2 - 1| >= accuracy."""
    s = 0.5 * np.arange(1, _GRID) / _GRID
    upper = rows * (-s - 0.5 * np.log1p(-2.0 * s))
    lower = rows * (s + np.log1p(-s + 1.5 * s * s))
    ratio = moment / (math.e * accuracy * rows * s)
    return float(np.min(moment * np.log(ratio) + np.logaddexp(upper, lower)))


def _ln_normal_moment(p: int) -> float:
    """Return ln (2p - 1)!!, the 2p-th moment of a standard normal."""
    return math.lgamma(2 * p + 1) - p * math.log(2.0) - math.lgamma(p + 1)


@dataclass(frozen=True)
class RowPlan:
    """Rows of A4, how independent their signs are, and what that proves.

    Attributes:
        rows: m.
        moment: q, even; signs are 2q-wise independent.
        accuracy: alpha.
        ln_failure: natural logarithm of the failure that each of the three parts has at one read.
        product: t, of the product of sums and noise.
    """

    rows: int
    moment: int
    accuracy: float
    ln_failure: float
    product: float

    @property
    def coefficients(self) -> int:
        """Coefficients of a polynomial whose bits are the signs."""
        return 2 * self.moment


def row_plan(reads: int, *, failure: float, accuracy: float, rows: int | None = None) -> RowPlan:
    """Return the rows that make mean S^2 right within ``accuracy`` at all reads.

    Args:
        reads: number of released values.
        failure: of all of them together, in (0, 1).
        accuracy: alpha in (0, 1).
        rows: m, if it is given: ``accuracy`` then follows.

    Raises:
        ParameterError: so few rows that no accuracy below 1 is proved.

    >>> row_plan(10_000, failure=0.01, accuracy=0.5).rows, row_plan(100_000, failure=0.01, accuracy=0.5).rows
    (375, 430)
    """
    ln_third = math.log(failure / (3.0 * reads))
    wanted = math.log(2.0) - ln_third
    if rows is None:
        rows = math.ceil(wanted / (accuracy**2 / 4 - accuracy**3 / 6))
    else:
        accuracy = _accuracy_of(rows, wanted)
    for moment in range(2, _MOST_MOMENT + 1, 2):
        if _ln_sketch_failure(rows, accuracy, moment) <= ln_third:
            break
    else:
        raise ParameterError(f"{rows} rows prove no accuracy of {accuracy:.3g} at {reads} reads")
    ps = range(1, moment + 1)
    product = min(math.exp((_ln_normal_moment(p) - ln_third) / (2 * p)) for p in ps) * _UP
    return RowPlan(rows, moment, accuracy, ln_third, product)


def _accuracy_of(rows: int, wanted: float) -> float:
    """Solve rows (alpha^2/4 - alpha^3/6) = wanted for the alpha below 1."""
    if rows / 12.0 <= wanted:
        raise ParameterError(f"rows must be more than {math.ceil(12.0 * wanted)} for the failure asked for")
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (low, middle) if rows * (middle**2 / 4 - middle**3 / 6) >= wanted else (middle, high)
    return high


def square_tails(
    variance: FloatArray, *, rows: int, ln_failure: float, fourth: FloatArray | None, cut: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return (down, up): mean N^2 of m independent noises lies within [v - down, v + up] but for the failure.

    Args:
        variance: v = E N^2 before rounding, shape (k,).
        rows: m.
        ln_failure: logarithm of the failure, of both sides together.
        fourth: E N^4 of Laplace noise, None for Gaussian noise.
        cut: x with Pr[N >= x] <= e^ln_failure / (6 m), of Laplace noise.

    Rounding moves every N by at most 1/2, hence the root mean square by at most as much: that is added.
    """
    if fourth is None or cut is None:
        tail = math.log(2.0) - ln_failure
        root = 2.0 * math.sqrt(tail / rows)
        down, up = variance * root, variance * (root + 2.0 * tail / rows)
    else:  # thirds of the failure: lower side, upper side, a noise past the cut
        tail = math.log(3.0) - ln_failure
        down = np.sqrt(2.0 * tail * fourth / rows)
        spread = np.maximum(fourth - variance * variance, 0.0)
        half = cut * cut * tail / (3.0 * rows)
        up = half + np.sqrt(half * half + 2.0 * tail * spread / rows)
    slack = np.sqrt(variance + up) + 0.5
    return np.asarray((down + slack) * _UP), np.asarray((up + slack) * _UP)


def mean_interval(
    excess: FloatArray, variance: FloatArray, down: FloatArray, up: FloatArray, *, plan: RowPlan
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of F2 for E = mean C^2 - v.

    E <= F (1 + alpha) + c sqrt(F) + up and E >= F (1 - alpha) - c sqrt(F) - down, with
    c = 2 t sqrt((v + up) / m), are solved for F.
    """
    c = 2.0 * plan.product * np.sqrt((variance + up) / plan.rows)
    most, least = 1.0 + plan.accuracy, 1.0 - plan.accuracy
    low = (np.sqrt(c * c + 4.0 * most * np.maximum(excess - up, 0.0)) - c) / (2.0 * most)
    high = (np.sqrt(c * c + 4.0 * least * np.maximum(excess + down, 0.0)) + c) / (2.0 * least)
    return np.asarray(low * low / _UP), np.asarray(high * high * _UP)


# -- tables -------------------------------------------------------------------------------------------


def median_failure(rows: int, share: float) -> float:
    """Return the probability that at least (rows + 1) / 2 of so many tosses hit, rows odd.

    >>> round(10_000 * median_failure(29, 0.1125), 6), round(100_000 * median_failure(35, 0.1125), 6)
    (0.000958, 0.00056)
    """
    return math.fsum(
        math.comb(rows, k) * share**k * (1.0 - share) ** (rows - k) for k in range((rows + 1) // 2, rows + 1)
    )


def row_share(rows: int, *, reads: int, failure: float) -> float:
    """Return the largest p for which the median of rows that fail with p is right at all reads."""
    low, high = 0.0, 0.5
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if reads * median_failure(rows, middle) * _UP <= failure else (low, middle)
    return low


def table_shape(law: str, *, reads: int, failure: float, accuracy: float) -> tuple[int, int]:
    """Return (rows, buckets) of a table, odd and a power of two.

    Gaussian noise: 2 ceil(log2 reads) + 1 rows of at least 32 / accuracy^2 buckets. Laplace noise grows with
    the number of rows itself, not with its root, so that fewer rows, which must be right more often, do
    better: the number is taken that minimises the interval's half width without items, rows^2 sqrt(buckets /
    p), with the buckets that 2 / (buckets p) <= accuracy^2 asks for.

    >>> table_shape("gaussian", reads=10_000, failure=0.01, accuracy=0.5)
    (29, 128)
    """
    most = 2 * max(1, math.ceil(math.log2(reads))) + 1 if reads > 1 else 3
    if law == "gaussian":
        return most, _power_of_two(32.0 / accuracy**2)

    def shape(rows: int) -> tuple[float, int, int]:
        share = row_share(rows, reads=reads, failure=failure)
        buckets = _power_of_two(2.0 / (accuracy**2 * share))
        return rows * rows * math.sqrt(buckets / share), rows, buckets

    return min(shape(rows) for rows in range(3, most + 1, 2))[1:]


def _power_of_two(least: float) -> int:
    return 1 << max(0, math.ceil(math.log2(least) - 1e-12))


def chebyshev_interval(
    excess: FloatArray, variance: FloatArray, square_variance: FloatArray, *, buckets: int, share: float
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of F2 for E, a median of rows: |E - F| <= sqrt(a F^2 + b F + c), solved for F.

    Args:
        excess: E.
        variance: v.
        square_variance: Var(N^2).
        buckets: w.
        share: p, with a = 2 / (w p); for a >= 1 nothing is bounded from above.
    """
    a = 2.0 / (buckets * share)
    b, c = 4.0 * variance / share, buckets * square_variance / share
    # E below -sqrt(c) contradicts every F; then the failure has happened, and the least E is as good as any
    level = np.maximum(excess, -np.sqrt(c))
    middle = 2.0 * level + b
    inner = np.maximum(middle * middle - 4.0 * (1.0 - a) * (level * level - c), 0.0)
    root = np.sqrt(inner)
    high = (middle + root) / (2.0 * (1.0 - a)) if a < 1.0 else np.full_like(middle, np.inf)
    # the smaller root, without cancellation: their product is (E^2 - c) / (1 - a)
    inside = level > np.sqrt(c)
    low = np.where(inside, 2.0 * (level * level - c) / np.where(inside, middle + root, 1.0), 0.0)
    return np.asarray(low / _UP), np.asarray(high * _UP)
