"""Accuracy at stated probabilities: keys are fixed, so are outcomes; for random keys each check would give a
false alarm with probability 1e-6 (binomial margin over the stated failure probability beta)."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats
from trilift.counters.edit.design import make_design
from trilift.counters.edit.internals import trace
from trilift.counters.edit.mechanism import class_of
from trilift.counters.edit.svt import SVTNoise, SVTRule, first_top
from trilift.stream.keys import simulation_key

BETA = 0.05


def allowed(runs: int) -> float:
    return float(stats.binom.ppf(1 - 1e-6, runs, BETA))


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(10)])
def test_sparse_vectors_fire_when_they_should(epsilon) -> None:
    """TOP once v_t >= tau + 16 ln(t+c)/eps + 6 ln(2/beta)/eps + 4 ln(pi^2/6)/eps; no TOP while
    v_t <= tau - 6 ln(2/beta)/eps - 4 ln(pi^2/6)/eps. Sums rise slowly through both marks; 400 runs."""
    rule, eps, tau = SVTRule.make(epsilon), float(epsilon), 3000 / float(epsilon) ** 0.5
    slack = 6 * math.log(2 / BETA) / eps + 4 * math.log(math.pi**2 / 6) / eps
    steps = np.arange(1, 4001)
    upper = tau + 16 * np.log(steps + rule.offset) / eps + slack
    rise = np.ceil((tau - 1.5 * slack) + steps * (4 * slack + 200 / eps) / 4000).astype(np.int64)
    first, last = int((rise > tau - slack).argmax()), int((rise >= upper).argmax())
    assert 0 < first < last < 4000
    noise = SVTNoise(rule, key=simulation_key(1))
    threshold = math.ceil(tau * rule.unit)
    runs = [first_top(rule, noise, rise, bucket=l, clock=0, threshold=threshold) for l in range(1, 401)]
    failures = sum(not first <= index <= last for index in runs)
    assert failures <= allowed(400)
    assert min(runs) < max(runs)


def deviation(design, spec, buckets: np.ndarray, share: float) -> np.ndarray:
    """sd sqrt(2 ln(2/beta_l)), beta_l = 6 share/(pi^2 l^2): all buckets together fail with at most share."""
    wanted = 2 * math.pi**2 * (buckets + 1.0) ** 2 / (6 * share)
    return spec.sd(buckets) * np.sqrt(2 * np.log(wanted)) + 1


@lru_cache
def design_of(mechanism: str, accounting: str = "sharp"):
    return make_design(
        10, delta=1e-4, mechanism=mechanism, horizon=3000, base="toeplitz", accounting=accounting
    )


def stream(kind: str) -> np.ndarray:
    generator = np.random.default_rng(1)
    rates = {"busy": 1.0, "half": 0.5, "bursts": np.where(np.arange(3000) // 500 % 2, 0.9, 0.0)}
    return (generator.random(3000) < rates[kind]).astype(np.int64)


@pytest.mark.parametrize("kind", ["busy", "half", "bursts"])
def test_simecc_is_as_near_as_it_says(kind) -> None:
    """|y_t - s_t| <= 2 (alpha_BCC + 1) + alpha_CC + the longest bucket, for all t: noise of counts, noise of
    times and lengths fail with beta/3 each, together over all buckets. 60 keys."""
    design, values, failures, largest = design_of("simecc"), stream(kind), 0, 0.0
    l = np.arange(design.capacity)
    counts = deviation(design, design.values, l, BETA / 3).max()
    delays = (design.alphas(0, design.capacity) + deviation(design, design.times, l, BETA / 3)).max()
    scale = float(design.part.scale)
    tail = 1 + scale * math.log(1 / (2 * BETA / 3 / design.capacity))
    longest = design.part.base + math.ceil(tail)
    bound = 2 * (delays + 1) + counts + longest
    exact = np.cumsum(values)
    for seed in range(60):
        shown = class_of(design).of(design, simulation_seed=seed).extend(values)
        worst = float(np.abs(shown - exact).max())
        failures += worst > bound
        largest = max(largest, worst)
    assert failures <= allowed(60)
    assert largest > bound / 8  # the bound says something


@pytest.mark.parametrize("kind", ["busy", "bursts"])
def test_ecc_is_as_near_as_it_says(kind) -> None:
    """As SimECC, the longest bucket replaced by U + 1 events, U = tau + both noises at beta/3 over all steps;
    with the constant thresholds of our accounting. 60 keys."""
    design, values, failures, largest = design_of("ecc"), stream(kind), 0, 0.0
    l = np.arange(design.capacity)
    counts = deviation(design, design.values, l, BETA / 3).max()
    delays = (design.alphas(0, design.capacity) + deviation(design, design.times, l, BETA / 3)).max()
    reach = math.log(2 * 3000 / (BETA / 3))
    fired = float(design.part.tau) + reach * float(design.part.scale0 + design.part.scale_t)
    bound = 2 * (delays + 1) + counts + fired + 1
    exact = np.cumsum(values)
    for seed in range(60):
        shown = class_of(design).of(design, simulation_seed=seed).extend(values)
        worst = float(np.abs(shown - exact).max())
        failures += worst > bound
        largest = max(largest, worst)
    assert failures <= allowed(60)
    assert largest > bound / 8


@pytest.mark.parametrize("accounting", ["sharp", "paper"])
def test_a_stream_without_events_ends_no_bucket_of_ecc(accounting) -> None:
    """Every bucket holds at least one event, so that nothing is ever shown: with beta >= delta (paper), or
    within the horizon but for 1e-3 (ours: a matter of use, chosen so). 100 keys, false alarm 1e-6."""
    design = make_design(10, delta=1e-4, mechanism="ecc", horizon=3000, accounting=accounting)
    zeros = np.zeros(3000, dtype=np.int64)
    seen = [trace(class_of(design).of(design, simulation_seed=seed), zeros) for seed in range(100)]
    failures = sum(len(one.ends) > 0 for one in seen)
    assert failures <= stats.binom.ppf(1 - 1e-6, 100, 1e-3 if accounting == "sharp" else 1e-4)


def test_released_times_are_never_before_the_true_ones() -> None:
    """And checkpoints of ECC are no more than events: t_l >= l events, since each bucket holds one."""
    design, values = design_of("ecc"), stream("half")
    exact = np.cumsum(values)
    for seed in range(50):
        seen = trace(class_of(design).of(design, simulation_seed=seed), values)
        assert (seen.times >= seen.ends).all()
        assert (np.arange(1, len(seen.ends) + 1) <= exact[seen.ends - 1]).all()
