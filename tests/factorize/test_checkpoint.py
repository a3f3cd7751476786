"""Checkpoints: whole or absent, checked on reading, and a resumed search equals an uninterrupted one."""

import os
import signal
import threading

import numpy as np
import pytest
from trilift.factorize import search_stage
from trilift.factorize.checkpoint import load_checkpoint, save_checkpoint
from trilift.factorize.interrupt import Interrupt
from trilift.factorize.settings import make_settings
from trilift.factorize.state import initial_state
from trilift.lift.errors import ArtifactFormatError, ParameterError

SEARCH = {"objective": "mean", "seed": 5, "steps": 1000, "starts": 3}


def settings(**changes):
    arguments = SEARCH | {"kind": "two-sided", "initial": None, "spread": None, "schedule": None} | changes
    return make_settings(6, **arguments)


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "search.npz"
    state = initial_state(settings(), None)
    state.step, state.history = 7, [(7, 0.5)]
    save_checkpoint(path, settings(), state)
    return path


def test_everything_comes_back_bit_for_bit(stored):
    state, expected = load_checkpoint(stored, settings()), initial_state(settings(), None)
    assert (state.step, state.history, state.best_cost) == (7, [(7, 0.5)], float("inf"))
    assert state.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(state.arrays[name], array)


def interrupted_at(chunk):
    """A report that asks for an interruption after so many chunks, as a signal would."""
    seen = []

    def report(step, steps, kappa):
        seen.append(step)
        if len(seen) == chunk:
            os.kill(os.getpid(), signal.SIGTERM)

    return report


@pytest.mark.parametrize("objective", ["max", "mean"])
def test_resumed_search_equals_the_uninterrupted_one(tmp_path, objective):
    path = tmp_path / "search.npz"
    arguments = SEARCH | {"objective": objective}
    whole = search_stage(6, **arguments, progress=False)
    parts = [search_stage(6, **arguments, checkpoint=path, progress=interrupted_at(2))]
    parts.append(search_stage(6, **arguments, checkpoint=path, resume=True, progress=interrupted_at(1)))
    assert [part.status.value for part in parts] == ["interrupted", "interrupted"]
    assert 0 < parts[0].steps < parts[1].steps < 1000
    last = search_stage(6, **arguments, checkpoint=path, resume=True, progress=False)
    assert last.status.value == "finished"
    assert last.history == whole.history
    assert last.cost == whole.cost
    for part in "ABwg":
        np.testing.assert_array_equal(getattr(last.stage, part), getattr(whole.stage, part))
    again = search_stage(6, **arguments, checkpoint=path, resume=True, progress=False)
    assert (again.steps, again.cost) == (1000, whole.cost)


def test_a_failed_write_leaves_the_old_checkpoint(stored, monkeypatch):
    before = stored.read_bytes()

    def full(handle):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        save_checkpoint(stored, settings(), initial_state(settings(), None))
    assert stored.read_bytes() == before
    assert [file.name for file in stored.parent.iterdir()] == [stored.name]


def test_an_existing_checkpoint_is_not_overwritten_by_a_new_search(stored):
    before = stored.read_bytes()
    with pytest.raises(ParameterError, match="exists"):
        search_stage(6, **SEARCH, checkpoint=stored)
    assert stored.read_bytes() == before


def test_missing_checkpoint(tmp_path):
    with pytest.raises(ParameterError, match="does not exist"):
        search_stage(6, **SEARCH, checkpoint=tmp_path / "none.npz", resume=True)


@pytest.mark.parametrize(
    "change", [{"seed": 6}, {"steps": 1001}, {"objective": "max"}, {"spread": (0.1, 0.1)}]
)
def test_checkpoint_of_another_search_is_refused(stored, change):
    with pytest.raises(ParameterError, match="another search"):
        load_checkpoint(stored, settings(**change))


def rewrite(path, **changes):
    with np.load(path) as file:
        data = dict(file)
    data |= changes
    np.savez(path, **{name: value for name, value in data.items() if value is not None})


@pytest.mark.parametrize(
    "changes",
    [
        {"V": None},
        {"meta": None},
        {"meta": np.array("{}")},
        {"meta": np.array('{"format": "other", "step": 7, "seconds": 0.0}')},
        {"meta": np.array('{"format": "trilift-search-1", "step": 70000, "seconds": 0.0}')},
        {"meta": np.array('{"format": "trilift-search-1", "step": "7", "seconds": 0.0}')},
        {"V": np.zeros((3, 6, 5))},
        {"V": np.zeros((3, 6, 6), dtype=np.float32)},
        {"best_cost": np.float64("nan")},
        {"best_cost": np.float64(1.0), "best_V": np.full((6, 6), np.nan)},
        {"history": np.zeros(3)},
        {"nu_v": np.array([None])},
    ],
    ids=str,
)
def test_damaged_checkpoints_are_refused(stored, changes):
    rewrite(stored, **changes)
    with pytest.raises(ArtifactFormatError):
        load_checkpoint(stored, settings())


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_truncated_checkpoints_are_refused(stored, keep):
    data = stored.read_bytes()
    stored.write_bytes(data[: int(keep if keep >= 1 else keep * len(data))])
    with pytest.raises(ArtifactFormatError):
        load_checkpoint(stored, settings())


def test_interrupt_does_nothing_outside_the_main_thread():
    outcome = []

    def work():
        outcome.append(search_stage(3, objective="mean", steps=3, starts=1, progress=False).status.value)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert outcome == ["finished"]


def test_interrupt_restores_the_previous_handlers():
    mine = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with Interrupt() as interrupt:
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN
            signal.raise_signal(signal.SIGTERM)
            assert interrupt.requested
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        with Interrupt():
            pass
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, mine)
