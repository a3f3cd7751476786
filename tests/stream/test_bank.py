"""Banks of noises: every counter's values exact, all of them independent, with the covariance L S L^T."""

import copy
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trilift.artifacts import load_stage, load_stage_l2
from trilift.lift import Chain
from trilift.lift.budget import horizon_scales
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.stream import bank as bank_module
from trilift.stream import make_ledger
from trilift.stream.bank import NoiseBank
from trilift.stream.gaussian_ledger import make_gaussian_ledger
from trilift.stream.keys import simulation_key

HORIZON = 40


def laplace_parts() -> tuple[Chain, Any]:
    chain = Chain(load_stage("direct-max-8"), [load_stage("stage-max-9")])
    scales = horizon_scales(chain, HORIZON, objective="max")
    return chain, make_ledger(chain, Fraction(1), scales=scales, change=2)


def gaussian_parts() -> tuple[Chain, Any]:
    chain = Chain(load_stage_l2("direct-l2-max-8"), [load_stage_l2("stage-l2-max-9")])
    scales = horizon_scales(chain, HORIZON, objective="max", norm="l2")
    return chain, make_gaussian_ledger(chain, Fraction(1, 2), scales=scales, change=2)


PARTS = {"laplace": laplace_parts, "gaussian": gaussian_parts}


def bank(kind: str, *, width: int, seed: int = 1, purpose: str = "bank", places: int = 0) -> NoiseBank:
    chain, ledger = PARTS[kind]()
    return NoiseBank(
        chain,
        ledger,
        width=width,
        horizon=HORIZON,
        key=simulation_key(seed),
        stream_id=bytes(16),
        purpose=purpose,
        places=places,
    )


@pytest.mark.parametrize("kind", PARTS)
def test_values_are_the_exact_roundings_however_they_are_read(kind: str) -> None:
    noise = bank(kind, width=5)
    values = noise.range(0, HORIZON)
    assert values.shape == (HORIZON, 5)
    assert np.array_equal(np.concatenate([noise.range(a, a + 1) for a in range(HORIZON)]), values)
    some = np.array([0, 8, 9, 17, 18, 39])
    assert np.array_equal(noise.at(some), values[some])
    for step in some.tolist():
        for counter in range(5):
            assert noise.exactly(step, counter=counter) == values[step, counter]


def test_exact_laplace_noise_rounds_to_the_values() -> None:
    noise = bank("laplace", width=3)
    values = noise.range(0, HORIZON)
    for step in (0, 8, 9, 30):
        for counter in range(3):
            exact = noise.exact(step, counter=counter) + Fraction(1, 2)
            assert exact.__floor__() == values[step, counter]


@pytest.mark.slow
@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("fault", [None, "off", "halved", "shared", "fresh"])
def test_covariance_over_keys(kind: str, fault: str | None) -> None:
    """2000 counters under one key are 1000 pairs. False alarm below 1e-6 (normal at 5.5 sd); faults fail.

    Tested are var(N_s), cov(N_s, N_t) within a counter, and cov(N_s, N'_t) between the counters of a pair.
    """
    width, steps = 2000, [3, 8, 9, 25]
    noise = bank(kind, width=width, seed=20)
    draws = noise.at(np.array(steps)).astype(float)
    if fault == "off":
        draws[:] = 0.0
    elif fault == "halved":
        draws /= 2.0
    elif fault == "shared":
        draws[:, 1::2] = draws[:, ::2]
    elif fault == "fresh":  # every step from a bank of its own: right variances, no covariances
        banks = [bank(kind, width=width, seed=21 + k) for k in range(len(steps))]
        draws = np.array([b.at(np.array([t]))[0] for b, t in zip(banks, steps, strict=True)], dtype=float)
    wanted = np.array([[covariance(noise, s, t) for t in steps] for s in steps])
    found = draws @ draws.T / width
    cross = draws[:, ::2] @ draws[:, 1::2].T / (width // 2)
    sd = np.sqrt(np.diag(wanted))
    spread = np.outer(sd, sd) * np.sqrt(5.0)  # fourth moments of Laplace sums are at most 6 var^2
    within = np.all(np.abs(found - wanted) < 5.5 * spread / np.sqrt(width) + 1 / 12)
    between = np.all(np.abs(cross) < 5.5 * spread / np.sqrt(width // 2))
    assert (within and between) == (fault is None)


def covariance(noise: NoiseBank, s: int, t: int) -> float:
    """Return the covariance from the dense rows of L, by other code than the bank's."""
    from trilift.lift.rows import row_covariance

    scales = [float(scale) for scale in noise.ledger.scales]
    factor = 1.0 if "Gaussian" in type(noise.ledger).__name__ else 2.0
    return factor * row_covariance(noise.chain.to_float(), s, t, scales=scales)


def test_width_and_purpose_give_other_noise() -> None:
    values = bank("laplace", width=3).range(0, 9)
    assert not np.array_equal(bank("laplace", width=4).range(0, 9)[:, :3], values)
    assert not np.array_equal(bank("laplace", width=3, purpose="other").range(0, 9), values)
    assert np.array_equal(bank("laplace", width=3).range(0, 9), values)


def test_refusals() -> None:
    noise = bank("laplace", width=2)
    for start, stop in ((0, HORIZON + 1),):
        with pytest.raises(HorizonError):
            noise.range(start, stop)
    for steps in ([3, 3], [4, 2], [0.5], [[1]]):
        with pytest.raises(ParameterError):
            noise.at(np.array(steps))
    with pytest.raises(HorizonError):
        noise.at(np.array([-1, 2]))
    with pytest.raises(ParameterError):
        bank("laplace", width=0)
    with pytest.raises(StateError):
        copy.copy(noise)
    assert noise.range(3, 3).shape == (0, 2)


@pytest.mark.parametrize("kind", PARTS)
def test_blocks_that_are_kept_do_not_matter(kind, monkeypatch) -> None:
    """Pages forward, backward and scattered steps by one bank, beside a bank that keeps nothing."""
    finest, top = [("stage-max-9", "direct-max-8"), ("stage-l2-max-9", "direct-l2-max-8")][kind == "gaussian"]
    load, make = (load_stage, make_ledger) if kind == "laplace" else (load_stage_l2, make_gaussian_ledger)
    chain = Chain(load(top), [load(finest), load(finest)])
    ledger = make(chain, 1, scales=[1.0] * 3)

    def fresh() -> NoiseBank:
        secret = {"key": simulation_key(2), "stream_id": bytes(16), "purpose": "kept"}
        return NoiseBank(chain, ledger, width=3, horizon=600, **secret)

    rng, kept = np.random.default_rng(5), fresh()
    pages = [np.arange(a, min(a + 29, 600)) for a in range(0, 600, 29)]
    pages += pages[::-7] + [np.unique(rng.integers(0, 600, k)) for k in (1, 2, 5, 60)]
    found = [kept.at(page).tolist() for page in pages]
    assert any(held for _, held in kept._held)
    monkeypatch.setattr(bank_module, "_MOST_HELD", 0)
    plain = fresh()
    assert [plain.at(page).tolist() for page in pages] == found
    assert not any(held for _, held in plain._held)
