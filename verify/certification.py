"""Certification: prove what a certificate claims about an exact stage, or say what is false (new)."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import Any

from trilift.artifacts.artifact import Artifact, OtherNormError, load
from trilift.artifacts.canonical import digest
from trilift.artifacts.certificate import INTERIOR, KINDS, OBJECTIVES, RATIONALS, Certificate
from trilift.lift.checks import choice
from trilift.lift.errors import CertificateError, ParameterError
from trilift.lift.stage import Stage
from trilift.verify.enclosures import log2_enclosure
from trilift.verify.facts import INTERIOR_KAPPAS, KAPPAS, Facts, measure, prove_factorisation, show

__all__ = ["certify", "check_certificate", "prove_kind", "verification_report"]

_CHECK_BITS = 128  # finer than the enclosure that certify rounds with, so that it never refuses its own


def certify(stage: Stage, *, objective: str, kind: str | None = None) -> Certificate:
    """Prove that an exact stage is one, and return the exact claims about it.

    Args:
        stage: exact, of size m >= 2.
        objective: "max" or "mean": what the stage was made for (recorded, not proved).
        kind: "stage" or "direct"; None takes "direct" where w = 0 and g = 0.

    Returns:
        The certificate: exact norms, kappas rounded up by rational enclosures of log2, and the hash.

    Raises:
        ParameterError: the stage holds floats, has size 1, or kappas beyond the range of floats.
        CertificateError: T_m = A B + w (1 - v)^T, 0 <= w <= 1, 0 <= v <= 1, or w = 0 and g = 0 for
            "direct", is false; the message says where and by how much.

    >>> from trilift.lift import Dyadic, Stage
    >>> stage = Stage.plain(Dyadic([[1, 0], [1, 1]]), Dyadic([[1, 0], [0, 1]]))
    >>> certify(stage, objective="max").max_row_norm_sq
    Fraction(2, 1)
    """
    choice("objective", objective, OBJECTIVES)
    kind = choice("kind", ("direct" if stage.is_plain else "stage") if kind is None else kind, KINDS)
    if stage.size < 2:
        raise ParameterError("a certificate needs a size of at least 2: log2(1) = 0")
    prove_kind(stage, kind)
    facts = measure(stage, kind=kind)
    if math.inf in facts.kappas.values():
        raise ParameterError("the stage's kappa is beyond the range of floats")
    values: dict[str, Any] = {**facts.values, **facts.kappas}
    return Certificate(kind=kind, size=stage.size, objective=objective, sha256=digest(stage), **values)


def check_certificate(artifact: Artifact) -> None:
    """Prove every claim of an artifact's certificate from its numbers.

    Claims are upper bounds: a claim above the exact value is true.

    Raises:
        CertificateError: a claim is false; the message says which one and by how much.
    """
    stage, claims = artifact.stage, artifact.certificate
    actual = digest(stage)
    if actual != claims.sha256:
        raise CertificateError(f"sha256 = {claims.sha256} fails: the numbers have {actual}")
    if stage.size != claims.size:
        raise CertificateError(f"size = {claims.size} fails: it is {stage.size}")
    prove_kind(stage, claims.kind)
    facts = measure(stage, kind=claims.kind)
    for name in (*RATIONALS, *INTERIOR):
        exact, claimed = facts.values[name], getattr(claims, name)
        if exact is not None and (claimed is None or claimed < exact):
            raise CertificateError(_too_small(name, claimed, exact))
    for name in (*KAPPAS, *INTERIOR_KAPPAS):
        _check_kappa(name, getattr(claims, name), facts, stage.size)


def verification_report(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Check a file and return the record that ``trilift certify --json`` prints.

    Returns:
        The claims of the file's certificate, with "verified" in front; where that is False, "failure" says
        which claim is false.

    Raises:
        ArtifactFormatError: the file is not a readable artifact.
    """
    try:
        artifact = load(path, verify_hash=False)
    except OtherNormError:
        from trilift.verify.l2 import l2_verification_report

        return l2_verification_report(path)
    try:
        check_certificate(artifact)
    except CertificateError as error:
        return {"verified": False, **artifact.certificate.to_json(), "failure": str(error)}
    return {"verified": True, **artifact.certificate.to_json()}


def prove_kind(stage: Stage, kind: str) -> None:
    """Prove that an exact stage holds, and that it is a plain factorisation where the kind says so.

    Raises:
        CertificateError: it is not so; the message says where and by how much.
    """
    prove_factorisation(stage)
    if kind == "direct" and not stage.is_plain:
        raise CertificateError('kind = "direct" fails: w or g is not zero')


def _too_small(name: str, claimed: Fraction | None, exact: Fraction) -> str:
    if claimed is None:
        return f"{name} is not claimed; it is {show(exact)}"
    return f"{name} <= {show(claimed)} fails: it is {show(exact)}, above by {show(exact - claimed)}"


def _check_kappa(name: str, claimed: float | None, facts: Facts, size: int) -> None:
    b_name, q_name = {**KAPPAS, **INTERIOR_KAPPAS}[name]
    b, q = facts.values[b_name], facts.values[q_name]
    if b is None or q is None:
        return
    low, _ = log2_enclosure(size, bits=_CHECK_BITS)
    exact = 2 * q * b**2 / low**3
    if claimed is None or Fraction(claimed) < exact:
        raise CertificateError(_too_small(name, None if claimed is None else Fraction(claimed), exact))
