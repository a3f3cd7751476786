"""Folders that were torn, flipped or emptied, and full disks: refused, or read for what they were."""

import os
from pathlib import Path
from typing import Any

import pytest
from trilift.counters.durable import DurableCounter
from trilift.counters.durable.journal import HEADER_BYTES
from trilift.counters.edit import GaussianCC
from trilift.lift.errors import ArtifactFormatError, ReplayError, StateError


def fresh() -> GaussianCC:
    return GaussianCC(10, 1e-5, simulation_seed=1)


def kept_bytes(path: Path, name: str = "journal.0") -> tuple[bytes, bytes]:
    return (path / name).read_bytes(), (path / "released").read_bytes()


def put(path: Path, data: bytes) -> None:
    """Write into a file that keeps its inode."""
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate()


def test_torn_ends(tmp_path: Path) -> None:
    """Cut at every byte of the last record: recovered if nothing of it was seen, refused if it was."""
    path = tmp_path / "kept"
    with DurableCounter(path, fresh()) as counter:
        first = counter.update(1)
        shorter, marked = kept_bytes(path)
        second = counter.update(0)
    longer, later = kept_bytes(path)
    assert len(shorter) < len(longer)
    for size in range(len(shorter), len(longer)):
        put(path / "journal.0", longer[:size])
        put(path / "released", later)
        with pytest.raises(StateError, match="2 steps were released, 1 are there"):
            DurableCounter.open(path)
        assert (path / "journal.0").read_bytes() == longer[:size]  # and nothing is cut off
        put(path / "released", marked)
        with DurableCounter.open(path) as counter:
            assert counter.step == 1
            assert counter.update(1, step=1) == first
            if size % 16 == 0:
                assert counter.update(0) == second
                assert (path / "journal.0").read_bytes() == longer
            else:
                assert (path / "journal.0").read_bytes() == shorter
    put(path / "journal.0", longer[: HEADER_BYTES - 1])
    with pytest.raises(ArtifactFormatError, match="damaged journal"):
        DurableCounter.open(path)


def test_flipped_bits(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    with DurableCounter(path, fresh()) as counter:
        counter.update(1)
        counter.extend([0, 1])
        places = (("journal.0", 1), ("released", 1), ("history.0", 1), ("identity", 5), ("state.0", 41))
    for name, step in places:
        data = (path / name).read_bytes()
        for place in range(0, len(data), step):
            broken = bytearray(data)
            broken[place] ^= 1 << (place % 8)
            put(path / name, bytes(broken))
            with pytest.raises((ArtifactFormatError, StateError, ReplayError)):
                DurableCounter.open(path).close()
        put(path / name, data)
    assert DurableCounter.open(path).step == 3


@pytest.mark.parametrize("name", ["journal.1", "released", "state.1", "identity"])
def test_missing_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / "kept"
    with DurableCounter(path, fresh(), journal_bytes=300) as counter:
        while not (path / "state.1").exists():
            counter.update(1)
        counter.update(1)
    (path / name).unlink()
    with pytest.raises((ArtifactFormatError, StateError)):
        DurableCounter.open(path)
    with pytest.raises(StateError, match="holds a counter"):
        DurableCounter(path, fresh())


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """What the disk did not take is not released, and nothing more is until the folder is read again."""
    counter = DurableCounter(tmp_path / "kept", fresh())
    first = counter.update(1)
    real = getattr(os, call)

    def full(handle: int, data: bytes = b"") -> int:
        if call == "write" and len(data) > 7:
            return int(real(handle, data[:7]))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left"):
        counter.update(1)
    monkeypatch.undo()
    with pytest.raises(StateError, match="open the folder again"):
        counter.update(1)
    counter.close()
    with DurableCounter.open(tmp_path / "kept") as counter:
        assert counter.step == (1 if call == "write" else 2)
        assert counter.update(1, step=1) == first
        assert counter.update(1, step=2) == fresh().extend([1, 1])[1]


def test_a_snapshot_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = DurableCounter(tmp_path / "kept", fresh(), journal_bytes=1)
    real = os.replace

    def failing(source: Any, target: Any) -> None:
        if str(target).endswith("state.1"):
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="Input/output error"):
        counter.update(1)
    counter.close()
    monkeypatch.undo()
    with DurableCounter.open(tmp_path / "kept", journal_bytes=1) as counter:
        assert counter.step == 1
        assert counter.extend([1, 0, 1]).tolist() == fresh().extend([1, 1, 0, 1])[1:].tolist()
        assert [step for step, _ in counter.released(2)] == [2, 3, 4]
    assert DurableCounter.open(tmp_path / "kept").step == 4


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
@pytest.mark.parametrize("name", ["identity", "state.0", "history.0", "journal.0", "released"])
def test_pipes_are_not_waited_for(tmp_path: Path, name: str) -> None:
    path = tmp_path / "kept"
    with DurableCounter(path, fresh()) as counter:
        counter.update(1)
    (path / name).unlink()
    os.mkfifo(path / name)
    with pytest.raises((ArtifactFormatError, StateError)):
        DurableCounter.open(path)
