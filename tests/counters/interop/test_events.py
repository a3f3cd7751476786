"""Events and privacy losses against dp_accounting itself: its accountants never say less than is spent."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from trilift import (
    BiasedCounter,
    Counter,
    DistinctCounter,
    GaussianCC,
    GaussianCounter,
    HorizonGaussian,
    ParameterError,
    SecondMoment,
    SimECC,
)
from trilift.counters.accounting import Guarantee, guarantee_of
from trilift.counters.accounting.guarantee import root_up
from trilift.counters.interop import dp_event, privacy_loss
from trilift.stream.gdp import ln_delta_bounds

accounting = pytest.importorskip("dp_accounting")
pld = pytest.importorskip("dp_accounting.pld")
rdp = pytest.importorskip("dp_accounting.rdp")

DELTA = Fraction(1, 10**6)
GAUSSIANS: dict[str, Callable[[], Any]] = {
    "chain": lambda: GaussianCounter(1, DELTA, horizon=100),
    "toeplitz": lambda: GaussianCounter(1, DELTA, horizon=100, mechanism="toeplitz"),
    "no horizon": lambda: GaussianCounter(1, DELTA),
    "edit, growing": lambda: GaussianCC(1, DELTA),
    "edit, flat": lambda: HorizonGaussian(1, DELTA, horizon=100),
    "distinct": lambda: DistinctCounter(1, delta=DELTA, horizon=100, every=10),
    "second moment": lambda: SecondMoment(1, delta=DELTA, horizon=100, every=10),
}


def epsilon_of(event: Any, delta: float, accountant: str = "pld") -> float:
    made = pld.PLDAccountant() if accountant == "pld" else rdp.RdpAccountant()
    return float(made.compose(event).get_epsilon(delta))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, Fraction(10, 3)])
def test_pure_counters(epsilon: Any) -> None:
    event = dp_event(Counter(epsilon, horizon=100))
    assert type(event).__name__ == "DiscreteLaplaceDpEvent"
    spent = epsilon_of(event, 0)
    assert epsilon <= spent <= float(epsilon) + 2e-4  # the accountant's grid


def test_the_event_of_pure_counters_is_the_worst_there_is() -> None:
    """Randomised response: the accountant's delta(x) is (e^epsilon - e^x)/(1 + e^epsilon), x <= epsilon."""
    accountant = pld.PLDAccountant(value_discretization_interval=1e-5)
    accountant.compose(dp_event(Counter(1, horizon=100)))
    for x in (0.0, 0.25, 0.9):
        worst = (math.e - math.exp(x)) / (1 + math.e)
        assert worst - 1e-12 <= accountant.get_delta(x) <= worst + 2e-5


def test_continuous_laplace_noise_would_be_too_little() -> None:
    """Why the event is no LaplaceDpEvent: one step of a coarse lattice is nearly the worst case.

    Noise of scale 1 on the integers against a change of 1 has delta(0) = (e - 1)/(e + 1), which the event has
    too; continuous noise would have 1 - e^(-1/2).
    """
    masses = [math.exp(-abs(z)) for z in range(-60, 61)]
    total = sum(masses)
    delta = sum(max(0.0, a - b) for a, b in zip(masses[1:], masses[:-1], strict=True)) / total
    assert delta == pytest.approx((math.e - 1) / (math.e + 1), rel=1e-9)
    continuous = pld.PLDAccountant()
    continuous.compose(accounting.LaplaceDpEvent(1.0))
    ours = pld.PLDAccountant()
    ours.compose(dp_event(Counter(1, horizon=100)))
    assert continuous.get_delta(0.0) < delta - 0.05
    assert delta <= ours.get_delta(0.0) <= delta + 1e-4


def test_renyi_accountants_get_zcdp() -> None:
    event = dp_event(Counter(Fraction(1, 3), horizon=100), accountant="rdp")
    assert isinstance(event, accounting.ZCDpEvent)
    assert 0 <= event.rho - Fraction(1, 18) < 1e-16
    wanted = 1 / 18 + 2 * math.sqrt(math.log(1e6) / 18)  # Bun and Steinke's conversion, which is coarser
    assert 0.5 * wanted < epsilon_of(event, 1e-6, "rdp") < wanted
    assert not rdp.RdpAccountant().supports(dp_event(Counter(1, horizon=100)))


@pytest.mark.parametrize("name", GAUSSIANS)
def test_gaussian_counters(name: str) -> None:
    """The accountant's epsilon at delta is the one that was asked for: never less, and hardly more."""
    counter = GAUSSIANS[name]()
    event = dp_event(counter)
    assert isinstance(event, accounting.GaussianDpEvent)
    mu = root_up(guarantee_of(counter).mu_sq or Fraction(0))
    assert 1 - Fraction(1, 2**50) < Fraction(event.noise_multiplier) * mu <= 1
    at_spent = math.exp(ln_delta_bounds(1, mu=mu)[1])
    assert 1 - 1e-9 <= epsilon_of(event, at_spent) <= 1.001
    assert 1 - 1e-6 <= accounting.get_epsilon_gaussian(event.noise_multiplier, at_spent) <= 1 + 1e-6
    assert 1 <= epsilon_of(event, at_spent, "rdp") <= 1.2
    assert event == dp_event(counter, accountant="rdp")


def test_events_compose_with_others() -> None:
    event = accounting.ComposedDpEvent(
        [dp_event(Counter(Fraction(1, 2), horizon=9)), dp_event(GaussianCounter(1, DELTA, horizon=9))]
    )
    both = epsilon_of(event, 1e-6)
    assert 1 < both < 1.5  # better than adding up
    assert both == pytest.approx(
        privacy_loss(Counter(Fraction(1, 2), horizon=9))
        .compose(privacy_loss(GaussianCounter(1, DELTA, horizon=9)))
        .get_epsilon_for_delta(1e-6),
        abs=1e-3,
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: SimECC(1, DELTA, horizon=1000, rate=0.5),
        lambda: BiasedCounter(1, DELTA, horizon=50),
    ],
)
def test_pairs_have_no_event_but_a_privacy_loss(make: Callable[[], Any]) -> None:
    counter = make()
    event = dp_event(counter)
    assert isinstance(event, accounting.UnsupportedDpEvent)
    assert not pld.PLDAccountant().supports(event)
    assert not rdp.RdpAccountant().supports(event)
    loss = privacy_loss(counter)
    assert 1 - 1e-9 <= loss.get_epsilon_for_delta(float(DELTA) * (1 + 1e-9)) <= 1.0002
    assert loss.get_delta_for_epsilon(1.001) == pytest.approx(float(DELTA), rel=1e-6)
    assert loss.get_epsilon_for_delta(float(DELTA) * 0.99) == math.inf
    twice = loss.compose(loss)
    assert 2 - 1e-9 <= twice.get_epsilon_for_delta(2 * float(DELTA) * (1 + 1e-9)) <= 2.001


def test_privacy_losses_of_the_others() -> None:
    assert 1 <= privacy_loss(Counter(1, horizon=9)).get_epsilon_for_delta(0) <= 1.0002
    assert 1 - 1e-4 <= privacy_loss(GaussianCounter(1, DELTA, horizon=9)).get_epsilon_for_delta(1e-6) <= 1.001
    assert privacy_loss(Counter(5000, horizon=9)).get_epsilon_for_delta(0.5) == math.inf


def test_larger_differences() -> None:
    assert 3 <= epsilon_of(dp_event(Counter(1, horizon=9), contributions=3), 0) <= 3.0002
    one = dp_event(GaussianCounter(1, DELTA, horizon=9))
    twice = dp_event(GaussianCounter(1, DELTA, horizon=9), contributions=2)
    assert twice.noise_multiplier == pytest.approx(one.noise_multiplier / 2, rel=1e-12)
    assert dp_event(Counter(1, horizon=9, max_contributions=2)).noise_parameter == 1
    assert dp_event(Counter(1, horizon=9, max_contributions=2), contributions=1).noise_parameter == 0.5


def test_what_protects_nobody_has_no_event() -> None:
    for call in (dp_event, privacy_loss):
        with pytest.raises(ParameterError, match="simulated"):
            call(Counter(1, horizon=9, simulation_seed=1))
        with pytest.raises(ParameterError, match="counter must be"):
            call(None)
    with pytest.raises(ParameterError, match="accountant must be one of"):
        dp_event(Counter(1, horizon=9), accountant="moments")
    huge = Guarantee("pure", "rows", 1, Fraction(5000), Fraction(0))
    assert isinstance(dp_event(huge), accounting.NonPrivateDpEvent)
