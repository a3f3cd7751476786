"""The running shell: one by one, many at once, lazily, retried, saved; hostile events change nothing."""

import copy
import itertools
import json
import pickle
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters.turnstile import DistinctCounter, Reading, Readings
from trilift.counters.turnstile.internals import exact, linear, noisy, touched
from trilift.lift.errors import (
    ArtifactFormatError,
    HorizonError,
    ParameterError,
    ReplayError,
    StateError,
    TriliftError,
)

HORIZON = 60
ITEMS = [f"plane {k % 23}" for k in range(HORIZON)]
SIGNS = [1 if k % 5 else -1 for k in range(HORIZON)]
KINDS: dict[str, dict[str, Any]] = {
    "gaussian": {"rho": 1},
    "pure": {"epsilon": 1},
    "tree": {"rho": 1, "base": "tree"},
    "pure tree": {"epsilon": 2, "base": "tree"},
    "approximate": {"epsilon": 1, "delta": 1e-6},
    "simulated": {"rho": 1, "base": "toeplitz"},
    "minhash": {"rho": 1, "method": "minhash"},
    "general": {"rho": 1, "method": "general"},
    "maps": {"rho": 1, "method": "general-maps", "universe": 8},
    "strong": {"rho": 1, "thresholds": "strong"},
    "heavy": {"rho": 1, "few_heavy": True},
    "hybrid": {"rho": 10, "method": "hybrid"},
}


def make(kind: str = "gaussian", **options: Any) -> DistinctCounter:
    return DistinctCounter(**({"horizon": HORIZON, "simulation_seed": 7} | KINDS[kind] | options))


def same(first: Readings, second: Readings) -> bool:
    return list(first) == list(second)


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_batch_is_sequential(kind: str, every: int) -> None:
    whole = make(kind, every=every).extend(ITEMS, SIGNS)
    assert whole.step.tolist() == list(range(every, HORIZON + 1, every))
    single = make(kind, every=every)
    shown = [single.update(item, sign) for item, sign in zip(ITEMS, SIGNS, strict=True)]
    assert [reading for reading in shown if reading is not None] == list(whole)
    assert [k + 1 for k, reading in enumerate(shown) if reading] == whole.step.tolist()
    split = make(kind, every=every)
    parts = [split.extend(ITEMS[a:b], SIGNS[a:b]) for a, b in ((0, 1), (1, 1), (1, 20), (20, 60))]
    assert same(Readings.joined(parts), whole)
    if kind != "hybrid":  # whose state is no array
        assert np.array_equal(exact(split), exact(single))


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_any_split_gives_the_same(data: Any) -> None:
    events = data.draw(
        st.lists(st.tuples(st.integers(0, 9), st.sampled_from([-1, 0, 1])), min_size=1, max_size=HORIZON)
    )
    every = data.draw(st.integers(1, 9))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=4)))
    items, signs = [item for item, _ in events], [sign for _, sign in events]
    whole = make("tree", every=every).extend(items, signs)
    counter = make("tree", every=every)
    bounds = [0, *cuts, len(events)]
    parts = [counter.extend(items[a:b], signs[a:b]) for a, b in itertools.pairwise(bounds)]
    assert same(Readings.joined(parts), whole)


@pytest.mark.parametrize("kind", ["gaussian", "pure", "tree", "minhash"])
def test_lazy_is_ticked(kind: str) -> None:
    """By exact evaluation, one counter and one tick at a time: the noise of global time, not of touches."""
    counter = make(kind, every=4)
    values = noisy(counter, ITEMS, SIGNS)
    bank: Any = linear(counter).bank
    where, change = touched(counter, ITEMS)
    sums = np.zeros(linear(counter).sketch.width, dtype=np.int64)
    for step in range(HORIZON):
        np.add.at(sums, where[step], SIGNS[step] * change[step])
        if (step + 1) % 4 == 0:
            tick = step // 4
            for c in (0, len(sums) - 1) if tick in (0, 7, 14) else ():
                assert values[tick, c] == sums[c] + bank.exactly(tick, counter=c)
    assert np.array_equal(sums, exact(counter))


@pytest.mark.parametrize("kind", ["gaussian", "pure", "maps", "simulated"])
def test_noise_does_not_know_the_stream(kind: str) -> None:
    """Equivariance in the data: under one key, outputs differ by the difference of exact sums alone."""
    first, second = make(kind), make(kind)
    a = noisy(first, ITEMS, SIGNS)
    b = noisy(second, [f"other {k}" for k in range(HORIZON)], [0] * HORIZON)
    where, change = touched(first, ITEMS)
    fed = np.zeros_like(b)
    for step in range(HORIZON):
        np.add.at(fed[step], where[step], SIGNS[step] * change[step])
    assert np.array_equal(a - np.cumsum(fed, axis=0), b)
    assert np.any(b != 0)


def test_signs_and_forms_of_events() -> None:
    one, two, three = make(), make(), make()
    one.extend(["a", ("b", 1), b"c", 2**70, -5], [1, -1, 0, 1, 1])
    for event in (("a", 1), (("b", 1), -1), (b"c", 0), (2**70, np.int8(1)), (-5, 1)):
        two.update(event)
    three.extend(iter(["a", ("b", 1), b"c", 2**70, -5]), iter([1, -1, 0, 1, 1]))
    assert np.array_equal(exact(one), exact(two))
    assert np.array_equal(exact(one), exact(three))
    numbers = make()
    numbers.extend(np.arange(10, dtype=np.uint8), np.ones(10, dtype=np.int32))
    listed = make()
    listed.extend(list(range(10)), [1] * 10)
    assert np.array_equal(exact(numbers), exact(listed))
    assert len(make().extend([], [])) == 0


HOSTILE: list[Any] = [
    float("nan"),
    1.0,
    True,
    False,
    None,
    "\ud800",
    [1],
    {"a": 1},
    object(),
    ("a", None),
    ("a", ("b", 1.5)),
    np.float64(2),
    np.bool_(True),
    np.datetime64("2020-01-01"),
    "x" * (1 << 21),
    1 << (1 << 24),
    1j,
]


@pytest.mark.parametrize("item", HOSTILE, ids=lambda item: type(item).__name__)
def test_hostile_items_change_nothing(item: Any) -> None:
    counter = make()
    counter.extend(ITEMS[:10], SIGNS[:10])
    before, position = exact(counter), counter._now
    for call in (
        lambda: counter.update(item, 1),
        lambda: counter.update((item, 1)),
        lambda: counter.extend([*ITEMS[:3], item], [1] * 4),
    ):
        with pytest.raises(ParameterError) as error:
            call()
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 300
    assert counter._now is position
    assert np.array_equal(exact(counter), before)


def deep() -> Any:
    item: Any = "a"
    for _ in range(2000):
        item = (item,)
    return item


def test_deep_items_are_refused() -> None:
    with pytest.raises(ParameterError):
        make().update(deep(), 1)


BAD_SIGNS: list[Any] = [2, -2, True, False, 1.0, "1", float("nan"), 1 << 70, np.bool_(True), 0.0, [1], (1,)]


@pytest.mark.parametrize("sign", BAD_SIGNS, ids=repr)
def test_hostile_signs_change_nothing(sign: Any) -> None:
    counter = make()
    position = counter._now
    for call in (
        lambda: counter.update("a", sign),
        lambda: counter.update(("a", sign)),
        lambda: counter.extend(["a", "b"], [1, sign]),
    ):
        with pytest.raises(ParameterError) as error:
            call()
        assert "\n" not in str(error.value)
    assert counter._now is position


@pytest.mark.parametrize(
    ("items", "signs"),
    [
        ("ab", [1, 1]),
        (["a"], [1, 1]),
        (["a", "b"], [1]),
        (3, [1]),
        (["a"], 1),
        (iter(["a", "b"]), iter([1])),
        (np.zeros((2, 2), dtype=int), [1, 1]),
        (["a"], np.array([0.5])),
        (["a"], np.array([True])),
        (["a"], np.array([[1]])),
        (np.array([0.5]), [1]),
        (["a", None], [1, 1]),
        (np.ma.masked_array([1, 2], mask=[0, 1]), [1, 1]),
        (["a"], [None]),
    ],
)
def test_bad_batches_change_nothing(items: Any, signs: Any) -> None:
    counter = make()
    position = counter._now
    with pytest.raises(ParameterError):
        counter.extend(items, signs)
    assert counter._now is position


def test_bad_sign_is_named_in_a_later_batch() -> None:
    counter = DistinctCounter(rho=1, horizon=10**5, every=10**5, simulation_seed=1)
    signs = [1] * 70_000
    signs[50_000] = 5
    with pytest.raises(ParameterError, match="index 50000"):
        counter.extend(range(70_000), signs)
    assert counter.step == 0
    assert not exact(counter).any()


@pytest.mark.parametrize("event", ["a", 3, ("a",), ("a", 1, 1), None, {"a": 1}])
def test_events_must_be_pairs(event: Any) -> None:
    counter = make()
    with pytest.raises(ParameterError):
        counter.update(event)
    assert counter.step == 0


def test_the_horizon() -> None:
    counter = make(every=7)
    counter.extend(ITEMS, SIGNS)
    position = counter._now
    with pytest.raises(HorizonError):
        counter.update("a", 1)
    with pytest.raises(HorizonError):
        counter.extend(["a"], [1])
    other = make()
    with pytest.raises(HorizonError):
        other.extend(iter(["a"] * 61), iter([1] * 61))
    assert other.step == 0
    assert counter._now is position


def test_not_strict_streams_are_no_error() -> None:
    """What is removed without being there: no error, no warning, an answer of the same shape."""
    readings = make().extend(["a"] * HORIZON, [-1] * HORIZON)
    assert len(readings) == HORIZON
    assert np.all(np.isfinite(readings.estimate))
    assert np.all(readings.low <= readings.estimate)
    assert np.all(readings.estimate <= readings.high)


# -- retries -------------------------------------------------------------------------------------------


def test_a_remembered_step_is_repeated() -> None:
    counter = make(every=2)
    first = [counter.update(item, sign) for item, sign in zip(ITEMS[:9], SIGNS[:9], strict=True)]
    for k in range(9):
        assert counter.update(ITEMS[k], SIGNS[k], step=k + 1) == first[k]
    assert counter.step == 9
    with pytest.raises(ReplayError):
        counter.update("another", SIGNS[3], step=4)
    with pytest.raises(ReplayError):
        counter.update(ITEMS[3], -SIGNS[3], step=4)
    with pytest.raises(StateError):
        counter.update("a", 1, step=11)
    with pytest.raises(ParameterError):
        counter.update("a", 1, step=0)
    assert counter.update(ITEMS[9], SIGNS[9], step=10) is not None


def test_old_steps_are_forgotten() -> None:
    counter = DistinctCounter(rho=1, horizon=3000, every=10, base="tree", simulation_seed=1)
    counter.extend(range(2000), [1] * 2000)
    with pytest.raises(ReplayError, match="no longer remembered"):
        counter.update(0, 1, step=1)
    assert isinstance(counter.update(1999, 1, step=2000), Reading)
    assert counter.update(1998, 1, step=1999) is None


# -- states --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_counter_goes_on(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "state"
    whole = make(kind, every=3).extend(ITEMS, SIGNS)
    counter = make(kind, every=3)
    first = counter.extend(ITEMS[:20], SIGNS[:20])
    counter.save(path)
    again = DistinctCounter.load(path)
    assert again.step == 20
    assert again.update(ITEMS[17], SIGNS[17], step=18) == first[-1]
    assert same(Readings.joined([first, again.extend(ITEMS[20:], SIGNS[20:])]), whole)
    assert again.ledger == counter.ledger
    assert again.privacy_statement() == counter.privacy_statement()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_real_counter_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with DistinctCounter(rho=1, horizon=40, state=path) as counter:
        first = counter.extend(ITEMS[:20], SIGNS[:20])
        rest = [counter.update(item, sign) for item, sign in zip(ITEMS[20:24], SIGNS[20:24], strict=True)]
        with pytest.raises(StateError):
            DistinctCounter.load(path, persist=True)
        with pytest.raises(StateError):
            DistinctCounter(rho=1, horizon=40, state=path)
    with pytest.raises(StateError):
        counter.update("a", 1)
    with DistinctCounter.load(path, persist=True) as again:
        assert again.step == 24
        assert again.update(ITEMS[19], SIGNS[19], step=20) == first[-1]
        assert again.update(ITEMS[23], SIGNS[23], step=24) == rest[-1]
        again.update("a", 1)
    assert DistinctCounter.load(path).step == 25
    assert "SIMULATION" not in again.privacy_statement()


def test_two_real_counters_have_other_noise_and_hashes() -> None:
    first, second = (DistinctCounter(rho=1, horizon=20) for _ in range(2))
    words = [counter._prints.many(["a"]).tolist() for counter in (first, second)]
    assert words[0] != words[1]
    noise = [counter._run.bank.at(np.arange(20)) for counter in (first, second)]  # type: ignore[attr-defined]
    assert not np.array_equal(*noise)
    with pytest.raises(StateError):
        linear(first)


def test_an_unwritable_state_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = DistinctCounter(rho=1, horizon=40, state=tmp_path / "state")
    counter.update("a", 1)
    position = counter._now

    def broken(*_: Any, **__: Any) -> None:
        raise OSError("full")

    monkeypatch.setattr("trilift.counters.state_file.atomic_write", broken)
    with pytest.raises(OSError, match="full"):
        counter.update("b", 1)
    with pytest.raises(OSError, match="full"):
        counter.extend(["b"], [1])
    assert counter._now is position
    monkeypatch.undo()
    counter.update("b", 1)
    counter.close()
    assert DistinctCounter.load(tmp_path / "state").step == 2


def edits(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, value in (
        ("format", "x"),
        ("version", 2),
        ("version", True),
        ("kind", "Counter"),
        ("key", "00"),
        ("step", -1),
        ("step", "3"),
        ("held", []),
        ("held", ["a"]),
        ("held", [0.5] * len(record["held"])),
        ("digest", "0" * 64),
        ("setup", {}),
        ("setup", {**record["setup"], "every": 2}),
        ("setup", {**record["setup"], "horizon": 10}),
        ("setup", {**record["setup"], "budget": {"epsilon": None, "delta": None, "rho": "2"}}),
        ("recent", record["recent"][1:-1]),
        ("recent", [[1]]),
        ("seed", "1"),
        ("encoded", 1),
    ):
        yield {**record, name: value}
    yield {name: value for name, value in record.items() if name != "held"}


def test_damaged_states_are_refused(tmp_path: Path) -> None:
    from trilift.counters.state_file import checksum

    path = tmp_path / "state"
    counter = make()
    counter.extend(ITEMS[:5], SIGNS[:5])
    counter.save(path)
    text = path.read_text(encoding="ascii")
    record = json.loads(text)
    for edited in edits(record):
        for forged in (edited, {**edited, "checksum": checksum(edited)}):
            path.write_text(json.dumps(forged), encoding="ascii")
            with pytest.raises(TriliftError) as error:
                DistinctCounter.load(path)
            assert "\n" not in str(error.value)
    for broken in (text[:-10], "", "[]", "{}"):
        path.write_text(broken, encoding="ascii")
        with pytest.raises(ArtifactFormatError):
            DistinctCounter.load(path)
    with pytest.raises(ArtifactFormatError):
        DistinctCounter.load(tmp_path / "missing")
    path.write_text(text, encoding="ascii")
    assert DistinctCounter.load(path).step == 5


def test_encode_belongs_to_the_counter(tmp_path: Path) -> None:
    path = tmp_path / "state"

    def encode(item: Any) -> Any:
        return str(item)

    counter = make(encode=encode)
    counter.extend([1.5, None, True], [1, 1, 1])
    counter.save(path)
    with pytest.raises(ParameterError):
        DistinctCounter.load(path)
    assert DistinctCounter.load(path, encode=encode).step == 3
    make().save(path)
    with pytest.raises(ParameterError):
        DistinctCounter.load(path, encode=encode)
    with pytest.raises(ParameterError):
        make(encode=3)
    with pytest.raises(ParameterError):
        make(encode=lambda item: 1.5).update("a", 1)


# -- what is public ------------------------------------------------------------------------------------


def test_nothing_secret_is_shown() -> None:
    counter = DistinctCounter(rho=1, horizon=50)
    counter.extend(["somebody"] * 3, [1] * 3)
    text = repr(counter) + counter.privacy_statement() + repr(counter._prints) + repr(counter._now)
    assert bytes(counter._key).hex() not in text
    assert repr(bytes(counter._key)) not in text
    assert "somebody" not in text
    assert str(counter._key).startswith("<secret")
    assert repr(counter) == "DistinctCounter('grouped', horizon=50, step=3)"
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(StateError):
            act(counter)


def test_statements_name_guarantee_and_neighbours() -> None:
    for kind, words in (
        ("gaussian", "1-zCDP"),
        ("pure", "1-differentially private (pure)"),
        ("approximate", "delta = 1/1000000"),
    ):
        options = {"delta": Fraction(1, 10**6)} if kind == "approximate" else {}
        text = make(kind, **options).privacy_statement()
        assert words in text
        assert "Neighbours" in text
        assert "proved in rationals" in text
        assert text.startswith("SIMULATION")
    assert "floating point" in make("simulated").privacy_statement()


@pytest.mark.parametrize(
    "options",
    [
        {"horizon": 0},
        {"horizon": 1.5},
        {"every": 0},
        {"every": 61},
        {"universe": 0},
        {"failure": 0},
        {"failure": 0.6},
        {"failure": float("nan")},
        {"method": "best"},
        {"method": None},
        {"base": "identity"},
        {"base": "toeplitz", "simulation_seed": None},
        {"base": "toeplitz", "rho": None, "epsilon": 1},
        {"centre": 1},
        {"few_heavy": 1},
        {"few_heavy": True, "method": "minhash"},
        {"thresholds": "none"},
        {"copies": 4},
        {"copies": 3},
        {"copies": 0},
        {"method": "minhash", "copies": 3},
        {"method": "general", "copies": 5},
        {"method": "general-maps", "copies": 3},
        {"method": "general-maps", "horizon": 1 << 22, "every": 1 << 12},
        {"method": "general-maps", "horizon": 1 << 14, "every": 1 << 6},
        {"rho": None},
        {"simulation_seed": "a"},
    ],
    ids=repr,
)
def test_arguments_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError) as error:
        make(**options)
    assert "\n" not in str(error.value)


def test_more_copies_may_be_asked_for() -> None:
    counter = make(copies=41, narrow=False)
    assert linear(counter).sketch.failure < 1e-3
    assert make(every=60).extend(ITEMS, SIGNS).step.tolist() == [60]


def test_horizon_one() -> None:
    for kind in KINDS:
        reading = make(kind, horizon=1).update("a", 1)
        assert reading is not None
        assert reading.high <= 1


def test_without_signs_all_items_are_inserted() -> None:
    assert same(make(every=7).extend(ITEMS), make(every=7).extend(ITEMS, [1] * HORIZON))
    assert same(
        make(every=7).extend(iter(ITEMS)), make(every=7).extend(np.array(ITEMS), np.ones(HORIZON, int))
    )
