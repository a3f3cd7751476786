"""Designs of every accounting: their ledgers, their noise against their ledgers, records, refusals."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters.edit.base import KINDS, UNBOUNDED, BaseSpec
from trilift.counters.edit.design import Design, make_design
from trilift.counters.edit.ledger import EditLedger, LedgerPart
from trilift.counters.edit.rules import SimPartRule
from trilift.counters.edit.units import unit_of
from trilift.counters.edit.variants import ACCOUNTINGS
from trilift.lift.errors import HorizonError, ParameterError
from trilift.stream.gdp import ln_delta_bounds, ln_of, mu_for

DELTA = Fraction(1, 10**5)
CASES = [(accounting, name) for accounting, names in ACCOUNTINGS.items() for name in names]

epsilons = st.floats(-3, 3).map(lambda x: Fraction(10**x).limit_denominator(10**6))
deltas = st.floats(-12, -1).map(lambda x: Fraction(10**x))


@pytest.mark.parametrize(("accounting", "mechanism"), CASES)
@given(epsilon=epsilons, delta=deltas)
@settings(max_examples=8, deadline=None)
def test_every_ledger_adds_up(accounting: str, mechanism: str, epsilon: Fraction, delta: Fraction) -> None:
    horizon = 5000 if accounting == "sharp" else None
    options = {"base": "toeplitz"} if accounting == "sharp" else {}
    design = make_design(
        epsilon, delta=delta, mechanism=mechanism, accounting=accounting, horizon=horizon, **options
    )
    check_ledger(design)


def check_ledger(design: Design) -> None:
    ledger = design.ledger
    assert ledger.spent_epsilon <= design.epsilon
    assert ledger.spent_delta <= design.delta
    parts = {part.name: part for part in ledger.parts}
    assert parts["partition"].epsilon >= design.part.cost
    assert parts["partition"].ln_delta is not None
    assert parts["partition"].ln_delta >= design.part.ln_failure
    for part in ledger.record():
        assert set(part) == {"part", "epsilon", "ln_delta"}
        assert "/" in part["epsilon"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_of_sharp_designs_is_what_the_ledger_charges(kind: str) -> None:
    horizon = None if kind in UNBOUNDED else 3000
    design = make_design(3, delta=DELTA, base=kind, horizon=horizon)
    check_ledger(design)
    unit = unit_of(kind, design.values.capacity)
    part = next(part for part in design.ledger.parts if part.name == "counts and release times")
    rest = design.epsilon - design.part.cost
    assert part.epsilon <= rest
    if design.values.gaussian:
        total_sq = unit.factors.counts * design.values.mu**2 + unit.factors.times * design.times.mu**2
        high = ln_delta_bounds(rest, mu=Fraction(math.sqrt(total_sq) * (1 - 1e-12)))[0]
        assert high <= part.ln_delta
        assert part.ln_delta < float(ln_of(DELTA / 2)[1])
    else:
        spent = unit.factors.counts * design.values.epsilon + unit.factors.times * design.times.epsilon
        assert spent == part.epsilon <= rest
        assert part.ln_delta is None
        assert spent >= rest * (1 - Fraction(1, 10**9))  # nothing is left lying


@pytest.mark.parametrize("mechanism", ["simecc", "ecc"])
@pytest.mark.parametrize("kind", ["toeplitz", "chain", "gaussian-tapered", "cc", "tapered"])
def test_delays_cover_their_failures(mechanism: str, kind: str) -> None:
    """Over all buckets together the delays fail with at most eta, by each bucket's own tail."""
    horizon = None if kind in UNBOUNDED else 4000
    design = make_design(2, delta=DELTA, mechanism=mechanism, base=kind, horizon=horizon)
    eta = math.exp(float(design.ln_delays))
    count = min(design.capacity or 40, 40)
    alphas = design.alphas(0, count)
    total = 0.0
    for index in range(count):
        own = eta / design.times.capacity if design.times.capacity else eta / ((index + 1) * (index + 2))
        bound = design.times.tail_quantile(index, math.log(own))
        assert alphas[index] - 0.5 >= bound * (1 - 1e-6) or not design.times.gaussian
        total += own
        assert alphas[index] > 0.5 + 3 * design.times.sd([index])[0]
    assert total <= eta
    if design.times.gaussian:
        slack = alphas - design.times.sd(np.arange(count)) * 3
        assert (slack < 30 * design.times.sd(np.arange(count))).all()


def test_numbers_that_rest_on_the_accounting_alone() -> None:
    """Section 6 of the specification, and the constants of its sections 2.0 and 2.7."""
    reference = make_design(10, delta=DELTA, mechanism="ecc", accounting="paper")
    assert math.ceil(reference.part.tau) == 536
    paper = make_design(150, delta=DELTA, accounting="paper")
    assert isinstance(paper.part, SimPartRule)
    assert paper.part.base == 13
    # two halves with C = C(100/9, ln delta = -120.534) = 1.39014 each
    assert math.sqrt(2) / float(paper.values.mu) == pytest.approx(1.39014, rel=1e-5)
    predicted = paper.predict(horizon=10**4, rate=0.5)
    assert predicted.buckets == pytest.approx(485, abs=2)
    assert np.mean(paper.alphas(0, 485)) == pytest.approx(88, abs=25)
    joint = make_design(150, delta=DELTA, accounting="joint")
    mu = float(mu_for(Fraction(8, 9) * 150, ln_delta=ln_of(DELTA / 2)[0]))
    assert math.sqrt(2) / float(joint.values.mu) == pytest.approx(math.sqrt(12) / mu, rel=1e-9)
    older = make_design(150, delta=DELTA, accounting="joint-40-9")
    mu = float(mu_for(Fraction(8, 9) * 150, ln_delta=ln_of(DELTA / 8)[0]))
    assert math.sqrt(2) / float(older.values.mu) == pytest.approx(math.sqrt(40) / mu, rel=1e-9)
    assert make_design(10, delta=DELTA, accounting="joint-40-51").part.base == 140


@pytest.mark.parametrize(
    ("accounting", "expected", "epsilon"),
    [
        ("paper", 49.7, 150),
        ("joint-40-51", 22.9, 150),
        ("joint-40-9", 21.2, 150),
        ("paper", 134.2, 10),
        ("joint-40-51", 94.0, 10),
        ("joint-40-9", 61.9, 10),
    ],
)
def test_predictions_near_the_reference_numbers(accounting: str, expected: float, epsilon: int) -> None:
    design = make_design(epsilon, delta=DELTA, accounting=accounting)
    assert design.predict(horizon=10**4, rate=0.5).rmse == pytest.approx(expected, rel=0.05)


def test_the_sharp_accounting_pays() -> None:
    """At epsilon = 10 on a dense stream of 10^4 steps; 61.9 and 134 before."""
    latest = make_design(10, delta=DELTA, horizon=10**4, rate=0.5)
    assert latest.predicted_rmse < 14
    carried = make_design(10, delta=DELTA, horizon=10**4, rate=0.5, display="extrapolated")
    assert carried.predicted_rmse < 5
    assert latest.capacity is not None
    assert latest.capacity < 1200
    ecc = make_design(10, delta=DELTA, mechanism="ecc", horizon=10**4, rate=0.01)
    assert ecc.predict().first_update_steps * 0.01 < 40  # events; about 900 with the paper's


def test_records_restore_the_same_design() -> None:
    for options in (
        {"horizon": 2000},
        {"horizon": 2000, "base": "chain", "display": "extrapolated"},
        {"mechanism": "ecc", "accounting": "paper", "high": 5, "resolution": 0.25},
        {"mechanism": "ecc", "horizon": 500},
    ):
        design = make_design(4, delta=DELTA, **options)
        restored = Design.from_record(json.loads(json.dumps(design.record())))
        assert restored == design
        assert restored.digest == design.digest
    other = make_design(4, delta=DELTA, horizon=2001)
    assert other.digest != make_design(4, delta=DELTA, horizon=2000).digest
    tampered = design.record()
    tampered["ledger"]["epsilon"] = "1"
    with pytest.raises(ParameterError):
        Design.from_record(tampered)


def test_deterministic() -> None:
    first, second = (make_design(7, delta=DELTA, horizon=10**5, rate=0.2) for _ in range(2))
    assert first == second


def test_larger_budgets_err_less() -> None:
    def errors(values, **options):
        return [make_design(e, delta=d, horizon=10**4, rate=0.3, **options).predicted_rmse for e, d in values]

    rising = errors([(e, DELTA) for e in (0.5, 1, 3, 10, 30)])
    assert rising == sorted(rising, reverse=True)
    looser = errors([(3, d) for d in (1e-12, 1e-8, 1e-4, 1e-2)])
    assert looser == sorted(looser, reverse=True)
    assert looser[-1] < 0.7 * looser[0]
    for accounting in ("paper", "joint"):
        assert make_design(3, delta=DELTA, accounting=accounting).predict(horizon=10**4).rmse > rising[2]


def test_largest_inputs_scale_the_counts_alone() -> None:
    one = make_design(4, delta=DELTA, horizon=1000)
    five = make_design(4, delta=DELTA, horizon=1000, high=5, resolution=0.5)
    assert five.values.change == 5
    assert five.times == one.times
    assert five.part == one.part
    assert five.predicted_rmse == pytest.approx(5 * one.predicted_rmse, rel=1e-2)
    assert np.allclose(five.values.sd([0, 3]), 5 * one.values.sd([0, 3]), rtol=1e-9)


def test_past_the_capacity() -> None:
    design = make_design(4, delta=DELTA, horizon=100)
    assert design.alphas(0, design.capacity).shape == (design.capacity,)
    with pytest.raises(HorizonError):
        design.alphas(0, design.capacity + 1)
    with pytest.raises(HorizonError):
        design.values.sd([design.capacity])


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0},
        {"epsilon": math.nan},
        {"delta": 0},
        {"delta": 1},
        {"mechanism": "other"},
        {"accounting": "paper-9", "mechanism": "ecc"},
        {"accounting": "paper", "base": "toeplitz"},
        {"base": "toeplitz"},
        {"base": "relay", "horizon": 10},
        {"horizon": 0},
        {"rate": 0},
        {"rate": 1.5},
        {"display": "none"},
        {"high": -1},
    ],
)
def test_refused(options) -> None:
    arguments = {"epsilon": 1, "delta": DELTA, **options}
    with pytest.raises(ParameterError):
        make_design(arguments.pop("epsilon"), **arguments)


def test_bases_are_checked() -> None:
    for arguments in (
        ("toeplitz", None, Fraction(1), None),
        ("cc", 5, Fraction(1), None),
        ("toeplitz", 5, None, Fraction(1)),
        ("relay", None, Fraction(1), Fraction(1)),
        ("other", None, Fraction(1), None),
    ):
        with pytest.raises(ParameterError):
            BaseSpec(*arguments)


def test_ledgers_refuse_to_overspend() -> None:
    part = LedgerPart("one", Fraction(1, 2), Fraction(-12), "half")
    ledger = EditLedger(Fraction(1), DELTA, (part, LedgerPart("two", Fraction(1, 2), None, "the rest")))
    assert ledger.spent_epsilon == 1
    assert ledger.spent_delta <= DELTA
    assert ledger.spent_ln_delta == pytest.approx(-12, abs=1e-9)
    assert "one" in ledger.as_text()
    assert "spent: epsilon 1 (1)" in ledger.as_text()
    assert ledger.record()[1] == {"part": "two", "epsilon": "1/2", "ln_delta": None}
    assert EditLedger.from_record(ledger.exact_record()) == ledger
    with pytest.raises(ParameterError):
        EditLedger(Fraction(1), DELTA, (part, part, part))
    with pytest.raises(ParameterError):
        EditLedger(Fraction(1), Fraction(1, 10**6), (part,))


@pytest.mark.parametrize("kind", KINDS)
def test_processes_have_the_promised_deviations(kind: str) -> None:
    """Variances that the processes themselves tell, at their first buckets."""
    design = make_design(5, delta=DELTA, base=kind, horizon=None if kind in UNBOUNDED else 300)
    noise = design.values.build(key=bytes(range(32)), stream_id=bytes(16), purpose="test", places=20)
    index = np.arange(12)
    told, claimed = np.sqrt(noise.variance(index)), design.values.sd(index)
    assert (told <= claimed * (1 + 1e-9)).all()
    assert (told >= claimed * (1 - 1.2e-3)).all()
    assert noise.range(0, 12).shape == (12,)


@pytest.mark.parametrize("rate", [1e-320, 5e-324, 0, 1.5, float("nan")])
@pytest.mark.parametrize("mechanism", ["simecc", "ecc"])
def test_rates_that_no_stream_has(rate: float, mechanism: str) -> None:
    with pytest.raises(ParameterError, match="rate"):
        make_design(10, delta=DELTA, mechanism=mechanism, horizon=200, base="toeplitz", rate=rate)
