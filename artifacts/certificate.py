"""The certificate: what has been proved about a stage, bound by hash to the numbers it is about."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from trilift.lift.checks import show
from trilift.lift.errors import ArtifactFormatError

__all__ = [
    "INTERIOR",
    "KINDS",
    "OBJECTIVES",
    "RATIONALS",
    "Certificate",
    "float_claim",
    "fraction_claim",
    "hash_claim",
    "one_of",
    "rational_text",
    "size_claim",
]

KINDS = ("stage", "direct")
OBJECTIVES = ("max", "mean")
RATIONALS = ("sensitivity", "max_row_norm_sq", "mean_row_norm_sq")
INTERIOR = ("interior_sensitivity", "interior_max_row_norm_sq", "interior_mean_row_norm_sq")
_KAPPAS = ("kappa_max", "kappa_mean")
_INTERIOR_KAPPAS = ("interior_kappa_max", "interior_kappa_mean")

_RATIONAL = re.compile(r"(0|[1-9][0-9]{0,4000})/([1-9][0-9]{0,4000})")
_LARGEST = sys.float_info.max  # a larger integer has no float
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Certificate:
    """Claims about an exact stage with T_m = A B + w (1 - v)^T; every number is an upper bound.

    Attributes:
        kind: "stage", or "direct" for a plain factorisation of T_m (w = 0 and g = 0).
        size: m.
        objective: "max" or "mean": what the stage was searched for (not a claim).
        sensitivity: b, the largest l1 norm of a column of B.
        max_row_norm_sq: the largest q_i = |A_i|^2 + (1 - w_i)^2 |g|^2.
        mean_row_norm_sq: the mean of the q_i.
        interior_sensitivity: b-bar of the stage above itself (stages only, else None).
        interior_max_row_norm_sq: the largest q-bar of the stage above itself, likewise.
        interior_mean_row_norm_sq: the mean q-bar, likewise.
        kappa_max: float not below 2 max(q) b^2 / log2(m)^3.
        kappa_mean: float not below 2 mean(q) b^2 / log2(m)^3.
        interior_kappa_max: the same with b-bar and q-bar (stages only, else None).
        interior_kappa_mean: likewise.
        sha256: hash of the canonical bytes of the stage (docs/format.md).
    """

    kind: str
    size: int
    objective: str
    sensitivity: Fraction
    max_row_norm_sq: Fraction
    mean_row_norm_sq: Fraction
    kappa_max: float
    kappa_mean: float
    interior_kappa_max: float | None
    interior_kappa_mean: float | None
    sha256: str
    interior_sensitivity: Fraction | None = None
    interior_max_row_norm_sq: Fraction | None = None
    interior_mean_row_norm_sq: Fraction | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the claims as JSON values: rationals as "p/q" strings, kappas as floats."""
        return {field.name: rational_text(getattr(self, field.name)) for field in fields(self)}

    def summary(self) -> dict[str, Any]:
        """Return what listings print of the claims, as JSON values: what it is about, kappas, the hash."""
        names = ("kind", "size", "objective", *_KAPPAS, *_INTERIOR_KAPPAS, "sha256")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_json(cls, record: Any) -> Certificate:
        """Read what :meth:`to_json` wrote; the claims are taken as they are, not proved.

        Raises:
            ArtifactFormatError: a field is missing, unknown, of another type or out of range.
        """
        if not isinstance(record, Mapping):
            raise ArtifactFormatError("the certificate must be a JSON object")
        names = [field.name for field in fields(cls)]
        if set(record) != set(names):
            odd = sorted(set(record) ^ set(names))
            raise ArtifactFormatError(
                f"the certificate's fields do not fit: {', '.join(map(repr, odd))}"[:200]
            )
        kind = one_of("kind", record["kind"], KINDS)
        values: dict[str, Any] = {
            "kind": kind,
            "size": size_claim(record["size"]),
            "objective": one_of("objective", record["objective"], OBJECTIVES),
            "sha256": hash_claim(record["sha256"]),
        }
        for name in RATIONALS:
            values[name] = fraction_claim(name, record[name])
        for name in _KAPPAS:
            values[name] = float_claim(name, record[name])
        for name, read in [
            *((n, fraction_claim) for n in INTERIOR),
            *((n, float_claim) for n in _INTERIOR_KAPPAS),
        ]:
            if (record[name] is None) != (kind == "direct"):
                raise ArtifactFormatError(f"certificate: {name} must be given for a stage and only for one")
            values[name] = None if kind == "direct" else read(name, record[name])
        return cls(**values)


def rational_text(value: Any) -> Any:
    """Write a Fraction as "p/q"; other values stay as they are."""
    return f"{value.numerator}/{value.denominator}" if isinstance(value, Fraction) else value


def one_of(name: str, value: Any, options: tuple[str, ...]) -> str:
    """Read one of some texts."""
    if not isinstance(value, str) or value not in options:
        raise ArtifactFormatError(f"certificate: {name} must be one of {options}, got {show(value)}")
    return value


def size_claim(value: Any) -> int:
    """Read a size, an integer >= 2."""
    if type(value) is not int or value < 2:
        raise ArtifactFormatError(f"certificate: size must be an integer >= 2, got {show(value)}")
    return value


def hash_claim(value: Any) -> str:
    """Read 64 hexadecimal digits."""
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise ArtifactFormatError("certificate: sha256 must be 64 hexadecimal digits")
    return value


def fraction_claim(name: str, value: Any) -> Fraction:
    """Read a rational >= 0 written "p/q"."""
    match = _RATIONAL.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ArtifactFormatError(f'certificate: {name} must be a string "p/q", got {show(value)}')
    return Fraction(int(match[1]), int(match[2]))


def float_claim(name: str, value: Any) -> float:
    """Read a finite number >= 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _LARGEST:
        raise ArtifactFormatError(f"certificate: {name} must be a finite number >= 0, got {show(value)}")
    return float(value)
