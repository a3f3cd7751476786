"""What the folder of a durable counter says of itself, and which folder it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilift.counters.durable.lineage import Release
from trilift.counters.durable.places import place_of_path
from trilift.counters.state_file import boolean, check_checksum, checksum, headed_record, whole
from trilift.lift.errors import ArtifactFormatError, StateError

__all__ = ["Identity", "Place"]

FORMAT = "trilift durable counter"
VERSION = 1
_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Place:
    """Where an identity was written: numbers of folder and file that no copy shares, and the path."""

    folder: int
    file: int
    home: str

    def is_at(self, path: Path) -> bool:
        """Whether a folder is the very one in which the identity was written."""
        try:
            here = place_of_path(path), place_of_path(path / "identity")
        except OSError:
            return False
        return here == (self.folder, self.file)


@dataclass(frozen=True)
class Identity:
    """What a folder says of itself.

    Attributes:
        kind: class of its counter.
        outside: whether the key is kept elsewhere.
        key_check: what tells a wrong key.
        before: releases that the counter goes on from.
        forks: those that go on from it.
        adopted: (last step that was seen, step it stood at), for every time that the folder was adopted.
    """

    kind: str
    outside: bool
    key_check: str
    before: tuple[Release, ...] = ()
    forks: tuple[Release, ...] = ()
    adopted: tuple[tuple[int, int], ...] = ()

    def packed(self, place: Place) -> bytes:
        """Return the file's bytes."""
        record: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "outside": self.outside,
            "key_check": self.key_check,
            "before": [one.record() for one in self.before],
            "forks": [one.record() for one in self.forks],
            "adopted": [list(pair) for pair in self.adopted],
            "folder": place.folder,
            "file": place.file,
            "home": place.home,
        }
        record["checksum"] = checksum(record)
        return json.dumps(record).encode("ascii")

    @classmethod
    def read(cls, path: Path) -> tuple[Identity, Place]:
        """Read the identity of a folder, and where it was written.

        Raises:
            ArtifactFormatError: damaged, or of a newer version.
        """
        path = path / "identity"
        what = "the identity of a durable counter"
        record = headed_record(path, form=FORMAT, version=VERSION, what=what, max_bytes=_MAX_BYTES)
        try:
            check_checksum(record)
            adopted = tuple((whole(seen), whole(step)) for seen, step in record["adopted"])
            before, forks = (tuple(map(Release.read, record[name])) for name in ("before", "forks"))
            key_check, home = str(record["key_check"]), str(record["home"])
            identity = cls(record["kind"], boolean(record["outside"]), key_check, before, forks, adopted)
            return identity, Place(whole(record["folder"]), whole(record["file"]), home)
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            raise ArtifactFormatError(f"{path}: damaged") from None

    @classmethod
    def at(cls, path: Path) -> Identity:
        """Read the identity of a folder that is no copy.

        Raises:
            ArtifactFormatError: as :meth:`read`.
            StateError: the folder is a copy.
        """
        identity, place = cls.read(path)
        if not place.is_at(path):
            raise StateError(
                f"{path} is a copy of a counter's folder (or was moved to another disk): two continuations "
                "would release two streams with one noise; continue the original, or declare that it is gone "
                "with adopt=, or take a new key and a new budget with fork="
            )
        return identity

    @classmethod
    def left(cls, path: Path) -> Identity:
        """Read the identity of a folder whose original is gone, as far as can be seen from here.

        Raises:
            ArtifactFormatError: as :meth:`read`.
            StateError: it is no copy, or the original is still where it was.
        """
        identity, place = cls.read(path)
        if place.is_at(path):
            raise StateError(f"{path} is no copy: open it without adopt=")
        if place.is_at(Path(place.home)):
            raise StateError(f"the original of {path} is still at {place.home}: continue that one")
        return identity
