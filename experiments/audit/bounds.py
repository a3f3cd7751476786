"""One-sided Clopper-Pearson bounds, and what two counts of an event say about epsilon and delta.

For every event S, (epsilon, delta) demands P(S) <= e^epsilon Q(S) + delta, P and Q the laws of what is
released for two neighbours. With P(S) >= p and Q(S) <= q at a confidence each,

    epsilon >= ln((p - delta) / q)    and, at a claimed epsilon,    delta >= p - e^epsilon q.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["delta_at_least", "epsilon_at_least", "lower", "upper", "wilson"]

Floats = np.ndarray[Any, np.dtype[np.float64]]


def lower(count: Any, *, trials: float, failure: float) -> Floats:
    """Return bounds that a probability lies below with probability at most ``failure`` (Clopper, Pearson).

    Args:
        count: how often the event was seen, any shape; 0 <= count <= trials.
        trials: number of independent runs.
        failure: in (0, 1).

    >>> round(float(lower(50, trials=100, failure=0.025)), 4)
    0.3983
    """
    from scipy.stats import beta

    k = np.asarray(count, dtype=np.float64)
    found = beta.ppf(failure, np.maximum(k, 1e-300), trials - k + 1)
    return np.asarray(np.where(k > 0, found, 0.0))


def upper(count: Any, *, trials: float, failure: float) -> Floats:
    """Return bounds that a probability lies above with probability at most ``failure`` (Clopper, Pearson).

    >>> round(float(upper(0, trials=100, failure=0.05)), 5)
    0.02951
    """
    from scipy.stats import beta

    k = np.asarray(count, dtype=np.float64)
    found = beta.ppf(1 - failure, k + 1, np.maximum(trials - k, 1e-300))
    return np.asarray(np.where(k < trials, found, 1.0))


def wilson(count: Any, *, trials: float, failure: float) -> tuple[Floats, Floats]:
    """Return Wilson's approximate bounds, each to fail with about ``failure``: quick, for choices alone.

    >>> low, high = wilson(50, trials=100, failure=0.025)
    >>> round(float(low), 2), round(float(high), 2)
    (0.4, 0.6)
    """
    from scipy.special import ndtri

    z = float(ndtri(1 - failure))
    p, stretch = np.asarray(count, dtype=np.float64) / trials, 1 + z * z / trials
    middle = (p + z * z / (2 * trials)) / stretch
    half = z / stretch * np.sqrt(p * (1 - p) / trials + (z / (2 * trials)) ** 2)
    return np.asarray(np.maximum(middle - half, 0.0)), np.asarray(np.minimum(middle + half, 1.0))


def epsilon_at_least(more: Any, less: Any, *, trials: float, delta: float, failure: float) -> Floats:
    """Return lower bounds on epsilon at ``delta`` from counts of an event under two neighbours.

    Args:
        more: counts under the neighbour that makes the event likelier, any shape.
        less: counts under the other one, same shape.
        trials: runs of each.
        delta: the claimed delta, >= 0.
        failure: the bound is wrong with at most this probability (half of it for each count).

    Returns:
        shape of the counts; 0 where nothing follows.

    >>> bool(epsilon_at_least(900, 100, trials=1000, delta=0, failure=1e-3) > 1.8)
    True
    """
    p = lower(more, trials=trials, failure=failure / 2) - delta
    q = upper(less, trials=trials, failure=failure / 2)
    return np.asarray(np.maximum(np.log(np.maximum(p, 1e-300)) - np.log(q), 0.0))


def delta_at_least(more: Any, less: Any, *, trials: float, epsilon: float, failure: float) -> Floats:
    """Return lower bounds on delta at ``epsilon``; arguments as for :func:`epsilon_at_least`.

    >>> float(delta_at_least(100, 100, trials=1000, epsilon=1, failure=1e-3))
    0.0
    """
    p = lower(more, trials=trials, failure=failure / 2)
    q = upper(less, trials=trials, failure=failure / 2)
    # beyond epsilon 700 the product is 1 at least for any q that a count can give
    return np.asarray(np.maximum(p - np.exp(min(epsilon, 700.0)) * q, 0.0))
