"""The spent mu, recomputed from the integers of a dense R, row by row."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.artifacts import load_stage_l2
from trilift.lift.budget import horizon_scales
from trilift.lift.chain import Chain
from trilift.lift.dense import materialise
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage
from trilift.stream.gaussian_ledger import (
    GaussianLedger,
    check_gaussian_ledger,
    make_gaussian_ledger,
    restore_gaussian_ledger,
)
from trilift.stream.gdp import ln_of, mu_for
from trilift.stream.levels import MIN_SCALE


def shipped(*names: str) -> Chain:
    *stages, top = [load_stage_l2(name) for name in names]
    return Chain(top, stages)


def largest_charge(chain: Chain, ledger: GaussianLedger) -> Fraction:
    """chi^2 * max over columns t of the sum over rows R_it^2 / s^2, in integers over the whole capacity."""
    dense = materialise(chain, chain.capacity)
    totals = [Fraction(0)] * chain.capacity
    for level, entry in enumerate(ledger.levels):
        rows = dense.R.num[dense.level == level].astype(object)
        sums = (rows * rows).sum(axis=0)
        for t, x in enumerate(sums.tolist()):
            totals[t] += Fraction(x, 1 << (2 * dense.R.exp)) / entry.scale**2
    return ledger.change**2 * max(totals)


def check_spending(chain: Chain, ledger: GaussianLedger, mu) -> Fraction:
    asked = Fraction(mu)
    assert ledger.mu == asked
    charge = largest_charge(chain, ledger)
    assert charge <= ledger.spent_sq <= asked**2
    assert ledger.spent_sq >= asked**2 * Fraction(997, 1000)
    assert sum(ledger.change**2 * x.sensitivity / x.scale**2 for x in ledger.levels) == ledger.spent_sq
    return charge


@pytest.mark.parametrize(
    "names",
    [("direct-l2-mean-16",), ("stage-l2-mean-9", "direct-l2-mean-4"), ("stage-l2-max-17", "direct-l2-max-4")],
)
def test_shipped_chains_never_spend_more_than_asked(names) -> None:
    chain = shipped(*names)
    scales = horizon_scales(chain, chain.capacity, objective="mean", norm="l2")
    for mu, change, gamma in ((1, 1, 0), (Fraction(1, 1000), Fraction(7, 3), 5), (13.6216, 2, 20)):
        ledger = make_gaussian_ledger(chain, mu, scales=scales, change=change, input_places=gamma)
        charge = check_spending(chain, ledger, mu)
        assert charge >= ledger.spent_sq * Fraction(98, 100)


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 100),
    ties=st.booleans(),
    mu=st.fractions(min_value=Fraction(1, 10**6), max_value=10**6),
    change=st.fractions(min_value=Fraction(1, 10**4), max_value=10**6),
    tilt=st.floats(-20, 20),
    gamma=st.integers(0, 20),
)
def test_random_chains_never_spend_more_than_asked(lab, *, seed, ties, mu, change, tilt, gamma) -> None:
    """Chains of 1 to 3 levels, one- and two-sided, tails, rows that vanish; any split of the budget."""
    chain = lab.chain(seed, ties=ties)
    scales = [2.0 ** (tilt * level) for level in range(len(chain.levels))]
    ledger = make_gaussian_ledger(chain, mu, scales=scales, change=change, input_places=gamma)
    check_spending(chain, ledger, mu)
    for entry, wanted in zip(ledger.levels, scales, strict=True):  # the split is the one asked for
        assert entry.scale_int >= MIN_SCALE
        ratio = (entry.scale / ledger.levels[0].scale) / Fraction(wanted)
        assert abs(ratio - 1) < Fraction(1, 500)


def two_levels() -> Chain:
    """Solved by hand: B = 1 and v = (1/2, 0) beneath T_2; the top meets columns (1/2, 1/2) and (0, 1)."""
    ones = Dyadic(np.ones(2, dtype=np.int64))
    w, v, eye = Dyadic([0, 1]), Dyadic([1, 0], 1), Dyadic(np.eye(2, dtype=np.int64))
    A = Dyadic([[1, 0], [1, 1]]) - w[:, None] * (ones - v)[None, :]
    return Chain(Stage.plain(Dyadic([[1, 0], [1, 1]]), eye), [Stage(A, eye, w, v)])


def test_by_hand() -> None:
    """Squared charges 1 and 1; mu = 1/2 and change 3 leave s^2 = 72 to both: 9 / 72 + 9 / 72 = 1/4."""
    ledger = make_gaussian_ledger(two_levels(), Fraction(1, 2), scales=[1.0, 1.0], change=3)
    assert [entry.sensitivity for entry in ledger.levels] == [1, 1]
    for entry in ledger.levels:
        assert 72 <= entry.scale**2 <= 72 * Fraction(1002, 1000)
    assert ledger.scales == tuple(entry.scale for entry in ledger.levels)
    assert Fraction(249, 1000) < ledger.spent_sq <= Fraction(1, 4)


def test_exact_roots_do_not_overspend() -> None:
    """A perfect square: the scale that is asked for may be had to the last unit, and no more."""
    chain = Chain(Stage.plain(Dyadic([[1, 0], [1, 1]]), Dyadic(np.eye(2, dtype=np.int64))))
    ledger = make_gaussian_ledger(chain, 1, scales=[1.0], change=MIN_SCALE * 4)
    assert ledger.levels[0].scale_int in {MIN_SCALE * 4, MIN_SCALE * 4 + 1}
    assert ledger.spent_sq <= 1


def test_a_scale_one_smaller_overspends(lab) -> None:
    """Negative control: the check and the recomputation see sigma reduced by a few thousandths."""
    chain = lab.chain(7, ties=False)
    ledger = make_gaussian_ledger(chain, 1, scales=[1.0] * len(chain.levels))
    entry = ledger.levels[0]
    less = dataclasses.replace(entry, scale_int=entry.scale_int * 99 // 100)
    worse = dataclasses.replace(ledger, levels=(less, *ledger.levels[1:]))
    with pytest.raises(ParameterError, match="more than mu"):
        check_gaussian_ledger(chain, worse)
    one_level = Chain(chain.top)
    tight = make_gaussian_ledger(one_level, 1, scales=[1.0])
    entry = tight.levels[0]
    less = dataclasses.replace(entry, scale_int=entry.scale_int * 99 // 100)
    assert largest_charge(one_level, dataclasses.replace(tight, levels=(less,))) > 1


def test_restored_ledgers_are_equal(lab) -> None:
    chain = lab.chain(3, levels=2)
    ledger = make_gaussian_ledger(chain, Fraction(1, 3), scales=[1.0, 2.0], change=2, input_places=4)
    pairs = [(entry.scale_int, entry.coarsest) for entry in ledger.levels]
    options = {"change": Fraction(2), "input_places": 4}
    assert restore_gaussian_ledger(chain, Fraction(1, 3), scales=pairs, **options) == ledger
    with pytest.raises(ParameterError, match="more than mu"):
        restore_gaussian_ledger(chain, Fraction(33, 100), scales=pairs, **options)
    with pytest.raises(ParameterError, match="1 noise scales"):
        restore_gaussian_ledger(chain, Fraction(1, 3), scales=pairs[:1], **options)
    for broken in ((0, pairs[0][1]), (pairs[0][0], 0), (1 << 2000, 10**4)):
        with pytest.raises(ParameterError, match="not one of this chain"):
            restore_gaussian_ledger(chain, Fraction(1, 3), scales=[broken, pairs[1]], **options)


def test_ledgers_of_other_chains_and_bad_arguments(lab) -> None:
    chain, other = lab.chain(3, levels=2), lab.chain(4, levels=2)
    ledger = make_gaussian_ledger(chain, 1, scales=[1.0, 1.0])
    with pytest.raises(ParameterError):
        check_gaussian_ledger(other, ledger)
    with pytest.raises(ParameterError, match="exact chain"):
        make_gaussian_ledger(chain.to_float(), 1, scales=[1.0, 1.0])
    for mu in (0, -1, float("nan"), "1", True):
        with pytest.raises(ParameterError, match="mu"):
            make_gaussian_ledger(chain, mu, scales=[1.0, 1.0])
    with pytest.raises(ParameterError, match="change / mu must give"):
        make_gaussian_ledger(chain, Fraction(1, 2**500), scales=[1.0, 1.0])


def test_as_text() -> None:
    mu = mu_for(1, ln_delta=ln_of(Fraction(1, 10**6))[0])
    text = make_gaussian_ledger(two_levels(), mu, scales=[1.0, 1.0]).as_text()
    assert "at most the ask, proved in rationals" in text
    assert len(text.splitlines()) == 3
