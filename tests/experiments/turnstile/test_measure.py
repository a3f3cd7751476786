"""Measuring: settings, runs that are kept and gone on with, points."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from trilift.experiments.turnstile import measure as measure_module
from trilift.experiments.turnstile.measure import check_settings, kept_file, measure, points_of
from trilift.experiments.turnstile.streams import STREAMS, STRICT, make_stream
from trilift.experiments.turnstile.whole_runs import COUNTERS, make_counter, rate, tables_run
from trilift.lift.errors import ParameterError

CONTRACT = {
    "estimator", "base", "stream", "T", "rho", "factor", "additive", "coverage_misses", "runs", "words",
    "updates_per_s",
}  # fmt: skip


def test_settings() -> None:
    chosen = check_settings(steps=1000)
    assert chosen.amounts == (Fraction(1, 10), Fraction(1), Fraction(10))
    assert (chosen.law, chosen.base, chosen.name) == ("rho", "toeplitz", "turnstile-toeplitz-rho-1000")
    pure = check_settings(steps=1000, epsilon=[Fraction(1)])
    assert (pure.law, pure.base) == ("epsilon", "chain")
    for bad, message in (
        ({"rho": [Fraction(1)], "epsilon": [Fraction(1)]}, "not both"),
        ({"epsilon": [Fraction(1)], "base": "toeplitz"}, "Gaussian"),
        ({"base": "oak"}, "base"),
        ({"rho": [Fraction(0)]}, "rho"),
        ({"runs": 0}, "runs"),
        ({"parts": ["all"]}, "parts"),
    ):
        with pytest.raises(ParameterError, match=message):
            check_settings(**({"steps": 1000} | bad))
    with pytest.raises(ParameterError, match="T must"):
        check_settings(steps=10)


def test_runs_are_kept_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three runs at once are one run and two more later; finished runs are not done again."""

    def settings(runs: int) -> Any:
        return check_settings(steps=120, rho=[Fraction(1)], runs=runs, seed=4, parts=["distinct", "moment"])

    done: list[int] = []
    inner = measure_module.distinct_run

    def counting(*arguments: Any, **rest: Any) -> Any:
        done.append(rest["seed"])
        return inner(*arguments, **rest)

    monkeypatch.setattr(measure_module, "distinct_run", counting)
    told: list[tuple[int, int]] = []
    measure(settings(1), folder=tmp_path, report=lambda a, b: told.append((a, b)))
    assert told[-1] == (1000, 1000)
    later = measure(settings(3), folder=tmp_path)
    assert done == [4_000_000, 4_000_001, 4_000_002]
    assert later == measure(settings(3), folder=tmp_path)
    assert len(done) == 3
    assert later == measure(settings(3))
    assert json.loads(json.dumps(later, allow_nan=False)) == later
    other = check_settings(steps=120, rho=[Fraction(2)], runs=1, seed=4, parts=["distinct"])
    assert kept_file(other, folder=tmp_path) == kept_file(settings(1), folder=tmp_path)
    with pytest.raises(ParameterError, match="other settings"):
        measure(other, folder=tmp_path)


def test_the_contract() -> None:
    """Every point has the fields that are promised."""
    settings = check_settings(
        steps=200, rho=[Fraction(1), Fraction(10)], runs=1, parts=["distinct", "moment"]
    )
    points = measure(settings)["points"]
    assert all(set(p) >= CONTRACT for p in points)
    assert {p["stream"] for p in points} == set(STREAMS)
    assert {p["rho"] for p in points} == {1.0, 10.0}
    estimators = list(dict.fromkeys(p["estimator"] for p in points))
    assert estimators[:3] == ["A2 source split", "A2", "A2 centred"]
    assert estimators[-2:] == ["A4 raw", "A4"]


def test_medians_and_misses() -> None:
    settings = check_settings(steps=200, rho=[Fraction(1)], runs=3)
    base: dict[str, Any] = {"estimator": "A2g", "stream": "unit", "budget": 0, "words": 9}
    rest: dict[str, Any] = {"additive": 29.0, "ratio_95": 1.0, "largest_error": None}
    records = [
        base | rest | {"factor": factor, "missed": missed}
        for factor, missed in ((3.0, False), (None, True), (5.0, False))
    ]
    (point,) = points_of(settings, records, speeds=[{"estimator": "A2g", "updates_per_s": 7.0}])
    assert (point["factor"], point["factor_range"], point["coverage_misses"]) == (5.0, [3.0, None], 1)
    assert (point["runs"], point["words"], point["updates_per_s"]) == (3, 9, 7.0)
    assert point["largest_error"] is None


@pytest.mark.parametrize("name", COUNTERS)
def test_speeds(name: str) -> None:
    import numpy as np

    stream = make_stream("unit", steps=300, rng=np.random.default_rng(0))
    row = rate(name, stream, every=100, amount={"rho": Fraction(1)})
    assert (row["estimator"], row["T"], row["every"], row["updates"]) == (name, 300, 100, 300)
    assert row["updates_per_s"] > 0
    assert make_counter(name, horizon=300, every=100, amount={"rho": Fraction(1)}).step == 0


def test_tables() -> None:
    import numpy as np

    stream = make_stream("frequent", steps=1000, rng=np.random.default_rng(0))
    row = tables_run(stream, amount={"rho": Fraction(1000)}, every=100, seed=1, base="toeplitz")
    assert (row["every"], row["missed"]) == (100, False)
    assert row["additive"] < 100
    noisy = tables_run(stream, amount={"epsilon": Fraction(1)}, every=100, seed=1)
    assert noisy["additive"] > row["additive"]
    assert not noisy["missed"]


def test_defaults() -> None:
    settings = check_settings(steps=200, rho=[Fraction(5)], runs=1, parts=["default"])
    points = measure(settings)["points"]
    assert {p["stream"] for p in points} == set(STRICT)
    assert {p["estimator"] for p in points} == {"default"}
    assert all(p["coverage_misses"] == 0 and p["every"] == 1 and p["factor"] is None for p in points)
    assert all(p["ratio_95"] >= 1.0 for p in points)
