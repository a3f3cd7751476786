"""The hybrid count: releases of the exact count, clipping, states, and what it spends."""

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift.counters.turnstile import DistinctCounter, make_budget
from trilift.counters.turnstile.blueprint import Common
from trilift.counters.turnstile.budget import sensitivity
from trilift.counters.turnstile.hybrid import Hybrid, HybridState, block_length, release_count
from trilift.counters.turnstile.internals import SilentBase
from trilift.counters.turnstile.reading import Readings
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.keys import simulation_key

T = 400
BUDGETS: dict[str, dict[str, Any]] = {
    "gaussian": {"rho": 20},
    "pure": {"epsilon": 20},
    "approximate": {"epsilon": 9, "delta": 1e-5},
}


def make(kind: str = "gaussian", **options: Any) -> DistinctCounter:
    wanted = {"horizon": T, "method": "hybrid", "simulation_seed": 3} | BUDGETS[kind] | options
    return DistinctCounter(**wanted)


def events(count: int = T) -> tuple[list[str], list[int]]:
    rng = np.random.default_rng(6)
    return [f"item {k}" for k in rng.integers(0, 90, count)], rng.choice([-1, 0, 1], count).tolist()


def present(items: list[str], signs: list[int]) -> list[int]:
    counts: dict[str, int] = {}
    shown = []
    for item, sign in zip(items, signs, strict=True):
        counts[item] = counts.get(item, 0) + sign
        shown.append(sum(1 for value in counts.values() if value))
    return shown


def test_sensitivity_of_releases_by_brute_force() -> None:
    """All streams of 3 events over 2 items: N counts change by at most 2 each, and some pair attains it."""
    pairs = list(product("ab", (-1, 0, 1)))
    largest, largest_sq = 0, 0
    for stream in product(pairs, repeat=3):
        counts = np.array(present([a for a, _ in stream], [s for _, s in stream]))
        for place, other in product(range(3), pairs):
            changed = [*stream[:place], other, *stream[place + 1 :]]
            off = np.abs(np.array(present([a for a, _ in changed], [s for _, s in changed])) - counts)
            largest, largest_sq = max(largest, int(off.sum())), max(largest_sq, int(off @ off))
            assert off.max(initial=0) <= 2
    bound = sensitivity(3)
    assert largest <= bound.l1
    assert largest_sq <= bound.l2_sq
    steady = [("a", 1), ("b", 0), ("b", 0)]  # a inserted, or b with one removal missing: 2 at the later steps
    before = np.array(present(["b", "a", "a"], [-1, 1, 0]))
    after = np.array(present(["a", "a", "a"], [-1, 1, 0]))
    assert (before - after).tolist() == [0, 2, 2]
    assert steady[0] == ("a", 1)


@pytest.mark.parametrize("kind", BUDGETS)
def test_halves(kind: str) -> None:
    counter = make(kind)
    half = counter.budget.amount / 2
    sketch, releases = counter.ledger.parts
    assert 0.99 * half < sketch.spent <= half
    assert 0.99 * half < releases.spent <= half
    block = counter._blueprint.options["block"]
    assert releases.banks == T // block == release_count(counter._blueprint.common, block)
    assert releases.change == sensitivity(releases.banks)
    assert counter.ledger.spent == sketch.spent + releases.spent <= counter.budget.amount
    assert isinstance(counter.ledger.spent, Fraction)
    assert "every item that is present" in counter.privacy_statement()


def silent(block: int, *, estimate: float) -> Hybrid:
    """Without noise, and a sketch that always answers the same, between 0 and infinity."""

    class Constant:
        digest = bytes(32)

        def start(self) -> Any:
            return ()

        def advanced(self, held: Any, prints: Any, signs: Any, *, step: int) -> Any:
            steps = np.arange(step + 1, step + len(signs) + 1)
            shape = np.ones(len(signs))
            return held, Readings(steps, estimate * shape, 0.0 * shape, np.inf * shape)

    common = Common(T, 1, None, Fraction(1, 200))
    base = SilentBase(1, make_budget(1))
    keyed: dict[str, Any] = {"key": bytes(32), "stream_id": bytes(16)}
    sketch: Any = Constant()
    return Hybrid(sketch, base, block=block, common=common, **keyed)


@pytest.mark.parametrize("estimate", [0.0, 30.0, 1e9])
def test_without_noise_it_is_the_clipped_count(estimate: float) -> None:
    """A is D at the last multiple of 7, E its age (and 1/2 for the rounding): the rule by hand."""
    items, signs = events()
    exact = present(items, signs)
    run = silent(7, estimate=estimate)
    prints = np.array([[hash(item) % 2**63, 5] for item in items], dtype=np.uint64)
    held, seen = run.advanced(run.start(), prints, np.array(signs), step=0)
    for t in range(1, T + 1):
        last = t - t % 7
        A = exact[last - 1] if last else 0
        E = t % 7 + 0.5 if last else t
        wanted = min(A, t) if A > 2 * E else min(max(estimate, A - E, 0), A + E, t)
        assert seen.estimate[t - 1] == wanted
        assert seen.low[t - 1] <= exact[t - 1] <= seen.high[t - 1]
    assert (seen.estimate[6::7] - np.array(exact)[6::7] <= 0.5).all()
    assert held.present == exact[-1]
    back, _ = run.advanced(held.settled(), prints[::-1], -np.array(signs[::-1]), step=0)
    assert back.present == 0
    assert back.settled().frequencies == {}


@pytest.mark.parametrize("every", [1, 9])
@pytest.mark.parametrize("kind", BUDGETS)
def test_batch_is_sequential(kind: str, every: int) -> None:
    items, signs = events()
    whole = make(kind, every=every).extend(items, signs)
    single = make(kind, every=every)
    shown = [single.update(item, sign) for item, sign in zip(items, signs, strict=True)]
    assert [reading for reading in shown if reading is not None] == list(whole)
    parts = make(kind, every=every)
    joined = [one for a in range(0, T, 61) for one in parts.extend(items[a : a + 61], signs[a : a + 61])]
    assert joined == list(whole)
    assert make(kind, every=every)._blueprint.options["block"] % every == 0


def test_advancing_changes_nothing() -> None:
    counter = make()
    items, signs = events()
    counter.extend(items[:100], signs[:100])
    before: HybridState = counter._now.held
    frequencies = dict(before.frequencies)
    prints = counter._prints.many(items[100:200])
    counter._run.advanced(before, prints, np.array(signs[100:200]), step=100)
    assert before.frequencies == frequencies
    assert before.changes == {}
    assert all(frequencies.values())


def test_states_go_on(tmp_path: Path) -> None:
    items, signs = events()
    whole = list(make().extend(items, signs))
    first = make()
    seen = list(first.extend(items[:123], signs[:123]))
    first.save(tmp_path / "hybrid")
    again = DistinctCounter.load(tmp_path / "hybrid")
    assert seen + list(again.extend(items[123:], signs[123:])) == whole
    kept = make(state=tmp_path / "kept")
    kept.extend(items[:50], signs[:50])
    kept.close()
    with pytest.raises(StateError):
        kept.extend(items[50:], signs[50:])
    assert list(DistinctCounter.load(tmp_path / "kept").extend(items[50:], signs[50:])) == whole[50:]


def test_damaged_states() -> None:
    run = silent(7, estimate=0.0)
    record: dict[str, Any] = {"sketch": [], "present": 1, "released": 0, "items": [["0" * 32, 2]]}
    run._sketch.restored = lambda held: ()  # type: ignore[method-assign]
    assert run.restored(record).frequencies == {0: 2}
    for damage in ({"present": 2}, {"items": [["0" * 31, 2]]}, {"items": [["0" * 32, 0]]}, {"released": -1}):
        with pytest.raises((ValueError, ParameterError)):
            run.restored(record | damage)


def test_blocks() -> None:
    """The age of a release and its noise's tail are alike, at rho = 1/2 and T = 10^5: B near 121."""
    common = Common(10**5, 1, None, Fraction(1, 100))
    assert 110 <= block_length(make_budget(rho=Fraction(1, 2)), common=common) <= 140
    assert block_length(make_budget(1), common=common) > 1000
    assert block_length(make_budget(1), common=Common(10, 5, None, Fraction(1, 100))) == 10
    assert block_length(make_budget(10**400), common=common) == 1  # past the range of floats


@pytest.mark.slow
def test_intervals_cover() -> None:
    """failure 0.01: at most 4 of 40 runs miss (false alarm 4.9e-5); unit insertions, then deletions."""
    items, signs = [k % 200 for k in range(T)], [1] * 200 + [-1] * 200
    exact = np.minimum(np.arange(4, T + 1, 4), T - np.arange(4, T + 1, 4))
    missed, off = 0, []
    counter = make(every=4)
    for seed in range(40):
        counter._start(counter._blueprint, simulation_key(seed), bytes(16), seed, None)
        seen = counter.extend(items, signs)
        missed += not bool(((seen.low <= exact) & (exact <= seen.high)).all())
        off.append(np.abs(seen.estimate - exact).max())
    assert missed <= 4
    assert np.median(off) < 100  # an answer of 0 or of 200 everywhere would be off by 200
