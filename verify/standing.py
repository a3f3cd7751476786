"""Which artifacts' claims stand: shipped ones are proved beforehand, all others are proved here (new)."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from trilift.artifacts.artifact import load, read_header
from trilift.artifacts.certificate import Certificate
from trilift.artifacts.listing import shipped_entry
from trilift.lift.errors import ArtifactFormatError, CertificateError

__all__ = ["refutation", "require_proof"]


def refutation(path: str | os.PathLike[str]) -> str | None:
    """Return why the claims of an artifact file do not stand, or None where every claim is proved.

    A shipped file whose header is the one of the index stands without a proof here: the tests prove each, and
    :func:`trilift.artifacts.find` compares its numbers with the hash. Any other file is proved, once a
    process as long as it does not change.

    Raises:
        ArtifactFormatError: the header cannot be read.

    >>> from trilift.artifacts import catalogue
    >>> refutation(catalogue()[0].path) is None
    True
    """
    place = Path(path).resolve()
    _, claims = read_header(place)
    entry = shipped_entry(place)
    if entry is not None and entry.certificate == claims:
        return None
    status = place.stat()
    return _refutation(place, status.st_mtime_ns, status.st_size, claims)


def require_proof(path: str | os.PathLike[str]) -> None:
    """Refuse an artifact file whose claims do not all stand: see :func:`refutation`.

    Raises:
        CertificateError: a claim is false.
        ArtifactFormatError: the header or the numbers cannot be read.
    """
    failure = refutation(path)
    if failure is not None:
        load(path, verify_hash=False)
        raise CertificateError(f"{os.fspath(path)}: not verified: {failure}")


@lru_cache(maxsize=1024)
def _refutation(path: Path, _mtime: int, _size: int, claims: Certificate) -> str | None:
    """Prove a file; the other arguments tell its versions apart."""
    from trilift.verify.certification import check_certificate  # sympy: only where something is to be proved

    try:
        artifact = load(path, verify_hash=False)
        if artifact.certificate != claims:
            return "the file has just changed"
        check_certificate(artifact)
    except (ArtifactFormatError, CertificateError) as error:
        return str(error)
    return None
