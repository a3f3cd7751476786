"""Hostile and damaged files on the command line: exit code 2, one line, nothing is waited for."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift.artifacts.listing import SHIPPED
from trilift.experiments.trust.forgery import Forger, plain_npy
from trilift.experiments.trust.hostile_archives import ARCHIVES, small_artifact, unpickled
from trilift.experiments.trust.hostile_texts import PLACES
from trilift.verify import standing

ONE_OF_EACH = {group: next(iter(cases.values())) for group, cases in ARCHIVES.items()}
READING = (
    ("certify",),
    ("inspect",),
    ("plan", "--horizon", "100", "--epsilon", "1", "--artifact"),
    ("count", "-", "--epsilon", "1", "--horizon", "20", "--chain"),
)


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_hostile_artifacts(command: tuple[str, ...], run: Any, tmp_path: Path) -> None:
    for group, make in ONE_OF_EACH.items():
        path = tmp_path / "case.npz"
        path.write_bytes(make())
        done = run(*command, path, stdin=b"1\n")
        false = group == "certificates"  # numbers that do not have the hash: a claim is false
        assert done.code in ((1, 2) if false else (2,)), (group, done)
        assert len(done.err.splitlines()) == 1, (group, done)
        assert done.out == "" or false
        path.unlink()
    assert not unpickled


@pytest.mark.parametrize("name", PLACES)
def test_nothing_is_waited_for(name: str, run: Any, refused: Any, tmp_path: Path) -> None:
    folder = tmp_path / "place"
    folder.mkdir()
    path = PLACES[name](folder)
    if name != "a folder":  # that is a chain's
        refused("certify", path)
        link = tmp_path / "R.npy"
        link.symlink_to(path)
        refused("certify", link)
        refused("import", link, "--out", tmp_path / "made.npz")
    refused("inspect", path)
    if (
        os.path.exists(path) and name != "a folder"
    ):  # a missing state is begun, a folder is a durable counter's
        done = run("count", "-", "--state", path, stdin=b"1\n")
        assert (done.code, done.out) == (2, ""), done
    assert not (tmp_path / "made.npz").exists()


def test_a_catalogue_of_hostile_files(run: Any, tmp_path: Path) -> None:
    """Every bad file is left out with one line, the good one is found, and nothing hangs."""
    catalogue = tmp_path / "catalogue"
    for number, make in enumerate(ONE_OF_EACH.values()):
        (catalogue / f"bad-{number}.npz").write_bytes(make())
    os.mkfifo(catalogue / "pipe.npz")
    (catalogue / "folder.npz").mkdir()
    (catalogue / "loop.npz").symlink_to("loop.npz")
    (catalogue / "zero.npz").symlink_to("/dev/zero")
    shutil.copy(SHIPPED / "stage-max-9.npz", catalogue / "mine.npz")
    done = run("artifacts", "--json")
    assert done.code == 0
    assert "mine" in [entry["name"] for entry in done.json]
    lines = done.err.splitlines()
    assert len(lines) >= len(ONE_OF_EACH) - 1 + 4  # numbers are not read for a listing, their hash neither
    said = ("trilift: left out of the catalogue: ", "trilift: bad-")
    assert all(line.startswith(said) for line in lines), lines
    planned = run("plan", "--horizon", 100, "--epsilon", 1, "--json")
    assert planned.code == 0
    json.loads(planned.out)


def test_a_file_that_changes_between_two_looks(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.npz"
    path.write_bytes(small_artifact())
    plain = standing.refutation

    def swaps(name: Any) -> Any:
        path.write_bytes(small_artifact("stage-mean-9"))
        return plain(name)

    monkeypatch.setattr("trilift.verify.refutation", swaps)
    done = run("inspect", path)
    assert (done.code, done.out) == (2, "")
    assert "has just changed" in done.err


def test_factors_that_change_while_they_are_read(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trilift import matrices

    path, plain = tmp_path / "R.npy", matrices.read_factors
    np.save(path, np.eye(2))

    def swaps(paths: Any) -> Any:
        read = plain(paths)
        np.save(path, 2 * np.eye(2))
        return read

    monkeypatch.setattr("trilift.matrices.read_factors", swaps)
    done = run("import", path, "--out", tmp_path / "made.npz")
    assert (done.code, done.out) == (2, "")
    assert "changed while it was read" in done.err
    assert not (tmp_path / "made.npz").exists()


@pytest.mark.parametrize(
    "data",
    [
        *(make() for make in ARCHIVES["pickles and object arrays"].values()),
        plain_npy("<f8", (2**20, 2**20)),
        plain_npy("<f8", (-1, 2)),
        plain_npy("<M8[ns]", (2, 2), bytes(32)),
        b"",
    ],
)
def test_hostile_factors(data: bytes, refused: Any, tmp_path: Path) -> None:
    for name in ("R.npy", "factors.npz"):
        (tmp_path / name).write_bytes(data)
        if name == "R.npy" and data[:6] == b"\x93NUMPY" and b"'<i8'" in data:
            continue  # a sound matrix of zeros: it has no inverse, which is another error
        refused("import", tmp_path / name, "--out", tmp_path / "made.npz")
    assert not unpickled


def test_finished_points_that_are_damaged(refused: Any, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / "edit-fig2.points.json"
    for text in ('{"settings": {}, "points": {}}', "[" * 10**5, '{"points": NaN}', ""):
        path.write_text(text)
        line = refused("reproduce", "edit-fig2", "--runs", 2, "--out", folder, "--resume")
        assert "choose another folder" in line
        assert path.read_text() == text


def test_text_of_files_does_not_command_the_terminal(run: Any, tmp_path: Path) -> None:
    """Escape sequences and line ends in provenance and in names of files are written out."""
    forger = Forger(small_artifact())
    provenance = forger.header["provenance"] | {"notes": "a\x1b[2Jb\nc", "method": "\x9b31m\u202e"}
    path = tmp_path / "mine\x1b[1m.npz"
    path.write_bytes(forger.set_header(provenance=provenance).packed())
    done = run("inspect", path)
    assert done.code == 0
    assert done.out.isascii() or all(c.isprintable() or c == "\n" for c in done.out)
    assert "a\\x1b[2Jb\\nc" in done.out
    (tmp_path / "catalogue" / "bad\x1b[1m\n.npz").write_bytes(b"junk")
    listed = run("artifacts")
    assert listed.code == 0
    assert "\x1b" not in listed.err + listed.out
    assert ["left out" in line for line in listed.err.splitlines()] == [True, False]
