"""What is fuzzed: every reader of files and texts, as a function of bytes.

A target returns where it read something or refused it by an error of trilift; any other exception is a
finding. Where there are two readers, they must agree. Seeds are made by the code that writes such files.
"""

from __future__ import annotations

import atexit
import io
import json
import shutil
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from trilift.artifacts import load, load_l2
from trilift.artifacts.arrays import read_arrays
from trilift.artifacts.artifact import OtherNormError
from trilift.artifacts.canonical import digest
from trilift.artifacts.certificate import Certificate
from trilift.artifacts.l2_artifact import L2_SHIPPED
from trilift.artifacts.listing import INDEX, SHIPPED, find, index_records
from trilift.counters.state_file import checksum
from trilift.experiments.edit.kept import Kept
from trilift.experiments.trust.forgery import Forger, plain_npy
from trilift.experiments.trust.kinds import KINDS, Kind
from trilift.experiments.trust.program import part_of_program
from trilift.factorize.books import Books, load_books, save_books
from trilift.factorize.jobs import parse_job
from trilift.lift.errors import ArtifactFormatError, TriliftError
from trilift.verify import check_artifact
from trilift.verify.chains import CHAIN_FILE, chain_report, write_chain

__all__ = ["TARGETS", "Target", "saved_state", "saved_states"]

_LONGEST = 1 << 16  # of an input; what is longer is cut
_STATE_STEPS = 5


@dataclass(frozen=True)
class Target:
    """A reader to be fuzzed.

    Attributes:
        name: for the command line.
        run: reads bytes; raises what is a finding.
        seeds: returns inputs that are as they should be, and some that are not.
    """

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


@cache
def _folder() -> Path:
    """Return a folder of this process for the files that are read."""
    folder = Path(tempfile.mkdtemp(prefix="trilift-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _file(name: str, data: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    return path


def _shipped(*names: str) -> list[bytes]:
    return [(SHIPPED / name).read_bytes() for name in names]


SMALL = ("direct-max-4.npz", "stage-max-9.npz", "l2/direct-l2-max-4.npz")


# -- artifacts ------------------------------------------------------------------------------------------


def _artifact(data: bytes) -> None:
    """Both readers take a file, or the loader refuses it; what it took has the hash of its certificate."""
    path = _file("fuzzed.npz", data)
    try:
        try:
            read: Any = load(path)
        except OtherNormError:
            read = load_l2(path)
    except TriliftError as error:
        _one_line(error)
        return
    if digest(read.stage) != read.certificate.sha256:
        raise AssertionError("loaded numbers are not those of the certificate")
    try:
        check_artifact.check(str(path))
    except check_artifact.Untrue:
        pass  # claims are proved by neither loader; only that it can be read is the same
    except check_artifact.Unreadable as error:
        raise AssertionError(f"the loader reads what the checker cannot: {error}") from None


def _one_line(error: BaseException) -> None:
    if "\n" in str(error) or len(str(error)) > 2000:
        raise AssertionError(f"not one line: {str(error)[:300]!r}")


def _header(data: bytes) -> None:
    """The header of a sound file, replaced."""
    forger = Forger((SHIPPED / "stage-max-9.npz").read_bytes())
    forger.set_raw_header(data)
    _artifact(forger.packed())


def _header_seeds() -> list[bytes]:
    return [Forger((SHIPPED / name).read_bytes()).header_text for name in SMALL]


def _member(data: bytes) -> None:
    """A member of a sound file, replaced: which one says the first byte."""
    forger = Forger((SHIPPED / "direct-max-4.npz").read_bytes())
    names = list(forger.members)
    forger.members[names[data[0] % len(names) if data else 0]] = data[1:]
    _artifact(forger.packed())


def _member_seeds() -> list[bytes]:
    members = Forger((SHIPPED / "direct-max-4.npz").read_bytes()).members
    odd = [plain_npy("|O", (4, 4)), plain_npy("<i8", (2**31, 2**31)), plain_npy("<f8", (4, 4), b"\0" * 128)]
    return [bytes([n]) + data for n, data in enumerate([*members.values(), *odd])]


def _index(data: bytes) -> None:
    folder = _folder() / "index"
    folder.mkdir(exist_ok=True)
    (folder / INDEX).write_bytes(data)
    try:
        for record in index_records(folder):
            Certificate.from_json(record["certificate"])
    except ArtifactFormatError as error:
        _one_line(error)


def _index_seeds() -> list[bytes]:
    texts = [json.loads((folder / INDEX).read_text()) for folder in (SHIPPED, L2_SHIPPED)]
    return [json.dumps(records[:3]).encode() for records in texts]


# -- states ---------------------------------------------------------------------------------------------


def saved_states() -> tuple[tuple[str, Any, bytes], ...]:
    """Return (name, class, state after a few steps) of every kind of counter."""
    return tuple(map(saved_state, KINDS))


@cache
def saved_state(kind: Kind) -> tuple[str, Any, bytes]:
    """Return (name, class, state after a few steps) of a kind of counter."""
    counter = kind.make(1, 5)
    kind.feed(counter, _STATE_STEPS)
    path = _folder() / "saved"
    counter.save(path)
    return kind.name, type(counter), path.read_bytes()


def _state(data: bytes) -> None:
    """A state of the kind that the first byte says, as it is, and with its checksum put right."""
    kind, text = data[0] if data else 0, data[1:]
    _, cls, _ = saved_states()[kind % len(saved_states())]
    texts = [text]
    try:
        record = json.loads(text)
        if isinstance(record, dict):
            texts.append(json.dumps(record | {"checksum": checksum(record)}).encode())
    except (ValueError, RecursionError):
        pass
    for one in texts:
        try:
            cls.load(_file("state.json", one))
        except TriliftError as error:
            _one_line(error)


def _state_seeds() -> list[bytes]:
    return [bytes([n]) + data for n, (_, _, data) in enumerate(saved_states())]


# -- text and matrices ------------------------------------------------------------------------------------


def _text(data: bytes) -> None:
    """Lines of numbers, a CSV and events: how, say the bits of the first byte."""
    reading, events = part_of_program("reading"), part_of_program("reading_events")
    way, text = data[0] if data else 0, data[1:]
    stream = io.BytesIO(text)
    try:
        if way & 8:
            _, rows = events.event_reader(stream, items=["item"], sign="sign", delimiter=",")
        else:
            _, rows = reading.reader(
                stream,
                column="x" if way & 1 else None,
                integers=bool(way & 2),
                delimiter=",",
                no_event=bool(way & 4),
            )
        last = 0
        for line, _ in rows:
            if line < last or line > text.count(b"\n") + 1:
                raise AssertionError("lines are counted wrongly")
            last = line
    except TriliftError as error:
        _one_line(error)


def _text_seeds() -> list[bytes]:
    plain = [
        b"1\n2\n-3\n",
        b"\xef\xbb\xbf1\r\n2\r\n",
        b"0.5\n1e3\n",
        b"null\n4\n",
        b"1,000\n",
        b"1_0\n",
        b"\n\n",
    ]
    table = [b"a,x\n1,2\n3,4\n", b'x,y\n"1",2\n', b'x\n""\n5\n', b"x,x\n1,2\n"]
    events = [b"item,sign\nk,1\nl,-1\n", b'item,sign\n"k ""q""",+\n']
    return [
        bytes([way]) + text
        for ways, texts in (((0, 2, 4, 6), plain), ((1, 3, 5, 7), table), ((8,), events))
        for way in ways
        for text in texts
    ]


def _matrix(data: bytes) -> None:
    matrices = part_of_program("matrices")
    try:
        matrices.read_matrix(_file("R.npy", data))
    except TriliftError as error:
        _one_line(error)
    try:
        matrices.read_factors([_file("factors.npz", data)])
    except TriliftError as error:
        _one_line(error)


def _matrix_seeds() -> list[bytes]:
    return [_saved(np.save, np.eye(3)), _saved(np.save, np.arange(6).reshape(2, 3).T), _pair(np.savez)]


def _saved(save: Any, *arrays: Any, **named: Any) -> bytes:
    file = io.BytesIO()
    save(file, *arrays, **named)
    return file.getvalue()


def _pair(save: Any) -> bytes:
    return _saved(save, L=np.tril(np.ones((3, 3))), R=np.eye(3))


# -- searches, chains and experiments ---------------------------------------------------------------------


def _checkpoint(data: bytes) -> None:
    path = _file("run.npz", data)
    for read in (read_arrays, load_books):
        try:
            read(path)
        except TriliftError as error:
            _one_line(error)


def _checkpoint_seeds() -> list[bytes]:
    path = _folder() / "seed.npz"
    stage = find("direct-max-4").stage.to_float()
    save_books(path, Books(now=stage, best=stage, best_kappa=0.5, best_rounds=1, lineage=[{"steps": 3}]))
    return [path.read_bytes(), _pair(np.savez), _pair(np.savez_compressed)]


@cache
def _chain_folder() -> Path:
    folder = _folder() / "chain"
    folder.mkdir()
    write_chain(folder, [find("stage-max-9"), find("direct-max-4")], horizon=20, objective="max")
    return folder


def _chain(data: bytes) -> None:
    folder = _chain_folder()
    (folder / CHAIN_FILE).write_bytes(data)
    try:
        chain_report(folder)
    except TriliftError as error:
        _one_line(error)


def _chain_seeds() -> list[bytes]:
    stage, top = find("stage-max-9"), find("direct-max-4")
    with tempfile.TemporaryDirectory() as folder:
        record = write_chain(Path(folder), [stage, top], horizon=20, objective="max")
    slow = {**record, "scales": ["1e999999999", "1"]}
    return [json.dumps(record).encode(), json.dumps(slow).encode()]


def _job(data: bytes) -> None:
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return
    try:
        parse_job(table)
    except TriliftError as error:
        _one_line(error)


def _job_seeds() -> list[bytes]:
    return [
        b'size = 9\nobjective = "mean"\n',
        b'size = 17\nobjective = "max"\nkind = "direct"\n\n[[phase]]\nmethod = "search"\nsteps = 10\n',
        b'size = 9\nobjective = "max"\n[[phase]]\nmethod = "joint"\nspread = [0.0, 1e999]\n',
    ]


def _points(data: bytes) -> None:
    path = _file("small.points.json", data)
    try:
        Kept(path, settings={"experiment": "small", "runs": 2, "seed": 1})
    except TriliftError as error:
        _one_line(error)


def _points_seeds() -> list[bytes]:
    path = _folder() / "seed.points.json"
    path.unlink(missing_ok=True)
    kept = Kept(path, settings={"experiment": "small", "runs": 2, "seed": 1})
    kept.add("a", {"rmse": 1.5, "runs": 2})
    return [path.read_bytes()]


TARGETS = {
    target.name: target
    for target in (
        Target("artifact", _artifact, lambda: _shipped(*SMALL)),
        Target("artifact-header", _header, _header_seeds),
        Target("artifact-member", _member, _member_seeds),
        Target("index", _index, _index_seeds),
        Target("state", _state, _state_seeds),
        Target("text", _text, _text_seeds),
        Target("matrix", _matrix, _matrix_seeds),
        Target("checkpoint", _checkpoint, _checkpoint_seeds),
        Target("chain", _chain, _chain_seeds),
        Target("job", _job, _job_seeds),
        Target("points", _points, _points_seeds),
    )
}
"""Every target by its name."""
