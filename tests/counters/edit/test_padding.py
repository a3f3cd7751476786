"""Streams that end: the number of steps after the end hides a step, exactly."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from trilift.counters.edit.mechanism import SimECC
from trilift.counters.edit.padding import EndingCounter, padding_offset
from trilift.lift.errors import ParameterError, StateError
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


@pytest.mark.parametrize("options", [{"horizon": 10}, {"state": "x"}, {"mechanism": "cc"}, {"rate": -1}])
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
