"""Sparse vectors on a lattice: exact laws of small runs, the shift lemma, thresholds, addresses of noise."""

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from trilift.counters.edit.svt import MOST_STEPS, SVT, SVTNoise, SVTRule, ceil_log, first_top
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.stream.keys import simulation_key

Runs = list[int]
SLACK = 1 + 1e-9  # floats; all terms of the sums are positive


def below(k: np.ndarray, scale: int) -> np.ndarray:
    """P(Z < k), relatively exact."""
    u = math.exp(-1 / scale)
    k = np.asarray(k, dtype=np.float64)
    return np.where(k <= 0, u ** np.maximum(1 - k, 0), 1 + u - u ** np.maximum(k, 0)) / (1 + u)


def law(rule: SVTRule, sums: Runs, *, threshold: int, origins: np.ndarray | None = None) -> np.ndarray:
    """Pr[SVT = t] for t = 1 .. T and, last, of no TOP; over the given values of Z0 or all that matter.

    What is left out beyond 80 scales of Z0 is below e^-80.
    """
    z0 = np.arange(-80 * rule.origin_scale, 80 * rule.origin_scale + 1) if origins is None else origins
    u = math.exp(-1 / rule.origin_scale)
    alive = (1 - u) / (1 + u) * u ** np.abs(z0).astype(np.float64)
    drift = rule.drift(np.arange(1, len(sums) + 1))
    out = []
    for v, d in zip(sums, drift.tolist(), strict=True):
        gap = threshold + d + z0 - v  # TOP once Z_t >= gap
        out.append(float(np.sum(alive * below(1 - gap, rule.step_scale))))
        alive = alive * below(gap, rule.step_scale)
    return np.array([*out, float(alive.sum())])


RULES = [
    SVTRule.make(1, lattice_places=0),
    SVTRule.make(3, lattice_places=0),
    SVTRule.make(Fraction(1, 2), lattice_places=1),
    SVTRule.of_scales(Fraction(4, 3), scale_t=Fraction(5, 3), lattice_places=0),  # constant thresholds
]


def cost(rule: SVTRule, *, origin: int, step: int) -> float:
    """Factor for moving Z0 and the last Z_t by thirds of the largest input."""
    third = rule.unit // 3
    return math.exp(origin * third / rule.origin_scale + step * third / rule.step_scale)


@pytest.mark.parametrize("rule", RULES)
def test_the_law_adds_up(rule) -> None:
    assert law(rule, [0, 5, -3, 40, 2], threshold=7).sum() == pytest.approx(1, abs=1e-12)


@st.composite
def shifted(draw, rule: SVTRule) -> tuple[Runs, Runs]:
    """(v, v'): v_1 <= D and |v_(t+1) - v'_t| <= D, extremes often."""
    extremes = st.sampled_from([-rule.unit, 0, rule.unit])
    other = draw(st.lists(st.integers(-4 * rule.unit, 8 * rule.unit), min_size=1, max_size=5))
    moves = [draw(st.one_of(extremes, st.integers(-rule.unit, rule.unit))) for _ in other]
    first = draw(st.one_of(extremes, st.integers(-3 * rule.unit, rule.unit)))
    return [first, *(v + move for v, move in zip(other, moves, strict=True))], other


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_one_step_shift_lemma(rule, data) -> None:
    """3/2 and 7/6 for the paper's scales and drift; with b0, b1 and s in general 1+s and 1, 2+s."""
    long, short = data.draw(shifted(rule))
    threshold = data.draw(st.integers(rule.unit, 6 * rule.unit))
    s = 2 if rule.factor else 0
    here, there = law(rule, long, threshold=threshold), law(rule, short, threshold=threshold)
    assert (here[1:-1] <= cost(rule, origin=3 + s, step=6 + s) * there[:-1] * SLACK).all()
    g = (threshold + int(rule.drift(1)) - 1) // 2  # the largest with 2g < th_1
    origins = np.arange(-g, 80 * rule.origin_scale)
    good = law(rule, short, threshold=threshold, origins=origins) * below(g + 1, rule.step_scale)
    assert (good[:-1] <= cost(rule, origin=3, step=6 + s) * here[1:-1] * SLACK).all()
    assert good[-1] <= cost(rule, origin=3, step=0) * here[-1] * SLACK  # no TOP in either


@pytest.mark.parametrize("epsilon", [1, 3, Fraction(1, 2)])
def test_the_factors_are_those_of_the_paper(epsilon) -> None:
    """On a fine lattice the factors are e^(3 eps/2) and e^(7 eps/6), up to the rounding of one scale."""
    rule = SVTRule.make(epsilon)
    assert math.log(cost(rule, origin=5, step=8)) == pytest.approx(1.5 * epsilon, rel=1e-5)
    assert math.log(cost(rule, origin=3, step=8)) == pytest.approx(7 / 6 * epsilon, rel=1e-5)
    assert math.log(cost(rule, origin=5, step=8)) <= 1.5 * epsilon
    assert Fraction(2 * rule.unit, rule.origin_scale) <= epsilon


def test_the_shift_lemma_needs_nearly_its_factor() -> None:
    """Negative control: an adversarial pair exceeds e^(1.4 eps), so that a smaller bound would be seen."""
    rule = SVTRule.make(Fraction(1, 4), lattice_places=2)
    d = rule.unit
    short = [300 * d] * 6 + [-300 * d] * 400
    long = [d] + [299 * d] * 6 + [-300 * d] * 399 + [-299 * d]
    here, there = law(rule, long, threshold=5 * d), law(rule, short, threshold=5 * d)
    ratio = math.log(here[406] / there[405]) * 4
    assert 1.4 < ratio <= 1.5


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_same_clock(rule, data) -> None:
    """Any change within D: e^(D/b0 + 2D/b1); running sums that only rise, by at most D: two smaller ones."""
    one = data.draw(st.lists(st.integers(-4 * rule.unit, 8 * rule.unit), min_size=1, max_size=5))
    move = st.one_of(st.sampled_from([0, rule.unit]), st.integers(0, rule.unit))
    risen = [v + data.draw(move) for v in one]
    other = [v + data.draw(st.integers(-rule.unit, rule.unit)) for v in one]
    threshold = data.draw(st.integers(-rule.unit, 6 * rule.unit))
    base, up, any_ = (law(rule, v, threshold=threshold) for v in (one, risen, other))
    assert (base[:-1] <= cost(rule, origin=3, step=6) * any_[:-1] * SLACK).all()
    assert (base[:-1] <= cost(rule, origin=3, step=3) * up[:-1] * SLACK).all()
    assert (up[:-1] <= cost(rule, origin=0, step=3) * base[:-1] * SLACK).all()
    assert up[-1] <= base[-1] * SLACK
    assert base[-1] <= cost(rule, origin=3, step=0) * any_[-1] * SLACK


@given(st.fractions(Fraction(1, 1000), 10**9), st.lists(st.integers(1, 1 << 40), max_size=20))
def test_ceil_log_is_exact(factor, numbers) -> None:
    flint.ctx.prec = 400
    exact = [
        0
        if n == 1
        else int((flint.arb(n).log() * factor.numerator / factor.denominator).ceil().unique_fmpz())
        for n in numbers
    ]
    assert ceil_log(factor, numbers).tolist() == exact


@pytest.mark.parametrize("n", [2, 3, 12345, (1 << 40) + 1])
def test_ceil_log_where_floats_cannot_tell(n) -> None:
    """Factors that put factor ln n within 10^-30 of an integer, on either side."""
    flint.ctx.prec = 500
    log = flint.arb(n).log()
    for whole in (10**6, 10**12):
        digits = int((flint.arb(whole) * (10**45) / log).floor().unique_fmpz())
        under, over = Fraction(digits, 10**45), Fraction(digits + 1, 10**45)
        assert ceil_log(under, [n]).tolist() == [whole]
        assert ceil_log(over, [n]).tolist() == [whole + 1]


def test_ceil_log_of_wide_values() -> None:
    assert ceil_log(Fraction(10**30), [1, 2]).tolist() == [0, 693147180559945309417232121459]


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), 1, Fraction(7, 3), 12, 50])
@pytest.mark.parametrize("high", [1, 3, 256])
def test_thresholds_rise_by_at_most_two_thirds(epsilon, high) -> None:
    rule = SVTRule.make(epsilon, high=high)
    assert rule.unit == rule.weight * high >= 3 << 20
    assert rule.unit % 3 == 0
    drift = rule.drift(np.arange(1, 5001))
    assert (np.diff(drift) >= 0).all()
    assert np.diff(drift).max() <= 2 * rule.unit // 3
    clamped = [int(drift[0])]
    for raw in drift[1:].tolist():
        clamped.append(min(max(clamped[-1], raw), clamped[-1] + 2 * rule.unit // 3))
    assert drift.tolist() == clamped


def test_a_drift_that_is_too_fast_is_refused() -> None:
    with pytest.raises(ParameterError, match="at most 2/3 of the offset 3"):
        SVTRule.of_scales(1, scale_t=2, factor=Fraction(21, 10), offset=3)
    for bad in (0, -1, float("nan"), "1"):
        with pytest.raises(ParameterError):
            SVTRule.make(bad)


def noise(rule: SVTRule, key: int = 1) -> SVTNoise:
    return SVTNoise(rule, key=simulation_key(key))


@pytest.mark.parametrize("rule", [RULES[1], RULES[3]])
def test_runs_follow_the_exact_law(rule) -> None:
    """6,000 keyed runs, one a bucket; chi-square, false alarm 1e-6; and the law of other sums is refused."""
    sums, threshold, runs = [0, 1, 2, 3, 5], 4, 6_000
    drawn, count = noise(rule), np.zeros(len(sums) + 1)
    scaled = np.array(sums)
    for bucket in range(1, runs + 1):
        count[first_top(rule, drawn, scaled, bucket=bucket, clock=0, threshold=threshold)] += 1
    expected = law(rule, [v * rule.weight for v in sums], threshold=threshold)
    assert stats.chisquare(count, expected * runs, sum_check=False).pvalue > 1e-6
    wrong = law(rule, [v * rule.weight + 1 for v in sums], threshold=threshold)
    assert stats.chisquare(count, wrong * runs, sum_check=False).pvalue < 1e-6


def test_steps_and_windows_agree() -> None:
    rule = SVTRule.make(20)
    sums = np.arange(400) // 40
    for bucket in range(1, 30):
        run = SVT(rule, noise=noise(rule), threshold=3 * rule.unit, bucket=bucket)
        index = next(i for i, v in enumerate(sums.tolist()) if run.step(v))
        for clock in (0, 1, 17):
            options = {"bucket": bucket, "threshold": 3 * rule.unit}
            assert first_top(rule, noise(rule), sums[clock:], clock=clock, **options) == index - clock


def test_after_top_there_is_an_error_and_an_empty_stream_has_no_top() -> None:
    rule = SVTRule.make(20)
    run = SVT(rule, noise=noise(rule), threshold=0)
    assert run.step(1000)
    with pytest.raises(StateError, match="ended with TOP"):
        run.step(0)
    empty = np.zeros(0, dtype=np.int64)
    assert first_top(rule, noise(rule), empty, bucket=1, clock=0, threshold=0) == -1
    with pytest.raises(ParameterError):
        SVT(rule, noise=noise(rule), threshold=0).step(0.5)


def test_no_two_runs_share_noise() -> None:
    """Addressed by (bucket, local step): equal local steps of different buckets differ, pages included."""
    rule = SVTRule.make(1)
    drawn = noise(rule)
    seen = np.concatenate([drawn.steps(l, start=1, stop=131) for l in (1, 2, 1 << 32, (1 << 32) + 1)])
    origins = [drawn.origin(l) for l in (1, 2, 1 << 32, (1 << 32) + 1)]
    assert len(set(seen.tolist())) == 520  # all different; a repetition by chance: below 10^-2 a key, fixed
    assert len(set(origins)) == 4
    again = noise(rule)
    assert again.steps(2, start=60, stop=70).tolist() == seen[130 + 59 : 130 + 69].tolist()
    assert [int(again.steps(2, start=t, stop=t + 1)[0]) for t in (1, 64, 65)] == seen[
        [130, 193, 194]
    ].tolist()
    for bucket, stop in ((0, 2), (MOST_STEPS + 1, 2), (1, MOST_STEPS + 2)):
        with pytest.raises(HorizonError):
            drawn.steps(bucket, start=1, stop=stop)


def test_lattices_too_fine_for_64_bits() -> None:
    """Inputs on 2^-60: sums, noise and thresholds in Python integers, same answers as on a coarse lattice."""
    fine = SVTRule.make(20, high=1 << 60)
    sums = np.array([0, 1, 2, 30], dtype=object) * (1 << 60)
    assert first_top(fine, noise(fine), sums, bucket=1, clock=0, threshold=8 * fine.unit) == 3


def test_golden_values_hold_the_addresses_fast() -> None:
    """Another layout of the noise would continue saved states with other noise."""
    drawn = noise(SVTRule.make(1))
    assert [drawn.origin(1), drawn.origin(64)] == [12109779, -14875162]
    assert drawn.steps(2, start=63, stop=67).tolist() == [-22160083, -15954665, -6581597, 6789600]
    assert drawn.steps((1 << 32) + 2, start=63, stop=65).tolist() == [3324119, -1482497]
