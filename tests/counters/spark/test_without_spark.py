"""What needs neither Spark nor Java: where keys are named, the noise of groups, and the steps of a stream."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from trilift.counters.frames import PrivateCumsum
from trilift.counters.spark import SparkCumsum
from trilift.counters.spark.executor import Noises
from trilift.counters.spark.release import Release, key_name
from trilift.counters.spark.stream import Steps
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.stream.keys import new_key

SUM, STEP, INPUT = (f"trilift_internal_{name}" for name in ("sum", "step", "input"))
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


@pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow: pip install 'trilift[spark]'"
)
def test_groups_of_rows() -> None:
    import pyarrow
    from trilift.counters.spark.executor import codes_of

    columns = [pyarrow.chunked_array([["a", None], ["a", "b"]]), pyarrow.chunked_array([[1, 1, 2, 1]])]
    groups, codes = codes_of(columns, 4)
    assert [groups[code] for code in codes] == [("a", 1), (None, 1), ("a", 2), ("b", 1)]
    assert codes_of([], 2)[0] == [()]


def test_nothing_of_spark_is_loaded_before_it_is_needed() -> None:
    folder = Path(__file__).resolve().parents[3] / "counters" / "spark"
    for path in folder.glob("*.py"):
        head = path.read_text(encoding="utf-8").split("\ndef ")[0].split("\nclass ")[0]
        assert "import pyspark" not in head
        assert "from pyspark" not in head
