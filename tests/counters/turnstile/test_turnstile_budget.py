"""The budget table by brute force, over every hash function; ledgers and conversions in rationals."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters.turnstile import DistinctCounter
from trilift.counters.turnstile.bases import make_base
from trilift.counters.turnstile.budget import (
    BANK_CHANGE,
    LedgerPart,
    Sensitivity,
    TurnstileLedger,
    exact_sensitivity,
    make_budget,
    sensitivity,
    sqrt_down,
)
from trilift.counters.turnstile.internals import linear, touched
from trilift.lift.costs import column_norms, column_norms_sq
from trilift.lift.errors import ParameterError
from trilift.lift.rows import row_covariance
from trilift.stream.gdp import epsilon_of_rho, ln_of, rho_for

Event = tuple[int, int]
STEPS = 3


def inputs(stream: tuple[Event, ...], columns: np.ndarray) -> np.ndarray:
    """What the counters are fed, step by step: (steps, counters), by the definition."""
    return np.array([sign * columns[item] for item, sign in stream])


def largest_change(columns: np.ndarray, *, items: int) -> Sensitivity:
    """Over all pairs of neighbouring streams: nothing is assumed of where they differ."""
    events = list(itertools.product(range(items), (-1, 0, 1)))
    l1 = l2_sq = 0
    for stream in itertools.product(events, repeat=STEPS):
        for place, event in itertools.product(range(STEPS), events):
            other = (*stream[:place], event, *stream[place + 1 :])
            change = inputs(stream, columns) - inputs(other, columns)
            l1, l2_sq = max(l1, int(np.abs(change).sum())), max(l2_sq, int((change**2).sum()))
    return Sensitivity(l1, l2_sq)


def test_one_bank_over_every_hash_and_stream() -> None:
    for places in itertools.product(range(2), repeat=2):  # two items, two counters
        columns = np.eye(2, dtype=np.int64)[list(places)]
        assert largest_change(columns, items=2) == exact_sensitivity(columns) == sensitivity(1)


@pytest.mark.parametrize("banks", [1, 2, 3])
def test_banks_over_every_hash_and_sign(banks: int) -> None:
    """m copies, m rows, m hash tables, m maps: signs or none, the table holds with equality for all."""
    for places in itertools.product(range(2), repeat=3 * banks):
        for pattern in itertools.product((1, -1), repeat=3) if banks < 3 else [(1, 1, 1), (1, -1, 1)]:
            columns = np.zeros((3, 2 * banks), dtype=np.int64)
            for index, place in enumerate(places):
                item, bank = divmod(index, banks)
                columns[item, 2 * bank + place] = pattern[item]
            found = exact_sensitivity(columns)
            assert found == sensitivity(banks) == Sensitivity(2 * banks, 4 * banks)


def test_releases_of_the_count() -> None:
    """N exact counts change by at most 2 each: in all 2 N and 4 N, and some neighbours change all but those
    before the event by 2."""
    events = list(itertools.product(range(2), (-1, 0, 1)))
    worst = 0
    for stream in itertools.product(events, repeat=STEPS):
        for place, event in itertools.product(range(STEPS), events):
            other = (*stream[:place], event, *stream[place + 1 :])
            change = np.abs(distinct(stream) - distinct(other))
            assert change.max() <= 2
            assert change.sum() <= sensitivity(STEPS).l1
            assert (change**2).sum() <= sensitivity(STEPS).l2_sq
            worst = max(worst, int(change[1:].sum()))
    assert worst == 2 * (STEPS - 1)


def distinct(stream: tuple[Event, ...]) -> np.ndarray:
    counts = np.zeros((len(stream), 2), dtype=np.int64)
    for step, (item, sign) in enumerate(stream):
        counts[step:, item] += sign
    return np.asarray((counts != 0).sum(axis=1))


def test_ticking_touched_counters_would_cost_the_stream() -> None:
    """Why counters run on global time: a tick at touches only has l1 norm 2 T, squared l2 norm 4 T - 2."""
    steps = 6
    signs = [1, -1] * (steps // 2)
    stream = [(0, sign) for sign in signs]
    other = [(1, signs[0]), *stream[1:]]

    def compacted(events: list[tuple[int, int]]) -> np.ndarray:
        fed = np.zeros((2, steps), dtype=np.int64)
        times = [0, 0]
        for item, sign in events:
            fed[item, times[item]] = sign
            times[item] += 1
        return fed

    change = compacted(stream) - compacted(other)
    assert (np.abs(change).sum(), (change**2).sum()) == (2 * steps, 4 * steps - 2)


METHODS: dict[str, dict[str, Any]] = {
    "grouped": {},
    "minhash": {},
    "general": {},
    "general-maps": {"universe": 8},
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("law", [{"rho": Fraction(1, 2)}, {"epsilon": Fraction(3)}])
def test_ledgers_equal_the_sketches(method: str, law: dict[str, Any]) -> None:
    """The columns that the counter really has cost what the ledger says, and it never overspends."""
    counter = DistinctCounter(**law, horizon=64, every=8, method=method, simulation_seed=1, **METHODS[method])
    sketch = linear(counter).sketch
    where, change = touched(counter, list(range(8)))
    columns = np.zeros((8, sketch.width), dtype=np.int64)
    for item in range(8):
        np.add.at(columns[item], where[item], change[item])
    (part,) = counter.ledger.parts
    assert exact_sensitivity(columns) == part.change == sensitivity(sketch.banks)
    asked = law.get("rho", law.get("epsilon"))
    assert counter.ledger.budget.amount == asked
    spent = counter.ledger.spent
    assert isinstance(spent, Fraction)
    assert 0.99 * float(asked) < spent <= asked


@pytest.mark.parametrize("kind", ["chain", "tree"])
def test_covariance_against_the_budget(kind: str) -> None:
    """Delta^T Sigma^-1 Delta <= 2 rho for every step and every change of a bank, from dense covariances."""
    ticks, rho = 24, Fraction(1, 3)
    base: Any = make_base(kind, budget=make_budget(rho=rho), ticks=ticks)
    scales = [float(scale) for scale in base.ledger.scales]
    chain = base.chain.to_float()
    sigma = np.array(
        [[row_covariance(chain, s, t, scales=scales) for t in range(ticks)] for s in range(ticks)]
    )
    inverse = np.linalg.inv(sigma)
    worst = 0.0
    for step in range(ticks):
        after = (np.arange(ticks) >= step).astype(float)
        unit = float(after @ inverse @ after)
        worst = max(worst, BANK_CHANGE**2 * unit, 2 * unit)
    assert worst <= 2 * float(rho) * (1 + 1e-9)
    assert worst > 2 * float(rho) * 0.8  # a factor of 2 too much, or too little, would show


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", ["chain", "tree"])
def test_columns_against_the_budget(law: str, kind: str) -> None:
    """What every step's column costs, in floats from the chain itself, is within the share of a bank."""
    budget = make_budget(Fraction(2)) if law == "laplace" else make_budget(rho=2)
    ticks = 50
    base: Any = make_base(kind, budget=budget, ticks=ticks)
    scales = np.array([float(scale) for scale in base.ledger.scales])
    if law == "laplace":
        cost = BANK_CHANGE * (column_norms(base.chain, np.arange(ticks)) / scales[:, None]).sum(axis=0)
    else:
        squares = column_norms_sq(base.chain, np.arange(ticks)) / scales[:, None] ** 2
        cost = BANK_CHANGE**2 * squares.sum(axis=0) / 2
    assert cost.max() <= 2 * (1 + 1e-9)
    assert cost.max() > 1.6
    assert base.spent <= 2


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6))
@settings(max_examples=50, deadline=None)
def test_roots_are_rounded_down(value: Fraction) -> None:
    root = sqrt_down(value)
    assert root * root <= value
    assert float(value - root * root) <= 2.0**-60 * float(value)


def test_shares_compose_to_the_whole() -> None:
    for budget in (make_budget(3), make_budget(rho=Fraction(1, 3)), make_budget(1, delta=Fraction(1, 10**6))):
        for banks in (1, 3, 29, 430):
            share = budget.part(Fraction(1, banks))
            assert banks * share.amount == budget.amount
            if share.mu is not None and budget.mu is not None:
                assert banks * share.mu**2 <= 2 * budget.amount
    with pytest.raises(ParameterError):
        make_budget(1).part(Fraction(3, 2))


def test_ledger_refuses_to_overspend() -> None:
    budget = make_budget(1)
    part = LedgerPart.of("bank", banks=2, spent_by_one=Fraction(1, 2), proof="test")
    assert TurnstileLedger(budget, (part,)).spent == 1
    worse = LedgerPart.of("bank", banks=2, spent_by_one=Fraction(501, 1000), proof="test")
    for parts in ((worse,), (part, part), ()):
        with pytest.raises(ParameterError):
            TurnstileLedger(budget, parts)


def test_round_trips_of_epsilon_and_delta() -> None:
    """To 1e-12 and better: rho to epsilon and back; epsilon, delta to mu and back."""
    for rho in (Fraction(1, 10), Fraction(1), Fraction(10)):
        ln_delta = ln_of(Fraction(1, 10**6))[0]
        epsilon = epsilon_of_rho(rho, ln_delta=ln_delta)
        assert abs(float(rho_for(epsilon, ln_delta=ln_delta) / rho) - 1) < 1e-12
    for asked, delta in ((Fraction(1), Fraction(1, 10**6)), (Fraction(1, 2), Fraction(1, 10**9))):
        budget = make_budget(asked, delta=delta)
        ledger = TurnstileLedger(
            budget, (LedgerPart.of("all", banks=1, spent_by_one=budget.amount, proof="test"),)
        )
        low, high = ledger.ln_delta(asked)
        wanted = ln_of(delta)
        assert low <= high
        assert high <= wanted[1] + Fraction(1, 10**12)
        assert abs(float(high - wanted[0])) < 1e-12 * abs(float(wanted[0])) * 100
        # the way over zCDP would give less
        assert rho_for(asked, ln_delta=wanted[0]) < budget.amount
    with pytest.raises(ParameterError):
        TurnstileLedger(
            make_budget(1), (LedgerPart.of("all", banks=1, spent_by_one=Fraction(1), proof="test"),)
        ).ln_delta(1)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"delta": 0.1},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": 0},
        {"rho": 0},
        {"rho": float("nan")},
        {"epsilon": True},
        {"epsilon": "1"},
        {"rho": -1},
    ],
)
def test_budgets_are_checked(arguments: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        make_budget(**arguments)


@pytest.mark.parametrize("columns", [[], [1, 2], [[0.5]], [["a"]]])
def test_columns_are_checked(columns: Any) -> None:
    with pytest.raises(ParameterError):
        exact_sensitivity(np.array(columns))
    with pytest.raises(ParameterError):
        sensitivity(0)


@pytest.mark.parametrize("given", [{"epsilon": 9e-7}, {"rho": 9e-13}, {"epsilon": 1e-320}])
def test_budgets_too_small_to_be_of_use_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match="at least"):
        make_budget(**given)
