"""The catalogue: the shipped artifacts and the user's own, listed without reading a matrix.

Shipped files are summed up in ``index.json`` beside them. The user's files are the ``*.npz`` of the directory
named by the environment variable TRILIFT_ARTIFACTS, or else of the platform's directory for user data; they
are filed under their stem. A shipped name cannot be taken over: a user's file with the same stem is filed as
``user/<stem>``.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from trilift.artifacts.artifact import Artifact, OtherNormError, load, read_header
from trilift.artifacts.certificate import Certificate
from trilift.lift.checks import show
from trilift.lift.errors import ArtifactFormatError, ParameterError
from trilift.lift.files import read_regular
from trilift.lift.stage import Stage
from trilift.lift.strict_json import parse_json

__all__ = ["Entry", "catalogue", "find", "index_record", "load_stage", "shipped_entry", "user_directory"]

SHIPPED = Path(__file__).resolve().parent
INDEX = "index.json"
_MAX_INDEX = 16 << 20


@dataclass(frozen=True)
class Entry:
    """One artifact of the catalogue, with what planning needs of its certificate.

    Attributes:
        name: what :func:`find` takes.
        path: the file.
        source: "shipped" or "user".
        inner: r, the number of measurements per block.
        tail: number of leading zeros of w (steps that may follow the last whole block).
        certificate: the recorded claims; :func:`find` compares their hash with the numbers.
    """

    name: str
    path: Path
    source: str
    inner: int
    tail: int
    certificate: Certificate

    @property
    def kind(self) -> str:
        """The kind: "stage" or "direct"."""
        return self.certificate.kind

    @property
    def size(self) -> int:
        """Number of steps m in a block."""
        return self.certificate.size

    @property
    def objective(self) -> str:
        """What it was searched for: "max" or "mean"."""
        return self.certificate.objective

    @property
    def sha256(self) -> str:
        """Hash of the numbers that the certificate is about."""
        return self.certificate.sha256

    @property
    def sensitivity(self) -> float:
        """The largest l1 norm b of a column."""
        return float(self.certificate.sensitivity)

    @property
    def max_row_norm_sq(self) -> float:
        """The largest squared row norm q."""
        return float(self.certificate.max_row_norm_sq)

    @property
    def mean_row_norm_sq(self) -> float:
        """The mean squared row norm q."""
        return float(self.certificate.mean_row_norm_sq)

    @property
    def interior_sensitivity(self) -> float:
        """The b-bar of a level with the same stage beneath it (for "direct": b)."""
        return _interior(self.certificate.interior_sensitivity, self.sensitivity)

    @property
    def interior_max_row_norm_sq(self) -> float:
        """The largest q-bar of a level with the same stage beneath it (for "direct": the largest q)."""
        return _interior(self.certificate.interior_max_row_norm_sq, self.max_row_norm_sq)

    @property
    def interior_mean_row_norm_sq(self) -> float:
        """The mean q-bar of a level with the same stage beneath it (for "direct": the mean q)."""
        return _interior(self.certificate.interior_mean_row_norm_sq, self.mean_row_norm_sq)

    def to_json(self, *, certified: bool) -> dict[str, Any]:
        """Return the entry as ``trilift artifacts --json`` prints it.

        Args:
            certified: whether the claims are proved (:func:`trilift.verify.refutation`); where they are not,
                the kappas are null.
        """
        summary = self.certificate.summary()
        if not certified:
            summary = {name: None if "kappa" in name else value for name, value in summary.items()}
        return {"name": self.name, **summary, "certified": certified}


def _interior(value: Fraction | None, otherwise: float) -> float:
    return otherwise if value is None else float(value)


def user_directory() -> Path:
    """Return the directory of the user's own artifacts (it need not exist)."""
    named = os.environ.get("TRILIFT_ARTIFACTS")
    if named:
        return Path(named)
    from platformdirs import user_data_path

    return user_data_path("trilift", appauthor=False) / "artifacts"


def catalogue() -> list[Entry]:
    """Return every artifact: the shipped ones first, then the user's, each by kind, objective and size.

    Unreadable files in the user's directory are left out with a warning. New (docs/format.md).

    >>> any(entry.name == "stage-mean-9" for entry in catalogue())
    True
    """
    shipped = _shipped()
    taken = {entry.name for entry in shipped}
    return [*shipped, *_ordered(_users(taken))]


def shipped_entry(path: str | os.PathLike[str]) -> Entry | None:
    """Return the shipped entry whose file lies at ``path``, or None for any other file.

    >>> shipped_entry("mine.npz") is None
    True
    """
    place = Path(path).resolve()
    return next((entry for entry in _shipped() if entry.path.resolve() == place), None)


def find(name: str) -> Artifact:
    """Load the artifact filed under ``name``, such as "stage-mean-129"; or from a path ending in .npz.

    Raises:
        ParameterError: no artifact has that name.
        ArtifactFormatError: the file is damaged, or is not the one that the catalogue is about.

    >>> find("direct-max-4").certificate.size
    4
    """
    if not isinstance(name, str):
        raise ParameterError(
            f"name must be the name of an artifact or the path of an .npz file, got {show(name)}"
        )
    if name.endswith(".npz"):
        return load(name)
    shipped = _shipped()
    entry = next((entry for entry in shipped if entry.name == name), None)
    if entry is None:
        users = _users({other.name for other in shipped})
        entry = next((entry for entry in users if entry.name == name), None)
    if entry is None:
        raise ParameterError(f"no artifact is named {name[:80]!r}; trilift.artifacts.catalogue() lists them")
    artifact = load(entry.path)
    if artifact.certificate != entry.certificate:
        raise ArtifactFormatError(f"{entry.path}: not the file that the catalogue lists as {name}")
    return artifact


def load_stage(name: str) -> Stage:
    """Return the exact stage of the artifact filed under ``name``: see :func:`find`.

    Raises:
        ParameterError, ArtifactFormatError: as :func:`find`.

    >>> load_stage("stage-mean-9").size
    9
    """
    return find(name).stage


def index_record(path: Path) -> dict[str, Any]:
    """Return what ``index.json`` holds about one file, read from its header.

    Raises:
        ArtifactFormatError: as :func:`trilift.artifacts.load`, as far as the header goes.
    """
    header, certificate = read_header(path)
    return {
        "file": path.name,
        "inner": header["inner"],
        "tail": header["tail"],
        "certificate": certificate.to_json(),
    }


def index_records(directory: Path) -> list[dict[str, Any]]:
    """Return what the ``index.json`` of a folder holds, empty where there is none; claims are not read yet.

    Raises:
        ArtifactFormatError: it is damaged, or no index.
    """
    path = directory / INDEX
    try:
        data = read_regular(path, max_bytes=_MAX_INDEX)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ArtifactFormatError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        records = [] if data is None else parse_json(data)
    except ValueError:
        records = None
    if data is None or not isinstance(records, list) or not all(map(_is_record, records)):
        raise ArtifactFormatError(f"{path}: damaged, or not an index of artifacts")
    return records


def _is_record(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and set(record) == {"file", "inner", "tail", "certificate"}
        and isinstance(record["file"], str)
        and record["file"] not in ("", ".", "..")
        and not set("/\\\0") & set(record["file"])
        and all(type(record[name]) is int and record[name] >= 0 for name in ("inner", "tail"))
    )


def _entry(record: dict[str, Any], directory: Path, source: str) -> Entry:
    path = directory / record["file"]
    certificate = Certificate.from_json(record["certificate"])
    return Entry(path.stem, path, source, record["inner"], record["tail"], certificate)


@cache
def _shipped() -> tuple[Entry, ...]:
    records = index_records(SHIPPED)
    return tuple(_ordered(_entry(record, SHIPPED, "shipped") for record in records))


def _ordered(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: (entry.kind, entry.objective, entry.size, entry.name))


def _users(taken: set[str]) -> list[Entry]:
    directory = user_directory()
    entries = []
    for path in sorted(directory.glob("*.npz")) if directory.is_dir() else ():
        try:
            record = index_record(path)
        except OtherNormError:
            continue  # listed by trilift.artifacts.catalogue_l2
        except ArtifactFormatError as error:
            warnings.warn(f"left out of the catalogue: {error}", stacklevel=3)
            continue
        entry = _entry(record, directory, "user")
        if entry.name in taken:
            entry = replace(entry, name=f"user/{entry.name}")
        entries.append(entry)
    return entries
