"""The Gaussian counter: budgets in directed logarithms, exact noise of the stated size, saved states."""

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters import GaussianCounter, chain_of
from trilift.lift.errors import ArtifactFormatError, HorizonError, ParameterError, ReplayError
from trilift.stream.gdp import ln_delta_bounds, ln_of

DELTA = Fraction(1, 10**6)
KINDS: list[dict[str, Any]] = [
    {"horizon": 60},
    {"horizon": 60, "objective": "mean"},
    {"horizon": 60, "mechanism": "toeplitz"},
    {"horizon": 60, "chain": ("stage-l2-max-9", "direct-l2-max-8")},
    {},
]


def make(**options: Any) -> GaussianCounter:
    return GaussianCounter(1, DELTA, **{"simulation_seed": 2} | options)


@settings(deadline=None, max_examples=25)
@given(
    epsilon=st.fractions(Fraction(1, 100), 50),
    exponent=st.integers(1, 300),
    mechanism=st.sampled_from(["chain", "toeplitz"]),
)
def test_the_delta_that_is_spent_is_at_most_the_ask(epsilon: Fraction, exponent: int, mechanism: str) -> None:
    delta = Fraction(1, 10**exponent)
    counter = GaussianCounter(epsilon, delta, horizon=8, mechanism=mechanism, simulation_seed=1)
    with localcontext() as context:
        context.prec = 400
        spent = Decimal(counter.ln_delta.numerator) / Decimal(counter.ln_delta.denominator)
        assert spent <= Decimal(1).scaleb(-exponent).ln()
    assert counter.ln_delta >= ln_of(delta)[0] - Fraction(1, 10**9)  # and nearly all of it is spent
    assert ln_delta_bounds(epsilon, mu=counter.mu)[1] == counter.ln_delta
    if mechanism == "chain":
        ledger = counter.setup.ledger
        assert Fraction(99, 100) * counter.mu**2 < ledger.spent_sq <= counter.mu**2


@pytest.mark.parametrize("options", KINDS)
def test_save_and_continue(options: dict[str, Any], tmp_path: Path) -> None:
    inputs = [1, 0] * 25
    whole = make(**options).extend(inputs).tolist()
    counter = make(**options)
    got = counter.extend(inputs[:17]).tolist()
    counter.save(tmp_path / "state")
    other = GaussianCounter.load(tmp_path / "state")
    assert other.mu == counter.mu
    assert got + other.extend(inputs[17:]).tolist() == whole
    assert other.update(0, step=50) == whole[-1]
    assert [make(**options).extend(inputs[:k])[-1] for k in (1, 5)] == [whole[0], whole[4]]


def test_a_chain_object_is_asked_for_again(tmp_path: Path) -> None:
    chain = chain_of(("stage-l2-max-9", "direct-l2-max-8"), norm="l2")
    counter = make(horizon=60, chain=chain)
    first = counter.extend([1] * 5).tolist()
    counter.save(tmp_path / "state")
    with pytest.raises(ParameterError):
        GaussianCounter.load(tmp_path / "state")
    other = GaussianCounter.load(tmp_path / "state", chain=chain)
    assert other.update(1, step=5) == first[-1]
    with pytest.raises(ReplayError):
        GaussianCounter.load(
            tmp_path / "state", chain=chain_of(("stage-l2-max-17", "direct-l2-max-8"), norm="l2")
        )


def test_a_larger_mu_in_a_state_is_refused(tmp_path: Path) -> None:
    from trilift.counters.state_file import checksum

    make(horizon=60, mechanism="toeplitz").save(tmp_path / "state")
    record = json.loads((tmp_path / "state").read_text())
    record["setup"]["mu"] = str(Fraction(record["setup"]["mu"]) * Fraction(1001, 1000))
    record["checksum"] = checksum(record)
    (tmp_path / "state").write_text(json.dumps(record))
    with pytest.raises(ArtifactFormatError, match="spends more than delta"):
        GaussianCounter.load(tmp_path / "state")


@pytest.mark.slow
@pytest.mark.parametrize("options", [KINDS[0], KINDS[2], {"growth": "doubling"}])
def test_standard_deviations_over_keys(options: dict[str, Any]) -> None:
    """Sample variance of 800 coordinates at three steps: within 5.2 sqrt(2/800); false alarm below 1e-6 each.

    That is 26 % of a variance; half the noise, or twice, would show.
    """
    copies = 800
    counter = make(**options, dimension=copies)
    steps = np.array([0, 6, 37])
    drawn = np.array([noise.at(steps).astype(float) for noise in counter._noises])
    found = (drawn**2).mean(axis=0)
    stated = np.array([counter.sd(int(t) + 1) ** 2 for t in steps])
    assert (np.abs(found / stated - 1) <= 5.2 * math.sqrt(2 / copies)).all()


def test_the_hybrids_accuracy() -> None:
    """|y_t - s_t| <= sigma_t sqrt(2 ln(2 / beta_t)), beta_t = 6 beta / (pi t)^2, for all t, beta = 0.05.

    400 coordinates, each a stream of 60 steps, under growth "doubling": at most 40 failures, which a binomial
    of mean 20 exceeds with probability below 2e-5. A third of the bound fails far more often.
    """
    copies, steps = 400, 60
    counter = make(growth="doubling", dimension=copies)
    released = counter.extend(np.zeros((steps, copies), dtype=int))
    sds = np.sqrt(counter._noises[0].variance(np.arange(steps)))
    t = np.arange(1, steps + 1)
    limits = sds * np.sqrt(2 * np.log(2 / (6 * 0.05 / (np.pi * t) ** 2))) + 4  # roundings of the parts
    assert int((np.abs(released) > limits[:, None]).any(axis=0).sum()) <= 40
    assert int((np.abs(released) > limits[:, None] / 3).any(axis=0).sum()) > 40


def test_intervals_of_gaussian_noise() -> None:
    counter = make(horizon=60)
    assert counter.interval(30) == pytest.approx(1.96 * counter.sd(30), rel=0.1)
    assert counter.interval(30, simultaneous=True) > counter.interval(30)
    with pytest.raises(HorizonError):
        counter.sd(61)


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": "toeplitz"},
        {"mechanism": "laplace", "horizon": 5},
        {"chain": ("direct-l2-max-8",)},
        {"chain": ("direct-l2-max-8",), "horizon": 5, "mechanism": "toeplitz"},
        {"growth": "relay", "horizon": 5},
        {"growth": "", "horizon": None},
        {"chain": 5, "horizon": 5},
    ],
)
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        make(**options)


@pytest.mark.parametrize("delta", [0, 1, -1, float("nan"), "1e-6", None, True])
def test_bad_deltas(delta: Any) -> None:
    with pytest.raises(ParameterError):
        GaussianCounter(1, delta, horizon=5)


def test_statements() -> None:
    text = make(horizon=60, simulation_seed=None).privacy_statement()
    for part in ("delta = 1/1000000", "mu-GDP", "rounded exactly", "Dong, Roth, Su", "60 steps"):
        assert part in text
    assert "any length" not in text
    assert "Toeplitz" in make(horizon=60, mechanism="toeplitz").privacy_statement()
