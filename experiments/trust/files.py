"""Files that are damaged, foreign or hostile, counted: readers refuse them in one line, and in bounds."""

from __future__ import annotations

import json
import tempfile
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from trilift.artifacts import load
from trilift.artifacts.listing import find
from trilift.experiments.edit.kept import Kept
from trilift.experiments.trust.forgery import plain_npy
from trilift.experiments.trust.fuzz_targets import saved_state
from trilift.experiments.trust.hostile_archives import ARCHIVES, LOADER_ALONE, small_artifact, unpickled
from trilift.experiments.trust.hostile_texts import PLACES, STATES, TEXTS, flips, truncations
from trilift.experiments.trust.kinds import KINDS
from trilift.factorize.books import Books, load_books, save_books
from trilift.lift.errors import TriliftError
from trilift.verify import check_artifact, verification_report
from trilift.verify.chains import CHAIN_FILE, chain_report, write_chain

__all__ = ["PART", "READERS", "complaint", "measure", "same_artifact"]

PART = "files"

MOST_SECONDS = 60
"""After so long a reader is taken to wait for ever."""
MOST_BYTES = 8 << 20
"""What refusing a file of a few kilobytes may take, as Python counts it."""


def _checked(path: Path) -> None:
    """Run the standalone checker, whose errors are its own."""
    try:
        check_artifact.check(str(path))
    except (check_artifact.Unreadable, check_artifact.Untrue) as error:
        raise TriliftError(str(error)) from None


def _proved(path: Path) -> None:
    """Certify a file; a claim that is false is said, not raised."""
    report = verification_report(path)
    if not report["verified"]:
        raise TriliftError(report["failure"])


READERS: dict[str, Callable[[Path], Any]] = {"loader": load, "certify": _proved, "checker": _checked}
"""Readers of artifacts; each raises TriliftError for what it does not take."""


def complaint(
    read: Callable[[Path], Any],
    path: Path,
    *,
    takes: Callable[[Any], bool] | None = None,
    most: int | None = MOST_BYTES,
) -> str:
    """Return "" if a reader refuses a file as it should, and otherwise what is wrong.

    Args:
        read: the reader.
        path: the file, or whatever is there.
        takes: tells whether what was read is right after all; None: nothing may be read.
        most: bytes that reading may take; None: they are not counted, which is faster.
    """
    found: list[str] = []

    def attempt() -> None:
        try:
            value = read(path)
        except TriliftError as error:
            text = str(error)
            found.append("" if "\n" not in text and 0 < len(text) < 2000 else f"not one line: {text[:200]!r}")
        except BaseException as error:
            found.append(f"{type(error).__name__}: {str(error)[:200]}")
        else:
            found.append("" if takes is not None and takes(value) else "it was read")

    if most is not None:
        tracemalloc.start()
    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(MOST_SECONDS)
    peak = tracemalloc.get_traced_memory()[1]  # 0 where nothing is counted
    tracemalloc.stop()
    if unpickled:
        return f"unpickled: {unpickled.pop()}"
    if not found:
        return f"waited for more than {MOST_SECONDS} s"
    return found[0] or (f"{peak >> 20} MiB were taken" if most is not None and peak > most else "")


def same_artifact(name: str = "stage-max-9") -> Callable[[Any], bool]:
    """Return whether what was loaded is all that the file said: numbers, claims, provenance."""
    own = find(name)
    return lambda read: bool(read.certificate == own.certificate and read.provenance == own.provenance)


class _Rows:
    """Counts what held, and keeps the first complaint."""

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self.rows: list[dict[str, Any]] = []
        self.folder, self._tell = folder, tell

    def add(self, what: str, complaints: Iterable[str], detail: str) -> None:
        said = list(complaints)
        bad = [text for text in said if text]
        self._tell(f"{what}: {len(said) - len(bad)} of {len(said)}")
        self.rows.append(
            {
                "what": what,
                "tried": len(said),
                "held": len(said) - len(bad),
                "detail": bad[0] if bad else detail,
            }
        )

    def file(self, data: bytes, name: str = "file") -> Path:
        path = self.folder / name
        path.write_bytes(data)
        return path


def _artifacts(rows: _Rows, full: bool) -> None:
    for group, cases in ARCHIVES.items():
        said = [
            complaint(read, path)
            for name, make in cases.items()
            for path in [rows.file(make())]
            for reader, read in READERS.items()
            if reader != "checker" or name not in LOADER_ALONE
        ]
        rows.add(f"artifact: {group}", said, f"{len(cases)} files, readers: {', '.join(READERS)}")
    whole, same = small_artifact(), same_artifact()
    stride = 1 if full else 17
    cut = [complaint(load, rows.file(data), most=None) for data in truncations(whole, stride=stride)]
    rows.add("artifact: cut off", cut, "at every length" if full else f"at every {stride}th length")
    bits = 8 if full else 1
    taken: list[bool] = []

    def takes(read: Any) -> bool:
        taken.append(same(read))
        return taken[-1]

    said = [
        complaint(load, rows.file(data), takes=takes, most=None)
        for _, data in flips(whole, stride=stride, bits=bits)
    ]
    rows.add(
        "artifact: one bit flipped",
        said,
        f"{len(said) - len(taken)} refused; {len(taken)} in zip's dates, attributes, padding, without effect",
    )


def _states(rows: _Rows, full: bool) -> None:
    states = [saved_state(kind) for kind in KINDS if full or kind.name.isalpha()]
    stride = 1 if full else 41
    odd, cut, flipped = [], [], []
    for _, cls, whole in states:
        odd += [complaint(cls.load, rows.file(change(whole))) for change in TEXTS.values()]
        odd += [complaint(cls.load, rows.file(change(whole)), most=None) for change in STATES.values()]
        cut += [complaint(cls.load, rows.file(data), most=None) for data in truncations(whole, stride=stride)]
        flipped += [
            complaint(cls.load, rows.file(data), most=None) for _, data in flips(whole, stride=stride)
        ]
    kinds = f"{len(states)} kinds of counters"
    rows.add("state: odd or forged JSON", odd, f"{len(TEXTS) + len(STATES)} files, {kinds}")
    rows.add("state: cut off", cut, f"{'at every length' if full else 'at some lengths'}, {kinds}")
    rows.add("state: one bit flipped", flipped, f"{'in every byte' if full else 'in some bytes'}, {kinds}")
    mixed = [
        complaint(cls.load, rows.file(whole), most=None)
        for _, cls, _ in states
        for _, other, whole in states
        if cls is not other
    ]
    rows.add("state: of another class", mixed, kinds)


def _places(rows: _Rows) -> None:
    classes = {saved_state(kind)[1] for kind in KINDS if kind.name.isalpha()}
    readers = [
        *READERS.values(),
        load_books,
        *(cls.load for cls in sorted(classes, key=lambda c: c.__name__)),
    ]
    said = []
    for make in PLACES.values():
        for read in readers:
            with tempfile.TemporaryDirectory(dir=rows.folder) as inside:
                said.append(complaint(read, make(Path(inside))))
    rows.add(
        "no file there", said, f"{len(PLACES)} places (pipes, devices, links, holes), {len(readers)} readers"
    )


def _searches(rows: _Rows, full: bool) -> None:
    path, stride = rows.folder / "run.npz", 1 if full else 29
    stage = find("direct-max-4").stage.to_float()
    books = Books(now=stage, best=stage, best_kappa=0.5, best_rounds=1, lineage=[{"steps": 3}])
    save_books(path, books)
    whole = path.read_bytes()

    def same(read: Books) -> bool:
        parts = [(read.now, stage), (read.best, stage)]
        return (read.place, read.best_kappa, read.lineage) == (books.place, 0.5, books.lineage) and all(
            mine is not None and all(np.array_equal(getattr(mine, n), getattr(other, n)) for n in "ABwg")
            for mine, other in parts
        )

    cut = [
        complaint(load_books, rows.file(data, "run.npz"), most=None)
        for data in truncations(whole, stride=stride)
    ]
    rows.add("checkpoint: cut off", cut, "refused")
    said = [
        complaint(load_books, rows.file(data, "run.npz"), takes=same, most=None)
        for _, data in flips(whole, stride=stride)
    ]
    rows.add(
        "checkpoint: one bit flipped", said, "refused, or in zip's dates and attributes and without effect"
    )
    odd = [
        plain_npy("<f8", (2, 2), bytes(32)),
        *(make() for name, make in ARCHIVES["pickles and object arrays"].items()),
        *(make() for name, make in ARCHIVES["bombs and declared sizes"].items()),
    ]
    rows.add(
        "checkpoint: foreign and hostile",
        [complaint(load_books, rows.file(d, "run.npz"), most=64 << 20) for d in odd],
        "refused",
    )


def _points(rows: _Rows, full: bool) -> None:
    settings = {"experiment": "small", "runs": 2, "seed": 1}
    path = rows.folder / "points.json"
    Kept(path, settings=settings).add("a", {"rmse": 1.5, "runs": 2})
    whole, points = path.read_bytes(), {"a": {"rmse": 1.5, "runs": 2}}

    def read(path: Path) -> Any:
        return Kept(path, settings=settings).points

    changed = [change(whole) for name, change in TEXTS.items()]
    changed += list(truncations(whole.rstrip()))
    changed += [data for _, data in flips(whole.rstrip())]
    said = [
        complaint(read, rows.file(data), takes=lambda found: found == points, most=None) for data in changed
    ]
    rows.add("finished points: damaged", said, "refused, or read for what they were")


def _chains(rows: _Rows, full: bool) -> None:
    folder = rows.folder / "chain"
    folder.mkdir()
    record = write_chain(folder, [find("stage-max-9"), find("direct-max-4")], horizon=20, objective="max")
    whole = (folder / CHAIN_FILE).read_bytes()
    changes: list[dict[str, Any]] = [
        {"scales": ["1e999999999", "1"]},
        {"scales": ["1/0", "1"]},
        {"charges": [1, 1]},
        {"levels": [{"file": "../level-0.npz", "sha256": ""}]},
        {"horizon": 10**30},
        {"horizon": True},
        {"format": "trilift-chain-2"},
        {"max_row_norm_sq": "inf"},
    ]
    texts = [*(json.dumps(record | change).encode() for change in changes)]
    texts += [change(whole) for change in TEXTS.values()] + list(
        truncations(whole.rstrip(), stride=1 if full else 31)
    )
    said = []
    for text in texts:
        (folder / CHAIN_FILE).write_bytes(text)
        said.append(complaint(chain_report, folder, takes=lambda report: not report["verified"]))
    rows.add("chain.json: damaged and hostile", said, "refused, or not verified")


def measure(*, full: bool, seed: int = 1, tell: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Try every file with every reader of its kind.

    Args:
        full: damage at every place, not at some.
        seed: not used; nothing here is random.
        tell: is told every row.
    """
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # names that an archive has twice
        rows = _Rows(Path(place), tell)
        _artifacts(rows, full)
        _states(rows, full)
        _places(rows)
        _searches(rows, full)
        _points(rows, full)
        _chains(rows, full)
    note = (
        "A file is handled if the reader refuses it with one line and an error of trilift, unpickles "
        f"nothing, takes at most {MOST_BYTES >> 20} MiB and does not wait; or if the damage is without "
        "effect and everything is read for what it was. Checkpoints may have arrays of any size and take as "
        "much as these say, at most 1 GiB if they are packed."
    )
    return {"part": PART, "full": full, "rows": rows.rows, "note": note}
