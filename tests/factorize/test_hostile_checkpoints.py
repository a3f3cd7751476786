"""Checkpoints, books and logs of searches that are hostile: one line, nothing is waited for."""

import os
from pathlib import Path

import numpy as np
import pytest
from trilift.experiments.trust.files import complaint
from trilift.experiments.trust.hostile_archives import ARCHIVES
from trilift.experiments.trust.hostile_texts import PLACES
from trilift.factorize.books import load_books
from trilift.factorize.checkpoint import load_checkpoint, read_arrays, write_arrays
from trilift.factorize.runlog import read_log
from trilift.factorize.settings import make_settings
from trilift.factorize.sources import load_float_stage
from trilift.lift.errors import TriliftError

SETTINGS = make_settings(
    4, kind="direct", objective="max", seed=1, steps=5, starts=2, initial=None, spread=None, schedule=None
)
GROUPS = ("pickles and object arrays", "bombs and declared sizes", "members of the archive")
CASES = [make for group in GROUPS for make in ARCHIVES[group].values()]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_archives(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    for make in CASES:
        path.write_bytes(make())
        assert not complaint(load_books, path, most=64 << 20)
        assert not complaint(load_float_stage, path, most=64 << 20)
        with pytest.raises(TriliftError):
            load_checkpoint(path, SETTINGS)


@pytest.mark.parametrize("name", PLACES)
def test_no_checkpoint_there(name: str, tmp_path: Path) -> None:
    path = PLACES[name](tmp_path)
    assert not complaint(load_books, path)
    assert not complaint(read_arrays, path)


@pytest.mark.parametrize("step", ["1e999999999", "NaN", "9" * 5000, '"x"', "null"])
def test_hostile_meta(step: str, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    write_arrays(path, meta=np.array(f'{{"format": "trilift-run-1", "phase": {step}}}'))
    assert not complaint(load_books, path)


def test_logs(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    for text in ('{"a": NaN}\n', '{"a": 1, "a": 2}\n', "[" * 10**5 + "\n", "\x00\n"):
        path.write_text(text)
        assert not complaint(read_log, path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        read_log(path)
