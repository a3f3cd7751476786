"""Points: what a record says, and that nothing depends on how the work was done."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from trilift.experiments.edit import points
from trilift.experiments.edit.attack import clopper_pearson, statistic
from trilift.experiments.edit.display import mean_squares
from trilift.experiments.edit.float_noise import IndependentNoise
from trilift.experiments.edit.mechanisms import NoisyCounter
from trilift.experiments.edit.plans import EPSILONS, EXPERIMENTS, experiment
from trilift.experiments.edit.points import Point, batches, run_point
from trilift.experiments.edit.streams import block_stream, constant_stream
from trilift.lift.errors import ParameterError

STREAM = block_stream(200)


def counter(sd: float) -> NoisyCounter:
    return NoisyCounter(IndependentNoise(np.full(STREAM.steps, sd)))


def point(sd: float = 5.0) -> Point:
    return Point("GaussianCC", "test", "independent", 1.0, -3.0, STREAM, lambda: counter(sd))


def test_streams() -> None:
    drawn = STREAM.draw(np.random.default_rng(0), runs=4000)
    inputs = np.diff(drawn.prefix, axis=1)
    assert set(np.unique(inputs)) == {0, 1}
    rates = STREAM.all_rates()
    assert rates[:21].tolist() == [0.1] * 10 + [0.9] * 10 + [0.1]
    original, shifted = inputs[~drawn.shifted], inputs[drawn.shifted]
    # 6 standard errors of a frequency over about 2000 runs: false alarm below 400 * 2e-9
    assert np.abs(original.mean(axis=0) - rates).max() < 6 * 0.3 / math.sqrt(1900)
    assert np.all(shifted[:, 0] == 1)
    assert np.abs(shifted[:, 1:].mean(axis=0) - rates[:-1]).max() < 6 * 0.3 / math.sqrt(1900)
    none = constant_stream(5, rate=1.0).draw(np.random.default_rng(0), runs=2, shift=False)
    assert none.prefix.tolist() == [[0, 1, 2, 3, 4, 5]] * 2
    for bad in (lambda: block_stream(0), lambda: block_stream(5, block=0), lambda: block_stream(5, low=-0.1)):
        with pytest.raises(ParameterError):
            bad()
    with pytest.raises(ParameterError):
        constant_stream(5, rate=float("nan"))


def test_a_record_is_what_its_runs_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against one plain loop with the same seeds."""
    monkeypatch.setattr(points, "_MOST", 30)
    record = run_point(point(), runs=70, seed=4)
    assert batches(70, steps=200) == [30, 30, 10]
    key = points.zlib.crc32(point().key.encode())
    errors, right = [], 0
    for index, size in enumerate((30, 30, 10)):
        rng = np.random.default_rng([4, key, index])
        drawn = STREAM.draw(rng, runs=size)
        outputs = counter(5.0).simulate(drawn.prefix, rng=rng)
        errors += np.sqrt(mean_squares(outputs, drawn.prefix)).tolist()
        rates = STREAM.all_rates()
        theta = 0.5 * float(np.sum(np.diff(rates) ** 2))
        right += int(((statistic(outputs, rates=rates) > theta) == drawn.shifted).sum())
    assert record["rmse"] == pytest.approx(np.mean(errors))
    assert record["rmse_se"] == pytest.approx(np.std(errors, ddof=1) / math.sqrt(70))
    assert record["advantage"] == pytest.approx(2 * right / 70 - 1)
    assert (record["ci_low"], record["ci_high"]) == clopper_pearson(right, trials=70)
    assert (record["T"], record["runs"], record["epsilon"], record["ln_delta"]) == (200, 70, 1.0, -3.0)


def test_threads_and_order_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "_MOST", 7)
    alone = run_point(point(), runs=60, seed=1)
    told: list[int] = []
    assert run_point(point(), runs=60, seed=1, jobs=3, report=told.append) == alone
    assert sum(told) == 60
    assert run_point(point(), runs=60, seed=2) != alone


def test_the_attack_sees_a_shift_through_little_noise_only() -> None:
    clear, blind = run_point(point(0.01), runs=100, seed=0), run_point(point(1e4), runs=100, seed=0)
    assert clear["advantage"] == 1.0
    assert blind["ci_low"] < 0 < blind["ci_high"]  # false alarm 5 %; the seed is fixed


def test_histograms_and_no_attack() -> None:
    record = run_point(replace(point(), histogram=True), runs=50, seed=0)
    assert sum(record["original"]) + sum(record["shifted"]) == 50
    assert len(record["edges"]) == len(record["original"]) + 1
    quiet = run_point(replace(point(), attack=False), runs=1, seed=0)
    assert (quiet["advantage"], quiet["ci_low"], quiet["ci_high"], quiet["rmse_se"]) == (None,) * 4


def all_points() -> Iterator[Point]:
    for name in EXPERIMENTS:
        yield from experiment(name).points


def test_experiments_are_those_of_the_paper() -> None:
    assert len(EPSILONS) == 12
    assert (EPSILONS[0], EPSILONS[-1]) == (0.1, pytest.approx(150))
    assert EPSILONS[8] == pytest.approx(20.412, abs=5e-4)
    by_name = {name: experiment(name) for name in EXPERIMENTS}
    kinds = {(p.mechanism, p.variant) for p in by_name["edit-table1"].points}
    assert {(m, "paper") for m in ("BaseCC", "PartitionCC", "GaussianCC", "SimECC")} <= kinds
    assert {p.stream.steps for p in by_name["edit-fig1b"].points} == {10**3, 10**4, 10**5, 10**6}
    assert {p.stream.name for p in by_name["edit-fig3"].points} == {
        "blocks of 5: 0.1, 0.9",
        "blocks of 20: 0.1, 0.9",
        "blocks of 10: 0.3, 0.7",
        "blocks of 10: 0.1, 0.9",
    }
    assert len({p.ln_delta for p in by_name["edit-fig3"].points}) == 2
    for name, chosen in by_name.items():
        keys = [p.key for p in chosen.points]
        assert len(set(keys)) == len(keys), name
    with pytest.raises(ParameterError):
        experiment("edit-fig4")
