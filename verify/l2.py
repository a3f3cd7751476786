"""Certification under the l2 norm: what Gaussian noise needs to know of an exact stage (new).

Column norms are carried as squares, which are rational. gamma = sqrt(q b^2) is a float that is proved by
comparing its square.
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

from trilift.artifacts.canonical import digest
from trilift.artifacts.certificate import KINDS, OBJECTIVES
from trilift.artifacts.l2_artifact import L2Artifact, load_l2
from trilift.artifacts.l2_certificate import (
    L2_GAMMAS,
    L2_INTERIOR_GAMMAS,
    L2_INTERIOR_RATIONALS,
    L2_RATIONALS,
    L2Certificate,
)
from trilift.lift.checks import choice, rational
from trilift.lift.errors import CertificateError, ParameterError
from trilift.lift.interior import interior_sensitivity_sq, neighbour_products
from trilift.lift.stage import Stage
from trilift.verify.certification import prove_kind
from trilift.verify.enclosures import float_up, sqrt_up
from trilift.verify.facts import interior_rows, show

__all__ = ["certify_l2", "check_l2_certificate", "gamma_up", "l2_verification_report"]

_ROOT_BITS = 128


def gamma_up(row_norm_sq: Fraction, *, sensitivity_sq: Fraction) -> float:
    """Return a float >= sqrt(q b^2).

    >>> gamma_up(Fraction(9), sensitivity_sq=Fraction(1, 4))
    1.5
    """
    q = rational("row_norm_sq", row_norm_sq, minimum=0)
    return float_up(sqrt_up(q * rational("sensitivity_sq", sensitivity_sq, minimum=0), bits=_ROOT_BITS))


def certify_l2(stage: Stage, *, objective: str, kind: str | None = None) -> L2Certificate:
    """Prove that an exact stage is one, and return the exact claims about it under the l2 norm.

    Args:
        stage: exact, of size m >= 2.
        objective: "max" or "mean": what the stage was made for (recorded, not proved).
        kind: "stage" or "direct"; None takes "direct" where w = 0 and g = 0.

    Raises:
        ParameterError, CertificateError: as :func:`trilift.verify.certify`.

    >>> from trilift.lift import Dyadic
    >>> stage = Stage.plain(Dyadic([[1, 0], [1, 1]]), Dyadic([[1, 0], [0, 1]]))
    >>> certify_l2(stage, objective="max").gamma_max ** 2 >= 2
    True
    """
    choice("objective", objective, OBJECTIVES)
    kind = choice("kind", ("direct" if stage.is_plain else "stage") if kind is None else kind, KINDS)
    if stage.size < 2:
        raise ParameterError("a certificate needs a size of at least 2")
    prove_kind(stage, kind)
    facts = _measure(stage, kind)
    gammas: dict[str, float | None] = {}
    for name, (b_name, q_name) in {**L2_GAMMAS, **L2_INTERIOR_GAMMAS}.items():
        b_sq, q = facts[b_name], facts[q_name]
        gammas[name] = None if b_sq is None or q is None else gamma_up(q, sensitivity_sq=b_sq)
        if gammas[name] == float("inf"):
            raise ParameterError("the stage's gamma is beyond the range of floats")
    values: dict[str, Any] = {**facts, **gammas}
    return L2Certificate(kind=kind, size=stage.size, objective=objective, sha256=digest(stage), **values)


def _measure(stage: Stage, kind: str) -> dict[str, Fraction | None]:
    """Return the exact norms by name; the interior ones are None for a plain factorisation."""
    q, products = neighbour_products(stage)
    values: dict[str, Fraction | None] = {
        "sensitivity_sq": Fraction(stage.sensitivity_sq()),
        "max_row_norm_sq": q.max(),
        "mean_row_norm_sq": q.sum().fraction() / stage.size,
    }
    if kind == "direct":
        return {**values, **dict.fromkeys(L2_INTERIOR_RATIONALS)}
    largest, mean = interior_rows(stage, q, products)
    interior = (Fraction(interior_sensitivity_sq(stage)), largest, mean)
    return {**values, **dict(zip(L2_INTERIOR_RATIONALS, interior, strict=True))}


def check_l2_certificate(artifact: L2Artifact) -> None:
    """Prove every claim of an artifact's certificate from its numbers.

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
    facts = _measure(stage, claims.kind)
    for name in (*L2_RATIONALS, *L2_INTERIOR_RATIONALS):
        exact, claimed = facts[name], getattr(claims, name)
        if exact is None:
            continue
        if claimed is None:
            raise CertificateError(f"{name} is not claimed; it is {show(exact)}")
        if claimed < exact:
            raise CertificateError(
                f"{name} <= {show(claimed)} fails: it is {show(exact)}, above by {show(exact - claimed)}"
            )
    for name, (b_name, q_name) in {**L2_GAMMAS, **L2_INTERIOR_GAMMAS}.items():
        b_sq, q, gamma = facts[b_name], facts[q_name], getattr(claims, name)
        if b_sq is None or q is None:
            continue
        if gamma is None or Fraction(gamma) ** 2 < q * b_sq:
            raise CertificateError(f"{name} <= {gamma} fails: its square is {show(q * b_sq)}")


def l2_verification_report(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Check a file about the l2 norm and return its claims, with "verified" in front.

    Where "verified" is False, "failure" says which claim is false.

    Raises:
        ArtifactFormatError: the file is not a readable artifact about the l2 norm.
    """
    artifact = load_l2(path, verify_hash=False)
    try:
        check_l2_certificate(artifact)
    except CertificateError as error:
        return {"verified": False, **artifact.certificate.to_json(), "failure": str(error)}
    return {"verified": True, **artifact.certificate.to_json()}
