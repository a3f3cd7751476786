"""What needs neither Spark nor Java: where keys are named, the noise of groups, and the steps of a stream."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from trilift.counters.frames import PrivateCumsum
from trilift.counters.spark import SparkCumsum
from trilift.counters.spark.executor import Noises
from trilift.counters.spark.release import Release, key_name, mark_of
from trilift.counters.spark.stream import Steps
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.stream.keys import new_key

SUM, STEP, INPUT = (f"trilift_internal_{name}" for name in ("sum", "step", "input"))
NEEDS_ARROW = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow: pip install 'trilift[spark]'"
)
OPTIONS: dict[str, Any] = {"epsilon": 1, "by": "ward", "groups": ["A", "B"], "order": "day", "version": "1"}


def test_keys_are_named() -> None:
    assert key_name("env:NAME") == "env:NAME"
    assert key_name(new_key) == "call:trilift.stream.keys:new_key"
    for source in (bytes(32), "ab" * 32, lambda: bytes(32), bytearray(32), None, 5):
        with pytest.raises(ParameterError, match="key"):
            key_name(source)


def test_a_key_that_is_given_cannot_be_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    import pickle

    monkeypatch.setenv("SOME_KEY", "3c" * 32)
    private = SparkCumsum("falls", **OPTIONS, key="env:SOME_KEY")
    with pytest.raises(StateError, match="holds a key"):
        pickle.dumps(private)
    travels = pickle.dumps(private._release)
    assert bytes.fromhex("3c" * 32) not in travels
    assert b"3c3c3c" not in travels
    assert b"SOME_KEY" in travels


@pytest.mark.parametrize(
    "changed", [{"horizon": 100}, {"horizon": {"A": 50, "B": 70}}, {}, {"delta": 1e-6, "horizon": 90}]
)
def test_noise_of_groups_is_that_of_their_counters(changed: dict[str, Any]) -> None:
    release = Release(value="falls", options={**OPTIONS, **changed, "simulation_seed": 3}, source=None)
    inner = release.opened()
    noises = Noises(inner)
    steps = np.array([0, 49, 3, 3])
    for group in ("A", "B", "A"):
        sums = inner.counter(group).extend(np.zeros(50, dtype=np.int64))
        assert noises.at((group,), steps).tolist() == sums[steps].tolist()
    with pytest.raises(ParameterError, match="not among the declared groups"):
        noises.at(("C",), steps)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"order": None}, "order must be given"),
        ({"epsilon": None}, "epsilon must be given"),
        ({"key": None}, "key must be given"),
        ({"key": bytes(32)}, "the bytes themselves"),
        ({"postprocess": "monotone"}, "postprocess must be None or 'nonnegative'"),
        ({"state": "file"}, "SparkCumsum has no argument 'state'"),
        ({"rows_per_task": 1}, "rows_per_task"),
        ({"version": None}, "version must be given with key"),
        ({"key": "call:no_such_module:key"}, "names no function"),
    ],
)
def test_refused_arguments(monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], said: str) -> None:
    monkeypatch.setenv("SOME_KEY", "3c" * 32)
    with pytest.raises(ParameterError, match=said):
        SparkCumsum("falls", **{**OPTIONS, "key": "env:SOME_KEY", **changed})


def test_the_statement_says_what_frames_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "3c" * 32)
    text = SparkCumsum("falls", **OPTIONS, key="env:SOME_KEY").privacy_statement()
    assert text.startswith(PrivateCumsum("falls", **OPTIONS, key=b"<" * 32).privacy_statement())
    assert "whatever is run again has the same values" in text


class State:
    """A group's state between micro-batches, with the members of the engine's that are used."""

    exists = False
    get: tuple[Any, ...] = ()

    def update(self, values: tuple[Any, ...]) -> None:
        self.exists, self.get = True, values


def batch(places: list[Any], inputs: list[int]) -> list[pd.DataFrame]:
    """Return the rows of a micro-batch in two pieces."""
    rows = pd.DataFrame({"g": "A", "p": places, INPUT: inputs})
    return [rows.iloc[::2], rows.iloc[1::2]]


def test_steps_do_not_depend_on_micro_batches() -> None:
    steps, whole, parts = Steps("mark", ["g"], ["p"]), State(), State()
    (together,) = steps(("A",), batch([3, 1, 2, 9, 7], [1, 0, 2, 5, 0]), whole)
    one = list(steps(("A",), batch([2, 1], [2, 0]), parts))
    two = list(steps(("A",), batch([7, 9, 3], [0, 5, 1]), parts))
    apart = pd.concat([*one, *two], ignore_index=True)
    assert apart.equals(together)
    assert together[STEP].tolist() == [1, 2, 3, 4, 5]
    assert together[SUM].tolist() == [0, 2, 3, 3, 8]
    assert whole.get == parts.get == ("mark", 5, 8, 9)


@pytest.mark.parametrize(
    ("places", "inputs", "said", "error"),
    [
        ([4], [1], "at or before a place that was released", ParameterError),
        ([3, 9], [1, 1], "at or before a place that was released", ParameterError),
        ([6, 6], [1, 1], "have the same place", ParameterError),
        ([6, None], [1, 1], "nulls", ParameterError),
        ([6], [(1 << 62) - 1], "62 bits", HorizonError),
    ],
)
def test_rows_a_stream_refuses(
    places: list[Any], inputs: list[int], said: str, error: type[Exception]
) -> None:
    steps, state = Steps("mark", ["g"], ["p"]), State()
    list(steps(("A",), batch([4], [1]), state))
    before = state.get
    with pytest.raises(error, match=said):
        list(steps(("A",), batch(places, inputs), state))
    assert state.get == before
    with pytest.raises(StateError, match="begun under another key"):
        list(Steps("other", ["g"], ["p"])(("A",), batch([9], [1]), state))


@NEEDS_ARROW
def test_groups_of_rows() -> None:
    import pyarrow
    from trilift.counters.spark.executor import codes_of

    columns = [pyarrow.chunked_array([["a", None], ["a", "b"]]), pyarrow.chunked_array([[1, 1, 2, 1]])]
    groups, codes = codes_of(columns, 4)
    assert [groups[code] for code in codes] == [("a", 1), (None, 1), ("a", 2), ("b", 1)]
    assert codes_of([], 2)[0] == [()]


@NEEDS_ARROW
@pytest.mark.parametrize("kind", ["whole", "text", "two", "when", "real"])
def test_parts_of_a_task_are_summed_as_their_group(kind: str) -> None:
    import pyarrow
    from trilift.counters.spark.parts import RunningSums, Totals

    options = {**OPTIONS, "order": ["day", "bed"] if kind == "two" else "day", "simulation_seed": 3}
    inner = Release(value="falls", options=options, source=None).opened()
    release = Release(value="falls", options=options, source=None, mark=mark_of(inner))
    rng = np.random.default_rng(4)
    number = rng.permutation(90)
    day: Any = {"text": [f"d{one:03}" for one in number], "two": number // 9, "real": number / 7 - 3}
    day = day.get(kind, number)
    if kind == "when":
        day = pd.to_datetime(number, unit="s", utc=True)
    rows = pd.DataFrame(
        {"ward": np.where(number % 3, "A", "B"), "day": day, "bed": number, "falls": number % 2}
    )
    wanted = inner.apply(rows).falls_private
    rows["part"] = np.where(rows.ward == "A", 1 + (number > 40) + (number > 70), 0)
    table = pyarrow.Table.from_pandas(rows, preserve_index=False)
    batches = table.to_batches(max_chunksize=13)
    totals = pyarrow.Table.from_batches(
        Totals(release, ("ward", "part"), ("rows", "sum"))(batches)
    ).to_pandas()
    assert totals.rows.sum() == 90
    assert totals["sum"].sum() == rows.falls.sum()
    for name in ("rows", "sum"):
        before = [
            totals[(totals.ward == row.ward) & (totals.part < row.part)][name].sum()
            for row in rows.itertuples()
        ]
        table = table.append_column(f"{name}_before", pyarrow.array(before, pyarrow.int64()))
    columns = inner._columns
    sums = RunningSums(
        release,
        columns,
        ["ward", "bed"],
        part="part",
        offsets=("rows_before", "sum_before"),
        number=None,
        most=1,
    )
    got = pyarrow.Table.from_batches(sums(table.to_batches(max_chunksize=7))).to_pandas()
    assert got.set_index("bed").falls_private.to_dict() == dict(zip(rows.bed, wanted, strict=True))
    again = pyarrow.Table.from_pandas(pd.concat([rows.head(1), rows]), preserve_index=False)
    once = RunningSums(release, columns, ["bed"], part="part", offsets=None, number=None, most=1)
    with pytest.raises(ParameterError, match="have the same place"):
        list(once(again.to_batches()))
    assert list(once([])) == list(once(again.slice(0, 0).to_batches())) == []


def test_routes_are_spread() -> None:
    from trilift.counters.spark.cuts import _murmur3, routes_to

    routes = routes_to(16, 40)
    assert len(set(routes)) == 40
    tasks = _murmur3(np.array(routes, dtype=np.uint32)) % 16
    assert tasks.tolist() == [index % 16 for index in range(40)]
    assert routes_to(1000, 3) == routes_to(1000, 5)[:3]


@NEEDS_ARROW
def test_streams_on_the_older_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow
    from trilift.counters.spark.stream import _check_versions

    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__="3.5.9"))
    monkeypatch.setattr(pyarrow, "__version__", "26.0.1")
    with pytest.raises(ParameterError, match="pyarrow<26"):
        _check_versions()
    monkeypatch.setattr(pyarrow, "__version__", "25.0.0")
    _check_versions()


def test_nothing_of_spark_is_loaded_before_it_is_needed() -> None:
    folder = Path(__file__).resolve().parents[3] / "counters" / "spark"
    for path in folder.glob("*.py"):
        head = path.read_text(encoding="utf-8").split("\ndef ")[0].split("\nclass ")[0]
        assert "import pyspark" not in head
        assert "from pyspark" not in head
