"""Epochs of chains: budgets, chains for every length, and mechanisms made again from their records."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters import chain_of
from trilift.counters.epoch_mechanisms import (
    EpochRecord,
    epoch_names,
    gaussian_epochs,
    laplace_epochs,
    mu_parts,
)
from trilift.lift.errors import ParameterError, ReplayError
from trilift.stream.epoch_layout import GROWTHS
from trilift.stream.keys import simulation_key

KEYED: dict[str, Any] = {"key": simulation_key(1), "stream_id": bytes(16), "purposes": ["test"]}
MAKERS = {"laplace": laplace_epochs, "gaussian": gaussian_epochs}


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("objective", ["max", "mean"])
def test_every_length_has_a_chain(norm: str, objective: str) -> None:
    for length in (1, 3, 100, 2**20, 10**15 + 1, 2**62):
        names = epoch_names(length, objective=objective, norm=norm)
        assert chain_of(names, norm=norm).capacity >= length


@settings(deadline=None, max_examples=25)
@given(
    law=st.sampled_from(sorted(MAKERS)),
    growth=st.sampled_from(GROWTHS),
    budget=st.fractions(Fraction(1, 1000), 100),
    change=st.fractions(Fraction(1, 64), 64),
    places=st.integers(0, 12),
)
def test_no_epoch_spends_more_than_asked(
    law: str, growth: str, budget: Fraction, change: Fraction, places: int
) -> None:
    (noise,), made = MAKERS[law](budget, growth=growth, change=change, input_places=places, **KEYED)
    noise.at([0, 2, 9, 30])
    limit = budget if law == "laplace" else budget**2
    met = {epoch for _, epoch in made.costs}
    assert met
    for epoch in met:
        spent = made.spent(epoch, layout=noise.layout)
        assert 0 < spent <= limit
        if epoch in made.records and noise.layout.shares[epoch]:
            assert spent > made.costs["epoch", epoch]  # the total is in it
        if law == "laplace" and epoch in made.records:
            assert spent > limit * Fraction(99, 100)  # and nothing is wasted


@given(mu=st.fractions(Fraction(1, 1000), 1000), share=st.fractions(0, 1))
def test_squares_of_mu_never_exceed_the_whole(mu: Fraction, share: Fraction) -> None:
    counter, total = mu_parts(mu, share)
    assert counter**2 + total**2 <= mu**2
    assert counter**2 + total**2 >= mu**2 * (1 - Fraction(1, 1 << 50))
    assert abs(total**2 - share * mu**2) <= mu**2 / (1 << 50)


@pytest.mark.parametrize("law", sorted(MAKERS))
def test_records_make_the_same_noise_without_floats(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (noise,), made = MAKERS[law](1, **KEYED)
    values = noise.range(0, 400).tolist()
    for name in ("horizon_scales", "epoch_names", "chain_of"):
        monkeypatch.delattr(f"trilift.counters.epoch_mechanisms.{name}")
    (again,), _ = MAKERS[law](1, saved=made.records, **KEYED)
    assert again.range(0, 400).tolist() == values


def test_a_changed_record_is_refused() -> None:
    (noise,), made = laplace_epochs(1, **KEYED)
    noise.at([3])
    record = made.records[0]
    level = record.levels[0]
    moved = type(level)(level.sha256, level.scale + 1, level.places)
    for wrong in (
        EpochRecord(record.names, (moved,), record.digest),
        EpochRecord(record.names, record.levels, "0" * 64),
    ):
        (other,), _ = laplace_epochs(1, saved={0: wrong}, **KEYED)
        with pytest.raises(ReplayError):
            other.at([3])
    lower = type(level)(level.sha256, level.scale // 2, level.places)  # would spend twice epsilon
    (other,), _ = laplace_epochs(1, saved={0: EpochRecord(record.names, (lower,), record.digest)}, **KEYED)
    with pytest.raises(ParameterError):
        other.at([3])


def test_halves_of_their_own() -> None:
    (noise,), made = gaussian_epochs(1, total_mu=1, growth="doubling", **KEYED)
    noise.at([6, 7])
    assert made.costs["epoch", 3] <= 1
    assert made.costs["epoch", 3] > Fraction(99, 100)
    # C^2 (j + 1) at an epoch's end, and 1/12 for the rounding of every total
    assert noise.variance([6])[0] == pytest.approx(3 + 3 / 12, rel=5e-3)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), "1", None, True])
def test_bad_budgets(wrong: Any) -> None:
    for make in MAKERS.values():
        with pytest.raises(ParameterError):
            make(wrong, **KEYED)


@pytest.mark.slow
def test_tapered_epochs_beat_the_hybrid() -> None:
    """Variance in the middle of octaves, against doubling: at least 15 % less."""
    steps = np.array([3 * 2**k // 2 for k in (5, 9, 14)])
    for law, make in MAKERS.items():
        found = {growth: make(1, growth=growth, **KEYED)[0][0].variance(steps) for growth in GROWTHS}
        assert (found["tapered"] < 0.85 * found["doubling"]).all(), law
