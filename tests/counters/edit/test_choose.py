"""Choices side by side, predictions against a small simulation, words."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from trilift.counters.edit.choose import choose_design, variants
from trilift.counters.edit.design import make_design
from trilift.counters.edit.predict import lengths_of
from trilift.counters.edit.rules import PartRule, SimPartRule
from trilift.counters.edit.tune import buckets_needed
from trilift.stream.gdp import ln_of

DELTA = Fraction(1, 10**5)


@pytest.mark.parametrize("horizon", [2000, None])
def test_variants_are_ordered_and_hold_their_budgets(horizon: int | None) -> None:
    found = variants(3, delta=DELTA, horizon=horizon, rate=0.2)
    errors = [choice.predicted_rmse for choice in found]
    assert errors == sorted(errors)
    assert math.isfinite(errors[-1])
    names = {(choice.mechanism, choice.accounting) for choice in found}
    assert {("simecc", "sharp"), ("ecc", "sharp"), ("simecc", "paper"), ("ecc", "paper-4/105")} <= names
    assert {choice.mechanism for choice in found} >= {"gaussian"}
    assert any(choice.mechanism == "horizon-gaussian" for choice in found) == (horizon is not None)
    for choice in found:
        assert choice.ledger.spent_epsilon <= 3
        assert choice.ledger.spent_delta <= DELTA
        assert set(choice.record()) >= {"mechanism", "base", "accounting", "predicted_rmse", "ledger"}
        assert (choice.design is None) == (choice.setup is not None)
    assert found[0].accounting == "sharp"
    best = choose_design(3, delta=DELTA, horizon=horizon, rate=0.2)
    assert best.display == found[0].display
    assert best.mechanism == found[0].mechanism
    assert best.predict(horizon=horizon or 10**5).rmse == pytest.approx(errors[0])


def test_choices_keep_to_what_is_named() -> None:
    assert choose_design(3, delta=DELTA, horizon=2000, mechanism="ecc", display="latest").mechanism == "ecc"
    assert choose_design(3, delta=DELTA, horizon=2000, display="latest").display == "latest"
    some = variants(
        3, delta=DELTA, horizon=500, accountings=("sharp",), bases=("toeplitz", "relay"), displays=("latest",)
    )
    assert {choice.base for choice in some} == {"toeplitz", "independent"}


def test_words() -> None:
    found = variants(10, delta=DELTA, horizon=10**5, rate=0.1, accountings=("paper", "sharp"))
    words = {(c.mechanism, c.accounting): c.words for c in found if c.display == "latest"}
    paper = words["ecc", "paper"]
    assert paper.startswith("no update before about ")
    assert paper.endswith(" events")
    assert 600 <= int(paper.split()[-2]) <= 1000
    assert int(words["ecc", "sharp"].split()[-2]) < 60
    assert words["simecc", "sharp"].endswith("steps")


def run_part(rule: PartRule, rng: np.random.Generator, rate: float, buckets: int) -> list[int]:
    lengths = []
    for _ in range(buckets):
        z0, v, t = rng.laplace(scale=float(rule.scale0)), 0, 0
        while True:
            t += 1
            v += rng.random() < rate
            if v + rng.laplace(scale=float(rule.scale_t)) >= float(rule.tau) + z0:
                break
        lengths.append(t)
    return lengths


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_lengths_of_buckets_by_events(rate: float) -> None:
    """Moments against a simulation (4 standard errors: false alarm below 1e-3 in all)."""
    rule = PartRule.constant(Fraction(8), ln_failure=ln_of(DELTA)[0])
    told = lengths_of(rule, horizon=10**4, rate=rate)
    drawn = np.array(run_part(rule, np.random.default_rng(5), rate, 1500), dtype=float)
    error = drawn.std() / math.sqrt(1500)
    assert abs(drawn.mean() - told.first[0]) <= 4 * error + 0.01 * drawn.mean()
    assert (drawn**2).mean() == pytest.approx(told.second[0], rel=0.12)


def test_capacities_are_hardly_ever_reached() -> None:
    """No run of 2000 ends more buckets than are provided for."""
    rule = SimPartRule.renewal(Fraction(2), ln_failure=ln_of(DELTA / 5)[0])
    lengths = lengths_of(rule, horizon=5000, rate=1.0)
    provided = buckets_needed(lengths, 5000)
    rng = np.random.default_rng(11)
    p = -math.expm1(-1 / float(rule.scale))
    count = math.ceil(provided)
    z = rng.geometric(p, (2000, count)) - rng.geometric(p, (2000, count))
    ends = np.cumsum(rule.lengths(0, z.ravel()).reshape(z.shape), axis=1)
    ended = (ends <= 5000).sum(axis=1)
    assert ended.max() < count
    assert ended.mean() == pytest.approx(5000 / lengths.first[0], rel=0.01)


@pytest.mark.slow
def test_long_streams_get_longer_buckets() -> None:
    """The largest bounded bases serve 2^20 buckets: counting on past them would show one value for ever."""
    for horizon in (10**8, 10**10):
        design = make_design(1, delta=DELTA, mechanism="simecc", horizon=horizon, rate=0.5)
        assert design.capacity <= 1 << 20
        made = design.predict()
        assert made.buckets < design.capacity
        assert made.rmse < 1e-5 * horizon
    short = replace(
        design, horizon=10**10, part=SimPartRule.renewal(Fraction(1, 4), ln_failure=ln_of(DELTA / 5)[0])
    )
    assert short.predict().buckets == design.capacity
    assert short.predict().rmse > 10**9  # as it would be, and as it is said
