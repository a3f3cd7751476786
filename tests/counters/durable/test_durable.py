"""A durable counter is the counter within, in a folder that refuses whatever does not fit."""

import importlib.util
import os
import pickle
import shutil
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.counters import Counter, chain_of
from trilift.counters.durable import DurableCounter
from trilift.counters.durable.kinds import kind_of
from trilift.counters.durable.records import Entry
from trilift.counters.edit import GaussianCC
from trilift.counters.turnstile import DistinctCounter
from trilift.lift.errors import ArtifactFormatError, HorizonError, ParameterError, ReplayError, StateError
from trilift.lift.integers import shrink
from trilift.stream.keys import derive_key

WORKER = Path(__file__).with_name("crasher.py")
SPEC = importlib.util.spec_from_file_location("crasher", WORKER)
assert SPEC is not None
assert SPEC.loader is not None
crasher = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(crasher)


def fresh() -> GaussianCC:
    return GaussianCC(10, 1e-5, simulation_seed=1)


def derived(key: bytes, counter: Any) -> bytes:
    """The noise key of a counter whose key is kept outside."""
    return derive_key(key, stream_id=counter._stream_id, purpose="durable/counter", digest=bytes(32))


def plain(values: Any) -> list[Any]:
    return [crasher.plain(value) for value in values]


@pytest.mark.parametrize("kind", sorted(crasher.MAKERS))
@pytest.mark.parametrize("outside", [False, True])
def test_every_kind_goes_on_with_the_same_values(kind: str, outside: bool, tmp_path: Path) -> None:
    make = crasher.MAKERS[kind]
    whole = make()
    if outside:
        kind_of(whole).rekey(whole, derived(bytes(range(32)), whole))
    options: dict[str, Any] = {"journal_bytes": 700} | ({"key": bytes(range(32))} if outside else {})
    values: list[Any] = []
    sizes = (1, 60, 1, 1)
    counter = DurableCounter(tmp_path / "kept", make(), **options)
    for size in sizes:
        first = counter.step + 1
        if size == 1:
            value = counter.update(*crasher.given(kind, first))
            values += [] if value is None else [value]
        else:
            values += list(counter.extend(*crasher.many(kind, first, size)))
        counter.close()
        counter = DurableCounter.open(tmp_path / "kept", **options)
        assert counter.step == first + size - 1
    steps = sum(sizes)
    again = counter.update(*crasher.given(kind, steps), step=steps)
    if kind not in crasher.EVENTS or again is not None:
        assert crasher.plain(again) == crasher.plain(values[-1])
    oldest = counter.step - 2
    remembered = [value for _, value in counter.released(oldest)]
    assert plain(remembered) == plain(values)[len(values) - len(remembered) :]
    expected = whole.extend(*crasher.many(kind, 1, steps))
    assert plain(values) == plain(expected)
    assert len(set(map(repr, plain(values)))) > 2
    counter.close()


def test_parameters_of_the_counter_within_are_seen(tmp_path: Path) -> None:
    counter = DurableCounter(tmp_path / "kept", fresh())
    assert counter.epsilon == 10
    assert "(epsilon" in counter.privacy_statement() or "SIMULATION" in counter.privacy_statement()
    for name in ("save", "load", "_now", "missing"):
        with pytest.raises(AttributeError):
            getattr(counter, name)
    with pytest.raises(StateError, match="not copied"):
        pickle.dumps(counter)
    assert "step=0" in repr(counter)


def test_modes_of_files(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.mkdir(mode=0o755)
    old = os.umask(0)
    try:
        with DurableCounter(path, fresh(), journal_bytes=300) as counter:
            for _ in range(30):
                counter.update(1)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    files = sorted(path.iterdir())
    names = {"history", "identity", "journal", "released", "state"}
    assert {file.name.split(".")[0] for file in files} == names
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert len([file for file in files if file.name.startswith("journal.")]) == 2


def test_repeated_steps(tmp_path: Path) -> None:
    with DurableCounter(tmp_path / "kept", fresh()) as counter:
        values = counter.extend([1, 0, None]).tolist()
    with DurableCounter.open(tmp_path / "kept") as counter:
        assert [counter.update(x, step=t) for t, x in enumerate([1, 0, None], 1)] == values
        for x, step in ((0, 1), (None, 2), (0, 3)):
            with pytest.raises(ReplayError, match="another input"):
                counter.update(x, step=step)
        with pytest.raises(StateError, match="out of order"):
            counter.update(1, step=5)
        assert counter.step == 3
        assert counter.update(1, step=4) == fresh().extend([1, 0, None, 1])[-1]


def test_what_is_refused_leaves_no_trace(tmp_path: Path) -> None:
    counter = DurableCounter(tmp_path / "kept", Counter(1, horizon=5, simulation_seed=1))
    counter.update(1)
    before = (tmp_path / "kept" / "journal.0").read_bytes()
    refused: list[tuple[type[Exception], Any]] = [
        (ParameterError, lambda: counter.update(7)),
        (ParameterError, lambda: counter.update(float("nan"))),
        (ParameterError, counter.update),
        (ParameterError, lambda: counter.update(1, 1)),
        (ParameterError, lambda: counter.update(1, step=0)),
        (ParameterError, lambda: counter.extend([1, 2])),
        (ParameterError, lambda: counter.skip(-1)),
        (HorizonError, lambda: counter.extend([1] * 5)),
        (HorizonError, lambda: counter.skip(5)),
        (ParameterError, lambda: counter.released(0)),
    ]
    for error, act in refused:
        with pytest.raises(error):
            act()
    assert counter.extend([]).tolist() == []
    assert (tmp_path / "kept" / "journal.0").read_bytes() == before
    counter.skip(2)
    last = counter.update(1)
    counter.close()
    with DurableCounter.open(tmp_path / "kept") as again:
        assert again.step == 4
        assert again.update(1, step=4) == last
    for act in (lambda: counter.update(1), lambda: counter.extend([1]), lambda: counter.released(1)):
        with pytest.raises(StateError, match=r"closed: continue it with DurableCounter\.open"):
            act()


def test_only_new_counters_and_new_folders(tmp_path: Path) -> None:
    used, kept = fresh(), fresh()
    used.update(1)
    with pytest.raises(StateError, match="must be a new one"):
        DurableCounter(tmp_path / "a", used)
    with pytest.raises(ParameterError, match="counter must be one of"):
        DurableCounter(tmp_path / "a", object())
    with DurableCounter(tmp_path / "b", kept):
        with pytest.raises(StateError, match="was given to a DurableCounter"):
            kept.update(1)
        with pytest.raises(StateError, match="must be a new one"):
            DurableCounter(tmp_path / "c", kept)
    with pytest.raises(StateError, match="holds a counter"):
        DurableCounter(tmp_path / "b", fresh())
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "photo").write_bytes(b"")
    with pytest.raises(StateError, match="must be empty"):
        DurableCounter(tmp_path / "d", fresh())
    for name in ("d", "missing"):
        with pytest.raises(StateError, match="no counter was begun here"):
            DurableCounter.open(tmp_path / name)


def test_one_writer(tmp_path: Path) -> None:
    counter = DurableCounter(tmp_path / "kept", fresh())
    with pytest.raises(StateError, match="in use"):
        DurableCounter.open(tmp_path / "kept")
    (tmp_path / "kept" / "state.lock").rename(tmp_path / "aside")
    with pytest.raises(StateError, match="in use"):
        DurableCounter.open(tmp_path / "kept")
    (tmp_path / "aside").replace(tmp_path / "kept" / "state.lock")
    code = "import sys; from trilift.counters.durable import DurableCounter; DurableCounter.open(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path / "kept")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "StateError" in done.stderr
    assert "in use" in done.stderr
    counter.close()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forks_are_refused(tmp_path: Path) -> None:
    counter = DurableCounter(tmp_path / "kept", fresh())
    child = os.fork()
    if child == 0:
        try:
            counter.update(1)
        except StateError:
            os._exit(3)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    counter.update(1)
    counter.close()
    assert DurableCounter.open(tmp_path / "kept").step == 1


def test_copies_are_refused(tmp_path: Path) -> None:
    with DurableCounter(tmp_path / "kept", fresh()) as counter:
        counter.update(1)
        shutil.copytree(tmp_path / "kept", tmp_path / "copy")
        with pytest.raises(StateError, match="is a copy"):
            DurableCounter.open(tmp_path / "copy")
        counter.update(1)
    shutil.copytree(tmp_path / "kept", tmp_path / "linked", copy_function=os.link)
    with pytest.raises(StateError, match="is a copy"):
        DurableCounter.open(tmp_path / "linked")
    os.rename(tmp_path / "kept", tmp_path / "moved")  # is no copy
    DurableCounter.open(tmp_path / "moved").close()
    os.replace(tmp_path / "copy" / "journal.0", tmp_path / "moved" / "journal.0")  # an older one, put back
    with pytest.raises(ArtifactFormatError, match="copy of a journal"):
        DurableCounter.open(tmp_path / "moved")


def test_threads_take_turns(tmp_path: Path) -> None:
    got: dict[int, Any] = {}
    with DurableCounter(tmp_path / "kept", fresh(), journal_bytes=2000) as counter:

        def work() -> None:
            for _ in range(25):
                counter.update(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counter.step == 100
    expected = fresh().extend([1] * 100).tolist()
    with DurableCounter.open(tmp_path / "kept") as counter:
        got = {step: counter.update(1, step=step) for step in range(1, 101)}
    assert list(got.values()) == expected


def test_what_is_no_longer_remembered(tmp_path: Path) -> None:
    with DurableCounter(tmp_path / "kept", fresh(), journal_bytes=1) as counter:
        for x in (1, 0, 1, 1):
            counter.update(x)
        with pytest.raises(ReplayError, match="no longer remembered"):
            counter.released(1)
        expected = fresh().extend([1, 0, 1, 1]).tolist()
        assert counter.released(4) == [(4, expected[3])]
        assert counter.released(5) == []


def test_keys_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, key = tmp_path / "kept", bytes(range(1, 33))
    (tmp_path / "key").write_text(key.hex() + "\n")
    monkeypatch.setenv("TRILIFT_TEST_KEY", key.hex())
    with DurableCounter(path, GaussianCC(10, 1e-5), key=key) as counter:
        value = counter.update(1)
        secret = bytes(counter._counter._key)
    everything = b"".join(file.read_bytes() for file in path.iterdir())
    for hidden in (key, secret, key.hex().encode(), secret.hex().encode()):
        assert hidden not in everything
    for source in (key, lambda: key, "env:TRILIFT_TEST_KEY", f"file:{tmp_path / 'key'}"):
        with DurableCounter.open(path, key=source) as counter:
            assert counter.update(1, step=1) == value
    for wrong in (
        bytes(32),
        "env:TRILIFT_NO_KEY",
        "file:missing",
        "abc",
        b"short",
        7,
        f"file:{path}/identity",
    ):
        with pytest.raises(ParameterError, match="key") as failure:
            DurableCounter.open(path, key=wrong)  # type: ignore[arg-type]
        assert key.hex() not in str(failure.value)
    with pytest.raises(ParameterError, match="was kept apart"):
        DurableCounter.open(path)
    DurableCounter(tmp_path / "other", fresh()).close()
    with pytest.raises(ParameterError, match="pass no key="):
        DurableCounter.open(tmp_path / "other", key=key)


def test_another_mechanism_is_not_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal whose values come out differently is refused, not released anew."""
    from trilift.stream.independent_noise import IndependentNoise

    with DurableCounter(tmp_path / "kept", fresh()) as counter:
        counter.extend([1, 1, 1])
    real = IndependentNoise.range
    monkeypatch.setattr(IndependentNoise, "range", lambda self, start, stop: real(self, start, stop) + 1)
    with pytest.raises(ReplayError, match="another value"):
        DurableCounter.open(tmp_path / "kept")


def test_chains_and_encodings_that_no_state_holds(tmp_path: Path) -> None:
    chain = chain_of(("stage-max-9", "direct-max-4"))
    counter = Counter(1, horizon=30, chain=chain, simulation_seed=2)
    with DurableCounter(tmp_path / "chain", counter) as kept:
        values = [kept.update(1), kept.update(1)]
        assert kept.released(1) == [(1, values[0]), (2, values[1])]
    with pytest.raises(ParameterError, match="pass it as chain="):
        DurableCounter.open(tmp_path / "chain")
    with DurableCounter.open(tmp_path / "chain", chain=chain) as kept:
        assert kept.released(1) == [(1, values[0]), (2, values[1])]
    counter = DistinctCounter(rho=100, horizon=50, encode=repr, simulation_seed=1)
    with DurableCounter(tmp_path / "items", counter) as kept:
        kept.extend([1.5, 2.5], [1, 1])
        assert len(kept.released(1)) == 2
    with pytest.raises(ParameterError, match="encode"):
        DurableCounter.open(tmp_path / "items")
    with DurableCounter.open(tmp_path / "items", encode=repr) as kept:
        with pytest.raises(ReplayError, match="another event"):
            kept.update(2.25, 1, step=2)
        assert kept.update((2.5, 1), step=2) == kept.released(2)[0][1]
    with pytest.raises(ParameterError, match="takes no such argument"):
        DurableCounter.open(tmp_path / "items", encode=repr, chain=chain)


def test_inputs_of_any_size(tmp_path: Path) -> None:
    def wide() -> GaussianCC:
        return GaussianCC(10, 1e-5, high=2**90, simulation_seed=1)

    inputs = [2**90, None, 2**63, 2**64 - 1, 127, 128, 0]
    with DurableCounter(tmp_path / "kept", wide()) as counter:
        values = counter.extend(inputs[:3]).tolist()
    with DurableCounter.open(tmp_path / "kept") as counter:
        values += [counter.update(x) for x in inputs[3:]]
    assert values == wide().extend(inputs).tolist()
    with DurableCounter.open(tmp_path / "kept") as counter:
        assert [value for _, value in counter.released(1)] == values
        assert [counter.update(x, step=t) for t, x in enumerate(inputs, 1)] == values


@given(
    skipped=st.integers(0, 2**63 - 1),
    rows=st.lists(st.lists(st.integers(-(2**70), 2**70), min_size=2, max_size=2), min_size=1, max_size=5),
    words=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5),
)
def test_entries_come_back(skipped: int, rows: list[list[int]], words: list[int]) -> None:
    wide, some = np.array(rows, dtype=object), np.array(words, dtype=np.uint64)
    for arrays in ((shrink(wide),), (wide,), (some,), ()):
        entry = Entry(0 if arrays else skipped, arrays, bytes(range(16)))
        back = Entry.unpacked(entry.packed())
        assert (back.skipped, back.released) == (entry.skipped, entry.released)
        assert [array.tolist() for array in back.arrays] == [array.tolist() for array in arrays]
        assert back.steps == entry.steps
        with pytest.raises((ValueError, struct.error)):
            Entry.unpacked(entry.packed()[:-1])
        with pytest.raises((ValueError, struct.error)):
            Entry.unpacked(entry.packed() + b"x")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no list of open files on this system")
def test_the_disk_has_it_before_it_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process does not tell what was flushed; the order of the calls does."""
    counter = DurableCounter(tmp_path / "kept", fresh())
    calls: list[str] = []
    for name in ("write", "fsync", "pwrite"):
        real = getattr(os, name)

        def noted(*arguments: Any, name: str = name, real: Any = real) -> Any:
            calls.append(f"{name} {os.path.basename(os.readlink(f'/proc/self/fd/{arguments[0]}'))}")
            return real(*arguments)

        monkeypatch.setattr(os, name, noted)
    counter.update(1)
    assert calls == ["write journal.0", "fsync journal.0", "pwrite released"]
    calls.clear()
    counter.extend([1] * 50)  # one write for all
    assert calls == ["write journal.0", "fsync journal.0", "pwrite released"]
    counter.close()
    calls.clear()
    DurableCounter.open(tmp_path / "kept").close()  # what a killed process wrote may not be flushed yet
    assert calls == ["fsync journal.0", "pwrite released"]
