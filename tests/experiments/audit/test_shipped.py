"""Wide counters are the counters that they stand for, pairs are neighbours, audits find no fault."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trilift.counters import neighbours
from trilift.experiments.audit.engine import audit
from trilift.experiments.audit.running import RunningSubject, widened
from trilift.experiments.audit.shipped import APPROXIMATE, MECHANISMS, PURE, make_subject, resolved
from trilift.lift.errors import ParameterError

EDIT = ("simecc", "simecc-endless", "ecc", "gaussian-cc", "horizon-gaussian")
CHEAP = ("counter-vectors", "gaussian-chain", "horizon-gaussian")


def subject(name: str) -> Any:
    return make_subject(name, epsilon=Fraction(1))


@pytest.mark.parametrize(
    "name", [n for n in MECHANISMS if n.split("-")[0] in ("counter", "gaussian", "biased")]
)
def test_a_coordinate_of_a_wide_counter_has_the_noise_of_the_counter(name: str) -> None:
    audited = subject(name)
    if not isinstance(audited, RunningSubject):
        return
    wide: Any = audited._kind.__new__(audited._kind)
    wide._begin(widened(audited._setup, 4), 1, None)
    steps = np.arange(audited._steps)
    for noise in wide._noises:
        assert noise.variance(steps) == pytest.approx(audited._process.variance(steps), rel=1e-9)


def test_pairs_are_neighbours() -> None:
    for name in EDIT:
        for pair in subject(name).pairs():
            assert neighbours.are_edit_neighbours(pair.first, other=pair.second), (name, pair)
    for pair in subject("ending").pairs():
        assert neighbours.are_extended_neighbours(pair.first, other=pair.second), pair
    for pair in subject("partition-cc").pairs():
        assert neighbours.are_step_neighbours(pair.first, other=pair.second), pair
    for pair in subject("distinct-grouped").pairs():
        assert sum(a != b for a, b in zip(pair.first, pair.second, strict=True)) == 1


def test_impulses_lie_beside_every_boundary() -> None:
    audited = subject("counter-two-levels")
    changed = {
        t
        for pair in audited.pairs()
        for t, (a, b) in enumerate(zip(pair.first, pair.second, strict=True))
        if a != b
    }
    assert {0, 8, 9, 10, 17, 18, 19, 26} <= changed
    signs = {np.sign(np.subtract(pair.second, pair.first).sum()) for pair in audited.pairs()}
    assert signs == {-1.0, 1.0}
    assert 0.999 < audited.largest_loss <= 1.0 + 1e-9  # what the ledger spends on the costliest column


@pytest.mark.parametrize("name", CHEAP)
def test_shipped_mechanisms_are_consistent(name: str) -> None:
    result = audit(subject(name), runs=2048, seed=11)  # each: false alarm at most 0.001
    assert not result.violated
    assert result.mechanism == name


def test_the_bound_of_a_pure_mechanism_comes_close_to_its_claim() -> None:
    result = audit(subject("noise-bank"), runs=60_000, seed=11)
    assert 0.9 < result.epsilon_lower_bound <= 1


def test_classes_stand_for_mechanisms() -> None:
    assert resolved("BiasedCounter") == "biased"
    assert set(PURE).isdisjoint(APPROXIMATE)
    with pytest.raises(ParameterError, match="nothing"):
        resolved("nothing")
    with pytest.raises(ParameterError, match="delta"):
        make_subject("biased", epsilon=Fraction(1), delta=Fraction(0))
    assert make_subject("counter-step", epsilon=Fraction(1), delta=Fraction(1, 9)).delta == Fraction(1, 9)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_can_be_audited(name: str) -> None:
    """Its streams are taken, and every run of a batch gives as many numbers."""
    subject = make_subject(name, epsilon=Fraction(1))
    pair = subject.pairs()[0]
    first, second = subject.release([pair.first, pair.second], seed=3)
    assert len(first) == len(second) == subject.batch
