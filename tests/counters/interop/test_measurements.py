"""Measurements in OpenDP itself: its checks, its privacy maps, its compositors."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from trilift import (
    BiasedCounter,
    Counter,
    DistinctCounter,
    EndingCounter,
    GaussianCC,
    GaussianCounter,
    ParameterError,
    SimECC,
)
from trilift.counters.accounting import guarantee_of
from trilift.counters.interop import make_measurement

dp = pytest.importorskip("opendp.prelude")

DELTA = Fraction(1, 10**6)


@pytest.fixture(autouse=True)
def trusted() -> None:
    dp.enable_features("contrib", "honest-but-curious")


def test_pure_counters() -> None:
    counts = make_measurement(lambda: Counter(Fraction(1, 3), horizon=5))
    values = counts([1, 0, 1, 1, 0])
    assert len(values) == 5
    assert all(isinstance(value, int) for value in values)
    assert counts.map(d_in=1) >= Fraction(1, 3)
    assert counts.map(d_in=1) == pytest.approx(1 / 3, abs=1e-16)
    assert [counts.map(d_in=d) for d in (0, 3, 30)] == [0.0, 1.0, 10.0]
    assert counts.check(d_in=3, d_out=1.0)
    assert not counts.check(d_in=1, d_out=0.3333)


def test_rows_of_one_person() -> None:
    counts = make_measurement(lambda: Counter(1, horizon=5, max_contributions=4))
    assert [counts.map(d_in=d) for d in (1, 4, 8)] == [0.25, 1.0, 2.0]


def test_noise_is_fresh_and_around_the_sums() -> None:
    """20 invocations at epsilon 1: the mean of the last value lies within 6 standard errors but with 2e-9."""
    counts = make_measurement(lambda: Counter(1, horizon=4))
    last = [counts([1, 1, 1, 1])[-1] for _ in range(20)]
    assert len(set(last)) > 3
    assert abs(sum(last) / 20 - 4) < 6 * Counter(1, horizon=4).sd(4) / 20**0.5


def test_gaussian_counters_are_zcdp() -> None:
    counter = GaussianCounter(1, DELTA, horizon=5)
    counts = make_measurement(lambda: GaussianCounter(1, DELTA, horizon=5))
    rho = guarantee_of(counter).rho
    assert rho is not None
    assert 0 <= counts.map(d_in=1) - rho < 1e-12
    assert counts.map(d_in=3) == pytest.approx(9 * counts.map(d_in=1), rel=1e-12)
    # through OpenDP's own conversion to (epsilon, delta): above ours, as the way over zCDP is
    pairs = dp.c.make_zCDP_to_approxDP(counts)
    assert 1 < pairs.map(d_in=1).epsilon(float(DELTA)) < 1.2


def test_pairs() -> None:
    counts = make_measurement(lambda: BiasedCounter(Fraction(1, 2), DELTA, horizon=5))
    epsilon, delta = counts.map(d_in=1)
    assert (epsilon, delta) == (0.5, pytest.approx(1e-6, rel=1e-12))
    assert delta >= DELTA
    two = counts.map(d_in=2)
    assert two[0] == 1.0
    assert two[1] == pytest.approx(2 * 1.6487213e-6, rel=1e-6)
    assert all(value >= total for value, total in zip(counts([1, 1, 0, 1, 0]), [1, 2, 2, 3, 3], strict=True))


def test_opendp_composes_them() -> None:
    counts = make_measurement(lambda: Counter(Fraction(1, 2), horizon=5))
    other = make_measurement(lambda: Counter(Fraction(1, 4), horizon=5))
    both = dp.c.make_composition([counts, other])
    first, second = both([1, 0, 1, 1, 0])
    assert (len(first), len(second)) == (5, 5)
    assert both.map(d_in=1) == pytest.approx(0.75, rel=1e-12)
    assert both.map(d_in=1) >= 0.75
    assert both.map(d_in=2) == pytest.approx(1.5, rel=1e-12)


def test_opendp_refuses_to_be_overspent() -> None:
    domain = dp.vector_domain(dp.atom_domain(T="i64", bounds=(0, 1)), size=5)
    metric = dp.hamming_distance()
    budget = dp.c.make_adaptive_composition(
        input_domain=domain,
        input_metric=metric,
        output_measure=dp.max_divergence(),
        d_in=1,
        d_mids=[0.5, 0.25],
    )
    queryable = budget([1, 0, 1, 1, 0])
    assert len(queryable(make_measurement(lambda: Counter(Fraction(1, 2), horizon=5)))) == 5
    with pytest.raises(dp.OpenDPException, match=r"insufficient budget|d_mid"):
        queryable(make_measurement(lambda: Counter(Fraction(1, 2), horizon=5)))
    assert len(queryable(make_measurement(lambda: Counter(Fraction(1, 4), horizon=5)))) == 5


def test_opendp_transformations_come_before() -> None:
    """A clamp of OpenDP in front: its stability map and our privacy map make one map."""
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=5), dp.insert_delete_distance()
    clamp = dp.t.make_clamp(*space, bounds=(0, 1)) >> dp.t.then_metric_bounded()
    counts = clamp >> make_measurement(lambda: Counter(1, horizon=5))
    assert len(counts([7, -3, 1, 0, 100])) == 5
    assert counts.map(d_in=2) == 1.0  # a removal and an insertion are one change


def test_fractions() -> None:
    counts = make_measurement(lambda: Counter(1, horizon=3, bounds=(0, 2), resolution=0.25))
    values = counts([0.25, 2.0, 1.5])
    assert all(isinstance(value, float) and value * 4 == round(value * 4) for value in values)


EDIT: list[tuple[Callable[[], Any], str]] = [
    (lambda: SimECC(1, DELTA, horizon=6, rate=0.5), "pair"),
    (lambda: GaussianCC(1, DELTA, horizon=6), "rho"),
    (lambda: EndingCounter(1, DELTA, rate=0.5), "pair"),
]


@pytest.mark.parametrize(("make", "kind"), EDIT)
def test_streams_that_shift(make: Callable[[], Any], kind: str) -> None:
    size = 6 if type(make()).__name__ == "EndingCounter" else None
    shown = make_measurement(make, size=size)
    values = shown([1, None, 0, 1, None, 1])
    assert len(values) == 6 if type(make()).__name__ != "EndingCounter" else len(values) > 6
    if kind == "pair":
        assert shown.map(d_in=1) == (1.0, pytest.approx(1e-6))
        assert shown.map(d_in=2)[0] == 2.0
    else:
        rho = guarantee_of(make()).rho
        assert shown.map(d_in=1) == pytest.approx(float(rho or 0))
        assert shown.map(d_in=2) == pytest.approx(4 * float(rho or 0))


def test_turnstile_counters() -> None:
    shown = make_measurement(lambda: DistinctCounter(1, horizon=20, every=5), size=10)
    readings = shown([("a", 1), ("b", 1), ("a", -1), ("c", 1), ("d", 1)] * 2)
    assert [reading.step for reading in readings] == [5, 10]
    assert shown.map(d_in=3) == 3.0
    with pytest.raises(dp.OpenDPException):
        dp.c.make_composition([shown, make_measurement(lambda: Counter(1, horizon=20))])


def test_the_order_of_rows_matters() -> None:
    """The distance must be one of ordered rows: sums depend on the order, so a swap is no difference of 0."""
    counts = make_measurement(lambda: Counter(1, horizon=5))
    assert counts.input_metric == dp.hamming_distance()
    assert counts.input_metric != dp.change_one_distance()


@pytest.mark.parametrize(
    ("make", "size", "words"),
    [
        (None, None, "make must be a function"),
        (lambda: None, None, "counter must be"),
        (lambda: Counter(1), None, "size must be given"),
        (lambda: Counter(1, horizon=5), 6, "size must be at most the horizon 5"),
        (lambda: Counter(1, horizon=5), 0, "size must be an integer"),
        (lambda: Counter(1, horizon=5, dimension=2), None, "no measurement"),
        (lambda: Counter(1, horizon=5, simulation_seed=1), None, "simulated"),
    ],
)
def test_what_makes_no_measurement(make: Any, size: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        make_measurement(make, size=size)


def test_makers_that_change_their_mind_are_refused() -> None:
    epsilons = iter([1, 1, 2])
    counts = make_measurement(lambda: Counter(next(epsilons), horizon=2))
    assert len(counts([0, 1])) == 2
    with pytest.raises(dp.OpenDPException, match="another guarantee"):
        counts([0, 1])


def test_data_outside_the_domain_are_refused() -> None:
    counts = make_measurement(lambda: Counter(1, horizon=2))
    for data in ([0, 2], [0.5, 1.0], ["a", "b"], None, [0, 1, 1]):
        with pytest.raises((dp.OpenDPException, TypeError, ValueError)):
            counts(data)
