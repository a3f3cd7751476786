"""JSON files that are damaged or made to do harm, and places that are no files: for states and all others."""

from __future__ import annotations

import json
import os
import pickle
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from trilift.counters.state_file import checksum
from trilift.experiments.trust.hostile_archives import Tripwire

__all__ = ["PLACES", "STATES", "TEXTS", "flips", "truncations"]

Change = Callable[[bytes], bytes]


def _front(more: str) -> Change:
    """Put something in front of the first field; what stands there later is what a dictionary keeps."""
    return lambda whole: b"{" + more.encode("ascii") + b", " + whole.lstrip()[1:]


TEXTS: dict[str, Change] = {
    "an empty file": lambda whole: b"",
    "null": lambda whole: b"null",
    "a list": lambda whole: b"[" + whole + b"]",
    "an empty object": lambda whole: b"{}",
    "a pickle": lambda whole: pickle.dumps(Tripwire()),
    "an archive": lambda whole: b"PK\x05\x06" + bytes(18),
    "deep nesting": lambda whole: b"[" * 10**5,
    "deep nesting inside": _front('"x": ' + "[" * 10**5),
    "a name twice": _front('"format": null'),
    "NaN": _front('"x": NaN'),
    "an infinity": _front('"x": -Infinity'),
    "a million digits": _front('"x": ' + "9" * 10**6),
    "1e999999999": _front('"x": 1e999999999'),
    "half of a pair": _front('"x": "\\ud800"'),
    "UTF-16": lambda whole: whole.decode("ascii").encode("utf-16"),
    "a byte order mark": lambda whole: b"\xef\xbb\xbf" + whole,
    "a NUL at the end": lambda whole: whole.rstrip() + b"\0",
    "two of them": lambda whole: whole + whole,
}
"""Changes of a JSON file that no reader takes."""


def _record(change: Callable[[dict[str, Any]], Any]) -> Change:
    """Change a state's record, and put its checksum right: by somebody who knows how."""

    def changed(whole: bytes) -> bytes:
        record = json.loads(whole)
        change(record)
        record["checksum"] = checksum(record)
        return json.dumps(record).encode("ascii")

    return changed


STATES: dict[str, Change] = {
    "a newer version": _record(lambda r: r.update(version=99)),
    "version true": _record(lambda r: r.update(version=True)),
    "another format": _record(lambda r: r.update(format="trilift")),
    "another kind": _record(lambda r: r.update(kind="Mystery")),
    "no key": _record(lambda r: r.pop("key")),
    "a short key": _record(lambda r: r.update(key="00")),
    "a key that is a list": _record(lambda r: r.update(key=[])),
    "no stream": _record(lambda r: r.pop("stream_id")),
    "no hash of the mechanism": _record(lambda r: r.update(digest="")),
    "another mechanism's hash": _record(lambda r: r.update(digest="0" * 64)),
    "a negative step": _record(lambda r: r.update(step=-1)),
    "a step beyond 2^63": _record(lambda r: r.update(step=2**70)),
    "a step true": _record(lambda r: r.update(step=True)),
    "a step of text": _record(lambda r: r.update(step="5")),
    "no steps remembered": _record(lambda r: r.pop("recent")),
    "steps that are a number": _record(lambda r: r.update(recent=5)),
    "no checksum": lambda whole: json.dumps(
        {name: value for name, value in json.loads(whole).items() if name != "checksum"}
    ).encode(),
    "another checksum": lambda whole: json.dumps(json.loads(whole) | {"checksum": "0" * 64}).encode(),
}
"""Changes of a state, most with the right checksum."""


def truncations(whole: bytes, *, stride: int = 1) -> Iterator[bytes]:
    """Yield every proper beginning of a file (every ``stride``-th length, and the longest)."""
    for length in sorted({*range(0, len(whole), stride), len(whole) - 1}):
        yield whole[:length]


def flips(whole: bytes, *, stride: int = 1, bits: int = 1) -> Iterator[tuple[int, bytes]]:
    """Yield (place, file with one bit flipped there), ``bits`` of the eight at every ``stride``-th byte."""
    for place in range(0, len(whole), stride):
        for bit in range(bits):
            yield place, whole[:place] + bytes([whole[place] ^ 1 << (place + bit) % 8]) + whole[place + 1 :]


def _fifo(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def _socket(folder: Path) -> Path:
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)  # names of sockets are short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
    finally:
        os.fchdir(here)
        os.close(here)
    return folder / "socket"


def _link(folder: Path, target: str) -> Path:
    (folder / "link").symlink_to(target)
    return folder / "link"


def _sparse(folder: Path) -> Path:
    with open(folder / "huge", "wb") as file:
        file.truncate(3 << 30)
    return folder / "huge"


def _closed(folder: Path) -> Path:
    path = folder / "closed"
    path.write_bytes(b"{}")
    path.chmod(0)
    with suppress(OSError), path.open("rb"):
        path.unlink()  # somebody whom permissions do not stop: nothing is there instead
    return path


def _device(name: str) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        if not stat.S_ISCHR(os.stat(name).st_mode):
            raise OSError(f"{name} is no device")
        return _link(folder, name)

    return made


PLACES: dict[str, Callable[[Path], Path]] = {
    "nothing": lambda folder: folder / "missing",
    "a folder": lambda folder: folder,
    "a pipe that nobody writes to": _fifo,
    "a socket": _socket,
    "a link to nothing": lambda folder: _link(folder, "nowhere"),
    "a link to itself": lambda folder: _link(folder, "link"),
    "a link to an endless device": _device("/dev/zero"),
    "a link to an empty device": _device("/dev/null"),
    "a file that may not be read": _closed,
    "a file of 3 GiB, all hole": _sparse,
    "a file as folder": lambda folder: _sparse(folder) / "inside",
    "a name that is too long": lambda folder: folder / ("x" * 300),
}
"""Paths in an empty folder at which there is no file to be read."""
