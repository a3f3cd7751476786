"""The membership attack: its arithmetic by hand, its bookkeeping, and what it finds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from trilift.experiments.edit.attack import (
    attack_threshold,
    block_rates,
    check_rates,
    clopper_pearson,
    draw_run,
    run_attack,
    statistic,
    summarise,
)
from trilift.lift.errors import ParameterError

RATES = block_rates(400)


class Exact:
    """No noise at all."""

    def release(self, stream: Any, seed: int) -> Any:
        return np.cumsum(stream)


class Blind:
    """Nothing but noise."""

    def release(self, stream: Any, seed: int) -> Any:
        return np.random.default_rng(seed).normal(size=len(stream))


def test_the_paper_s_rates() -> None:
    rates = block_rates(10_000)
    assert rates[:21].tolist() == [0.1] * 10 + [0.9] * 10 + [0.1]
    assert attack_threshold(rates) == pytest.approx(319.68)  # 999 changes of 0.8
    assert block_rates(7, block=3, low=0.3, high=0.7).tolist() == [0.3] * 3 + [0.7] * 3 + [0.3]


def test_the_statistic_by_its_definition() -> None:
    source = np.random.default_rng(3)
    rates, outputs = source.random(17), source.normal(size=(2, 3, 17))
    found = statistic(outputs, rates=rates)
    assert found.shape == (2, 3)
    for place in np.ndindex(2, 3):
        y = outputs[place]
        slow = sum((rates[t] - (y[t] - y[t - 1])) * (rates[t] - rates[t - 1]) for t in range(1, 17))
        assert found[place] == pytest.approx(slow)
    assert statistic(outputs + 5, rates=rates) == pytest.approx(found)  # increments alone count


def test_its_mean_is_zero_or_two_theta() -> None:
    """Without noise: mean 0 or 2 theta, variance sum d^2 p (1-p); 2000 runs, 5 standard errors."""
    theta = attack_threshold(RATES)
    found = run_attack(RATES, mechanism=Exact(), runs=2000, seed=5)
    sd = np.sqrt(0.09 * 2 * theta)
    for inserted, mean in ((False, 0.0), (True, 2 * theta)):
        values = found.statistics[found.inserted == inserted]
        assert abs(values.mean() - mean) < 5 * sd / np.sqrt(values.size)
        assert abs(values.std() / sd - 1) < 5 / np.sqrt(2 * values.size)
    assert abs(found.inserted.mean() - 0.5) < 5 * 0.5 / np.sqrt(2000)


def test_runs_are_drawn_one_by_one() -> None:
    """A run depends on the seed and its number alone; an insertion moves the same stream by one step."""
    drawn = [draw_run(RATES, seed=2, run=run) for run in range(40)]
    for run, (inserted, stream, noise_seed) in enumerate(drawn):
        again = draw_run(RATES, seed=2, run=run)
        assert (again[0], again[2]) == (inserted, noise_seed)
        assert np.array_equal(again[1], stream)
        assert set(stream.tolist()) <= {0, 1}
        assert not inserted or stream[0] == 1
    assert len({noise_seed for _, _, noise_seed in drawn}) == 40
    rates = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    moved = {draw_run(rates, seed=1, run=run)[0]: draw_run(rates, seed=1, run=run)[1] for run in range(20)}
    assert moved[False].tolist() == [0, 1, 1, 0, 1]
    assert moved[True].tolist() == [1, 0, 1, 1, 0]


def test_who_hides_nothing_is_found_out() -> None:
    found = run_attack(RATES, mechanism=Exact(), runs=60)
    assert (found.correct, found.advantage, found.ci_high, found.rmse) == (60, 1.0, 1.0, 0.0)
    assert found.ci_low == pytest.approx(2 * 0.025 ** (1 / 60) - 1)


def test_who_releases_noise_is_not() -> None:
    """Binomial(400, 1/2): the interval misses 0 for at most 5 % of the seeds, and not for this one."""
    found = run_attack(RATES, mechanism=Blind(), runs=400, seed=1)
    assert found.ci_low < 0 < found.ci_high


@pytest.mark.parametrize(
    ("correct", "trials", "low", "high"),
    [(0, 1, 0.0, 0.975), (1, 1, 0.025, 1.0), (5, 10, 0.187086, 0.812914), (81, 263, 0.252708, 0.367621)],
)
def test_clopper_pearson(correct: int, trials: int, low: float, high: float) -> None:
    """By the tails of the binomial law, and a published example (81 of 263)."""
    found = clopper_pearson(correct, trials=trials)
    assert [(end + 1) / 2 for end in found] == pytest.approx([low, high], abs=1.5e-4)


def test_summary_of_runs() -> None:
    theta = attack_threshold([0.0, 1.0])
    bits, values = [True, True, False, False], [theta + 0.1, theta, theta, theta + 0.1]
    found = summarise(bits, statistics=values, errors=[1.0, 2.0, 3.0, 4.0], rates=[0.0, 1.0])
    assert (found.correct, found.advantage, found.rmse) == (2, 0.0, 2.5)  # a tie is no insertion
    assert found.rmse_se == pytest.approx(np.std([1, 2, 3, 4], ddof=1) / 2)
    record = found.to_json()
    assert set(record) == {
        *("T", "runs", "correct", "advantage", "ci_low", "ci_high", "rmse", "rmse_se", "threshold")
    }
    assert summarise([True], statistics=[1.0], errors=[2.0], rates=[0.0, 1.0]).rmse_se == 0.0
    with pytest.raises(ParameterError, match="vectors of one length > 0"):
        summarise([], statistics=[], errors=[], rates=[0.0, 1.0])


class Many:
    """Counts how it is called."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def release_many(self, streams: Any, seed: int) -> Any:
        self.shapes.append(streams.shape)
        outputs = streams.cumsum(axis=1) + 1.0
        streams[:] = 0  # what happens to the input is nobody's business
        return outputs


def test_many_runs_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trilift.experiments.edit.attack._CELLS", 400 * 7)
    mechanism, reports = Many(), list[tuple[int, int]]()
    found = run_attack(RATES, mechanism=mechanism, runs=16, progress=lambda *at: reports.append(at))  # type: ignore[arg-type]
    assert mechanism.shapes == [(7, 400), (7, 400), (2, 400)]
    assert reports == [(0, 16), (7, 16), (14, 16), (16, 16)]
    assert (found.rmse, found.rmse_se) == (1.0, 0.0)
    one_by_one = run_attack(RATES, mechanism=Exact(), runs=16)
    assert np.array_equal(one_by_one.inserted, found.inserted)
    assert one_by_one.statistics == pytest.approx(found.statistics)


@pytest.mark.parametrize(
    ("release", "message"),
    [
        (lambda s: s[:-1], "must return 400 values, a value a step, got 399 values"),
        (
            lambda s: np.zeros((2, 400)),
            r"must return 400 values, a value a step, got an array of shape \(2, 400\)",
        ),
        (lambda s: 3.0, r"got an array of shape \(\)"),
        (lambda s: np.where(np.arange(400) == 4, np.nan, s), "release returned nan at step 5"),
        (lambda s: np.where(np.arange(400) == 4, np.inf, s), "release returned inf at step 5"),
        (lambda s: [None] * 400, "release did not return numbers"),
        (lambda s: ["1"] * 400, "release did not return numbers"),
        (lambda s: s > 0, "release did not return numbers"),
        (lambda s: [1j] * 400, "release did not return numbers"),
        (lambda s: [[1], [1, 2]], "release did not return numbers"),
    ],
)
def test_bad_releases(release: Callable[[Any], Any], message: str) -> None:
    class Mechanism:
        def release(self, stream: Any, seed: int) -> Any:
            return release(stream)

    with pytest.raises(ParameterError, match=message):
        run_attack(RATES, mechanism=Mechanism(), runs=1)


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ([0.5], "at least two steps, got 1"),
        ([0.5, 0.5], "rates must change somewhere"),
        ([0.5, 1.5], r"rates must lie in \[0, 1\], got 1.5 at index 1"),
        ([0.5, np.nan], "rates must be finite, got nan at index 1"),
        ([[0.5, 1]], r"rates must have 1 dimension"),
    ],
)
def test_bad_rates(rates: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        check_rates(rates)


def test_bad_arguments() -> None:
    with pytest.raises(ParameterError, match=r"\(int\) has no method release\(stream, seed\)"):
        run_attack(RATES, mechanism=3, runs=1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="runs must be an integer >= 1"):
        run_attack(RATES, mechanism=Exact(), runs=0)
    with pytest.raises(ParameterError, match="seed must be an integer >= 0"):
        run_attack(RATES, mechanism=Exact(), runs=1, seed=-1)
    with pytest.raises(ParameterError, match="outputs must have 400 steps in their last dimension"):
        statistic([1.0, 2.0], rates=RATES)
