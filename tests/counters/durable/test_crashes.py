"""Processes that are killed lose nothing that was seen, and draw nothing again.

Set TRILIFT_KILL_POINTS to kill at more random times than the 20 of every run.
"""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trilift.counters.durable import DurableCounter

WORKER = Path(__file__).with_name("crasher.py")
SPEC = importlib.util.spec_from_file_location("crasher", WORKER)
assert SPEC is not None
assert SPEC.loader is not None
crasher = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(crasher)

POINTS = int(os.environ.get("TRILIFT_KILL_POINTS", "20"))

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def crashed(tmp_path: Path, kind: str, way: str, count: int) -> tuple[int, list[tuple[int, Any]]]:
    """Kill; return how often, and what was seen."""
    log = tmp_path / "log"
    command = [sys.executable, str(WORKER), str(tmp_path / "kept"), str(log), kind, way, str(count), "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    lines = log.read_text().splitlines() if log.exists() else []
    seen = [
        (int(number), ast.literal_eval(text)) for number, _, text in (line.partition(" ") for line in lines)
    ]
    return int(done.stdout), seen


KIND = "GaussianCC"


def check(tmp_path: Path, seen: list[tuple[int, Any]]) -> None:
    """Everything seen is there and is what an uninterrupted counter of the same key releases."""
    numbers = [number for number, _ in seen]
    assert numbers == sorted(set(numbers))  # no step was taken twice
    whole = crasher.MAKERS[KIND]()
    with DurableCounter.open(tmp_path / "kept") as kept:
        assert kept.step >= numbers[-1]
        expected = whole.extend(crasher.many(KIND, 1, kept.step)[0]).tolist()
        assert [value for _, value in seen] == [expected[number - 1] for number in numbers]
        for number in range(max(1, kept.step - 1000), kept.step + 1):
            assert kept.update(*crasher.given(KIND, number), step=number) == expected[number - 1]
        following = crasher.given(KIND, kept.step + 1)
        assert kept.update(*following) == whole.update(*following)


@pytest.mark.slow
def test_killed_at_random_times(tmp_path: Path) -> None:
    killed, seen = crashed(tmp_path, KIND, "random", POINTS)
    assert killed == POINTS
    assert len(seen) > POINTS
    check(tmp_path, seen)


@pytest.mark.slow
def test_killed_at_every_call(tmp_path: Path) -> None:
    """Every call that changes a file: making the folder, appending, snapshots, going on after a crash."""
    killed, seen = crashed(tmp_path, KIND, "calls", 100)
    assert killed == 100
    check(tmp_path, seen)
