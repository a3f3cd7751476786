"""Runs by copies give what the sketches themselves read off the same noise."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trilift.counters.turnstile.blueprint import Common, hash_words
from trilift.counters.turnstile.budget import make_budget
from trilift.counters.turnstile.distinct import make_sketch, sketch_options
from trilift.counters.turnstile.moment import RowSketch
from trilift.counters.turnstile.moment_bounds import row_plan
from trilift.counters.turnstile.polynomials import Polynomials
from trilift.experiments.turnstile import distinct_runs, moment_runs
from trilift.experiments.turnstile.distinct_runs import DISTINCT, distinct_run
from trilift.experiments.turnstile.factors import beyond
from trilift.experiments.turnstile.maps_runs import frequencies, maps_run
from trilift.experiments.turnstile.moment_runs import RELATIVE, moment_run
from trilift.experiments.turnstile.noise_rows import rows_of
from trilift.experiments.turnstile.recompute import Recompute
from trilift.experiments.turnstile.streams import Stream, make_stream
from trilift.lift.errors import ParameterError

STEPS = 250
FAILURE = Fraction(1, 100)
KINDS = ("toeplitz", "chain")


def some_streams() -> list[Stream]:
    rng = np.random.default_rng(7)
    return [
        make_stream(name, steps=STEPS, rng=rng) for name in ("unit", "heavy rotation", "zipf", "random ±1")
    ]


def all_counters(kind: str, sketch: Any, base: Any, stream: Stream, words: Any, copies: int) -> Any:
    """Noisy counters of every step by the sketch's own sums, shape (T, width), from the runs' noise."""
    rows = rows_of(kind, steps=STEPS, width=sketch.levels, seed=5)
    law = rows.base(base.budget)
    noise = np.concatenate([rows.noise(law, copy=c) for c in range(copies)]).T * rows.sigma(law)
    ticks = np.arange(STEPS)
    exact = np.cumsum(sketch.increments(words[stream.items], stream.signs, ticks, count=STEPS), axis=0)
    return exact + np.floor(noise + 0.5).astype(np.int64)


@pytest.mark.parametrize(
    ("kind", "name", "method", "options"),
    [
        *((kind, "A2 centred", "minhash", {}) for kind in KINDS),
        *((kind, "A2g centred", "grouped", {"closer": False}) for kind in KINDS),
        *((kind, "A3s centred", "general", {}) for kind in KINDS),
        # moments are taken of simulated noise before its rounding
        ("chain", "A2g closer", "grouped", {}),
        ("chain", "A2g few-heavy", "grouped", {"few_heavy": True}),
    ],
)
def test_runs_are_what_sketches_read(
    kind: str, name: str, method: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    budget, common = make_budget(rho=Fraction(2)), Common(STEPS, 1, None, FAILURE)
    streams = some_streams()
    seen: dict[str, Any] = {}
    inner = distinct_runs.measured

    def spy(stream: Stream, readings: Any, **rest: Any) -> Any:
        seen[stream.name] = readings
        return inner(stream, readings, **rest)

    monkeypatch.setattr(distinct_runs, "measured", spy)
    records = distinct_run(streams, base=kind, budgets=[budget], failure=FAILURE, seed=5, names=(name,))
    full = {
        "centre": True,
        "few_heavy": False,
        "closer": True,
        "copies": None,
        "thresholds": "weak",
    } | options
    full = sketch_options(method, full, common=common)
    rows = rows_of(kind, steps=STEPS, width=1, seed=5)
    base = rows.base(budget.part(Fraction(1, full["banks"])))
    key = (5).to_bytes(32, "little")
    sketch = make_sketch(method, base=base, common=common, options=full, key=key, stream_id=bytes(16))
    rng = np.random.default_rng([5, 2])
    for stream, record in zip(streams, records, strict=True):
        size = int(stream.items.max()) + 1
        words = rng.integers(0, 1 << 64, (size, 2), dtype=np.uint64, endpoint=False)
        values = all_counters(kind, sketch, base, stream, words, full["copies"])
        ticks = np.arange(STEPS)
        expected = sketch.read(values, sketch.tables(ticks), steps=ticks + 1)
        got = seen[stream.name]
        for part in ("estimate", "low", "high"):
            np.testing.assert_allclose(getattr(got, part), getattr(expected, part), rtol=2e-5, atol=2e-5)
        assert record["estimator"] == name
        assert record["stream"] == stream.name
        assert record["factor"] >= 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_what_their_sketch_reads(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    budget, streams = make_budget(rho=Fraction(5)), some_streams()
    plan = row_plan(STEPS, failure=float(FAILURE), accuracy=moment_runs.ACCURACY)
    records = moment_run(streams, base=kind, budgets=[budget], failure=FAILURE, seed=5)
    rows = rows_of(kind, steps=STEPS, width=16, seed=5)
    law = rows.base(budget.part(Fraction(1, plan.rows)))
    copies = -(-plan.rows // 16)
    noise = np.concatenate([rows.noise(law, copy=c) for c in range(copies)])[: plan.rows].T * rows.sigma(law)
    shape = RowSketch.shape(plan)
    words = hash_words(
        (5).to_bytes(32, "little"), stream_id=bytes(16), purpose="experiments/signs", shape=shape
    )
    sketch = RowSketch(law, plan, words, failure=float(FAILURE))
    ticks = np.arange(STEPS)
    by_name = {(r["estimator"], r["stream"]): r for r in records}
    for stream in streams:
        size = int(stream.items.max()) + 1
        prints = np.random.default_rng([5, 4]).integers(0, 1 << 64, size, dtype=np.uint64, endpoint=False)
        pairs = np.stack([prints, prints], axis=1)[stream.items]
        exact = np.cumsum(sketch.increments(pairs, stream.signs, ticks, count=STEPS), axis=0)
        shown = sketch.read(exact + noise, sketch.tables(ticks), steps=ticks + 1)
        y = stream.moment.astype(float)
        record = by_name["A4", stream.name]
        assert record["additive"] == pytest.approx(beyond(y, shown.estimate, relative=RELATIVE), rel=1e-4)
        assert record["missed"] == bool(np.any((y < shown.low) | (y > shown.high)))
        raw = ((exact + noise) ** 2).mean(axis=1)
        found = by_name["A4 raw", stream.name]
        assert found["additive"] == pytest.approx(beyond(y, raw, relative=RELATIVE), rel=1e-4)
        assert found["missed"] is None
        assert 0 <= record["sketch_error"] < 1


def test_signs_are_those_of_the_rows() -> None:
    stream = some_streams()[0]
    plan = row_plan(STEPS, failure=float(FAILURE), accuracy=0.5)
    signs = moment_runs._signs(plan, stream, seed=5)
    words = hash_words(
        (5).to_bytes(32, "little"),
        stream_id=bytes(16),
        purpose="experiments/signs",
        shape=RowSketch.shape(plan),
    )
    size = int(stream.items.max()) + 1
    prints = np.random.default_rng([5, 4]).integers(0, 1 << 64, size, dtype=np.uint64, endpoint=False)
    np.testing.assert_array_equal(signs, Polynomials.drawn(words).signs(prints, rows=plan.rows).T)


def test_noise_differs_between_copies_and_seeds() -> None:
    budget = make_budget(rho=1)
    for kind in KINDS:
        rows = rows_of(kind, steps=300, width=2, seed=1)
        base = rows.base(budget)
        first, second = rows.noise(base, copy=0), rows.noise(base, copy=1)
        other = rows_of(kind, steps=300, width=2, seed=2)
        assert first.shape == (2, 300)
        assert not np.array_equal(first, second)
        assert not np.array_equal(first[0], first[1])
        assert not np.array_equal(first, other.noise(other.base(budget), copy=0))
        np.testing.assert_array_equal(first, rows.noise(base, copy=0))


@pytest.mark.parametrize("kind", KINDS)
def test_noise_has_its_variance(kind: str) -> None:
    """Mean square over 400 independent counters at one step, 5 standard errors: false alarm below 1e-5."""
    rows = rows_of(kind, steps=256, width=400, seed=3)
    base = rows.base(make_budget(rho=Fraction(1, 4)))
    at = rows.noise(base, copy=0)[:, 200].astype(float) * rows.sigma(base)
    v = float(base.variance(np.array([200]))[0])
    assert abs((at**2).mean() / v - 1) < 5 * (2 / 400) ** 0.5


def test_recomputing() -> None:
    """The published example: E = 164 and 373 at T = 10^4, 10^5, for half of rho = 1."""
    for steps, expected in ((10**4, 164), (10**5, 373)):
        recompute = Recompute(steps, budget=make_budget(rho=Fraction(1, 2)), failure=FAILURE)
        assert recompute.period - 1 + recompute.largest == pytest.approx(expected, abs=1.5)
        allowed = recompute.errors()
        assert allowed[0] == 1.0
        assert allowed.max() == pytest.approx(recompute.period - 1 + recompute.largest)


@pytest.mark.parametrize("exact", [False, True])
def test_recomputed_intervals_hold(exact: bool) -> None:
    """40 runs at failure 0.01: at most 4 misses (false alarm 5e-5); the error is not overstated threefold."""
    rng = np.random.default_rng(4)
    y = make_stream("window", steps=5000, rng=rng).distinct
    recompute = Recompute(5000, make_budget(rho=Fraction(1, 2)), FAILURE, exact=exact)
    noises = [recompute.noise(seed) for seed in range(40)]
    assert abs(np.std(noises) / recompute.scale - 1) < 5 / np.sqrt(2 * np.size(noises))
    assert all(float(z).is_integer() for z in noises[0]) == exact
    shown = [recompute.readings(y, noise=noise) for noise in noises]
    assert sum(bool(np.any((y < r.low) | (y > r.high))) for r in shown) <= 4
    worst = max(beyond(y, r.estimate) for r in shown)
    assert worst > recompute.largest / 3
    assert all((r.low <= r.estimate).all() and (r.estimate <= r.high).all() for r in shown)


def test_recomputing_with_laplace_noise() -> None:
    recompute = Recompute(10**4, budget=make_budget(epsilon=Fraction(1, 2)), failure=FAILURE)
    assert recompute.scale == pytest.approx(4 * recompute.releases)
    assert recompute.largest == pytest.approx(recompute.scale * np.log(100 * recompute.releases))


def test_hybrid_of_both() -> None:
    recompute = Recompute(5000, budget=make_budget(rho=Fraction(1, 2)), failure=FAILURE)
    rng = np.random.default_rng(1)
    y = make_stream("unit", steps=5000, rng=rng).distinct
    additive = recompute.readings(y, noise=recompute.noise(1))
    other = replace(additive, estimate=np.full(5000, 7.0), low=np.zeros(5000), high=np.full(5000, 5000.0))
    both = recompute.combined(additive, other)
    large = additive.estimate > 2 * recompute.errors()
    assert large.any()
    np.testing.assert_array_equal(both.estimate[large], additive.estimate[large])
    inside = np.clip(7.0, additive.low, additive.high)
    np.testing.assert_array_equal(both.estimate[~large], inside[~large])
    assert (both.low <= y).all()
    assert (y <= both.high).all()


def test_all_estimators_are_measured() -> None:
    streams = some_streams()
    budgets = [make_budget(rho=20), make_budget(rho=500)]
    told: list[float] = []
    records = distinct_run(
        streams, base="toeplitz", budgets=budgets, failure=FAILURE, seed=1, report=told.append
    )
    assert len(records) == len(DISTINCT) * len(streams) * 2
    assert told[-1] == 1.0
    strict = {r["stream"] for r in records if r["estimator"] == "A2g" and r["missed"] is not None}
    assert strict == {"unit", "heavy rotation", "zipf"}
    factor = {(r["estimator"], r["budget"]): r["factor"] for r in records if r["stream"] == "unit"}
    assert factor["A2 source split", 0] > factor["A2", 0] > factor["A2g", 0]
    assert factor["A2 source split", 0] > factor["A2 source split", 1]


def test_maps() -> None:
    rng = np.random.default_rng(2)
    streams = [make_stream(name, steps=500, rng=rng) for name in ("frequent", "heavy rotation")]
    x = frequencies(streams[0], 250)
    assert x.tolist() == [50] * 5
    records = maps_run(streams, budgets=[make_budget(rho=10**6)], failure=FAILURE, seed=1, steps=(250, 500))
    assert [r["stream"] for r in records] == ["frequent", "heavy rotation"]
    assert records[0]["factor"] <= 20.0
    assert not any(r["missed"] for r in records)
    blind = maps_run(
        streams[:1], budgets=[make_budget(rho=Fraction(1, 100))], failure=FAILURE, seed=1, steps=(500,)
    )
    assert blind[0]["factor"] == 4.0  # 5 items, the answer is 1


def test_a_pure_budget_is_not_simulated() -> None:
    with pytest.raises(ParameterError, match="Gaussian"):
        distinct_run(
            some_streams()[:1], base="toeplitz", budgets=[make_budget(epsilon=1)], failure=FAILURE, seed=1
        )
