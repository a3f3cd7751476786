"""Artifacts for Gaussian noise: an exact stage with claims under the l2 norm; their files and catalogue.

They are kept apart from those for Laplace noise, so that planning never mixes the two: other functions read
them, and the shipped ones lie in a folder of their own with its own ``index.json``.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from trilift.artifacts.artifact import (
    L2_VERSION,
    OtherNormError,
    Provenance,
    check_about,
    header_of,
    stage_of,
    write_artifact,
)
from trilift.artifacts.canonical import digest
from trilift.artifacts.container import open_container
from trilift.artifacts.l2_certificate import L2Certificate
from trilift.artifacts.listing import SHIPPED, index_records, user_directory
from trilift.lift.checks import flag, show
from trilift.lift.errors import ArtifactFormatError, ParameterError
from trilift.lift.stage import Stage

__all__ = [
    "L2_SHIPPED",
    "L2Artifact",
    "L2Entry",
    "catalogue_l2",
    "find_l2",
    "l2_index_record",
    "load_l2",
    "load_stage_l2",
    "read_l2_header",
    "save_l2",
]

L2_SHIPPED = SHIPPED / "l2"


@dataclass(frozen=True, eq=False)
class L2Artifact:
    """An exact stage with its certificate under the l2 norm, and its provenance.

    Raises:
        ParameterError: the stage holds floats, or the certificate is about another size.
    """

    stage: Stage
    certificate: L2Certificate
    provenance: Provenance

    def __post_init__(self) -> None:
        check_about(self.stage, self.certificate.size)

    @property
    def name(self) -> str:
        """The name under which a catalogue would file it, such as "stage-l2-mean-129"."""
        return f"{self.certificate.kind}-l2-{self.certificate.objective}-{self.certificate.size}"


@dataclass(frozen=True)
class L2Entry:
    """One artifact of the catalogue.

    Attributes:
        name: what :func:`find_l2` takes.
        path: the file.
        source: "shipped" or "user".
        inner: r, the number of measurements per block.
        tail: number of leading zeros of w.
        certificate: the recorded claims; :func:`find_l2` compares their hash with the numbers.
    """

    name: str
    path: Path
    source: str
    inner: int
    tail: int
    certificate: L2Certificate


def save_l2(artifact: L2Artifact, path: str | os.PathLike[str]) -> None:
    """Write an artifact to ``path`` (.npz, version 2 of docs/format.md).

    Raises:
        ParameterError, OSError: as :func:`trilift.artifacts.save`.
    """
    write_artifact(path, artifact.stage, artifact.certificate, artifact.provenance, version=L2_VERSION)


def load_l2(path: str | os.PathLike[str], *, verify_hash: bool = True) -> L2Artifact:
    """Load an artifact for Gaussian noise; its hash is compared, its claims are taken over.

    Raises:
        ArtifactFormatError: as :func:`trilift.artifacts.load`; also for a file about the l1 norm.
    """
    wanted = flag("verify_hash", verify_hash)
    with open_container(path) as reader:
        header = header_of(reader, version=L2_VERSION)
        stage = stage_of(reader, header)
        certificate = _certificate(header)
        if wanted and digest(stage) != certificate.sha256:
            raise ArtifactFormatError("the numbers do not have the SHA-256 that the certificate is about")
        return L2Artifact(stage, certificate, Provenance.from_json(header["provenance"]))


def read_l2_header(path: str | os.PathLike[str]) -> tuple[dict[str, Any], L2Certificate]:
    """Return the header and the certificate of a file without reading its matrices.

    Raises:
        ArtifactFormatError: as :func:`load_l2`, as far as the header goes.
    """
    with open_container(path) as reader:
        header = header_of(reader, version=L2_VERSION)
        return header, _certificate(header)


def _certificate(header: dict[str, Any]) -> L2Certificate:
    certificate = L2Certificate.from_json(header["certificate"])
    if (certificate.size, certificate.kind) != (header["size"], header["kind"]):
        raise ArtifactFormatError("the certificate is about another size or kind than the header says")
    return certificate


def l2_index_record(path: Path) -> dict[str, Any]:
    """Return what ``index.json`` holds about one file, read from its header."""
    header, certificate = read_l2_header(path)
    return {
        "file": path.name,
        "inner": header["inner"],
        "tail": header["tail"],
        "certificate": certificate.to_json(),
    }


def _entry(record: dict[str, Any], directory: Path, source: str) -> L2Entry:
    path = directory / record["file"]
    certificate = L2Certificate.from_json(record["certificate"])
    return L2Entry(path.stem, path, source, record["inner"], record["tail"], certificate)


@cache
def _shipped() -> tuple[L2Entry, ...]:
    return tuple(_ordered([_entry(record, L2_SHIPPED, "shipped") for record in index_records(L2_SHIPPED)]))


def _ordered(entries: list[L2Entry]) -> list[L2Entry]:
    def key(entry: L2Entry) -> tuple[str, str, int, str]:
        claims = entry.certificate
        return claims.kind, claims.objective, claims.size, entry.name

    return sorted(entries, key=key)


def catalogue_l2() -> list[L2Entry]:
    """Return every artifact for Gaussian noise: the shipped ones, then those of the user's directory.

    Unreadable files are left out, with a warning by :func:`trilift.artifacts.catalogue`.

    >>> any(entry.name == "stage-l2-max-33" for entry in catalogue_l2())
    True
    """
    shipped = _shipped()
    taken = {entry.name for entry in shipped}
    directory, entries = user_directory(), []
    for path in sorted(directory.glob("*.npz")) if directory.is_dir() else ():
        try:
            entry = _entry(l2_index_record(path), directory, "user")
        except OtherNormError:
            continue
        except ArtifactFormatError as error:
            warnings.warn(f"left out of the catalogue: {error}", stacklevel=2)
            continue
        entries.append(replace(entry, name=f"user/{entry.name}") if entry.name in taken else entry)
    return [*shipped, *_ordered(entries)]


def find_l2(name: str) -> L2Artifact:
    """Load the artifact filed under ``name``, such as "stage-l2-mean-129"; or from a path ending in .npz.

    Raises:
        ParameterError: no artifact for Gaussian noise has that name.
        ArtifactFormatError: the file is damaged, or is not the one that the catalogue is about.
    """
    if not isinstance(name, str):
        raise ParameterError(f"name must be the name of an artifact or a path, got {show(name)}")
    if name.endswith(".npz"):
        return load_l2(name)
    entry = next((entry for entry in _shipped() if entry.name == name), None)
    if entry is None:
        entry = next((entry for entry in catalogue_l2() if entry.name == name), None)
    if entry is None:
        raise ParameterError(f"no artifact under norm l2 is named {name[:80]!r}; see catalogue_l2()")
    artifact = load_l2(entry.path)
    if artifact.certificate != entry.certificate:
        raise ArtifactFormatError(f"{entry.path}: not the file that the catalogue lists as {name}")
    return artifact


def load_stage_l2(name: str) -> Stage:
    """Return the exact stage of the artifact filed under ``name``: see :func:`find_l2`.

    >>> load_stage_l2("stage-l2-max-33").size
    33
    """
    return find_l2(name).stage
