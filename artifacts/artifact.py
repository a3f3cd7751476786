"""The artifact: an exact stage, its certificate and how it was found; saved to and loaded from one file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np
from trilift.artifacts.canonical import ARRAYS, canonical_parts, digest, from_limbs, limbs_needed
from trilift.artifacts.certificate import Certificate
from trilift.artifacts.container import Array, Reader, open_container, write_container
from trilift.lift.checks import flag, show
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ArtifactFormatError, ParameterError
from trilift.lift.stage import Stage
from trilift.lift.strict_json import parse_json

__all__ = [
    "FORMAT",
    "L2_VERSION",
    "VERSION",
    "Artifact",
    "OtherNormError",
    "Provenance",
    "load",
    "read_header",
    "save",
]

FORMAT = "trilift-artifact"
VERSION = 1
"""Of files about the l1 norm (Laplace noise)."""
L2_VERSION = 2
"""Of files about the l2 norm (Gaussian noise): the same container with another certificate."""

MAX_SIZE = 4096
MAX_LIMBS = 16
MAX_EXPONENT = 1023
_MAX_TEXT = 10_000


def _max_inner(size: int) -> int:
    """Enough for a search with r up to 2m and the rows that completion adds."""
    return 4 * size + 16


class OtherNormError(ArtifactFormatError):
    """A sound header, but of a file about the other norm of columns."""


@dataclass(frozen=True)
class Provenance:
    """How the numbers were found; nothing here is a claim.

    Attributes:
        objective: "max" or "mean".
        size: m.
        seed: seed of the search, or None where there was none.
        steps: number of optimisation steps, or None.
        versions: versions of the programs that took part, by name.
        date: day of the search, ISO 8601.
        method: one line: which search, or which construction.
        notes: free text.
    """

    objective: str
    size: int
    seed: int | None = None
    steps: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    date: str = ""
    method: str = ""
    notes: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        record = {item.name: getattr(self, item.name) for item in fields(self)}
        return {**record, "versions": dict(self.versions)}

    @classmethod
    def from_json(cls, record: Any) -> Provenance:
        """Read what :meth:`to_json` wrote.

        Raises:
            ArtifactFormatError: a field is missing, unknown or of another type.
        """
        names = [item.name for item in fields(cls)]
        if not isinstance(record, Mapping) or set(record) != set(names):
            raise ArtifactFormatError("the provenance must be an object with the fields " + ", ".join(names))
        versions = record["versions"]
        fits = (
            all(isinstance(record[name], str) for name in ("objective", "date", "method", "notes"))
            and type(record["size"]) is int
            and all(record[name] is None or type(record[name]) is int for name in ("seed", "steps"))
            and isinstance(versions, Mapping)
            and all(isinstance(value, str) for value in versions.values())
        )
        if not fits or sum(len(str(value)) for value in record.values()) > _MAX_TEXT:
            raise ArtifactFormatError("the provenance has a field of the wrong type, or is too long")
        return cls(**record)


def check_about(stage: Stage, size: int) -> None:
    """Check that a stage is exact and of the size that its certificate is about.

    Raises:
        ParameterError: it is not.
    """
    if not stage.is_exact:
        raise ParameterError("an artifact needs an exact stage: complete it first")
    if stage.size != size:
        raise ParameterError(f"the certificate is about size {size}, the stage has size {stage.size}")


@dataclass(frozen=True, eq=False)
class Artifact:
    """An exact stage with its certificate and provenance.

    Raises:
        ParameterError: the stage holds floats, or the certificate is about other numbers.
    """

    stage: Stage
    certificate: Certificate
    provenance: Provenance

    def __post_init__(self) -> None:
        check_about(self.stage, self.certificate.size)

    @property
    def kind(self) -> str:
        """The certificate's kind: "stage" or "direct"."""
        return self.certificate.kind

    @property
    def name(self) -> str:
        """The name under which a catalogue would file it, such as "stage-mean-129"."""
        return f"{self.certificate.kind}-{self.certificate.objective}-{self.certificate.size}"


def save(artifact: Artifact, path: str | os.PathLike[str]) -> None:
    """Write an artifact to ``path`` (.npz, new: docs/format.md); the same artifact gives the same bytes.

    Raises:
        ParameterError: the certificate's hash is not that of the stage, or a limit of the format is exceeded.
        OSError: the file cannot be written.

    >>> import tempfile
    >>> from trilift.artifacts import find
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(find("direct-max-4"), f"{folder}/mine.npz")
    ...     load(f"{folder}/mine.npz").name
    'direct-max-4'
    """
    write_artifact(path, artifact.stage, artifact.certificate, artifact.provenance, version=VERSION)


class Claims(Protocol):
    """What writing a file needs of a certificate."""

    @property
    def kind(self) -> str:
        """The kind: "stage" or "direct"."""

    @property
    def sha256(self) -> str:
        """The hash of the numbers."""

    def to_json(self) -> dict[str, Any]:
        """Return the claims as JSON values."""


def write_artifact(
    path: str | os.PathLike[str], stage: Stage, claims: Claims, provenance: Provenance, *, version: int
) -> None:
    """Write a file of either version: see :func:`save`."""
    actual = digest(stage)
    if claims.sha256 != actual:
        raise ParameterError(f"the certificate is about numbers with another hash than the stage's {actual}")
    parts = canonical_parts(stage)
    limbs = max(limbs_needed(numbers.num) for _, numbers, _ in parts)
    exponent = max(numbers.exp for _, numbers, _ in parts)
    if stage.size > MAX_SIZE or stage.inner > _max_inner(stage.size):
        raise ParameterError(
            f"a stage of size {stage.size} and inner dimension {stage.inner} is too large to save"
        )
    if limbs > MAX_LIMBS or exponent > MAX_EXPONENT:
        raise ParameterError(
            f"numbers of {64 * limbs} bits with {exponent} binary places are too fine to save"
        )
    header = {
        "format": FORMAT,
        "version": version,
        "kind": claims.kind,
        "size": stage.size,
        "inner": stage.inner,
        "tail": stage.tail,
        "exponents": {name: numbers.exp for name, numbers, _ in parts},
        "certificate": claims.to_json(),
        "provenance": provenance.to_json(),
    }
    text = json.dumps(header, indent=1, ensure_ascii=True, allow_nan=False).encode("ascii")
    members: dict[str, Array] = {"header": np.frombuffer(text, dtype=np.uint8)}
    members.update({name: words for name, _, words in parts})
    write_container(path, members)


def load(path: str | os.PathLike[str], *, verify_hash: bool = True) -> Artifact:
    """Load an artifact from ``path``; the certificate's hash is compared with the numbers.

    What the certificate claims is taken over, not proved again: that is :func:`trilift.verify.certify`'s.

    Args:
        path: the file.
        verify_hash: False leaves the comparison to the caller (who wants to report it, not to fail).

    Raises:
        ArtifactFormatError: the file is not in the documented format, of a newer version, damaged or
            beyond the limits, or its certificate is about other numbers.

    >>> from trilift.artifacts import catalogue
    >>> load(catalogue()[0].path).kind
    'direct'
    """
    wanted = flag("verify_hash", verify_hash)
    with open_container(path) as reader:
        header = header_of(reader, version=VERSION)
        stage = stage_of(reader, header)
        certificate = _certificate(header)
        if wanted and digest(stage) != certificate.sha256:
            raise ArtifactFormatError("the numbers do not have the SHA-256 that the certificate is about")
        return Artifact(stage, certificate, Provenance.from_json(header["provenance"]))


def read_header(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Certificate]:
    """Return the header and the certificate of a file without reading its matrices.

    Raises:
        ArtifactFormatError: as :func:`load`, as far as the header goes.
    """
    with open_container(path) as reader:
        header = header_of(reader, version=VERSION)
        return header, _certificate(header)


def header_of(reader: Reader, *, version: int) -> dict[str, Any]:
    """Return the checked header of a file that must be of this version.

    Raises:
        OtherNormError: it is of the other version.
        ArtifactFormatError: as :func:`load`.
    """
    with reader.member("header") as member:
        if member.dtype != np.uint8 or len(member.shape) != 1:
            raise ArtifactFormatError("the header must be a vector of bytes")
        raw = member.read().tobytes()
    try:
        header = parse_json(raw)
    except ValueError:
        raise ArtifactFormatError("the header is not JSON") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ArtifactFormatError(f"the header does not say that this is a {FORMAT}")
    found = header.get("version")
    if type(found) is not int or found < 1:
        raise ArtifactFormatError("the header has no format version")
    if found > L2_VERSION:
        raise ArtifactFormatError(
            f"format version {show(found)} is newer than {L2_VERSION}, the newest read here: upgrade trilift"
        )
    _check_fields(header)
    if found != version:
        norms = {VERSION: "l1 (Laplace noise)", L2_VERSION: "l2 (Gaussian noise)"}
        raise OtherNormError(f"the artifact is about norm {norms[found]}, not {norms[version]}")
    return header


def _check_fields(header: dict[str, Any]) -> None:
    wanted = {"format", "version", "kind", "size", "inner", "tail", "exponents", "certificate", "provenance"}
    if set(header) != wanted:
        raise ArtifactFormatError(f"the header's fields must be {', '.join(sorted(wanted))}")
    for name, low, high in (("size", 2, MAX_SIZE), ("inner", 1, MAX_SIZE * 5), ("tail", 0, MAX_SIZE)):
        if type(header[name]) is not int or not low <= header[name] <= high:
            raise ArtifactFormatError(f"the header's {name} must be an integer from {low} to {high}")
    if header["inner"] > _max_inner(header["size"]):
        raise ArtifactFormatError(
            f"inner must be at most {_max_inner(header['size'])} for size {header['size']}"
        )
    exponents = header["exponents"]
    if not isinstance(exponents, dict) or set(exponents) != set(ARRAYS):
        raise ArtifactFormatError("the header's exponents must be given for A, B, w and g")
    if not all(type(value) is int and 0 <= value <= MAX_EXPONENT for value in exponents.values()):
        raise ArtifactFormatError(f"exponents must be integers from 0 to {MAX_EXPONENT}")


def _certificate(header: dict[str, Any]) -> Certificate:
    certificate = Certificate.from_json(header["certificate"])
    if (certificate.size, certificate.kind) != (header["size"], header["kind"]):
        raise ArtifactFormatError("the certificate is about another size or kind than the header says")
    return certificate


def stage_of(reader: Reader, header: dict[str, Any]) -> Stage:
    """Return the exact stage of a file with this header."""
    m, r = header["size"], header["inner"]
    shapes = {"A": (m, r), "B": (r, m), "w": (m,), "g": (r,)}
    parts = []
    for name, shape in shapes.items():
        with reader.member(name) as member:
            wider = member.shape[:-1] == shape and 2 <= member.shape[-1] <= MAX_LIMBS
            if member.dtype != np.int64 or (member.shape != shape and not wider):
                raise ArtifactFormatError(
                    f"{name} must be int64 of shape {shape}, got {member.dtype} {member.shape}"
                )
            words = member.read()
        parts.append(_numbers(name, words, len(shape), header["exponents"][name]))
    stage = Stage(*parts)
    if header["kind"] == "direct" and not stage.is_plain:
        raise ArtifactFormatError("the kind is direct, but w or g is not zero")
    if stage.tail != header["tail"]:
        raise ArtifactFormatError(
            f"the header's tail is {header['tail']}, but w has {stage.tail} leading zeros"
        )
    return stage


def _numbers(name: str, words: Array, ndim: int, exponent: int) -> Dyadic:
    """Build the numbers, insisting on the canonical form: least words, least exponent."""
    num = from_limbs(words, ndim)
    least = words.shape[-1] if words.ndim > ndim else 1
    if limbs_needed(num) != least or (exponent > 0 and not np.any(num & 1)):
        raise ArtifactFormatError(f"{name} is not in canonical form (least exponent, least number of words)")
    return Dyadic(num, exponent)
