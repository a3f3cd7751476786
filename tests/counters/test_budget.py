"""The spent epsilon, recomputed from the integers of the dense matrix, each row on its own lattice."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trilift.counters import Counter, chain_of
from trilift.lift.dense import materialise

Make = Callable[..., Counter]

CHAINS = (
    ("stage-max-9", "direct-max-4"),
    ("direct-mean-8",),
    ("stage-mean-9", "stage-mean-9", "direct-mean-4"),
)


@cache
def columns(names: tuple[str, ...]) -> tuple[np.ndarray[Any, Any], int, list[tuple[int, int, int]]]:
    """Return |numerators| of R (rows, capacity), their binary places, and what each row is.

    That is its level, its index within its block, and the places its values need for integer inputs (-1 for
    a row of zeros).
    """
    chain = chain_of(names)
    dense = materialise(chain, chain.capacity)
    numerators = np.abs(dense.R.num.astype(object))
    seen: dict[int, int] = {}
    owners = []
    for level, row in zip(dense.level.tolist(), numerators, strict=True):
        common = math.gcd(*row.tolist())
        needed = dense.R.exp - (common & -common).bit_length() + 1 if common else -1
        owners.append((level, seen.get(level, 0) % chain.levels[level].inner, needed))
        seen[level] = seen.get(level, 0) + 1
    return numerators, dense.R.exp, owners


def spent(counter: Counter, names: tuple[str, ...], change: Fraction) -> Fraction:
    """Return max over columns of the sum of change |R| 2^lambda / sigma, and check every row's lattice."""
    R, places, owners = columns(names)
    ledger = counter.setup.ledger
    weights = []
    for level, index, needed in owners:
        entry = ledger.levels[level]
        if needed < 0:
            weights.append(Fraction(0))
            continue
        own = entry.places[index]
        assert own >= needed + counter.setup.rule.places  # the noise's lattice holds the row's values
        weights.append(Fraction(2**own, entry.row_scales[entry.measured.index(index)]))
    common = math.lcm(*(weight.denominator for weight in set(weights)))
    numerators = np.array([int(weight * common) for weight in weights], dtype=object)
    return change * Fraction(int((numerators @ R).max()), common << places)


positive = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**9) | st.floats(
    1e-6, 1e6
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    epsilon=positive,
    names=st.sampled_from(CHAINS),
    low=st.integers(-9, 9),
    width=st.integers(1, 1000),
    places=st.integers(0, 20),
    contributions=st.integers(1, 4),
    dimension=st.none() | st.integers(1, 3),
)
def test_spent_never_exceeds_epsilon(
    epsilon: Any,
    names: tuple[str, ...],
    low: int,
    width: int,
    places: int,
    contributions: int,
    dimension: int | None,
) -> None:
    unit = Fraction(1, 2**places)
    counter = Counter(
        epsilon,
        horizon=4,
        chain=names,
        bounds=(low * unit, (low + width) * unit),
        resolution=unit,
        max_contributions=contributions,
        dimension=dimension,
        simulation_seed=0,
    )
    change = width * unit * contributions * (dimension or 1)
    assert counter.epsilon == Fraction(epsilon)
    recomputed = spent(counter, names, change)
    assert recomputed <= counter.spent <= counter.epsilon
    assert recomputed > counter.epsilon * Fraction(98, 100)  # and next to nothing is wasted


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1, 1e3, 1e6, Fraction(10**9 + 7, 998244353)])
def test_default_chains(epsilon: Any) -> None:
    for horizon in (1, 2, 10, 500, 10**6):
        counter = Counter(epsilon, horizon=horizon, simulation_seed=0)
        assert Fraction(epsilon) * Fraction(999, 1000) < counter.spent <= Fraction(epsilon)


def test_a_small_budget_means_more_noise_in_proportion(small: Make) -> None:
    one, tenth = small(1), small(Fraction(1, 1000))
    assert tenth.sd(20) == pytest.approx(1000 * one.sd(20), rel=2e-2)
