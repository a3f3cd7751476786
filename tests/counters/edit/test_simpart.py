"""Lengths of buckets: their exact law, how neighbouring lengths compare, and that they read no data."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from trilift.counters.edit.rules import SimPartRule
from trilift.counters.edit.simpart import SimPart
from trilift.lift.errors import HorizonError
from trilift.stream.keys import simulation_key

RULES = [
    SimPartRule(Fraction(1), 6, Fraction(4)),
    SimPartRule(Fraction(1, 2), 9, folded=True),
    SimPartRule(Fraction(3), 1, folded=True),
]


def make(rule: SimPartRule, *, key: int = 1, purpose: str = "part") -> SimPart:
    return SimPart(rule, key=simulation_key(key), stream_id=bytes(16), purpose=purpose)


def law(rule: SimPartRule, bucket: int) -> np.ndarray:
    """Pr[length = k] at index k, by adding up the discrete Laplace law; beyond the end less than 1e-30."""
    u = math.exp(-1 / rule.scale)
    reach = int(70 * rule.scale) + 1
    nominal = int(rule.nominal(bucket, bucket + 1)[0])
    out = np.zeros(2 * reach + nominal + 2)
    for z in range(-reach, reach + 1):
        raw = nominal + z
        length = raw if raw >= 1 else 1 - raw if rule.folded else 1
        out[length] += (1 - u) / (1 + u) * u ** abs(z)
    return out


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("bucket", [0, 3, 100])
def test_neighbouring_lengths_cost_half_of_epsilon(rule, bucket) -> None:
    """For every k >= 2, or k >= 1 where lengths are folded, the laws of k and k+1 differ by e^(eps_p/2)."""
    p = law(rule, bucket)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert p[0] == 0
    last = int(rule.nominal(bucket, bucket + 1)[0] + 20 * rule.scale)
    first = 1 if rule.folded else 2
    ratios = np.log(p[first + 1 : last] / p[first : last - 1])
    assert np.abs(ratios).max() <= float(rule.epsilon) / 2 * (1 + 1e-9)
    assert np.abs(ratios).max() >= float(rule.epsilon) / 2 * (1 - 1e-9)
    if not rule.folded:  # 1 collects a whole tail: only from 2 to 1 is there a bound, which is what is needed
        assert p[2] <= math.exp(float(rule.epsilon) / 2) * p[1] * (1 + 1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_lengths_follow_the_law(rule) -> None:
    """Buckets 42 .. 51 have one nominal length, those without drift all; chi-square, 1e-6 each."""
    start, stop = (42, 52) if rule.drift else (0, 4000)
    if rule.drift:
        drawn = np.concatenate([make(rule, key=key).lengths(start, stop) for key in range(400)])
        assert len(set(rule.nominal(start, stop).tolist())) == 1
    else:
        drawn = make(rule).lengths(start, stop)
    expected = law(rule, start) * drawn.size
    cut = np.flatnonzero(expected >= 20)
    low, high = int(cut[0]), int(cut[-1])
    cells = np.concatenate([expected[low:high], [expected[high:].sum()]])
    cells[0] += expected[:low].sum()
    counts = np.bincount(np.clip(drawn, low, high) - low, minlength=len(cells))
    assert stats.chisquare(counts, cells, sum_check=False).pvalue > 1e-6
    assert stats.chisquare(counts, np.roll(cells, 1), sum_check=False).pvalue < 1e-6


@pytest.mark.parametrize("rule", RULES)
def test_failures_are_those_that_the_rule_claims(rule) -> None:
    """Constant lengths: Pr[length = 1]. Drifting ones: the sum over all buckets of Pr[raw <= 1]."""
    if rule.drift:
        u = math.exp(-1 / rule.scale)
        nominal = rule.nominal(0, 200_000).astype(np.float64)
        exact = float(np.sum(u ** (nominal - 1) / (1 + u)))
        assert exact <= math.exp(rule.ln_failure)
        assert exact >= math.exp(rule.ln_failure) / 10
    else:
        assert law(rule, 0)[1] <= math.exp(rule.ln_failure) * (1 + 1e-9)
        assert law(rule, 0)[1] >= math.exp(rule.ln_failure) * (1 - 1e-9)


@given(st.integers(0, 300), st.integers(0, 300))
def test_lengths_do_not_depend_on_how_they_are_asked_for(start, count) -> None:
    one = make(RULES[0])
    whole = make(RULES[0]).lengths(0, 700)
    assert one.lengths(start, start + count).tolist() == whole[start : start + count].tolist()
    assert [int(one.lengths(l, l + 1)[0]) for l in range(start, start + 3)] == whole[
        start : start + 3
    ].tolist()


@given(st.integers(1, 3000), st.integers(0, 40), st.one_of(st.none(), st.integers(0, 30)))
def test_cuts_are_the_running_sums_of_lengths(steps, bucket, most) -> None:
    part = make(RULES[2])
    lengths = part.lengths(bucket, bucket + 3001)
    clock = int(lengths[0]) - 1
    ends = np.cumsum(lengths) - clock - 1
    wanted = ends[ends < steps][: most if most is not None else None].tolist()
    sums = np.zeros(steps, dtype=np.int64)
    assert part.cuts(sums, bucket=bucket, clock=clock, most=most) == wanted


def test_other_purposes_and_keys_give_other_lengths() -> None:
    base = make(RULES[0]).lengths(0, 50).tolist()
    assert make(RULES[0], purpose="other").lengths(0, 50).tolist() != base
    assert make(RULES[0], key=2).lengths(0, 50).tolist() != base
    assert make(RULES[0]).lengths(0, 50).tolist() == base
    assert make(RULES[0]).digest != make(RULES[1]).digest
    with pytest.raises(HorizonError):
        make(RULES[0]).lengths(1 << 48, (1 << 48) + 1)


def test_long_buckets_are_no_longer_than_the_paper_says() -> None:
    """length <= mu + ceil(4 ln l/eps_p) + ceil(1 + (2/eps_p) ln(1/(2 beta_l))), beta_l = 6 beta/(pi^2 l^2):
    all l together with probability 1 - beta. beta = 0.05, 400 keys, 500 buckets each; false alarm 1e-6."""
    rule, beta, failures = RULES[0], 0.05, 0
    l = np.arange(1, 501)
    ln_term = np.log(1 / (2 * 6 * beta / (math.pi**2 * l**2)))
    bound = rule.nominal(0, 500) + np.ceil(1 + 2 / float(rule.epsilon) * ln_term)
    for key in range(400):
        failures += bool((make(rule, key=key).lengths(0, 500) > bound).any())
    assert failures <= stats.binom.ppf(1 - 1e-6, 400, beta)
    assert failures >= 1  # the bound is not idle: nearly beta is used


def test_golden_values_hold_the_addresses_fast() -> None:
    """Another layout of the noise would continue saved states with other lengths."""
    rule = SimPartRule(Fraction(3, 7), 40, folded=True)
    assert make(rule).lengths(62, 68).tolist() == [41, 40, 38, 44, 37, 36]
