"""Counters that keep their own state on disk: written before anything is returned, by one owner at a time."""

import gc
import multiprocessing
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trilift.counters import Counter, state
from trilift.counters.edit import GaussianCC, PartitionCC, gaussian_state
from trilift.counters.edit import state as edit_state
from trilift.counters.lock import StateLock, exclusive
from trilift.lift.errors import ArtifactFormatError, HorizonError, ParameterError, StateError

Make = Callable[..., Counter]


def on_disk(path: Path) -> int:
    return Counter.load(path).step


@pytest.mark.parametrize(
    ("module", "make"),
    [
        (state, lambda: Counter(1, horizon=40, chain=("stage-max-9", "direct-max-16"))),
        (gaussian_state, lambda: GaussianCC(1, 1e-5)),
        (edit_state, lambda: PartitionCC(9, 1e-3, horizon=40)),
    ],
)
def test_what_could_not_be_read_again_is_not_written(
    module: Any, make: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, counter = tmp_path / "state", make()
    counter.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(module, "_MAX_BYTES", len(before))
    counter.extend([1, 0, 1])
    with pytest.raises(StateError, match="could not be read again"):
        counter.save(path)
    assert path.read_bytes() == before
    assert type(counter).load(path).step == 0
    assert counter.step == 3


def test_every_return_is_on_disk(small: Make, tmp_path: Path) -> None:
    path = tmp_path / "state"
    with small(state=path, simulation_seed=None) as counter:
        assert on_disk(path) == 0  # the key is there before anything is released
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        values = [counter.update(1)]
        assert on_disk(path) == 1
        values += counter.extend([1, 0, 1]).tolist()
        assert on_disk(path) == 4
        assert counter.extend([]).tolist() == []
        other = Counter.load(path)  # a crash here
    assert [other.update(x, step=t) for t, x in enumerate([1, 1, 0, 1], 1)] == values
    with Counter.load(path, persist=True) as counter:
        counter.skip(3)
        assert on_disk(path) == 7
        counter.update(1)
    assert on_disk(path) == 8


def test_without_persist_the_file_stays(small: Make, tmp_path: Path) -> None:
    small(state=tmp_path / "state").close()
    Counter.load(tmp_path / "state").update(1)
    assert on_disk(tmp_path / "state") == 0
    with pytest.raises(ParameterError, match="persist must be True or False"):
        Counter.load(tmp_path / "state", persist=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_what_cannot_be_written_is_not_released(
    small: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "state"
    counter, plain = small(state=path), small()
    assert counter.update(1) == plain.update(1)
    before = path.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("trilift.counters.state_file.atomic_write", fail)
    for act in (lambda: counter.update(1), lambda: counter.extend([1, 1]), lambda: counter.skip(2)):
        with pytest.raises(type(error)):
            act()
        assert counter.step == 1
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert counter.update(0) == plain.update(0)
    assert on_disk(path) == 2


def test_refused_steps_do_not_touch_the_file(small: Make, tmp_path: Path) -> None:
    counter = small(state=tmp_path / "state")
    counter.update(1)
    before = (tmp_path / "state").stat().st_mtime_ns
    for act in (lambda: counter.update(7), lambda: counter.skip(-1), lambda: counter.extend([1] * 30)):
        with pytest.raises((ParameterError, HorizonError)):
            act()
    counter.update(1, step=1)
    assert (tmp_path / "state").stat().st_mtime_ns == before


def test_a_new_counter_never_replaces_a_state(small: Make, tmp_path: Path) -> None:
    small(state=tmp_path / "state").close()
    before = (tmp_path / "state").read_bytes()
    with pytest.raises(StateError, match="exists: continue it"):
        small(state=tmp_path / "state")
    assert (tmp_path / "state").read_bytes() == before
    Counter.load(tmp_path / "state", persist=True)  # and the refusal left no lock behind
    with pytest.raises(FileNotFoundError):
        small(state=tmp_path / "missing" / "state")


def test_one_owner_at_a_time(small: Make, tmp_path: Path) -> None:
    path = tmp_path / "state"
    counter = small(state=path)
    for _ in range(2):
        with pytest.raises(StateError, match="in use by another process"):
            Counter.load(path, persist=True)
        with pytest.raises(StateError, match="in use"), exclusive(path):
            pass
    counter.close()
    with exclusive(path), pytest.raises(StateError, match="in use"):
        Counter.load(path, persist=True)
    assert Counter.load(path, persist=True).step == 0


def test_links_lead_to_the_same_lock(small: Make, tmp_path: Path) -> None:
    path, link = tmp_path / "state", tmp_path / "folder" / "link"
    link.parent.mkdir()
    link.symlink_to(path)
    counter = small(state=link)
    assert path.is_file()
    for name in (path, str(link), tmp_path / "folder" / ".." / "state"):
        with pytest.raises(StateError, match="in use"):
            Counter.load(name, persist=True)
    counter.update(1)
    assert link.is_symlink()
    assert on_disk(path) == 1
    assert [p.name for p in link.parent.iterdir()] == ["link"]


def test_a_lock_ends_with_its_counter(small: Make, tmp_path: Path) -> None:
    path = tmp_path / "state"
    small(state=path)
    gc.collect()
    Counter.load(path, persist=True)
    gc.collect()
    path.write_text("damaged")
    for _ in range(2):  # a failed load leaves no lock either
        with pytest.raises(ArtifactFormatError):
            Counter.load(path, persist=True)


def test_another_process_is_refused(small: Make, tmp_path: Path) -> None:
    counter = small(state=tmp_path / "state")
    code = "import sys; from trilift.counters import Counter; Counter.load(sys.argv[1], persist=True)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "state")], capture_output=True, text=True, check=False
    )
    assert "StateError" in done.stderr
    assert counter.update(1) == small().update(1)


def test_a_closed_counter_releases_nothing(small: Make, tmp_path: Path) -> None:
    counter = small(state=tmp_path / "state")
    counter.update(1)
    counter.close()
    counter.close()
    for act in (lambda: counter.update(1), lambda: counter.extend([1]), lambda: counter.skip(1)):
        with pytest.raises(StateError, match="was closed"):
            act()
    assert counter.step == 1
    plain = small()
    plain.close()  # there is nothing to close
    assert plain.update(1) == small().update(1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_releases_nothing(small: Make, tmp_path: Path) -> None:
    """The child has the parent's memory and descriptors, so its lock; it must not have its noise."""
    counter = small(state=tmp_path / "state")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    def child() -> None:
        try:
            counter.update(1)
        except StateError as error:
            counter.close()  # lets nobody in
            answers.put(str(error))
        else:
            answers.put("released")

    process = context.Process(target=child)
    process.start()
    process.join()
    assert "forked from" in answers.get()
    with pytest.raises(StateError, match="in use"):
        Counter.load(tmp_path / "state", persist=True)
    assert counter.update(1) == small().update(1)


def test_locks_without_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    first, second = StateLock(tmp_path / "state"), StateLock(tmp_path / "state")
    first.check()
    second.release()
    first.release()
    with pytest.raises(StateError, match="was closed"):
        first.check()
