"""The audit of mechanisms whose privacy is known exactly."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trilift.experiments.audit.engine import AuditResult, audit
from trilift.experiments.audit.subject import Pair, Subject
from trilift.lift.errors import ParameterError


class LaplaceRelease(Subject):
    """x + Laplace noise of scale 1: exactly 1-private for |x - x'| <= 1."""

    name, neighbours, batch = "toy", "one number", 500

    def __init__(self, claim: Any, delta: Any = 0) -> None:
        self.epsilon, self.delta = Fraction(claim), Fraction(delta)
        self.seeds: list[int] = []

    def pairs(self) -> Sequence[Pair]:
        return [Pair("nothing", (0,), (0,)), Pair("one", (0,), (1,))]

    def release(self, streams: Sequence[Any], *, seed: int) -> Sequence[Any]:
        self.seeds.append(seed)
        noise = np.random.default_rng(seed).laplace(size=(self.batch, 1))
        return [noise + np.array(stream) for stream in streams]


def found(claim: Any, delta: Any = 0, runs: int = 40_000) -> AuditResult:
    return audit(LaplaceRelease(claim, delta), runs=runs, seed=3)


def test_an_exact_claim_is_met_and_nearly_reached() -> None:
    result = found(1)  # false alarm: at most 0.001
    assert not result.violated
    assert result.epsilon_lower_bound > 0.9
    assert result.pair == "one"


def test_a_claim_that_is_too_small_is_refuted() -> None:
    result = found("0.8")
    assert result.violated
    assert result.to_json()["verdict"] == "violated"


def test_a_delta_is_audited_too() -> None:
    """At epsilon 1/2 the truth is delta = 1 - e^(-1/4) = 0.2212."""
    result = found("0.5", "0.1")
    assert result.violated
    assert 0.19 < result.delta_lower_bound <= 1 - np.exp(-0.25)
    assert not found("0.5", "0.23").violated


def test_stages_have_keys_of_their_own_and_half_of_the_runs_judge() -> None:
    subject = LaplaceRelease(1)
    done: list[tuple[int, int]] = []
    result = audit(subject, runs=10_000, seed=3, progress=lambda *step: done.append(step))
    assert len(set(subject.seeds)) == len(subject.seeds) == result.runs // subject.batch
    assert 2 * result.tested >= result.runs >= 10_000
    assert done[0][0] == 0
    assert done[-1] == (len(subject.seeds), len(subject.seeds))


def test_a_seed_gives_the_same_audit() -> None:
    assert found(1, runs=4000) == found(1, runs=4000)


@pytest.mark.parametrize(("runs", "confidence"), [(10, 0.9), (1000, 1.0), (1000, 0.0), (1000, float("nan"))])
def test_bad_arguments_are_refused(runs: int, confidence: float) -> None:
    with pytest.raises(ParameterError):
        audit(LaplaceRelease(1), runs=runs, seed=1, confidence=confidence)
