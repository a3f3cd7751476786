"""Closer point estimates of the number of distinct items, from the same noisy counters: free post-processing.

Grouped MinHash knows of a counter only whether something was detected, so a stream of items of frequency 1
and one of few frequent items look alike up to a factor of the threshold. Two things are left in the counters
(new):

* **Moments.** Groups are uniform and independent of levels, so the sum of a level's counters is the sum F1 of
  the frequencies of its items, and their scatter over the groups,
  (sum C^2 - (sum C)^2 / g) g / (g - 1) - g v with v = E N^2, has expectation sum x_j^2 = F2 over its items.
  For whole numbers x_j >= 0 that are not 0: F1^2 / F2 <= D <= F1 (Cauchy, Schwarz). With the lowest levels
  alone the lower bound is for their items, of which most are; leaving the others out leaves out their noise.
* **Cells.** While items are few and frequent, hardly two of them share a (group, level), and the number of
  detected cells tells their number better than that of detected groups does: the expected number of occupied
  cells is inverted. That needs a threshold which hardly any of all empty counters passes.

Both are estimates with margins of some standard deviations, not proven bounds: they move the estimate inside
of the interval, never the interval.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "LOW_LEVELS",
    "MARGIN",
    "cell_estimate",
    "expected_cells",
    "limits_of_sums",
    "moment_limits",
]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

MARGIN = 4.0
"""Standard deviations that the moments are given."""

LOW_LEVELS = 4
"""Levels whose moments bound from below; 15 of 16 items have one of them."""

_PER_DECADE = 200


def moment_limits(
    values: Any, variance: FloatArray, *, kurtosis: float = 2.0, margin: float = MARGIN
) -> tuple[FloatArray, FloatArray]:
    """Return what a strict stream's number of distinct items is most likely above and below.

    Args:
        values: noisy counters, shape (k, groups, levels).
        variance: v = E N^2 of a counter, shape (k,).
        kurtosis: Var(N^2) / v^2: 2 for Gaussian noise, at most 5 for Laplace noise.
        margin: standard deviations.

    >>> counters = np.zeros((1, 40, 3))
    >>> counters[0, :20, 0] = 1.0  # no noise: 20 items of frequency 1, the others' groups are empty
    >>> [round(float(x[0]), 1) for x in moment_limits(counters, np.zeros(1), margin=0.0)]
    [20.0, 20.0]
    """
    values = np.asarray(values)
    low = values[:, :, :LOW_LEVELS].astype(np.float64)
    return limits_of_sums(
        values.sum(axis=1).astype(np.float64),
        (low * low).sum(axis=1),
        variance,
        groups=values.shape[1],
        kurtosis=kurtosis,
        margin=margin,
    )


def limits_of_sums(
    sums: FloatArray,
    squares: FloatArray,
    variance: FloatArray,
    *,
    groups: int,
    kurtosis: float = 2.0,
    margin: float = MARGIN,
) -> tuple[FloatArray, FloatArray]:
    """Return :func:`moment_limits` from the levels' sums over the groups.

    Args:
        sums: of counters, shape (k, levels).
        squares: of squared counters of the lowest levels, shape (k, at most 4).
        variance, groups, kurtosis, margin: as there.
    """
    v = np.asarray(variance, dtype=np.float64)
    used, levels = squares.shape[1], sums.shape[1]
    rest = max(groups - 1, 1)
    second = (squares - sums[:, :used] ** 2 / groups) * groups / rest - groups * v[:, None]
    both = np.maximum(second.sum(axis=1), 0.0)
    hashing = 2.0 / rest * (np.maximum(second, 0.0) ** 2).sum(axis=1)
    spread = np.sqrt(kurtosis * groups * used * v**2 + hashing + 4.0 * v * both)
    f1 = np.maximum(sums[:, :used].sum(axis=1) - margin * np.sqrt(groups * used * v), 0.0)
    f2 = both + margin * spread
    least = f1 * np.minimum(1.0, f1 / np.maximum(f2, 1e-300))
    most = np.maximum(sums.sum(axis=1) + margin * np.sqrt(groups * levels * v), 0.0)
    return least, np.maximum(most, least)


def expected_cells(items: Any, *, groups: int, levels: int) -> FloatArray:
    """Return how many (group, level) so many items occupy in expectation.

    Args:
        items: D >= 0, of any shape.

    >>> expected_cells(np.array([1.0, 40.0]), groups=35, levels=5).round(2).tolist()
    [1.0, 33.54]
    """
    d = np.asarray(items, dtype=np.float64)[..., None]
    shares = 2.0 ** -np.minimum(np.arange(1, levels + 1), max(levels - 1, 0)) / groups
    if levels * groups == 1:
        return np.asarray((d > 0).astype(np.float64)[..., 0])
    return np.asarray(groups * -np.expm1(d * np.log1p(-shares)).sum(axis=-1))


def cell_estimate(cells: Any, *, groups: int, levels: int, most: int) -> FloatArray:
    """Return the number of items that occupy so many cells in expectation.

    Args:
        cells: number of detected cells, shape (k,).
        groups, levels: of the sketch.
        most: most items that there can be.

    >>> cell_estimate(np.array([0, 1, 5]), groups=35, levels=5, most=1000).round(1).tolist()
    [0.0, 1.0, 5.1]
    """
    decades = max(1.0, np.log10(max(most, 2)))
    grid = np.concatenate([[0.0, 0.5], np.geomspace(1.0, max(most, 2), int(_PER_DECADE * decades))])
    expected = expected_cells(grid, groups=groups, levels=levels)
    return np.asarray(np.interp(np.asarray(cells), expected, grid))
