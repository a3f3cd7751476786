"""Copies: forked with a new key and budget, or adopted where the original is gone; streams given again."""

import os
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.counters import BiasedCounter, Counter, GaussianCounter
from trilift.counters.durable import DurableCounter
from trilift.counters.durable.history import History
from trilift.counters.durable.identity import Identity
from trilift.counters.edit import GaussianCC, HorizonGaussian, SimECC
from trilift.counters.turnstile import DistinctCounter
from trilift.lift.errors import ParameterError, ReplayError, StateError

CHAIN = ("stage-max-9", "direct-max-16")
INPUTS = [1, 0, 1, 1]


def plain(epsilon: Any = 1, **options: Any) -> Counter:
    return Counter(epsilon, horizon=40, chain=CHAIN, **options)


def begun(path: Path, counter: Any) -> Path:
    with DurableCounter(path, counter) as kept:
        kept.extend(INPUTS)
    return path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (plain, lambda: plain(Fraction(1, 2), simulation_seed=7)),
        (plain, lambda: Counter(Fraction(1, 2), horizon=None, simulation_seed=7)),
        (plain, lambda: GaussianCounter(Fraction(1, 2), 1e-6, horizon=40, simulation_seed=7)),
        (lambda: GaussianCounter(1, 1e-6, horizon=40), lambda: plain(Fraction(1, 2), simulation_seed=7)),
        (plain, lambda: BiasedCounter(Fraction(1, 2), 1e-6, horizon=40, simulation_seed=7)),
        (
            lambda: GaussianCC(1, 1e-5),
            lambda: HorizonGaussian(Fraction(1, 2), 1e-5, horizon=9, simulation_seed=7),
        ),
    ],
)
def test_a_fork_releases_what_its_mechanism_would_for_the_whole_stream(
    old: Any, new: Any, tmp_path: Path
) -> None:
    begun(tmp_path / "old", old())
    whole = new().extend([*INPUTS, 1, 1, 0]).tolist()
    with DurableCounter(tmp_path / "new", new(), fork=tmp_path / "old") as fork:
        assert fork.step == 4
        assert [fork.update(1), *fork.extend([1, 0]).tolist()] == whole[4:]
        with pytest.raises(StateError, match="its first steps are not here"):
            fork.again()
        with pytest.raises(ReplayError, match="no longer remembered"):
            fork.update(1, step=4)
    with DurableCounter.open(tmp_path / "new") as fork:
        assert (fork.step, fork.update(0, step=7)) == (7, whole[6])
    with DurableCounter.open(tmp_path / "old") as original:  # goes on, and knows
        assert original.step == 4
        for one in (original, fork):  # with a simulation, whose noise is public, nothing covers both
            with pytest.raises(ParameterError, match="simulated"):
                _ = one.total_budget
            assert "NOT PRIVATE" in one.privacy_statement()
        assert "Forked after step 4" in original.privacy_statement()


def test_statements_and_sums_of_a_line_of_forks(tmp_path: Path) -> None:
    begun(tmp_path / "a", plain(Fraction(1, 3)))
    with DurableCounter(tmp_path / "b", plain(Fraction(1, 2)), fork=tmp_path / "a") as one:
        one.update(1)
    fork = DurableCounter(
        tmp_path / "c", GaussianCounter(Fraction(1, 7), Fraction("1e-6"), horizon=40), fork=tmp_path / "b"
    )
    with fork as two:
        epsilon, delta = two.total_budget
        assert epsilon == Fraction(41, 42)
        assert delta == Fraction("1e-6")
        text = two.privacy_statement()
        for said in (
            "epsilon = 1/3",
            "epsilon = 1/2",
            "after step 4",
            "after step 5",
            f"epsilon = {epsilon},",
        ):
            assert said in text
    with DurableCounter(tmp_path / "d", plain(2), fork=tmp_path / "b") as other:  # beside c, which counts too
        assert other.total_budget[0] == epsilon + 2
    with DurableCounter.open(tmp_path / "b") as one:
        assert one.total_budget[0] == epsilon + 2


def test_a_fork_of_a_copy_has_another_key_and_leaves_the_copy_alone(tmp_path: Path) -> None:
    begun(tmp_path / "old", plain())
    shutil.copytree(tmp_path / "old", tmp_path / "copy")
    before = {file.name: file.read_bytes() for file in (tmp_path / "copy").iterdir()}
    fork = DurableCounter(tmp_path / "new", plain(), fork=tmp_path / "copy")
    with fork, DurableCounter.open(tmp_path / "old") as original:
        assert bytes(original._counter._key) != bytes(fork._counter._key)
        assert original.total_budget[0] == 1  # it cannot know
        assert original.step == fork.step == 4
    assert {file.name: file.read_bytes() for file in (tmp_path / "copy").iterdir()} == before


def test_keys_of_forks(tmp_path: Path) -> None:
    key = bytes(range(32))
    with DurableCounter(tmp_path / "old", plain(), key=key) as kept:
        kept.extend(INPUTS)
    for wrong in (None, bytes(32)):
        with pytest.raises(ParameterError, match="key"):
            DurableCounter(tmp_path / "new", plain(), fork=tmp_path / "old", fork_key=wrong)
    with pytest.raises(ParameterError, match="fork_key is of no use"):
        DurableCounter(tmp_path / "new", plain(), fork_key=key)
    with DurableCounter(tmp_path / "new", plain(), key=key, fork=tmp_path / "old", fork_key=key) as fork:
        first = fork.update(1)
    with DurableCounter.open(tmp_path / "new", key=key) as fork:
        assert fork.update(1, step=5) == first


def test_what_cannot_be_forked(tmp_path: Path) -> None:
    begun(tmp_path / "old", plain())
    refused: list[tuple[Any, str]] = [
        (Counter(1, horizon=4, chain=CHAIN), "horizon must be above 4"),
        (plain(bounds=(0, 2)), "must take the same inputs"),
        (plain(max_contributions=2), "must take the same inputs"),
        (Counter(1, horizon=40, dimension=1), "must take the same inputs"),
        (GaussianCC(1, 1e-5), "the neighbours of the two counters are not the same"),
        (DistinctCounter(rho=1, horizon=40, base="tree"), "a DistinctCounter cannot be forked"),
    ]
    for number, (counter, said) in enumerate(refused):
        with pytest.raises(ParameterError, match=said):
            DurableCounter(tmp_path / f"new{number}", counter, fork=tmp_path / "old")
        if said.startswith("a Distinct"):
            continue
        counter.update(
            [1] if counter.__class__ is Counter and counter.setup.dimension else 1
        )  # is free again
    begun(tmp_path / "buckets", SimECC(9, 1e-3, horizon=40, base="toeplitz"))
    with pytest.raises(ParameterError, match="a SimECC cannot be forked"):
        DurableCounter(tmp_path / "new", GaussianCC(1, 1e-5), fork=tmp_path / "buckets")
    with DurableCounter.open(tmp_path / "old") as original:
        assert original.total_budget[0] == 1
        with pytest.raises(StateError, match="in use"):
            DurableCounter(tmp_path / "new", plain(), fork=tmp_path / "old")


def test_adoption(tmp_path: Path) -> None:
    """A moved folder goes on with the same noise; what the operator says is checked as far as it can be."""
    old, copy = begun(tmp_path / "old", plain(simulation_seed=3)), tmp_path / "copy"
    with pytest.raises(StateError, match="is no copy"):
        DurableCounter.open(old, adopt=4)
    shutil.copytree(old, copy)
    with pytest.raises(StateError, match=r"is a copy .* adopt="):
        DurableCounter.open(copy)
    with pytest.raises(StateError, match=r"the original of .* is still at"):
        DurableCounter.open(copy, adopt=4)
    shutil.rmtree(old)
    with pytest.raises(StateError, match="5 steps were released, 4 are there"):
        DurableCounter.open(copy, adopt=5)
    for wrong in (-1, 1.5, "4", True):
        with pytest.raises(ParameterError, match="adopt"):
            DurableCounter.open(copy, adopt=wrong)  # type: ignore[arg-type]
    whole = plain(simulation_seed=3).extend([*INPUTS, 1]).tolist()
    with DurableCounter.open(copy, adopt=3) as kept:
        assert kept.update(1) == whole[4]
        assert [kept.update(x, step=step) for step, x in enumerate(INPUTS, 1)] == whole[:4]
        with pytest.raises(ReplayError):
            kept.released(1)  # the journals of the original do not count any more
        assert kept.released(5) == [(5, whole[4])]
    with DurableCounter.open(copy) as kept:
        assert (kept.step, kept.total_budget[0]) == (5, 1)
    assert Identity.read(copy)[0].adopted == ((3, 4),)


def test_an_adoption_that_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, copy = begun(tmp_path / "old", plain()), tmp_path / "copy"
    shutil.copytree(old, copy)
    shutil.rmtree(old)
    real, calls, stop = os.replace, 0, 0

    def failing(source: Any, target: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == stop:
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", failing)
    for number in (4, 3, 2, 1):
        calls, stop = 0, number
        with pytest.raises(OSError, match="Input/output"):
            DurableCounter.open(copy, adopt=4)
        with pytest.raises(StateError, match="is a copy"):
            DurableCounter.open(copy)
    stop = 0
    with DurableCounter.open(copy, adopt=4) as kept:
        assert kept.step == 4


def test_a_stream_given_again(tmp_path: Path) -> None:
    """The same inputs in other batches give the same values; others give none from their block on."""
    inputs = np.random.default_rng(1).integers(0, 2, 1400)
    make = lambda: GaussianCC(10, 1e-5, simulation_seed=1)  # noqa: E731
    expected = make().extend(inputs).tolist()
    with DurableCounter(tmp_path / "kept", make(), journal_bytes=300) as kept:
        for start in range(0, 1400, 100):
            kept.extend(inputs[start : start + 100])
    with DurableCounter.open(tmp_path / "kept", journal_bytes=300) as kept:
        again, pairs = kept.again(), []
        for start in (0, 1, 3, 700, 1390):
            stop = {0: 1, 1: 3, 3: 700, 700: 1390, 1390: 1400}[start]
            pairs += again.extend(inputs[start:stop])
            assert len(pairs) <= stop
        assert again.left == 0
        assert pairs == list(enumerate(expected, 1))
        with pytest.raises(ParameterError, match="only 0 steps are left"):
            again.extend([1])
        for place in (0, 255, 256, 800, 1399):
            other = inputs.copy()
            other[place] ^= 1
            again, pairs = kept.again(), []
            while again.step + 10 <= place:
                pairs += again.extend(other[again.step : again.step + 10])
            with pytest.raises(ReplayError, match="not what was counted"):  # noqa: PT012, at its block's end
                while again.left:
                    pairs += again.extend(other[again.step : again.step + 10])
            assert len(pairs) <= place
            assert pairs == list(enumerate(expected, 1))[: len(pairs)]
            with pytest.raises(ReplayError):
                again.extend(inputs[again.step : again.step + 1])
        assert kept.step == 1400


rows = st.lists(st.integers(-(2**70), 2**70) | st.integers(-3, 3), min_size=1, max_size=8)


@given(parts=st.lists(rows, max_size=6), cut=st.integers(0, 48), where=st.integers(0, 47))
def test_histories_know_inputs_and_not_batches(parts: list[list[int]], cut: int, where: int) -> None:
    numbers = [number for part in parts for number in part]
    one, two, other = History(bytes(32)), History(bytes(32)), History(bytes(32))
    for part in parts:
        one.add((np.array(part, dtype=object if max(map(abs, part)) >= 2**63 else np.int64),))
    for some in (numbers[:cut], numbers[cut:]):
        two.add((np.array(some, dtype=object),))
    two = History(bytes(32), two.packed())
    assert (one.end(), one.packed()) == (two.end(), two.packed())
    if numbers:
        numbers[where % len(numbers)] += 1
        other.add((np.array(numbers, dtype=object),))
        assert other.end() != one.end()
    one.skip(3)
    assert one.end() != two.end()
    for damaged in (b"", bytes(7), two.packed()[:-1] or b"x", two.packed() + b"x"):
        if len(damaged) != len(two.packed()):
            with pytest.raises(Exception):  # noqa: B017, PT011
                History(bytes(32), damaged)
