"""What was counted under a master key: the same key with other data would show exactly what changed.

For each data set (a version, a column, its parameters) the number of rows of every group and a keyed hash of
its inputs are remembered. More rows behind the known ones continue a stream; anything else is refused. So is
other noise for what was released before: a program whose chains or samplers have changed would spend again.
"""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from trilift.counters.lock import exclusive
from trilift.counters.state_file import check_checksum, headed_record, sha256_text, whole, write_record
from trilift.lift.errors import ArtifactFormatError, ParameterError, ReplayError, StateError
from trilift.stream.keys import DigestBuilder, Secret, derive_key, new_key

__all__ = ["Registry"]

Integers = np.ndarray[Any, np.dtype[Any]]
Known = dict[str, dict[str, tuple[int, str]]]  # by data set, by group: rows, and the hash of their inputs
Noises = dict[str, dict[str, list[str]]]  # by release, by group: digests of the noise

FORMAT = "trilift frame keys"
VERSION = 2
_MAX_BYTES = 256 << 20


class Registry:
    """A master key, and what it was used for: in memory, or in a file for the owner only.

    Args:
        key: the key; None: that of the file, or a new one.
        path: the file, made where it does not exist; it holds the key too unless ``key`` is given.

    Raises:
        ArtifactFormatError: the file is no such file, or damaged.
        ParameterError: another key than the file's.
        StateError: another process is at the file.
        OSError: it cannot be written.
    """

    def __init__(self, *, key: Secret | None, path: str | os.PathLike[str] | None) -> None:
        self._lock, self._outside, self._process = threading.Lock(), key is not None, os.getpid()
        self._path = None if path is None else Path(os.path.realpath(path))
        self._known: Known = {}
        self._noises: Noises = {}
        self.key = new_key() if key is None else key
        if self._path is None:
            return
        with exclusive(self._path):
            if self._path.exists():
                self._read(self._path, first=True)
            else:
                self._write(self._path, {}, {})

    def __repr__(self) -> str:
        return f"Registry({len(self._known)} data sets, secrets hidden)"

    @property
    def identity(self) -> bytes:
        """Bytes that tell this key from others, and nothing of the key."""
        return derive_key(self.key, stream_id=bytes(16), purpose="frames/identity", digest=bytes(32))

    @contextmanager
    def using(
        self,
        data: bytes,
        groups: Mapping[bytes, Integers],
        *,
        release: bytes,
        version: str,
        names: Mapping[bytes, str],
    ) -> Iterator[Callable[[Mapping[bytes, list[str]]], None]]:
        """Check that the data may be counted, and remember them when the ``with`` block ends well.

        Args:
            data: digest of what the data set is.
            groups: the inputs of each group, by its encoding.
            release: digest of the data set and of what was asked for: it must always come with one noise.
            version: of the data, for the message.
            names: of the groups, likewise.

        Yields:
            A function that takes the digests of the noise of each group, in the order of its steps; it must
            be called before the values are given away.

        Raises:
            ReplayError: other data were counted under this name, or with other noise; nothing is remembered.
            ArtifactFormatError, StateError, OSError: the file is damaged, in use, or cannot be written; or
                there is none, and this process is a fork of the one that has the memory.
        """
        if self._path is None and os.getpid() != self._process:
            raise StateError(
                "these keys belong to the process that this one was forked from, and each would count data "
                "that the other knows nothing of under the same noise: use state=, or make a private sum here"
            )
        with self._lock, self._held():
            known = dict(self._known.get(data.hex(), {}))
            for group, inputs in groups.items():
                rows, mac = known.get(group.hex(), (0, ""))
                if rows and (
                    len(inputs) < rows or not hmac.compare_digest(self._mac(group, inputs[:rows]), mac)
                ):
                    raise ReplayError(
                        f"version {version!r}: group {names[group]} was counted with other rows before, and "
                        "the same noise would show what changed: give changed data a new version and budget"
                    )
                if len(inputs) > rows:
                    known[group.hex()] = (len(inputs), self._mac(group, inputs))
            drawn = dict(self._noises.get(release.hex(), {}))

            def check(noises: Mapping[bytes, list[str]]) -> None:
                for group, digests in noises.items():
                    before = drawn.get(group.hex(), [])
                    if any(a != b for a, b in zip(before, digests, strict=False)):
                        raise ReplayError(
                            f"version {version!r}: group {names[group]} was released with other noise before "
                            "(by another version of trilift?), and to release it again would spend again: go "
                            "on with that, or give the data a new version and budget"
                        )
                    drawn[group.hex()] = max(before, digests, key=len)

            yield check
            everything = self._known | {data.hex(): known}
            noises = self._noises | {release.hex(): drawn}
            if (everything, noises) != (self._known, self._noises):
                if self._path is not None:
                    self._write(self._path, everything, noises)
                self._known, self._noises = everything, noises

    @contextmanager
    def _held(self) -> Iterator[None]:
        if self._path is None:
            yield
            return
        with exclusive(self._path):
            self._read(self._path, first=False)
            yield

    def _mac(self, group: bytes, inputs: Integers) -> str:
        key = derive_key(self.key, stream_id=bytes(16), purpose="frames/data", digest=bytes(32))
        text = DigestBuilder("trilift/frames/inputs/1").add("group", group).add("inputs", inputs).digest()
        return hmac.digest(key, text, "sha256").hex()

    def _write(self, path: Path, known: Known, noises: Noises) -> None:
        record: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "key": None if self._outside else bytes(self.key).hex(),
            "identity": self.identity.hex(),
            "data": {
                data: {group: list(entry) for group, entry in groups.items()}
                for data, groups in known.items()
            },
            "noise": noises,
        }
        write_record(path, record=record, max_bytes=_MAX_BYTES)

    def _read(self, path: Path, *, first: bool) -> None:
        what = "a file of keys of dataframes"
        record = headed_record(path, form=FORMAT, version=VERSION, what=what, max_bytes=_MAX_BYTES)
        try:
            check_checksum(record)
            identity = sha256_text(record["identity"])
            held = None if record["key"] is None else bytes.fromhex(sha256_text(record["key"]))
            known = {
                sha256_text(data): {_hex(group): _entry(entry) for group, entry in groups.items()}
                for data, groups in record["data"].items()
            }
            noises = {
                sha256_text(release): {_hex(group): _digests(digests) for group, digests in groups.items()}
                for release, groups in record["noise"].items()
            }
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ArtifactFormatError(f"{path}: damaged keys of frames") from None
        if first and not self._outside:
            if held is None:
                raise ParameterError(f"{path}: the key was kept apart: pass key=")
            self.key = Secret(held)
        if first and self._outside and held is not None:
            raise ParameterError(f"{path}: the key is in the file: pass no key=")
        if not hmac.compare_digest(self.identity.hex(), identity):
            raise ParameterError(f"{path}: the key is not that of this file")
        self._known, self._noises = known, noises


def _hex(text: Any) -> str:
    return bytes.fromhex(text).hex()


def _entry(entry: Any) -> tuple[int, str]:
    rows, mac = entry
    if whole(rows) < 1:
        raise ValueError
    return rows, sha256_text(mac)


def _digests(texts: Any) -> list[str]:
    if not isinstance(texts, list) or not texts:
        raise ValueError
    return [sha256_text(text) for text in texts]
