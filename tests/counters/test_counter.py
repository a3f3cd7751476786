"""The counter's sequence of releases: the same however it is asked for, and untouched by refused calls."""

import copy
import pickle
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trilift.counters import Counter, chain_of
from trilift.lift.errors import HorizonError, ParameterError, ReplayError, StateError

Make = Callable[..., Counter]
thrifty = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))

KINDS: dict[str, dict[str, Any]] = {
    "integers": {"bounds": (-3, 7)},
    "lattice": {"bounds": (-1, 1), "resolution": 2.0**-4},
    "finer output": {"bounds": (0, 1), "output_resolution": 2.0**-3},
    "vectors": {"dimension": 3, "bounds": (0, 2)},
    "nonnegative": {"postprocess": "nonnegative"},
    "monotone": {"postprocess": "monotone"},
    "wide": {"bounds": (0, 2**80), "epsilon": 2.0**70},
}


def data(rng: np.random.Generator, kind: str, count: int) -> list[Any]:
    """Random inputs that a kind of counter takes: numbers, or lists for vectors."""
    low, high = KINDS[kind].get("bounds", (0, 1))
    if kind == "wide":
        return [int(rng.integers(0, 2**62)) << int(rng.integers(0, 19)) for _ in range(count)]
    shape = (count, 3) if kind == "vectors" else (count,)
    if kind == "lattice":
        values: list[Any] = rng.uniform(low, high, shape).tolist()
        return values
    whole: list[Any] = rng.integers(low, high + 1, shape).tolist()
    return whole


def same(left: Any, right: Any) -> bool:
    """Equality of released values, kinds of numbers included."""
    a, b = np.asarray(left), np.asarray(right)
    return a.shape == b.shape and bool((a == b).all())


def listed(released: Any) -> list[Any]:
    return list(released) if not isinstance(released, np.ndarray) else list(released.tolist())


@thrifty
@given(kind=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 2**32), data_=st.data())
def test_any_mixture_of_calls_releases_the_same(
    small: Make, tmp_path_factory: pytest.TempPathFactory, kind: str, seed: int, data_: Any
) -> None:
    values = data(np.random.default_rng(seed), kind, 30)
    counter = small(**KINDS[kind])
    expected = counter.extend(values)
    path = tmp_path_factory.mktemp("state") / "counter.json"
    counter, got, at = small(**KINDS[kind]), [], 0
    while at < len(values):
        call = data_.draw(st.sampled_from(["update", "named", "extend", "array", "load"]))
        if call == "load":
            counter.save(path)
            counter = Counter.load(path)
            call = "update"
        if call in ("update", "named"):
            step = at + 1 if call == "named" else None
            got.append(counter.update(values[at], step=step))
            at += 1
        else:
            size = data_.draw(st.integers(0, 12))
            part: Any = values[at : at + size]
            if call == "array" and kind != "wide" and part:
                part = np.asarray(part)
            got.extend(counter.extend(part))
            at += len(values[at : at + size])
        assert counter.step == at
    assert same(np.array(got, dtype=object), expected.astype(object))


def test_long_streams_cross_pages_and_blocks() -> None:
    inputs = np.random.default_rng(1).integers(0, 2, 1500)
    options: dict[str, Any] = {"horizon": 3000, "simulation_seed": 2}
    whole = Counter(1.0, **options).extend(inputs)
    single = Counter(1.0, **options)
    assert [single.update(int(x)) for x in inputs] == whole.tolist()
    halves = Counter(1.0, **options)
    parts = [halves.extend(inputs[a:b]) for a, b in ((0, 255), (255, 257), (257, 257), (257, 1500))]
    assert np.concatenate(parts).tolist() == whole.tolist()


@thrifty
@given(
    kind=st.sampled_from(["integers", "lattice", "finer output", "vectors", "wide"]), seed=st.integers(0, 99)
)
def test_noise_does_not_depend_on_the_data(small: Make, kind: str, seed: int) -> None:
    """Two counters with one key: released differences are the differences of the true prefix sums."""
    rng = np.random.default_rng(seed)
    first, second = small(**KINDS[kind]), small(**KINDS[kind])
    x, y = data(rng, kind, 30), data(rng, kind, 30)
    places = first.setup.rule.places
    scale = 2.0**places
    true = [
        np.cumsum(
            np.array(v, dtype=object) if places == 0 else np.floor(np.array(v) * scale + 0.5) / scale, axis=0
        )
        for v in (x, y)
    ]
    released = first.extend(x).astype(object) - second.extend(y).astype(object)
    assert same(released, (true[0] - true[1]).astype(object))


def test_pages_may_be_short(small: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = small(dimension=3).extend(np.ones((30, 3), dtype=int)).tolist()
    for numbers in (1, 12, 21):  # pages of 1, 4 and 7 steps
        monkeypatch.setattr("trilift.counters.running._PAGE_NUMBERS", numbers)
        counter = small(dimension=3)
        counter.skip(2)
        assert [counter.update([1, 1, 1]).tolist() for _ in range(28)] == [
            [x - 2 for x in row] for row in expected[2:]
        ]


def test_coordinates_have_independent_noise(small: Make) -> None:
    """Equal coordinates would mean one keystream for all: then all 30 values agree (chance below 1e-9)."""
    released = small(dimension=2).extend(np.zeros((30, 2), dtype=int))
    assert (released[:, 0] != released[:, 1]).any()


def test_seeds_and_fresh_keys_give_other_noise(small: Make) -> None:
    zeros = np.zeros(30, dtype=int)
    runs = [small(simulation_seed=seed).extend(zeros).tolist() for seed in (5, 6, None, None)]
    assert len({tuple(run) for run in runs}) == 4  # fails by chance with probability below 1e-9
    assert small().extend(zeros).tolist() == runs[0]


@pytest.mark.parametrize("kind", ["integers", "lattice", "finer output", "nonnegative"])
def test_skip_counts_zeros(small: Make, kind: str) -> None:
    one, other = small(**KINDS[kind]), small(**KINDS[kind])
    expected = one.extend([1, 0, 0, 0, 1]).tolist()
    other.update(1)
    other.skip(0)
    other.skip(3)
    assert other.step == 4
    assert other.update(1) == expected[-1]
    with pytest.raises(ReplayError, match="no longer remembered"):
        other.update(0, step=3)
    assert other.update(1, step=5) == expected[-1]


def test_skip_does_not_move_the_running_maximum(small: Make) -> None:
    """Nothing is released for skipped steps, so they cannot be the largest released value."""
    plain, monotone = small(), small(postprocess="monotone")
    noise = plain.extend(np.zeros(30, dtype=int))
    monotone.skip(29)
    assert monotone.update(0) == max(0, int(noise[-1]))


@pytest.mark.parametrize("bad", [-1, 1.0, True, "1", None, np.nan])
def test_skip_refuses(small: Make, bad: Any) -> None:
    counter = small()
    with pytest.raises(ParameterError, match=r"^steps must be"):
        counter.skip(bad)
    with pytest.raises(ParameterError, match="0 is not within the bounds"):
        small(bounds=(1, 2)).skip(1)
    assert counter.step == 0


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize(
    ("bounds", "norm_bound", "allowed"),
    [((-1, 1), 1, False), ((-1, 1), 3, False), ((-1, 1), 4, True), ((0, 1), 1, True), ((1, 2), 9, False)],
)
def test_skip_counts_what_is_an_input(
    small: Make, bounds: Any, norm_bound: int, allowed: bool, clip: bool
) -> None:
    """Zeros of 4 coordinates lie at l1 distance 4 from the low corner (-1, -1, -1, -1)."""
    counter = small(bounds=bounds, dimension=4, norm_bound=norm_bound, clip=clip)
    if allowed:
        counter.skip(2)
        assert counter.update([0] * 4).shape == (4,)
        return
    for steps in (0, 2):
        with pytest.raises(ParameterError, match=r"^skip counts zeros, "):
            counter.skip(steps)
    assert counter.step == 0


# -- horizon -----------------------------------------------------------------------------------------


def test_past_the_horizon_nothing_changes(small: Make, tmp_path: Path) -> None:
    counter, untouched = small(), small()
    values = [1] * 28
    counter.extend(values)
    untouched.extend(values)
    counter.save(tmp_path / "before")
    for call in (
        lambda: counter.extend([1, 1, 1]),
        lambda: counter.skip(3),
        lambda: counter.update(1, step=31),
        lambda: counter.update(1, step=2**70),
    ):
        with pytest.raises(HorizonError, match="past the horizon 30"):
            call()
        counter.save(tmp_path / "after")
        assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()
    assert counter.extend([1, 0]).tolist() == untouched.extend([1, 0]).tolist()
    for call in (lambda: counter.update(1), lambda: counter.extend([1]), lambda: counter.skip(1)):
        with pytest.raises(HorizonError, match="step 31 is past the horizon 30"):
            call()
    counter.skip(0)
    assert counter.extend([]).shape == (0,)
    assert counter.step == 30
    assert counter.update(0, step=30) == untouched.update(0, step=30)


def test_horizon_of_one_and_horizons_past_the_chain(small: Make) -> None:
    counter = Counter(1.0, horizon=1, simulation_seed=0)
    value = counter.update(1)
    with pytest.raises(HorizonError):
        counter.update(1)
    assert counter.update(1, step=1) == value
    assert small(horizon=36).extend([0] * 36).size == 36
    capacity = chain_of(("stage-max-9", "direct-max-4")).capacity
    with pytest.raises(HorizonError, match="capacity"):
        small(horizon=capacity + 1)


def test_a_few_steps_of_a_very_long_horizon() -> None:
    counter = Counter(1.0, horizon=10**12, simulation_seed=0)
    first = counter.update(1)
    counter.skip(10**12 - 3)
    last = counter.extend([1, 0])
    assert isinstance(first, int)
    assert abs(last[-1] - 2) < 40 * counter.sd(10**12)
    with pytest.raises(HorizonError):
        counter.update(0)


# -- repeating steps ---------------------------------------------------------------------------------


def test_repeated_steps(small: Make, tmp_path: Path) -> None:
    counter = small(bounds=(0, 3))
    values = [counter.update(x) for x in (1, 2, 3)]
    counter.save(tmp_path / "state")
    for current in (counter, Counter.load(tmp_path / "state")):
        for step, x in ((1, 1), (2, 2.0), (3, np.int8(3)), (1, 1)):
            assert current.update(x, step=step) == values[step - 1]
        with pytest.raises(ReplayError, match="step 2 was released with another input"):
            current.update(3, step=2)
        with pytest.raises(StateError, match="step 5 is out of order: the next step is 4"):
            current.update(1, step=5)
        assert current.step == 3
    untouched = small(bounds=(0, 3))
    assert counter.update(1, step=4) == untouched.extend([1, 2, 3, 1])[-1]


@pytest.mark.parametrize("step", [0, -1, 1.0, True, "1", np.nan])
def test_step_must_be_a_positive_integer(small: Make, step: Any) -> None:
    counter = small()
    counter.update(1)
    with pytest.raises(ParameterError, match=r"^step must be an integer >= 1, got"):
        counter.update(1, step=step)
    assert counter.step == 1


def test_the_latest_1024_steps_are_remembered() -> None:
    counter = Counter(1.0, horizon=2000, simulation_seed=3)
    released = counter.extend(np.ones(1100, dtype=int))
    assert counter.update(1, step=1100 - 1023) == released[1100 - 1024]
    with pytest.raises(ReplayError, match="no longer remembered"):
        counter.update(1, step=1100 - 1024)
    counter.update(1)
    with pytest.raises(ReplayError, match="no longer remembered"):
        counter.update(1, step=1100 - 1023)


def test_repetition_compares_what_was_counted(small: Make) -> None:
    """Inputs that clipping or rounding makes equal are the same input."""
    counter = small(clip=True)
    assert counter.update(7) == counter.update(1, step=1)
    lattice = small(resolution=0.25)
    assert lattice.update(0.3) == lattice.update(0.25, step=1)
    vector = small(dimension=2)
    assert vector.update([0, 1]).tolist() == vector.update((0, 1), step=1).tolist()
    with pytest.raises(ReplayError):
        vector.update([1, 0], step=1)


# -- interrupts, threads, copies, memory -------------------------------------------------------------


@pytest.mark.parametrize("where", ["post_process", "running_sums", "as_array"])
def test_an_interrupt_leaves_a_consistent_state(
    small: Make, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Ctrl-C in the middle of extend: either the steps count and can be repeated, or they never happened."""
    counter, untouched = small(), small()
    counter.extend([1, 0])
    expected = untouched.extend([1, 0, 1, 1, 0]).tolist()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"trilift.counters.running.{where}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        counter.extend([1, 1])
    monkeypatch.undo()
    assert counter.step == (4 if where == "as_array" else 2)
    assert counter.update(1, step=3) == expected[2]
    assert counter.update(1, step=4) == expected[3]
    assert counter.update(0, step=5) == expected[4]
    assert counter.step == 5


def test_threads_take_turns() -> None:
    """Two threads in one step would release two inputs with the same noise."""
    counter = Counter(1.0, horizon=1000, simulation_seed=4)
    expected = Counter(1.0, horizon=1000, simulation_seed=4).extend(np.ones(400, dtype=int))
    got: list[int] = []

    def work() -> None:
        got.extend(counter.update(1) for _ in range(50))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert counter.step == 400
    assert sorted(got) == sorted(expected.tolist())


def test_copies_are_refused(small: Make) -> None:
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(StateError, match="not copied or pickled"):
            make(small())


@pytest.mark.usefixtures("plain_path")
def test_memory_stays_flat() -> None:
    counter = Counter(1.0, horizon=10**6, simulation_seed=0)
    for _ in range(1100):
        counter.update(1)
    tracemalloc.start()
    try:
        for _ in range(1500):
            counter.update(1)
        counter.extend(np.ones(300_000, dtype=np.int8))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 600_000  # the remembered steps; the sums of extend alone would be 2,400,000 bytes


# -- budget ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({}, 1),
        ({"bounds": (-2, 5)}, 7),
        ({"bounds": (-2, 5), "max_contributions": 3}, 21),
        ({"bounds": (0, 0.75), "resolution": 0.25}, 0.75),
        ({"dimension": 5}, 5),
        ({"dimension": 5, "norm_bound": 1}, 2),
        ({"dimension": 5, "norm_bound": 2, "max_contributions": 4}, 16),
        ({"dimension": 5, "norm_bound": 3}, 5),
        ({"dimension": 2, "bounds": (-1, 3), "max_contributions": 2}, 16),
    ],
)
def test_what_one_person_can_change(small: Make, options: dict[str, Any], change: float) -> None:
    assert small(**options).setup.ledger.change == change


@pytest.mark.parametrize("offset", [0, -(2**62), 2**63 - 5, 2**70])
def test_norms_never_wrap(small: Make, offset: int) -> None:
    for width in (4, 2**62):
        bounds = (offset, offset + width)
        counter = small(2.0**60, dimension=5, bounds=bounds, norm_bound=2 * width, simulation_seed=1)
        edge = [offset + width] * 2 + [offset] * 3
        counter.extend([edge, edge])
        for bad in ([offset + width] * 4 + [offset], [*edge[:4], offset + 1]):
            with pytest.raises(ParameterError, match="norm_bound"):
                counter.update(bad)


def test_norm_bound_is_enforced(small: Make) -> None:
    counter = small(dimension=3, bounds=(-1, 1), norm_bound=2)
    counter.update([-1, 1, -1])
    for bad in ([0, 0, 0], [1, 1, -1]):
        with pytest.raises(ParameterError, match="norm_bound"):
            counter.update(bad)
    with pytest.raises(ParameterError, match="norm_bound"):
        counter.extend([[-1, -1, -1], [0, 0, 0]])
    assert counter.step == 1


def test_objects_show_no_secrets(small: Make) -> None:
    counter = small(simulation_seed=None, bounds=(0, 123457))
    counter.update(123456)
    key, stream = bytes(counter._key), counter._stream_id
    shown = [
        repr(counter),
        str(counter),
        repr(counter.setup),
        counter.privacy_statement(),
        repr(counter._now),
    ]
    shown += [repr(counter._now.recent), repr(counter._noises[0]), repr(counter._key), f"{counter._key}"]
    with pytest.raises(ReplayError) as caught:
        counter.update(5, step=1)
    shown += [str(caught.value), repr(caught.value)]
    for text in shown:
        assert key.hex() not in text
        assert repr(key) not in text
        assert stream.hex() not in text
        assert "123456" not in text
    assert "SIMULATION" not in repr(counter)
    assert "SIMULATION" in repr(small())
