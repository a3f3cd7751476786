"""Streams that end: the number of steps after the end hides a step, exactly."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from trilift.counters.durable import DurableCounter
from trilift.counters.edit.gaussian_cc import GaussianCC
from trilift.counters.edit.mechanism import SimECC
from trilift.counters.edit.padding import EndingCounter, padding_offset
from trilift.counters.state_file import write_record
from trilift.lift.errors import ArtifactFormatError, ParameterError, ReplayError, StateError
from trilift.stream.keys import simulation_key


def lengths(epsilon: float, offset: int) -> np.ndarray:
    """Pr[max(0, m + Z) = k] at index k; the tail beyond is below 1e-30 of the largest."""
    u = math.exp(-epsilon / 2)
    reach = offset + math.ceil(140 / epsilon)
    z = np.arange(-offset + 1, reach)
    inner = (1 - u) / (1 + u) * u ** np.abs(z).astype(np.float64)
    return np.concatenate([[u**offset / (1 + u)], inner])


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1, 2, 10])
@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-5, 1e-9])
def test_hockey_stick_is_at_most_half_of_delta_both_ways(epsilon, delta) -> None:
    """Padded lengths of streams of n and n+1 steps at (epsilon/2, delta/2); one BOT less is too few."""
    offset = padding_offset(epsilon, delta=delta)
    p = lengths(epsilon, offset)
    short, long = np.concatenate([p, [0]]), np.concatenate([[0], p])  # lengths n, n+1, ...
    factor = math.exp(epsilon / 2)
    for one, other in ((short, long), (long, short)):
        excess = np.maximum(one - factor * other * (1 + 1e-12), 0)[:-2].sum()
        assert excess <= delta / 2
    assert lengths(epsilon, offset)[0] <= delta / 2
    assert padding_offset(epsilon, delta=delta) == 1 + math.ceil(2 / epsilon * math.log(1 / delta))


def test_without_the_offset_there_is_no_privacy() -> None:
    """Negative control: "no padding" has probability above 1/2 and tells streams of n and n+1 steps apart."""
    assert lengths(1, 0)[0] > 0.5


def test_the_padding_follows_its_law() -> None:
    """2000 keys; chi-square, cells of 20 or more, false alarm 1e-6; another centre is refused."""
    epsilon, delta, runs = 4, 1e-2, 2000
    counter = EndingCounter(epsilon, delta, simulation_seed=0, accounting="paper")
    offset, drawn = padding_offset(epsilon, delta=delta), []
    for seed in range(runs):
        counter._counter._key = simulation_key(seed)
        drawn.append(max(0, offset + counter._draw()))
    expected = lengths(epsilon, offset) * runs
    cut = np.flatnonzero(expected >= 20)
    low, high = int(cut[0]), int(cut[-1])
    cells = np.array([expected[: low + 1].sum(), *expected[low + 1 : high], expected[high:].sum()])
    counts = np.bincount(np.clip(drawn, low, high) - low, minlength=len(cells))
    assert stats.chisquare(counts, cells, sum_check=False).pvalue > 1e-6
    assert stats.chisquare(counts, np.roll(cells, 1), sum_check=False).pvalue < 1e-6


def test_padding_is_more_of_the_same_stream() -> None:
    counter = EndingCounter(10, 1e-5, simulation_seed=3, accounting="paper")
    assert counter.counter.epsilon == 5
    assert counter.counter.delta == Fraction(1e-5) / 2
    assert counter.counter.horizon is None
    shown = [counter.update(1), *counter.extend([1, None] * 40).tolist()]
    rest = counter.finish().tolist()
    twin = SimECC.of(counter.counter.design, simulation_seed=3)
    assert twin.extend([1] + [1, None] * 40 + [None] * len(rest)).tolist() == shown + rest
    assert counter.step == 81 + len(rest)
    assert counter.finished


def test_after_the_end_nothing_is_taken() -> None:
    counter = EndingCounter(10, 1e-5, simulation_seed=3, accounting="paper")
    counter.finish()
    for call in (lambda: counter.update(1), lambda: counter.extend([]), counter.finish):
        with pytest.raises(StateError, match="has ended"):
            call()


@pytest.mark.parametrize("options", [{"horizon": 10}, {"mechanism": "cc"}, {"rate": -1}])
def test_what_is_refused(options) -> None:
    with pytest.raises(ParameterError):
        EndingCounter(1, 1e-5, **options)
    for delta in (0, 1, 2, float("nan")):
        with pytest.raises(ParameterError):
            padding_offset(1, delta=delta)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**5), Fraction(1, 2), Fraction(10)])
@pytest.mark.parametrize("delta", [Fraction(1, 3), Fraction(1, 10**9)])
def test_the_ledger_holds_both_halves(epsilon, delta) -> None:
    """What it says of the end is at least Pr[no padding], and a little more would not fit beside delta/2."""
    counter = EndingCounter(epsilon, delta, simulation_seed=3, accounting="paper")
    ledger = counter.ledger
    assert ledger.parts[1:] == counter.counter.ledger.parts
    assert ledger.spent_epsilon == epsilon / 2 + counter.counter.ledger.spent_epsilon <= epsilon
    assert ledger.spent_delta <= delta
    end = ledger.parts[0]
    none = lengths(float(epsilon), padding_offset(epsilon, delta=delta))[0]
    assert math.log(none) <= end.ln_delta + 1e-9
    assert end.ln_delta <= math.log(delta / 2) + 1e-12
    assert f"{padding_offset(epsilon, delta=delta)} steps after the true end" in counter.describe()


def test_words() -> None:
    text = EndingCounter(10, 1e-5, simulation_seed=3, accounting="paper").privacy_statement()
    assert "end of the stream epsilon 5" in " ".join(text.split())
    assert "extended edit" in text
    assert "SIMULATION" in text
    assert repr(EndingCounter(10, 1e-5, simulation_seed=3, accounting="paper")) == (
        "EndingCounter(epsilon=10, step=0, finished=False)"
    )


def test_a_stream_is_saved_and_ends_at_the_same_step(tmp_path: Path) -> None:
    """Whenever it is saved and continued, before the end or after it, the values are those of one process."""
    inputs: list[Any] = [1, None, 1, 0] * 20
    whole = ending()
    expected = [*whole.extend(inputs).tolist(), *whole.finish().tolist()]
    counter = ending()
    shown = counter.extend(inputs[:33]).tolist()
    counter.save(tmp_path / "s.json")
    counter = EndingCounter.load(tmp_path / "s.json", persist=True)
    assert (counter.epsilon, counter.delta, counter.step) == (whole.epsilon, whole.delta, 33)
    assert counter.ledger.as_text() == whole.ledger.as_text()
    assert counter.update(inputs[32], step=33) == shown[-1]
    shown += counter.extend(inputs[33:]).tolist()
    counter.close()
    with EndingCounter.load(tmp_path / "s.json", persist=True) as counter:
        assert not counter.finished
        shown += counter.finish().tolist()
    assert shown == expected
    assert len(shown) > len(inputs)
    counter = EndingCounter.load(tmp_path / "s.json")
    assert (counter.finished, counter.step) == (True, len(expected))
    assert counter.update(None, step=len(expected)) == expected[-1]
    for act in (lambda: counter.update(1), lambda: counter.extend([1]), counter.finish):
        with pytest.raises(StateError, match="the stream has ended"):
            act()
    with pytest.raises(StateError, match="exists"):
        EndingCounter(10, 1e-5, accounting="paper", state=tmp_path / "s.json")
    with pytest.raises(ArtifactFormatError):
        SimECC.load(tmp_path / "s.json")
    with pytest.raises(StateError, match="a part of an EndingCounter"):
        counter.counter.update(1)


def test_states_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    counter = ending()
    counter.extend([1, 0])
    counter.save(path)
    record = json.loads(path.read_text())
    for change in (
        {"epsilon": "11"},
        {"delta": "1/3"},
        {"finished": 1},
        {"step": 3},
        {"kind": "SimECC"},
        {"version": 2},
        {"format": "trilift edit counter state"},
    ):
        write_record(path, record=record | change)
        with pytest.raises(ArtifactFormatError):
            EndingCounter.load(path)
    write_record(path, record=record | {"digest": "0" * 64})
    with pytest.raises(ReplayError, match="another mechanism"):
        EndingCounter.load(path)
    write_record(path, record=record)
    assert EndingCounter.load(path).step == 2


def test_a_durable_stream_ends_once(tmp_path: Path) -> None:
    whole = ending()
    expected = [*whole.extend([1, 0, 1]).tolist(), *whole.finish().tolist()]
    with DurableCounter(tmp_path / "kept", ending()) as counter:
        counter.extend([1, 0, 1])
        assert counter.finish().tolist() == expected[3:]
    with DurableCounter.open(tmp_path / "kept") as counter:
        assert (counter.finished, counter.step) == (True, len(expected))
        for act in (counter.finish, lambda: counter.update(1)):
            with pytest.raises(StateError, match="the stream has ended"):
                act()
        assert counter.released(1) == list(enumerate(expected, 1))  # for whoever lost the end of it
    with DurableCounter(tmp_path / "other", GaussianCC(1, 1e-5)) as counter:
        with pytest.raises(ParameterError, match="has no end to be shown"):
            counter.finish()
        assert isinstance(counter.update(1), float | int)


def ending() -> EndingCounter:
    return EndingCounter(2000, 1e-5, mechanism="ecc", base="cc", simulation_seed=3)
