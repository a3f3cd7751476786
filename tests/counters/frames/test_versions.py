"""One key, one version of the data: what is the same comes again, what was changed is refused."""

import copy
import itertools
import json
import os
import stat
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from trilift import ParameterError, ReplayError, StateError
from trilift.counters.accounting import Budget
from trilift.counters.frames import PrivateCumsum, private_cumsum
from trilift.counters.lock import StateLock
from trilift.counters.state_file import checksum
from trilift.lift.errors import ArtifactFormatError

Make = Callable[[dict[str, list[Any]]], Any]
OPTIONS: dict[str, Any] = {"by": "carrier", "groups": ["AA", "DL", "UA"], "order": "day", "epsilon": 1}


def values(out: Any) -> list[int]:
    shown: list[int] = out["late_private"].to_list()
    return shown


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "late.keys"


def test_the_same_data_give_the_same_values_in_another_process(
    make: Make, flights: dict[str, list[Any]], state: Path
) -> None:
    first = values(private_cumsum(make(flights), "late", **OPTIONS, state=state))
    assert values(private_cumsum(make(flights), "late", **OPTIONS, state=state)) == first
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert values(private_cumsum(make(flights), "late", **OPTIONS)) != first  # a key of its own


def test_changed_data_are_refused(make: Make, flights: dict[str, list[Any]], state: Path) -> None:
    first = values(private_cumsum(make(flights), "late", **OPTIONS, state=state, version="1"))
    before = state.read_bytes()
    place = flights["day"].index(10)  # a row of UA
    changed = flights | {"late": [1 - x if i == place else x for i, x in enumerate(flights["late"])]}
    with pytest.raises(ReplayError, match="version '1': group 'UA' was counted with other rows before"):
        private_cumsum(make(changed), "late", **OPTIONS, state=state, version="1")
    assert state.read_bytes() == before
    other = values(private_cumsum(make(changed), "late", **OPTIONS, state=state, version="2"))
    # with the noise of version 1 all differences would be 0 or +-1
    assert max(abs(a - b) for a, b in zip(first, other, strict=True)) > 1
    assert values(private_cumsum(make(flights), "late", **OPTIONS, state=state, version="1")) == first


def test_new_rows_behind_the_old_ones_continue(
    make: Make, flights: dict[str, list[Any]], state: Path
) -> None:
    early = {
        name: [x for x, day in zip(column, flights["day"], strict=True) if day < 30]
        for name, column in flights.items()
    }
    first = values(private_cumsum(make(early), "late", **OPTIONS, state=state))
    whole = values(private_cumsum(make(flights), "late", **OPTIONS, state=state))
    assert [v for v, day in zip(whole, flights["day"], strict=True) if day < 30] == first
    with pytest.raises(ReplayError):  # rows that were counted are missing
        private_cumsum(make(early), "late", **OPTIONS, state=state)
    late = {
        name: [x for x, day in zip(column, flights["day"], strict=True) if day >= 30]
        for name, column in flights.items()
    }
    with pytest.raises(ReplayError):  # the end without the beginning is another stream
        private_cumsum(make(late), "late", **OPTIONS, state=state)


def small_chain(horizon: int, **options: Any) -> tuple[str, ...]:
    """A chain for 400 steps that is not the default one."""
    return ("stage-max-9", "stage-max-9", "direct-max-8")


LATER: dict[str, tuple[str, Any]] = {
    "sampler": ("trilift.stream.noise.SAMPLER_ID", "another"),
    "sampler of Gaussian noise": ("trilift.stream.gaussian_noise.SAMPLER_ID", "another"),
    "chain": ("trilift.counters.setup.default_names", small_chain),
}


@pytest.mark.parametrize(
    ("changed", "options"),
    [
        ("sampler", {"horizon": None}),
        ("sampler", {"horizon": 400}),
        ("sampler", {"horizon": {"AA": 300, "DL": None, "UA": 400}}),
        ("sampler of Gaussian noise", {"horizon": 400, "delta": 1e-6}),
        ("chain", {"horizon": 400}),
    ],
)
def test_other_noise_for_released_data_is_refused(
    changed: str,
    options: dict[str, Any],
    make: Make,
    flights: dict[str, list[Any]],
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a later version of the program would make it: with another sampler, or another chain."""
    options = OPTIONS | options | {"state": state}
    first = values(private_cumsum(make(flights), "late", **options))
    before = state.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(*LATER[changed])
        with pytest.raises(ReplayError, match=r"group '..' was released with other noise before"):
            private_cumsum(make(flights), "late", **options)
        assert state.read_bytes() == before
        private_cumsum(make(flights), "late", **options, version="2")
    assert values(private_cumsum(make(flights), "late", **options)) == first


def test_the_order_of_horizons_does_not_matter(flights: dict[str, list[Any]], state: Path) -> None:
    """One release, paid for once."""
    budget = Budget(4)
    horizons = {"AA": 40, "DL": 400, "UA": 1064}
    frame = pl.DataFrame(flights).group_by("carrier", maintain_order=True).head(20)
    options = OPTIONS | {"state": state, "budget": budget}
    given = [
        values(private_cumsum(frame, "late", **options | {"horizon": dict(items)}))
        for items in itertools.permutations(horizons.items())
    ]
    assert all(some == given[0] for some in given)
    assert budget.left["epsilon"] == 3
    assert len(json.loads(state.read_text())["noise"]) == 1


def test_groups_may_come_apart(make: Make, flights: dict[str, list[Any]], state: Path) -> None:
    whole = values(private_cumsum(make(flights), "late", **OPTIONS, state=state))
    some = {
        name: [x for x, c in zip(column, flights["carrier"], strict=True) if c == "DL"]
        for name, column in flights.items()
    }
    assert values(private_cumsum(make(some), "late", **OPTIONS, state=state)) == [
        v for v, c in zip(whole, flights["carrier"], strict=True) if c == "DL"
    ]


def test_another_budget_for_the_same_data_is_another_release(
    make: Make, flights: dict[str, list[Any]], state: Path
) -> None:
    budget = Budget(4)
    options = OPTIONS | {"state": state, "budget": budget}
    first = values(private_cumsum(make(flights), "late", **options))
    assert values(private_cumsum(make(flights), "late", **options)) == first
    assert budget.left == {"epsilon": 3}  # charged once
    private_cumsum(make(flights), "late", **options | {"epsilon": Fraction(1, 2)})
    private_cumsum(make(flights), "late", **options | {"version": "2"})
    assert budget.left == {"epsilon": Fraction(3, 2)}
    with pytest.raises(ParameterError, match="epsilon 3/2 left, less than 2"):
        private_cumsum(make(flights), "late", **options | {"epsilon": 2})
    assert [entry.by for entry in budget.entries] == ["private_cumsum of late"] * 3
    without = OPTIONS | {"budget": budget}
    private_cumsum(make(flights), "late", **without)
    with pytest.raises(ParameterError, match="epsilon 1/2 left"):  # a new key, new noise: it costs again
        private_cumsum(make(flights), "late", **without)


def test_a_refused_budget_releases_and_remembers_nothing(
    make: Make, flights: dict[str, list[Any]], state: Path
) -> None:
    budget = Budget(Fraction(1, 2))
    sums = PrivateCumsum("late", **OPTIONS, state=state, budget=budget)
    before = state.read_bytes()
    with pytest.raises(ParameterError, match="less than 1"):
        sums.apply(make(flights))
    assert state.read_bytes() == before


def test_within_one_object_too(flights: dict[str, list[Any]]) -> None:
    sums = PrivateCumsum("late", **OPTIONS)
    frame = pl.DataFrame(flights)
    first = values(sums.apply(frame))
    assert values(sums.apply(frame)) == first
    with pytest.raises(ReplayError):
        sums.apply(frame.with_columns(late=1 - pl.col("late")))
    with pytest.raises(StateError, match="not copied"):
        copy.copy(sums)


def test_a_state_does_not_grow_past_what_is_read(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sums = PrivateCumsum("late", epsilon=1, state=state)
    monkeypatch.setattr("trilift.counters.frames.registry._MAX_BYTES", state.stat().st_size)
    with pytest.raises(StateError, match="could not be read again"):
        sums.apply(pd.DataFrame({"late": [0]}))
    monkeypatch.undo()
    assert len(private_cumsum(pd.DataFrame({"late": [1]}), "late", epsilon=1, state=state)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kept", [False, True])
def test_forks_count_no_other_data_under_the_same_noise(kept: bool, tmp_path: Path) -> None:
    """Memory is in the process, or in the file that all of them read."""
    sums = PrivateCumsum("late", epsilon=1, horizon=9, state=tmp_path / "keys" if kept else None)
    sums.apply(pd.DataFrame({"late": [0]}))
    ours, theirs = (pd.DataFrame({"late": [0, late]}) for late in (0, 1))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            sums.apply(theirs)
            code = 0
        except StateError:
            code = 3
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (0 if kept else 3)
    if kept:
        with pytest.raises(ReplayError):
            sums.apply(ours)
    else:
        assert len(sums.apply(ours)) == 2


def test_the_key_may_be_kept_apart(flights: dict[str, list[Any]], state: Path, monkeypatch: Any) -> None:
    frame, key = pl.DataFrame(flights), os.urandom(32)
    options = OPTIONS | {"state": state, "version": "1"}
    first = values(private_cumsum(frame, "late", **options, key=key))
    assert key.hex() not in state.read_text()
    monkeypatch.setenv("LATE_KEY", key.hex())
    assert values(private_cumsum(frame, "late", **options, key="env:LATE_KEY")) == first
    with pytest.raises(ParameterError, match="the key is not that of this file"):
        private_cumsum(frame, "late", **options, key=bytes(32))
    with pytest.raises(ParameterError, match="the key was kept apart"):
        private_cumsum(frame, "late", **options)
    other = state.with_name("inside")
    private_cumsum(frame, "late", **OPTIONS, state=other)
    with pytest.raises(ParameterError, match="the key is in the file"):
        private_cumsum(frame, "late", **OPTIONS, state=other, version="1", key=key)


def test_a_state_in_use(flights: dict[str, list[Any]], state: Path) -> None:
    sums = PrivateCumsum("late", **OPTIONS, state=state)
    lock = StateLock(state)
    with pytest.raises(StateError, match="in use"):
        sums.apply(pl.DataFrame(flights))
    lock.release()
    assert len(sums.apply(pl.DataFrame(flights))) == 60


def test_what_cannot_be_remembered_is_not_released(
    flights: dict[str, list[Any]], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums = PrivateCumsum("late", **OPTIONS, state=state)
    before = state.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="No space"):
            sums.apply(pl.DataFrame(flights))
    assert state.read_bytes() == before
    changed = pl.DataFrame(flights).with_columns(late=1 - pl.col("late"))
    assert len(sums.apply(changed)) == 60  # nothing of the first attempt is known


DAMAGE: dict[str, Any] = {
    "format": "trilift budget",
    "version": 1,
    "key": "00",
    "identity": None,
    "data": [],
}


@pytest.mark.parametrize("name", [*DAMAGE, "rows", "mac", "group", "noise", "list", "checksum"])
def test_damaged_states(name: str, flights: dict[str, list[Any]], state: Path) -> None:
    private_cumsum(pl.DataFrame(flights), "late", **OPTIONS, state=state)
    record = json.loads(state.read_text())
    ((data, groups),) = record["data"].items()
    group = next(iter(groups))
    if name in DAMAGE:
        record[name] = DAMAGE[name]
    elif name == "rows":
        groups[group][0] = 0
    elif name == "mac":
        groups[group][1] = "x"
    elif name == "group":
        groups["odd"] = groups[group]
    elif name == "noise":
        next(iter(record["noise"].values()))[group] = ["x"]
    record["checksum"] = "0" * 64 if name == "checksum" else checksum(record)
    state.write_text(json.dumps([record] if name == "list" else record))
    with pytest.raises(ArtifactFormatError, match=r"late\.keys") as raised:
        private_cumsum(pl.DataFrame(flights), "late", **OPTIONS, state=state)
    assert "\n" not in str(raised.value)
    assert len(data) == 64
