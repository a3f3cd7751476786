"""Counters without a horizon: the same noise however they are fed, saved and continued; privacy in words."""

import copy
import json
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters import BiasedCounter, Counter, GaussianCounter
from trilift.lift.errors import (
    ArtifactFormatError,
    HorizonError,
    ParameterError,
    ReplayError,
    StateError,
)
from trilift.stream.epoch_layout import GROWTHS, LAST_STEP

LN_DELTA = 1e-6


def make(kind: str, **options: Any) -> Any:
    options = {"simulation_seed": 3} | options
    if kind == "pure":
        return Counter(1, **options)
    if kind == "gaussian":
        return GaussianCounter(1, LN_DELTA, **options)
    return BiasedCounter(1, LN_DELTA, **options)


KINDS = ["pure", "gaussian", "biased"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("growth", GROWTHS)
def test_save_and_continue_at_every_boundary(kind: str, growth: str, tmp_path: Path) -> None:
    inputs = np.random.default_rng(0).integers(0, 2, 340)
    whole = make(kind, growth=growth).extend(inputs).tolist()
    ends = [end for end in make(kind, growth=growth).setup.layout.ends if end < 320][-2:]
    for end in ends:
        for cut in (end - 1, end, end + 1):
            counter = make(kind, growth=growth)
            got = counter.extend(inputs[:cut]).tolist()
            counter.save(tmp_path / "state")
            other = type(counter).load(tmp_path / "state")
            assert other.step == cut
            got += other.extend(inputs[cut:]).tolist()
            assert got == whole


@settings(deadline=None, max_examples=8)
@given(sizes=st.lists(st.integers(0, 60), min_size=1, max_size=6), kind=st.sampled_from(KINDS))
def test_batches_do_not_matter(sizes: list[int], kind: str) -> None:
    counter, parts = make(kind), []
    for size in sizes:
        parts += counter.extend(np.ones(size, dtype=int)).tolist()
    single = make(kind)
    assert [single.update(1) for _ in parts] == parts


@pytest.mark.parametrize("kind", KINDS)
def test_noise_does_not_depend_on_the_data(kind: str) -> None:
    """The biased counter's maximum never binds here, so it too shows the differences of true sums."""
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    difference = make(kind).extend(x) - make(kind).extend(y)
    assert difference.tolist() == (np.cumsum(x) - np.cumsum(y)).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_far_steps_retries_and_refusals(kind: str) -> None:
    counter = make(kind)
    counter.skip(2**40)
    value = counter.update(1)
    assert counter.update(1, step=2**40 + 1) == value
    with pytest.raises(ReplayError):
        counter.update(0, step=2**40 + 1)
    counter.skip(LAST_STEP - counter.step)
    assert counter.horizon is None
    with pytest.raises(HorizonError):
        counter.update(1)
    with pytest.raises(HorizonError):
        counter.sd(LAST_STEP + 1)
    for copied in (lambda: pickle.dumps(counter), lambda: copy.copy(counter), lambda: copy.deepcopy(counter)):
        with pytest.raises(StateError):
            copied()
    assert "horizon=None" in repr(counter)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_state(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "state"
    with make(kind, state=path) as counter:
        first = counter.update(1)
        with pytest.raises(StateError):
            type(counter).load(path, persist=True)
    with type(counter).load(path, persist=True) as other:
        assert other.update(1, step=1) == first
        assert other.update(1) == make(kind).extend([1, 1])[-1]
    record = json.loads(path.read_text())
    assert record["kind"] == type(counter).__name__
    assert record["version"] == 3


def test_a_state_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    make("gaussian").save(tmp_path / "state")
    with pytest.raises(ArtifactFormatError, match="state of a GaussianCounter, not of a Counter"):
        Counter.load(tmp_path / "state")


@pytest.mark.parametrize("field", ["epsilon", "growth", "objective", "horizon", "bounds"])
def test_a_damaged_state(field: str, tmp_path: Path) -> None:
    from trilift.counters.state_file import checksum

    counter = make("pure")
    counter.extend([1] * 20)
    counter.save(tmp_path / "state")
    record = json.loads((tmp_path / "state").read_text())
    wrongs = {"epsilon": "1/2", "growth": "relay", "objective": "max", "horizon": 100, "bounds": ["0", "2"]}
    record["setup"][field] = wrongs[field]
    record["checksum"] = checksum(record)
    (tmp_path / "state").write_text(json.dumps(record))
    with pytest.raises((ArtifactFormatError, ReplayError, ParameterError)):
        Counter.load(tmp_path / "state").update(1)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_lattices_and_bounds(kind: str) -> None:
    counter = make(kind, dimension=2, bounds=(-1, 2), resolution=Fraction(1, 4), clip=True)
    values = counter.extend([[0.25, 5], [-3, 1]])
    assert values.shape == (2, 2)
    assert (values * 4 == np.round(values * 4)).all()
    assert (counter.setup.change == 6) == (kind != "gaussian")  # l1, or l2: 3 sqrt(2)


def test_l2_change_of_vectors() -> None:
    change = make("gaussian", dimension=4, bounds=(0, 3)).setup.change
    assert change == 6  # sqrt(4) * 3
    root = make("gaussian", dimension=2).setup.change
    assert 2 <= root**2 <= 2 * (1 + Fraction(1, 1 << 38))
    hot = make("gaussian", dimension=100, norm_bound=1).setup.change
    assert 2 <= hot**2 <= 2 * (1 + Fraction(1, 1 << 38))
    assert make("gaussian", max_contributions=3).setup.change == 3


def test_spent_is_at_most_what_was_asked() -> None:
    for growth in GROWTHS:
        counter = make("pure", growth=growth)
        counter.extend([1] * 300)
        assert Fraction(99, 100) < counter.spent <= 1


def test_intervals_widen_with_the_step_when_simultaneous() -> None:
    counter = make("pure")
    assert counter.interval(300, simultaneous=True) > 1.5 * counter.interval(300)
    assert counter.interval(300, 0.5) < counter.interval(300)
    assert counter.range_sd(0, 100) == counter.sd(100)
    assert counter.range_sd(90, 100) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_statements_say_it_all(kind: str) -> None:
    text = make(kind, simulation_seed=None).privacy_statement()
    for part in (
        "Neighbours: two streams of any length that differ in one input",
        "The guarantee holds for any length",
        "epsilon = 1",
        "Composition:",
        "Theorem:",
        "ChaCha20",
        "adaptively",
    ):
        assert part in text
    assert ("delta is 0" in text) == (kind == "pure")
    assert make(kind).privacy_statement().startswith("SIMULATION")


@pytest.mark.parametrize("options", [{"chain": ["direct-max-4"]}, {"growth": "x"}, {"growth": 2}])
def test_bad_options(options: dict[str, Any]) -> None:
    for kind in KINDS:
        with pytest.raises(ParameterError):
            make(kind, **options)
    for kind in KINDS:
        with pytest.raises(ParameterError):
            make(kind, horizon=10, growth="relay")


# -- accuracy ------------------------------------------------------------------------------------------

STREAMS = 400
STEPS = 40


def test_simultaneous_intervals_hold() -> None:
    """|y_t - s_t| <= w_t for all t of a stream fails with probability at most beta = 0.05.

    400 coordinates under one key, each a stream: at most 40 failures; a binomial of mean 20 exceeds that with
    probability below 2e-5. Half the width fails far more often, so the test can fail.
    """
    counter = Counter(1, dimension=STREAMS, bounds=(0, 1), simulation_seed=11)
    released = counter.extend(np.zeros((STEPS, STREAMS), dtype=int))
    alone = Counter(Fraction(1, STREAMS), simulation_seed=1)  # the law of one coordinate's noise
    widths = np.array([alone.interval(t, 0.95, simultaneous=True) for t in range(1, STEPS + 1)])
    assert alone.sd(7) == pytest.approx(counter.sd(7))
    failures = int((np.abs(released) > widths[:, None]).any(axis=0).sum())
    assert failures <= 40
    assert int((np.abs(released) > 0.5 * widths[:, None]).any(axis=0).sum()) > 40


@pytest.mark.parametrize("power", [460, -460])
def test_no_epoch_is_refused_later(power) -> None:
    """What is accepted when the counter is made is accepted by its last epoch too."""
    change = Fraction(2) ** power
    counter = Counter(1 / change, growth="doubling", simulation_seed=1)
    layout = counter.setup.layout
    last = len(layout.shares) - 1
    made = counter._made.counters(last, layout.length(last), layout.shares[last], ["counter/0"])
    assert made[0].ledger.spent <= counter.epsilon
    with pytest.raises(ParameterError, match=r"change / epsilon must be between 2\^-460 and 2\^460"):
        Counter(1 / (change * Fraction(2) ** (1 if power > 0 else -1)), simulation_seed=1)


def test_gaussian_counters_without_horizon_have_the_same_limit() -> None:
    with pytest.raises(ParameterError, match="change / mu"):
        GaussianCounter(1, 1e-6, bounds=(0, 2**500), simulation_seed=1)
