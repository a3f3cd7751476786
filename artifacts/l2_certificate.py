"""The certificate of an artifact for Gaussian noise: claims under the l2 norm of columns (docs/format.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from trilift.artifacts.certificate import (
    KINDS,
    OBJECTIVES,
    float_claim,
    fraction_claim,
    hash_claim,
    one_of,
    rational_text,
    size_claim,
)
from trilift.lift.errors import ArtifactFormatError

__all__ = ["L2_GAMMAS", "L2_INTERIOR_GAMMAS", "L2_INTERIOR_RATIONALS", "L2_RATIONALS", "L2Certificate"]

L2_RATIONALS = ("sensitivity_sq", "max_row_norm_sq", "mean_row_norm_sq")
L2_INTERIOR_RATIONALS = tuple(f"interior_{name}" for name in L2_RATIONALS)
L2_GAMMAS = {"gamma_max": L2_RATIONALS[:2], "gamma_mean": (L2_RATIONALS[0], L2_RATIONALS[2])}
"""Every gamma with the names of b^2 and q, of whose product it is the root."""
L2_INTERIOR_GAMMAS = {
    f"interior_{name}": (f"interior_{b}", f"interior_{q}") for name, (b, q) in L2_GAMMAS.items()
}


@dataclass(frozen=True)
class L2Certificate:
    """Claims about an exact stage with T_m = A B + w (1 - v)^T; every number is an upper bound.

    Attributes:
        kind: "stage", or "direct" for a plain factorisation of T_m (w = 0 and g = 0).
        size: m.
        objective: "max" or "mean": what the stage was searched for (not a claim).
        sensitivity_sq: b^2, the largest squared l2 norm of a column of B.
        max_row_norm_sq: the largest q_i = |A_i|^2 + (1 - w_i)^2 |g|^2.
        mean_row_norm_sq: the mean of the q_i.
        gamma_max: float not below sqrt(max(q)) b: what the stage adds to a chain's standard deviation.
        gamma_mean: float not below sqrt(mean(q)) b.
        interior_gamma_max: the same with b-bar and q-bar, of the stage above itself (stages only, else None).
        interior_gamma_mean: likewise.
        sha256: hash of the canonical bytes of the stage (docs/format.md).
        interior_sensitivity_sq: the square of b-bar (stages only, else None).
        interior_max_row_norm_sq: the largest q-bar, likewise.
        interior_mean_row_norm_sq: the mean q-bar, likewise.
    """

    kind: str
    size: int
    objective: str
    sensitivity_sq: Fraction
    max_row_norm_sq: Fraction
    mean_row_norm_sq: Fraction
    gamma_max: float
    gamma_mean: float
    interior_gamma_max: float | None
    interior_gamma_mean: float | None
    sha256: str
    interior_sensitivity_sq: Fraction | None = None
    interior_max_row_norm_sq: Fraction | None = None
    interior_mean_row_norm_sq: Fraction | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the claims as JSON values: the norm, rationals as "p/q" strings, gammas as floats."""
        values = {field.name: rational_text(getattr(self, field.name)) for field in fields(self)}
        return {"norm": "l2", **values}

    def summary(self) -> dict[str, Any]:
        """Return what listings print of the claims, as JSON values: what it is about, gammas, the hash."""
        names = ("kind", "size", "objective", *L2_GAMMAS, *L2_INTERIOR_GAMMAS, "sha256")
        return {"norm": "l2", **{name: getattr(self, name) for name in names}}

    @classmethod
    def from_json(cls, record: Any) -> L2Certificate:
        """Read what :meth:`to_json` wrote; the claims are taken as they are, not proved.

        Raises:
            ArtifactFormatError: a field is missing, unknown, of another type or out of range.
        """
        if not isinstance(record, Mapping):
            raise ArtifactFormatError("the certificate must be a JSON object")
        wanted = {"norm", *(field.name for field in fields(cls))}
        if set(record) != wanted:
            odd = sorted(set(record) ^ wanted)
            raise ArtifactFormatError(
                f"the certificate's fields do not fit: {', '.join(map(repr, odd))}"[:200]
            )
        one_of("norm", record["norm"], ("l2",))
        kind = one_of("kind", record["kind"], KINDS)
        values: dict[str, Any] = {
            "kind": kind,
            "size": size_claim(record["size"]),
            "objective": one_of("objective", record["objective"], OBJECTIVES),
            "sha256": hash_claim(record["sha256"]),
        }
        values |= {name: fraction_claim(name, record[name]) for name in L2_RATIONALS}
        values |= {name: float_claim(name, record[name]) for name in L2_GAMMAS}
        for names, read in ((L2_INTERIOR_RATIONALS, fraction_claim), (L2_INTERIOR_GAMMAS, float_claim)):
            for name in names:
                if (record[name] is None) != (kind == "direct"):
                    raise ArtifactFormatError(
                        f"certificate: {name} must be given for a stage and only for one"
                    )
                values[name] = None if kind == "direct" else read(name, record[name])
        return cls(**values)
