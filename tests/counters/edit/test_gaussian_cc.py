"""GaussianCC and HorizonGaussian: streams with BOT, repeats, saved states, law of the errors, statement."""

from __future__ import annotations

import copy
import json
import math
import pickle
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters.edit.gaussian_cc import GaussianCC, HorizonGaussian, PrefixGaussian
from trilift.counters.edit.gaussian_setup import GaussianSetup, make_gaussian_setup
from trilift.lift.errors import (
    ArtifactFormatError,
    HorizonError,
    ParameterError,
    ReplayError,
    StateError,
)

DELTA = Fraction(1, 10**5)


def growing(**options: Any) -> GaussianCC:
    return GaussianCC(options.pop("epsilon", 10), DELTA, **({"simulation_seed": 1} | options))


def flat(**options: Any) -> HorizonGaussian:
    return HorizonGaussian(10, DELTA, **({"simulation_seed": 1, "horizon": 50} | options))


BOTH = pytest.mark.parametrize("make", [growing, flat], ids=["growing", "flat"])


# -- counting ----------------------------------------------------------------------------------------


@BOTH
def test_step_by_step_and_many_at_once_agree(make: Any) -> None:
    values = [1, None, 0, 1, 1, None, None, 1] * 6
    one, many, mixed = make(), make(), make()
    single = [one.update(x) for x in values]
    assert many.extend(values).tolist() == single
    first, second = mixed.extend(values[:5]).tolist(), mixed.update(values[5])
    assert [*first, second, *mixed.extend(values[6:]).tolist()] == single
    assert one.step == many.step == 48
    assert many.extend([]).size == 0


@BOTH
def test_what_stands_for_bot(make: Any) -> None:
    listed = make().extend([1, None, 1]).tolist()
    assert make().extend(np.ma.MaskedArray([1, 5, 1], mask=[False, True, False])).tolist() == listed
    assert make().extend([1, 0, 1]).tolist() == listed  # BOT counts 0; only neighbours tell them apart


@BOTH
@given(
    streams=st.lists(
        st.lists(st.sampled_from([0, 1, None]), min_size=20, max_size=20), min_size=2, max_size=3
    )
)
@settings(max_examples=10, deadline=None)
def test_the_noise_does_not_depend_on_the_data(make: Any, streams: list[list[Any]]) -> None:
    noises = [make().extend(x) - np.cumsum([item or 0 for item in x]) for x in streams]
    assert all((noise == noises[0]).all() for noise in noises)


def test_fractional_inputs_and_a_finer_output() -> None:
    values = [0.25, None, 1.75, 2]
    plain = growing(high=2, resolution=0.25)
    fine = growing(high=2, resolution=0.25, output_resolution=Fraction(1, 1 << 30))
    released = plain.extend(values)
    assert (released * 4 == np.round(released * 4)).all()
    sharp = fine.extend(values)
    assert ((sharp * 4) % 1 != 0).any()
    assert plain.sd(3) == pytest.approx(2 * growing(high=1).sd(3), rel=1e-2)
    whole = growing(high=10**30)  # far past int64
    assert whole.extend([10**30, None]).dtype == object


@BOTH
def test_a_repeated_step_gets_its_value_again(make: Any) -> None:
    counter = make()
    released = counter.extend([1, None, 0]).tolist()
    assert [counter.update(x, step=k) for k, x in ((1, 1), (2, None), (3, 0))] == released
    with pytest.raises(ReplayError):
        counter.update(0, step=2)  # BOT is another input than 0
    with pytest.raises(StateError):
        counter.update(1, step=5)
    assert counter.update(1, step=4) == make().extend([1, None, 0, 1])[-1]


@BOTH
@pytest.mark.parametrize("bad", [2, -1, 0.5, math.nan, "1", True, [1]], ids=str)
def test_a_refused_input_changes_nothing(make: Any, bad: Any) -> None:
    counter = make()
    counter.update(1)
    for call in (lambda: counter.update(bad), lambda: counter.extend([1, bad])):
        with pytest.raises(ParameterError):
            call()
    assert counter.step == 1
    assert counter.update(0) == make().extend([1, 0])[-1]


@BOTH
def test_the_horizon_is_the_end(make: Any) -> None:
    counter = make(horizon=4)
    counter.extend([1, 1, 1])
    with pytest.raises(HorizonError):
        counter.extend([1, 1])
    assert counter.step == 3
    counter.update(1)
    with pytest.raises(HorizonError):
        counter.update(1)
    with pytest.raises(HorizonError):
        counter.sd(5)


def test_a_horizon_does_not_change_the_growing_noise() -> None:
    assert (growing(horizon=30).extend([1] * 30) == growing().extend([1] * 30)).all()


# -- law ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "rmse"), [("growing", 570.58), ("flat", 49.99)])
def test_errors_have_the_stated_deviations(name: str, rmse: float) -> None:
    """The squared standardised errors of 10^4 steps sum to chi square: six of its deviations are 1e-8."""
    T = 10**4
    counter: PrefixGaussian = growing() if name == "growing" else flat(horizon=T)
    ones = np.ones(T, dtype=np.int64)
    errors = counter.extend(ones) - np.cumsum(ones)
    sd = counter.sd(np.arange(1, T + 1))
    assert math.sqrt(float((sd**2).mean())) == pytest.approx(rmse, abs=0.02)
    chi = float(((errors / sd) ** 2).sum())
    assert abs(chi - T) < 6 * math.sqrt(2 * T)
    assert abs(chi / 1.2 - T) > 6 * math.sqrt(2 * T)  # deviations off by a tenth would show


def test_standard_deviations() -> None:
    counter = growing()
    wanted = 1.85 * math.sqrt(7) * math.log(8) / float(counter.setup.mu)
    assert counter.sd(7) == pytest.approx(math.sqrt(wanted**2 + 1 / 12), rel=1e-12)
    assert flat().sd([1, 50]).tolist() == [flat().sd(1)] * 2
    for bad in (0, 1.5, [0, 1]):
        with pytest.raises(ParameterError):
            counter.sd(bad)


# -- budget -------------------------------------------------------------------------------------------


@given(
    st.fractions(min_value=Fraction(1, 50), max_value=200),
    st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(1, 2)),
    st.sampled_from(["growing", "flat"]),
)
@settings(max_examples=12, deadline=None)
def test_the_ledger_is_within_the_ask(epsilon: Fraction, delta: Fraction, law: str) -> None:
    setup = make_gaussian_setup(epsilon, delta=delta, law=law, horizon=1000)
    assert setup.ledger.spent_epsilon == epsilon
    assert delta * (1 - Fraction(1, 10**6)) < setup.ledger.spent_delta <= delta
    assert setup.law.spent_mu_sq <= setup.mu**2
    restored = GaussianSetup.from_record(json.loads(json.dumps(setup.record())))
    assert restored == setup


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0},
        {"epsilon": math.nan},
        {"horizon": 0},
        {"high": 0},
        {"resolution": 0.3},
        {"resolution": 0.5, "output_resolution": 1},
        {"clip": 1},
    ],
    ids=str,
)
def test_arguments_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        growing(**options)
    for delta in (0, 1, 1.5, math.nan):
        with pytest.raises(ParameterError):
            GaussianCC(1, delta)


def test_words() -> None:
    assert "growing" in growing().describe()
    assert "the same at every step" in flat().describe()


def test_statement() -> None:
    text = growing().privacy_statement()
    assert text.startswith("SIMULATION")
    real = HorizonGaussian(2, 1e-6, horizon=100).privacy_statement()
    assert real.startswith("Neighbours: edit: two streams of 100 steps")
    assert "epsilon = 2" in real
    assert "fixed in advance" in real


# -- states -------------------------------------------------------------------------------------------


@BOTH
def test_a_saved_counter_goes_on(make: Any, tmp_path: Path) -> None:
    path, counter = tmp_path / "state.json", make()
    first = counter.extend([1, None, 1]).tolist()
    counter.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = type(counter).load(path)
    assert again.step == 3
    assert again.update(None, step=2) == first[1]
    assert again.extend([1, 0]).tolist() == counter.extend([1, 0]).tolist()
    assert (again.epsilon, again.delta, again.horizon) == (counter.epsilon, counter.delta, counter.horizon)


def test_real_keys_differ_and_survive_saving(tmp_path: Path) -> None:
    one, two = GaussianCC(1, DELTA), GaussianCC(1, DELTA)
    released = one.extend([1] * 20).tolist()
    assert released != two.extend([1] * 20).tolist()
    one.save(tmp_path / "a")
    assert GaussianCC.load(tmp_path / "a").update(1) == one.update(1)
    assert "SIMULATION" not in one.privacy_statement()


def test_a_state_that_keeps_itself(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with growing(state=path) as counter:
        value = counter.update(1)
        with pytest.raises(StateError):
            GaussianCC.load(path, persist=True)  # in use
        with pytest.raises(StateError):
            growing(state=path)
    with pytest.raises(StateError):
        counter.update(1)
    with GaussianCC.load(path, persist=True) as again:
        assert again.update(1, step=1) == value
        again.update(1)
    assert GaussianCC.load(path).step == 2


def test_states_of_others_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    growing().save(path)
    assert json.loads(path.read_text())["kind"] == "GaussianCC"
    with pytest.raises(ArtifactFormatError, match="is the state of 'GaussianCC'"):
        HorizonGaussian.load(path)
    record = json.loads(path.read_text())
    for change in ({"count": 7}, {"version": 2}, {"format": "x"}, {"kind": None}, {"checksum": "0"}):
        path.write_text(json.dumps(record | change))
        with pytest.raises(ArtifactFormatError):
            GaussianCC.load(path)
    path.write_text("{")
    with pytest.raises(ArtifactFormatError):
        GaussianCC.load(path)
    with pytest.raises(ArtifactFormatError):
        GaussianCC.load(tmp_path / "none")


def test_another_mechanism_under_the_same_state_is_not_continued(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "state.json"
    growing().save(path)
    monkeypatch.setattr("trilift.counters.edit.gaussian_laws.FACTOR", 1.86)
    with pytest.raises(ReplayError):
        GaussianCC.load(path)


def test_it_is_neither_copied_nor_pickled_and_hides_its_key() -> None:
    counter = growing()
    for call in (copy.copy, pickle.dumps):
        with pytest.raises(StateError):
            call(counter)
    assert "SIMULATION" in repr(counter)
    assert bytes(counter._key).hex() not in repr(counter) + repr(counter._snapshot(counter._now))
