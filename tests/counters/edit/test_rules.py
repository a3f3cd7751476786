"""Partition rules: the papers' constants, costs, failures against sums that are exact, monotone choices."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters.edit.rules import PartRule, SimPartRule
from trilift.lift.errors import ParameterError
from trilift.stream.gdp import ln_of

DELTA = Fraction(1, 10**5)

budgets = st.fractions(min_value=Fraction(1, 1000), max_value=500, max_denominator=1000)
failures = st.integers(1, 40).map(lambda k: Fraction(1, 3**k))


def test_the_papers_numbers() -> None:
    part = PartRule.paper(Fraction(10, 51), ln_failure=ln_of(DELTA / 2)[0])
    assert math.ceil(part.tau) == 536
    exact = 1 + 408 * math.log(math.pi**2 / (2e-5)) / 10
    assert exact <= float(part.tau) <= exact + 2**-9
    assert float(part.threshold(0, 1)) - float(part.tau) == pytest.approx(170, abs=1)
    assert float(part.threshold(0, 10**4)) - float(part.tau) == pytest.approx(375, abs=3)
    lengths = SimPartRule.paper(Fraction(150, 51), ln_failure=ln_of(DELTA / 8)[0])
    assert lengths.base == 13 == 3 + math.ceil(102 * math.log(2 * math.pi**2 / 3e-5) / 150)
    assert SimPartRule.paper(Fraction(150, 51), ln_failure=ln_of(DELTA / 8)[0], least=2).base == 12


def test_costs() -> None:
    """35/12 of eps_p with the paper's drifts, 5/2 without (scales in the paper's proportion)."""
    drifting = PartRule.paper(Fraction(12), ln_failure=ln_of(DELTA)[0])
    assert drifting.cost == 35
    still = PartRule(Fraction(50), drifting.scale0, drifting.scale_t)
    assert still.cost == 30
    assert SimPartRule(Fraction(7, 3), 5, folded=True).cost == Fraction(7, 3)


@given(epsilon=budgets, failure=failures)
@settings(max_examples=60, deadline=None)
def test_failures_are_within_what_was_asked(epsilon: Fraction, failure: Fraction) -> None:
    low = ln_of(failure)[0]
    for rule in (
        SimPartRule.paper(epsilon, ln_failure=low),
        SimPartRule.paper(epsilon, ln_failure=low, least=2),
        SimPartRule.renewal(epsilon, ln_failure=low),
    ):
        assert rule.ln_failure <= low
    shortest = SimPartRule.renewal(epsilon, ln_failure=low)
    if shortest.base > 1:
        assert SimPartRule(epsilon, shortest.base - 1, folded=True).ln_failure > low
    for part in (PartRule.paper(epsilon, ln_failure=low), PartRule.constant(epsilon, ln_failure=low)):
        assert part.ln_failure <= low
    constant = PartRule.constant(epsilon, ln_failure=low)
    assert constant.cost <= epsilon
    lower = constant.tau - max(Fraction(1, 2), constant.scale_t / 50)
    if lower > 1:
        assert PartRule(lower, constant.scale0, constant.scale_t).ln_failure > low


def _law(rule: SimPartRule) -> np.ndarray:
    reach = 60 * int(rule.scale) + 60 + rule.base
    z = np.arange(-reach, reach + 1)
    u = math.exp(-float(rule.epsilon) / 2)
    weights = (1 - u) / (1 + u) * u ** np.abs(z).astype(float)
    lengths = rule.lengths(0, z) if not rule.drift else np.maximum(rule.base + z, 1)
    return np.bincount(lengths, weights=weights)


@pytest.mark.parametrize(("epsilon", "base"), [("1/10", 50), ("1", 1), ("1", 7), ("4", 3)])
def test_folded_lengths_neighbour_each_other(epsilon: str, base: int) -> None:
    rule = SimPartRule(Fraction(epsilon), base, folded=True)
    law = _law(rule)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    inner = law[1 : base + 40]
    ratios = inner[1:] / inner[:-1]
    bound = math.exp(float(rule.epsilon) / 2) * (1 + 1e-9)
    assert ratios.max() <= bound
    assert (1 / ratios).max() <= bound
    assert max(ratios.max(), (1 / ratios).max()) == pytest.approx(bound, rel=1e-6)  # no room left
    assert math.log(law[1]) == pytest.approx(float(rule.ln_failure), abs=1e-9)
    m1, m2, m3 = rule.moments()
    k = np.arange(len(law))
    assert [m1, m2, m3] == pytest.approx([float(law @ k**p) for p in (1, 2, 3)], rel=1e-6)


@pytest.mark.parametrize("base", [1, 2, 5])
def test_only_one_bucket_can_be_too_short(base: int) -> None:
    """By renewal: the bucket before the one that holds step j has length 1 with chance pi_1 at most."""
    law = _law(SimPartRule(Fraction(3, 2), base, folded=True))
    T = 60
    law = np.pad(law, (0, T + 2))[: T + 2]
    ends = np.zeros(T + 1)  # Pr[some bucket ends with step s]
    ends[0] = 1.0
    for s in range(1, T + 1):
        ends[s] = ends[:s] @ law[s:0:-1]
    reach = 1.0 - np.concatenate([[0.0], np.cumsum(law)])  # reach[k] = Pr[length >= k], k >= 1 at index k
    for j in range(2, T + 1):
        before = sum(ends[s] * law[1] * reach[j - s - 1] for s in range(j - 1))
        assert before <= law[1] * (1 + 1e-9)
    first = sum(ends[s] * law[1] * reach[9 - s - 1] for s in range(8))
    assert first == pytest.approx(law[1], rel=1e-6)  # the bound is attained


def test_difference_of_two_laplace_variates() -> None:
    """ln_failure of constant thresholds against numerical integration of f_0 + 2 f."""
    rule = PartRule(Fraction(40), Fraction(8, 5), Fraction(2))
    x = np.linspace(-200, 200, 2_000_001)
    density = np.exp(-np.abs(x) / 1.6) / 3.2

    def tail(w: float) -> float:
        gap = w + x
        upper = np.where(gap >= 0, 0.5 * np.exp(-np.abs(gap) / 2), 1 - 0.5 * np.exp(-np.abs(gap) / 2))
        return float((density * upper).sum() * (x[1] - x[0]))

    assert math.exp(rule.ln_failure) == pytest.approx(tail(40.0) + 2 * tail(39.0), rel=1e-4)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: SimPartRule(Fraction(1), 0, folded=True),
        lambda: SimPartRule(Fraction(1), 3),  # lumps the tail at 1, where lengthening would cost more
        lambda: SimPartRule(Fraction(1), 3, Fraction(3)),
        lambda: SimPartRule(Fraction(1), 3, Fraction(4), folded=True),
        lambda: PartRule(Fraction(1), Fraction(1), Fraction(2)),
        lambda: PartRule(Fraction(9), Fraction(2), Fraction(2)),
        lambda: PartRule(Fraction(9), Fraction(1), Fraction(2), Fraction(7)),
        lambda: PartRule(Fraction(9), Fraction(1), Fraction(2), Fraction(8), Fraction(1), 1),
        lambda: PartRule(Fraction(9), Fraction(1), Fraction(2), clock_drift=Fraction(1, 2)),
    ],
)
def test_refused(bad) -> None:
    with pytest.raises(ParameterError):
        bad()


def test_more_budget_means_shorter_buckets() -> None:
    low = ln_of(DELTA)[0]
    bases = [SimPartRule.renewal(Fraction(k, 10), ln_failure=low).base for k in range(1, 60, 4)]
    taus = [PartRule.constant(Fraction(k, 10), ln_failure=low, horizon=10**4).tau for k in range(1, 60, 4)]
    assert bases == sorted(bases, reverse=True)
    assert taus == sorted(taus, reverse=True)
    assert bases[0] > 10 * bases[-1]
    assert taus[0] > 10 * taus[-1]
