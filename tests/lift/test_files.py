"""Files are written whole or not at all, and nothing but files is read."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from trilift.lift.files import atomic_write, open_regular, read_regular


def test_new_and_replaced(tmp_path: Path) -> None:
    for data in (b"first", b"", b"\x00" * 100_000):
        atomic_write(tmp_path / "file", data)
        assert (tmp_path / "file").read_bytes() == data
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(("umask", "private", "mode"), [(0, True, 0o600), (0o027, False, 0o640)])
def test_who_may_read_it(tmp_path: Path, umask: int, private: bool, mode: int) -> None:
    before = os.umask(umask)
    try:
        atomic_write(str(tmp_path / "file"), b"x", private=private)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


@pytest.mark.parametrize("broken", ["os.fsync", "os.replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, error: BaseException
) -> None:
    atomic_write(tmp_path / "file", b"old")

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(broken, fail)
    with pytest.raises(type(error)):
        atomic_write(tmp_path / "file", b"new")
    monkeypatch.undo()
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_folders_that_cannot_be_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems refuse to flush a folder: the file is there all the same."""
    real = os.fsync

    def only_files(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError("not supported")
        real(handle)

    monkeypatch.setattr("os.fsync", only_files)
    atomic_write(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        atomic_write(tmp_path / "missing" / "file", b"x")
    with pytest.raises(OSError, match="director"):
        atomic_write(tmp_path, b"x")
    assert os.listdir(tmp_path) == []
    atomic_write(tmp_path / ("\N{SNOWMAN}" * 80), b"x")  # 240 bytes, as long as names may nearly be
    assert len(os.listdir(tmp_path)) == 1


def test_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    atomic_write(tmp_path / "link", b"new")
    assert (tmp_path / "real").read_bytes() == b"old"
    assert not (tmp_path / "link").is_symlink()


def test_only_files_are_opened(tmp_path: Path) -> None:
    """A pipe that nobody writes to is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe", tmp_path / "device", tmp_path, tmp_path / "missing"):
        with pytest.raises(OSError), open_regular(path):  # noqa: PT011
            pass
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"abc"


def test_as_much_as_is_wanted_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert read_regular(path, max_bytes=3) == b"abc"
    assert read_regular(path, max_bytes=2) is None
    plain = os.fstat

    def grows(handle: int) -> os.stat_result:
        found = plain(handle)
        with path.open("ab") as file:
            file.write(b"d")
        return found

    monkeypatch.setattr("trilift.lift.files.os.fstat", grows)
    with pytest.raises(OSError, match="is being written to"):
        read_regular(path, max_bytes=100)
    before = path.read_bytes()
    assert read_regular(path, max_bytes=100, grows=True) == before + b"d"  # of two that are appended
    assert len(path.read_bytes()) == len(before) + 2
