"""Bounds and events against exact probabilities."""

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from trilift.experiments.audit.bounds import delta_at_least, epsilon_at_least, lower, upper
from trilift.experiments.audit.events import Event, Goal, best_event


@pytest.mark.parametrize("count", [0, 1, 17, 99, 100])
def test_bounds_are_those_of_clopper_and_pearson(count: int) -> None:
    expected = binomtest(count, 100).proportion_ci(0.99, method="exact")
    assert float(lower(count, trials=100, failure=0.005)) == pytest.approx(expected.low)
    assert float(upper(count, trials=100, failure=0.005)) == pytest.approx(expected.high)


@pytest.mark.parametrize(("p", "q", "delta"), [(0.3, 0.1, 0.0), (0.02, 0.005, 0.0), (0.3, 0.1, 0.05)])
def test_the_bound_on_epsilon_is_exceeded_no_more_often_than_said(p: float, q: float, delta: float) -> None:
    """Exactly, over all pairs of counts: no simulation."""
    trials, failure = 200, 0.05
    counts = np.arange(trials + 1)
    bounds = epsilon_at_least(counts[:, None], counts[None, :], trials=trials, delta=delta, failure=failure)
    chances = binom.pmf(counts, trials, p)[:, None] * binom.pmf(counts, trials, q)[None, :]
    truth = math.log((p - delta) / q)
    assert float(chances[bounds > truth].sum()) <= failure
    deltas = delta_at_least(counts[:, None], counts[None, :], trials=trials, epsilon=0.5, failure=failure)
    true_delta = max(p - math.exp(0.5) * q, 0.0)
    assert float(chances[deltas > true_delta].sum()) <= failure


def test_a_good_threshold_is_found() -> None:
    """Randomized response in the tail: the ratio is e^2 above 3, and 1 below."""
    source = np.random.default_rng(5)
    first = np.where(source.random(20_000) < 0.02, 4.0, source.random(20_000))
    second = np.where(source.random(20_000) < 0.02 * math.e**2, 4.0, source.random(20_000))
    event = best_event("s", first, second, goal=Goal("epsilon", 1.0, 0.0), trials=10**6, failure=0.001)
    assert event.upwards
    assert 1.0 <= event.threshold <= 4.0
    assert 1.7 < event.promise < 2.0  # the tails of 20 000 runs are not quite trusted
    assert event.count(second) == np.count_nonzero(second == 4.0)


def test_events_below_a_threshold_count_the_others() -> None:
    event = Event("s", 2.0, upwards=False, promise=0.0)
    assert event.count(np.array([1.0, 2.0, 3.0])) == 1
