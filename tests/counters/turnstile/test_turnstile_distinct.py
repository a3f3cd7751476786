"""Distinct items: exact answers without noise, rates of failure of groups, intervals, options."""

from collections import Counter as Tally
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters.turnstile import DistinctCounter, Readings
from trilift.counters.turnstile.internals import exact, linear, noisy, silence, touched
from trilift.counters.turnstile.minhash import shown

METHODS: dict[str, dict[str, Any]] = {
    "grouped": {},
    "minhash": {},
    "general": {},
    "general-maps": {"universe": 16},
}


def silent(method: str = "grouped", **options: Any) -> DistinctCounter:
    shared: dict[str, Any] = {"horizon": 400, "base": "tree", "simulation_seed": 3, "centre": False, "rho": 1}
    plain = {"closer": False, "narrow": False, "method": method}
    counter = DistinctCounter(**{**shared, **plain, **METHODS[method], **options})
    silence(counter)
    return counter


events = st.lists(st.tuples(st.integers(0, 30), st.sampled_from([-1, 0, 1])), min_size=1, max_size=120)


def strict(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave removals out that find nothing."""
    counts: Tally[int] = Tally()
    kept = []
    for item, sign in pairs:
        if counts[item] + sign >= 0:
            counts[item] += sign
            kept.append((item, sign))
    return kept or [(0, 1)]


def present(pairs: list[tuple[int, int]]) -> dict[int, int]:
    counts: Tally[int] = Tally()
    for item, sign in pairs:
        counts[item] += sign
    return {item: count for item, count in counts.items() if count}


def bounded(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


@pytest.mark.parametrize("method", ["grouped", "minhash"])
@given(pairs=events)
@settings(max_examples=15, deadline=None)
def test_answers_without_noise_are_the_largest_occupied_levels(
    method: str, pairs: list[tuple[int, int]]
) -> None:
    pairs = strict(pairs)
    counter = silent(method)
    sketch: Any = linear(counter).sketch
    readings = counter.extend([item for item, _ in pairs], [sign for _, sign in pairs])
    copies = sketch.copies if method == "minhash" else sketch.groups
    largest = [0] * copies
    for item in present(pairs):
        for place in touched(counter, [item])[0][0].tolist():
            copy, level = divmod(place, sketch.levels)
            largest[copy] = max(largest[copy], level)
    middle = sorted(largest)[copies // 2]
    raw = 2.0**middle * (1 if method == "minhash" else copies)
    low, cap = (raw / 16 if middle else 0.0), float(len(pairs))
    last = readings[-1]
    assert last.low == min(low, cap)
    assert last.estimate == bounded(raw, min(low, cap), cap)
    assert last.high == min(4.0 * raw * float(sketch.tables(np.array([0]))[0, 2]), cap)


@given(pairs=events)
@settings(max_examples=15, deadline=None)
def test_signed_answers_without_noise(pairs: list[tuple[int, int]]) -> None:
    """Any stream: a level is taken for occupied if its signed sum is not 0."""
    counter = silent("general")
    sketch: Any = linear(counter).sketch
    readings = counter.extend([item for item, _ in pairs], [sign for _, sign in pairs])
    sums: Tally[int] = Tally()
    for item, count in present(pairs).items():
        where, sign = touched(counter, [item])
        sums[int(where[0, 0])] += count * int(sign[0, 0])
    largest = [0] * sketch.groups
    for place, total in sums.items():
        group, level = divmod(place, sketch.levels)
        if total:
            largest[group] = max(largest[group], level)
    middle = sorted(largest)[sketch.groups // 2]
    raw = 2.0**middle * sketch.groups
    low, cap = (raw / 16 if middle else 0.0), float(len(pairs))
    assert readings[-1].estimate == bounded(raw, min(low, cap), cap)


@given(pairs=events)
@settings(max_examples=8, deadline=None)
def test_maps_without_noise(pairs: list[tuple[int, int]]) -> None:
    """The largest i at which a bucket's median |signed sum| is at least 1, by loops over all maps."""
    pairs = [(item % 16, sign) for item, sign in pairs]
    counter = silent("general-maps")
    sketch: Any = linear(counter).sketch
    readings = counter.extend([item for item, _ in pairs], [sign for _, sign in pairs])
    tables: dict[tuple[int, int], list[int]] = {
        (i, j): [0] * (1 << i) for i in range(1, sketch.depth + 1) for j in range(sketch.maps)
    }
    for item, count in present(pairs).items():
        where, signs = touched(counter, [item])
        position = 0
        offset = 0
        for i in range(1, sketch.depth + 1):
            for j in range(sketch.maps):
                tables[i, j][int(where[0, position]) - offset] += count * int(signs[0, position])
                position, offset = position + 1, offset + (1 << i)
    answer = 1.0
    for i in range(1, sketch.depth + 1):
        for bucket in range(1 << i):
            sizes = sorted(abs(tables[i, j][bucket]) for j in range(sketch.maps))
            if sizes[sketch.maps // 2] >= 1:
                answer = 2.0**i
    cap = float(min(len(pairs), 16))
    assert readings[-1].estimate == bounded(answer, min(answer / 20 if answer > 1 else 0.0, cap), cap)


def test_medians_of_signed_values_would_be_wrong() -> None:
    """Why the absolute value stands inside: 40 items in one bucket of every map, 15 maps, typical sizes."""
    rng = np.random.default_rng(1)
    sums = rng.choice([-1, 1], size=(400, 15, 40)).sum(axis=2)
    inside = np.median(np.abs(sums), axis=1).mean()
    outside = np.abs(np.median(sums, axis=1)).mean()
    assert inside > 2 * outside


@pytest.mark.parametrize("method", METHODS)
def test_inserting_and_removing_restores_zero(method: str) -> None:
    counter = silent(method)
    items = [k % 13 for k in range(60)]
    counter.extend(items, [1] * 60)
    assert exact(counter).any()
    readings = counter.extend(items[::-1], [-1] * 60)
    assert not exact(counter).any()
    empty = silent(method).extend(["a"] * 120, [0] * 120)
    assert readings[-1] == empty[-1]
    assert readings[-1].low == 0.0


def test_few_heavy_items_without_noise() -> None:
    """While D_hat is at most 2 g: the number of items that occupies so many cells on average."""
    counter = silent(few_heavy=True, horizon=2000)
    sketch: Any = linear(counter).sketch
    g = sketch.groups
    cells: set[int] = set()
    largest, plain = [0] * g, 0
    for k in range(200):
        reading = counter.update(k, 1)
        assert reading is not None
        place = int(touched(counter, [k])[0][0, 0])
        cells.add(place)
        group, level = divmod(place, sketch.levels)
        largest[group] = max(largest[group], level)
        if sorted(largest)[g // 2] > 1:
            plain += 1
            assert reading.estimate >= min(g, k + 1)
            continue
        shares = [2.0 ** -min(level + 1, sketch.levels - 1) / g for level in range(sketch.levels)]
        at = sum(g * (1 - (1 - share) ** reading.estimate) for share in shares)
        capped = reading.estimate in (reading.low, reading.high, 1.0)
        assert capped or at == pytest.approx(len(cells), rel=0.01)
    assert 0 < plain < 190


def test_moments_move_the_estimate_into_what_they_allow() -> None:
    """Without noise: 400 items of frequency 1 have F1 = D; one of 400 has F1^2 / F2 = 1 = D."""
    unit = silent(closer=True, centre=True).extend(range(400), [1] * 400)
    assert unit[-1].estimate == pytest.approx(400, rel=0.4)
    heavy = silent(closer=True).extend([0] * 400, [1] * 400)
    assert 1 <= heavy[-1].estimate <= linear(silent()).sketch.width


# -- noise: rates of single groups ----------------------------------------------------------------------


def failing_rates(
    distinct: int, *, groups: int, fault: str | None, rho: float = 1
) -> tuple[float, float, int]:
    """Return how often single groups answer 16 times too much, and less than one 4 mu-th; over 6 keys."""
    high = low = total = 0
    for seed in range(6):
        counter = DistinctCounter(
            rho=rho,
            horizon=1 << 16,
            every=1 << 14,
            copies=groups,
            base="tree",
            simulation_seed=seed,
        )
        sketch: Any = linear(counter).sketch
        items = np.arange(1 << 16) % distinct
        values = noisy(counter, items, np.where(np.arange(1 << 16) < distinct, 1, 0))
        tables = sketch.tables(np.arange(4))
        level = np.where(sketch.detected(values, tables), np.arange(sketch.levels), 0).max(axis=2)[-1]
        if fault == "one":  # a counter that never detects anything
            level[:] = 0
        if fault == "all":  # one that always detects everything
            level[:] = sketch.levels - 1
        answer = np.exp2(level)
        share = distinct / groups
        high += int((answer >= max(2.0, 16 * share)).sum())
        low += int((answer < share / (4 * tables[-1, 2])).sum())
        total += groups
    return high / total, low / total, total


def rates_hold(high: float, low: float, total: int) -> bool:
    """Against .1125 and .1, at 4 sd: false alarm below 1e-4 even if the bounds were met."""
    return high < 0.1125 + 4 * np.sqrt(0.1 / total) and low < 0.1 + 4 * np.sqrt(0.09 / total)


@pytest.mark.parametrize(("distinct", "groups", "rho"), [(60_000, 101, 1), (60_000, 101, 10), (202, 101, 1)])
def test_rates_of_single_groups(distinct: int, groups: int, rho: float) -> None:
    assert rates_hold(*failing_rates(distinct, groups=groups, fault=None, rho=rho))


def test_rates_see_counters_that_answer_always_the_same() -> None:
    """60,000 items exceed 4 mu g, so that always the least answer fails; of 202 always the largest one."""
    assert not rates_hold(*failing_rates(60_000, groups=101, fault="one"))
    assert not rates_hold(*failing_rates(202, groups=101, fault="all"))


# -- intervals -------------------------------------------------------------------------------------------


def streams() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Items, signs, true counts of distinct items: the shapes of the lower bounds, small."""
    n = 4000
    half = n // 2
    unit = (np.r_[np.arange(half), np.arange(half)], np.r_[np.ones(half), -np.ones(half)].astype(int))
    toggle = (np.arange(n) % 40, np.where(np.arange(n) // 40 % 2 == 0, 1, -1))
    heavy = (np.zeros(n, dtype=int), np.ones(n, dtype=int))
    rotation = (np.arange(n) // 400, np.where(np.arange(n) % 400 < 200, 1, -1))
    distinct = (np.arange(n), np.ones(n, dtype=int))
    result = {}
    for name, (items, signs) in {
        "unit": unit,
        "toggle": toggle,
        "heavy": heavy,
        "rotation": rotation,
        "distinct": distinct,
    }.items():
        counts: Tally[int] = Tally()
        truth, now = np.zeros(n), 0
        for t, (item, sign) in enumerate(zip(items.tolist(), signs.tolist(), strict=True)):
            before = counts[item] != 0
            counts[item] += sign
            now += int(counts[item] != 0) - int(before)
            truth[t] = now
        result[name] = (items, signs, truth)
    return result


LAWS: dict[str, dict[str, Any]] = {
    "grouped": {"rho": 1},
    "grouped 10": {"rho": 10, "few_heavy": True},
    "grouped pure": {"epsilon": 1},
    "minhash": {"rho": 1, "method": "minhash"},
    "general": {"rho": 10, "method": "general"},
    "strong": {"rho": 1, "thresholds": "strong"},
    "toeplitz": {"rho": 1, "base": "toeplitz"},
}


@pytest.mark.parametrize("law", LAWS)
def test_intervals_hold(law: str) -> None:
    """Five streams, beta = 0.01 each: two failures among 5 have probability below 1e-3; none is expected."""
    misses = 0
    for name, (items, signs, truth) in streams().items():
        counter = DistinctCounter(**LAWS[law], horizon=len(items), every=20, simulation_seed=len(name))
        readings = counter.extend(items, signs)
        true = truth[readings.step - 1]
        misses += bool(np.any((readings.low > true) | (true > readings.high)))
        assert np.all((readings.low <= readings.estimate) & (readings.estimate <= readings.high))
    assert misses <= 1


def test_heavy_rotation_with_the_option() -> None:
    """23 items at frequency 2000: within a factor of 3 at 19 of 20 reads with the option."""
    t, rounds = 92_000, 23
    items = np.r_[np.repeat(np.arange(rounds), 2000), np.repeat(np.arange(rounds), 2000)]
    signs = np.r_[np.ones(t // 2, dtype=int), -np.ones(t // 2, dtype=int)]
    counter = DistinctCounter(rho=1, horizon=t, every=1000, few_heavy=True, simulation_seed=4)
    readings = counter.extend(items, signs)
    up = np.minimum(np.ceil(readings.step / 2000), rounds)
    down = rounds - np.maximum(readings.step - t // 2, 0) // 2000
    truth = np.where(readings.step <= t // 2, up, down)
    used = truth > 0
    factor = np.maximum(readings.estimate[used] / truth[used], truth[used] / readings.estimate[used])
    assert np.quantile(factor, 0.95) <= 3


def test_centring_uses_the_root_of_tau() -> None:
    options: dict[str, Any] = {"rho": 1, "horizon": 20_000, "every": 1000, "simulation_seed": 9, "copies": 35}
    items, signs = np.arange(20_000), np.ones(20_000, dtype=int)
    raw = DistinctCounter(**options, centre=False, closer=False).extend(items, signs)
    centred = DistinctCounter(**options, closer=False).extend(items, signs)
    tau = linear(DistinctCounter(**options)).sketch.tables(np.arange(20))[:, 0]
    used = raw.estimate * np.sqrt(tau) < raw.step
    assert used.sum() > 10
    assert np.allclose(centred.estimate[used], (raw.estimate * np.sqrt(tau))[used])
    assert np.array_equal(raw.low, centred.low)
    assert np.array_equal(raw.high, centred.high)


def test_what_is_impossible_is_not_shown() -> None:
    readings = shown(
        np.array([5.0, 0.5, 9.0]),
        np.array([1.0, 1.0, 8.0]),
        np.array([9.0, 9.0, 9.0]),
        steps=np.array([3, 4, 5]),
        most=4,
    )
    assert readings.high.tolist() == [3.0, 4.0, 4.0]
    assert readings.low.tolist() == [1.0, 1.0, 4.0]
    assert readings.estimate.tolist() == [3.0, 1.0, 4.0]
    assert len(Readings.none()) == 0


@pytest.mark.parametrize("method", METHODS)
def test_failures_are_what_was_asked_for(method: str) -> None:
    for failure in (Fraction(1, 10), Fraction(1, 1000)):
        for thresholds in ("weak", "strong"):
            counter = DistinctCounter(
                rho=1,
                horizon=512,
                every=2,
                failure=failure,
                method=method,
                base="tree",
                thresholds=thresholds,
                simulation_seed=1,
                **METHODS[method],
            )
            assert 0 < linear(counter).sketch.failure <= failure


@pytest.mark.parametrize("law", [{"rho": Fraction(1, 10)}, {"epsilon": Fraction(1, 2)}])
@pytest.mark.parametrize("fault", [None, "tripled"])
def test_allowance_of_the_sum(law: dict[str, Any], fault: str | None) -> None:
    """At 0.1 a read: exceeded by at most 0.1 of 200 keys, at 4 sd (false alarm below 1e-4); three times
    the noise exceeds it more often."""
    common: dict[str, Any] = {"horizon": 8, "universe": 8, "base": "tree", "copies": 61, "simulation_seed": 1}
    counter = DistinctCounter(**law, **common)
    sketch: Any = linear(counter).sketch
    sketch._rest = 0.2
    (allowed,) = sketch.allowance(np.array([6])).tolist()
    below = 0
    for key in range(200):
        bank = sketch.base.bank(
            sketch.width, key=key.to_bytes(32, "little"), stream_id=bytes(16), purpose="t"
        )
        below += int(bank.at(np.array([6])).sum() * (1 if fault is None else 3) < -allowed)
    assert (below / 200 < 0.1 + 4 * np.sqrt(0.09 / 200)) == (fault is None)


@pytest.mark.parametrize("law", [{"rho": 1, "base": "tree"}, {"epsilon": 1}])
def test_counters_that_are_clearly_not_empty(law: dict[str, Any]) -> None:
    """An empty stream has none at 50 reads of 10 keys but for 0.05 each: at most 4 of 10 (1e-4). With three
    times the noise nearly all have some; and 9 frequent items are nearly all found."""
    found = {1: 0, 3: 0}
    options: dict[str, Any] = {"horizon": 1000, "every": 20}
    for seed in range(10):
        counter = DistinctCounter(**law, **options, simulation_seed=seed)
        sketch: Any = linear(counter).sketch
        sketch._rest = 0.1 / 50
        values = noisy(counter, ["a"] * 1000, [0] * 1000)
        sure = sketch.tables(np.arange(50))[:, 6, None]
        for factor in found:
            found[factor] += bool(np.any(factor * values > sure))
    assert found[1] <= 4
    assert found[3] >= 7
    heavy = DistinctCounter(**law, **{**options, "horizon": 9000, "every": 180}, simulation_seed=1)
    readings = heavy.extend(np.arange(9000) % 9, np.ones(9000, dtype=int))
    assert 7 <= readings[-1].low <= 9


def test_narrow_intervals_end_near_the_sum() -> None:
    items, signs = np.arange(20_000), np.ones(20_000, dtype=int)
    options: dict[str, Any] = {"rho": 1, "horizon": 20_000, "every": 100, "simulation_seed": 2}
    wide, narrow = (DistinctCounter(**options, narrow=value).extend(items, signs) for value in (False, True))
    assert np.all(wide.low <= narrow.low)
    assert np.all(narrow.low <= narrow.step)
    assert np.all(narrow.high <= wide.high)
    assert np.all(narrow.high >= narrow.step)
    heavy = DistinctCounter(**options).extend([0] * 20_000, signs)
    assert np.all(heavy.high >= 1)
    gone = DistinctCounter(**options).extend(
        np.r_[items[:10_000], items[:10_000]], np.r_[signs[:10_000], -signs[:10_000]]
    )
    assert gone[-1].high < 1000 < narrow[-1].high
    assert linear(DistinctCounter(**options)).sketch.failure <= 0.01
