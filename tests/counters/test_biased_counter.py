"""The biased counter: it never reports too little, its delta closes, its bias is about what it must be."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters import BiasedCounter, Counter, chain_of
from trilift.counters.bias import _laplace_groups, one_sided
from trilift.counters.edit.tails import laplace_quantile
from trilift.counters.part_tails import coefficients, pieces
from trilift.lift.errors import ParameterError
from trilift.lift.rows import row_entries
from trilift.stream.gdp import ln_of

DELTA = Fraction(1, 10**6)


class Given:
    """Noise chosen by the test; everything else is the real process."""

    def __init__(self, real: Any, values: np.ndarray[Any, Any]) -> None:
        self.real, self.values = real, values

    def range(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        return self.values[start:stop]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def with_noise(values: Any, **options: Any) -> BiasedCounter:
    counter = BiasedCounter(1, DELTA, simulation_seed=1, **options)
    counter._noises = [Given(noise, np.array(values)) for noise in counter._noises]
    counter._steps_bias = lambda start, stop: np.full(stop - start, 5)  # type: ignore[method-assign]
    return counter


# -- never too little ---------------------------------------------------------------------------------


def test_all_short_streams_under_any_noise() -> None:
    """max(noisy + bias, sum), step by step, for every binary stream of six steps and hostile noises."""
    streams = np.array(list(itertools.product((0, 1), repeat=6))).T
    sums = np.cumsum(streams, axis=0)
    for noise in ([0] * 6, [-(10**6)] * 6, [10**6, -(10**6)] * 3, [-5, -6, -4, -7, -5, -6]):
        expected = np.maximum(sums + np.array(noise)[:, None] + 5, sums)
        released = with_noise(noise, horizon=6, dimension=64).extend(streams)
        assert released.tolist() == expected.tolist()
        single = with_noise(noise, horizon=6, dimension=64)
        assert [single.update(row).tolist() for row in streams] == expected.tolist()
        assert (released >= sums).all()


@settings(deadline=None, max_examples=8)
@given(
    noise=st.lists(st.integers(-(2**70), 2**70), min_size=12, max_size=12),
    inputs=st.lists(st.fractions(-3, 3), min_size=12, max_size=12),
)
def test_hostile_noise_on_a_lattice(noise: list[int], inputs: list[Fraction]) -> None:
    counter = with_noise(noise, horizon=12, bounds=(-3, 3), resolution=Fraction(1, 8))
    rounded = [Fraction(math.floor(x * 8 + Fraction(1, 2)), 8) for x in inputs]
    released = counter.extend(inputs)
    for value, total in zip(released.tolist(), itertools.accumulate(rounded), strict=True):
        assert Fraction(value) >= total


@pytest.mark.parametrize("base", ["laplace", "gaussian"])
def test_integers_above_the_sums(base: str) -> None:
    inputs = np.random.default_rng(0).integers(0, 2, 500)
    released = BiasedCounter(0.3, 0.01, base=base, simulation_seed=2).extend(inputs)
    assert released.dtype == np.int64
    assert (released >= np.cumsum(inputs)).all()


def test_without_the_maximum_it_would_fail() -> None:
    """The negative control: the counter beneath, raised by half the bias at a large eta, does fall below."""
    counter = Counter(1, dimension=200, simulation_seed=3)
    assert (counter.extend(np.zeros((30, 200), dtype=int)) < 0).any()


# -- budgets ------------------------------------------------------------------------------------------


def exact(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


@settings(deadline=None, max_examples=30)
@given(
    epsilon=st.fractions(Fraction(1, 100), 20),
    delta=st.fractions(Fraction(1, 10**30), Fraction(1, 2)).filter(lambda x: x > 0),
    base=st.sampled_from(["laplace", "gaussian"]),
)
def test_the_deltas_close(epsilon: Fraction, delta: Fraction, base: str) -> None:
    """(1 + e^epsilon) eta + delta' <= delta, in 60 decimal digits and by arithmetic of another library."""
    setup = BiasedCounter(epsilon, delta, base=base, horizon=8, simulation_seed=1).setup
    with localcontext() as context:
        context.prec = 60
        maximum = (1 + exact(epsilon).exp()) * exact(setup.ln_eta).exp()
        whole = maximum
        if base == "gaussian":
            whole += exact(setup.beneath.ln_spent).exp()
            assert maximum <= exact(delta) / 2
        assert whole <= exact(delta)
        assert maximum >= exact(delta) * Decimal("0.499999")
        assert exact(setup.ln_spent).exp() <= exact(delta) * (1 + Decimal("1e-15"))
    assert setup.ln_spent <= ln_of(delta)[1]
    assert setup.beneath.epsilon == epsilon


@pytest.mark.parametrize("horizon", [None, 1, 1000])
@pytest.mark.parametrize("dimension", [None, 3])
def test_failures_of_steps_add_up_to_eta(horizon: int | None, dimension: int | None) -> None:
    setup = BiasedCounter(1, DELTA, horizon=horizon, dimension=dimension, simulation_seed=1).setup
    n = 10**5 if horizon is None else horizon
    total = setup.width * float(np.exp(setup.ln_failures(np.arange(n))).sum())
    if horizon is None:
        total += setup.width * float(np.exp(setup.ln_failures(np.array([n - 1])))[0]) * n  # sum past n, 1/t^2
    assert total <= math.exp(setup.ln_eta)
    assert total >= 0.999 * math.exp(setup.ln_eta)


@pytest.mark.parametrize("delta", [0, 1, -1, 2, float("nan"), "0.1", None, True])
def test_bad_deltas(delta: Any) -> None:
    with pytest.raises(ParameterError):
        BiasedCounter(1, delta, horizon=5)


def test_options_that_contradict_each_other() -> None:
    for options in (
        {"base": "normal"},
        {"mechanism": "chain"},
        {"growth": "relay", "horizon": 5},
        {"chain": ["direct-max-4"]},
        {"base": "gaussian", "mechanism": "toeplitz"},
    ):
        with pytest.raises(ParameterError):
            BiasedCounter(1, DELTA, **options)


# -- tails --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [None, 300])
def test_laplace_tails_lie_just_above_exact_ones(horizon: int | None) -> None:
    noise = Counter(1, horizon=horizon, simulation_seed=1)._noises[0]
    steps = np.array([0, 1, 7, 8, 40, 200, 299])
    for ln_failure, slack in ((-5.0, 1.9), (-20.0, 1.4), (-80.0, 1.25)):  # what Chernoff's bound gives away
        found = one_sided(noise, steps, np.full(steps.size, ln_failure))
        for step, x in zip(steps.tolist(), found.tolist(), strict=True):
            rows = [coefficients(process, local) for process, local in pieces(noise, step)]
            together = np.concatenate([a for a, _ in rows])
            least = laplace_quantile(together, ln_failure, lattice=sum(lattice for _, lattice in rows))
            assert least <= x <= slack * least + 0.5 * len(rows)


@pytest.mark.parametrize(
    "names", [("stage-max-9", "direct-max-4"), ("stage-mean-9",) * 2 + ("direct-mean-4",)]
)
def test_groups_bound_every_row(names: tuple[str, ...]) -> None:
    """Sums of squares and largest coefficients of every level and step, against rows written out."""
    n = chain_of(names).capacity
    process: Any = Counter(1, horizon=n, chain=names, simulation_seed=0)._noises[0]
    sums, tops = _laplace_groups(process, np.arange(n))
    for step in range(n):
        for level, row in enumerate(row_entries(process.chain, step)):
            entries = float(process.ledger.scales[level]) * np.concatenate([*row.values(), np.zeros(1)])
            assert sums[level, step] == pytest.approx(float((entries**2).sum()), abs=1e-9)
            assert np.abs(entries).max() <= tops[level, step] <= 1.5 * np.abs(entries).max() + 1e-9


@pytest.mark.parametrize("base", ["laplace", "gaussian"])
def test_tails_hold_over_keys(base: str) -> None:
    """Noise below -x at failure 1 % of a step: 800 coordinates; a binomial of mean 8 exceeds 26
    less than once in 10^6.
    """
    copies = 800
    counter = BiasedCounter(1, DELTA, base=base, dimension=copies, simulation_seed=4)
    steps = np.array([2, 11, 60])
    limits = one_sided(counter._noises[0], steps, np.full(3, math.log(0.01)))
    drawn = np.array([noise.at(steps) for noise in counter._noises])
    below = (drawn <= -limits).sum(axis=0)
    assert (below <= 26).all()
    assert ((drawn <= -0.3 * limits).sum(axis=0) > 26).all()  # the test can fail


def test_overshoot_is_bounded() -> None:
    """y_t - s_t <= alpha(beta, t) + alpha(eta, t) + 1 for all t, but for probability beta = 0.05.

    400 coordinates, each a stream of 40 steps: at most 40 failures (a binomial of mean 20 exceeds that with
    probability below 2e-5); and in every one y_t >= s_t.
    """
    copies, steps = 400, 40
    counter = BiasedCounter(1, DELTA, dimension=copies, simulation_seed=5)
    released = counter.extend(np.zeros((steps, copies), dtype=int))
    beneath = Counter(Fraction(1, copies), simulation_seed=1)
    limits = [
        beneath.interval(t, 0.95, simultaneous=True) + float(counter.bias(t)) + 1 for t in range(1, steps + 1)
    ]
    assert (released >= 0).all()
    assert int((released > np.array(limits)[:, None]).any(axis=0).sum()) <= 40


def test_interval_is_one_sided() -> None:
    counter = BiasedCounter(1, DELTA, simulation_seed=1)
    assert counter.interval(50) > float(counter.bias(50)) > 2 * counter.sd(50)
    assert counter.bias(50) == counter.bias(50) >= counter.bias(3)
