"""Certified chains: a folder of level artifacts with what they cost together at a horizon (new).

The folder holds ``level-0.npz``, ``level-1.npz``, ... (finest first) and ``top.npz``, each an artifact of its
own, and ``chain.json``. Proved in exact arithmetic are every level's certificate, what each level charges for
an input of size 1, and that the charges over the stored scales, all rationals, sum to at most 1: noise of
scale s_l / epsilon on level l is epsilon-differentially private. The squared row norms at these scales are
computed in double precision, exact up to its rounding, and stored with 1e-9 of themselves added.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from pathlib import Path
from typing import Any

from trilift.artifacts.artifact import Artifact, Provenance, load, save
from trilift.lift.budget import OBJECTIVES, horizon_scales
from trilift.lift.chain import Chain
from trilift.lift.checks import choice, integer, show
from trilift.lift.costs import mean_row_norms_sq
from trilift.lift.errors import ArtifactFormatError, CertificateError, ParameterError, TriliftError
from trilift.lift.extremes import max_row_norm_sq
from trilift.lift.files import atomic_write, read_regular
from trilift.lift.strict_json import parse_json
from trilift.verify.build import from_search
from trilift.verify.certification import check_certificate

__all__ = ["CHAIN_FILE", "build_chain", "chain_claims", "chain_report", "level_files", "write_chain"]

CHAIN_FILE = "chain.json"
FORMAT = "trilift-chain-1"
_SCALE_PLACES = 40
_MARGIN = 1.0 + 1e-9  # far above what double precision loses in sums over levels
_MAX_LEVELS = 64
_MAX_BYTES = 16 << 20
_RATIONAL = re.compile(r"[0-9]{1,4000}(/[0-9]{1,4000})?")
_DIGITS = Context(prec=15, rounding=ROUND_CEILING)


def level_files(count: int) -> list[str]:
    """Return the file names of a chain's levels, finest first.

    >>> level_files(3)
    ['level-0.npz', 'level-1.npz', 'top.npz']
    """
    return [*(f"level-{index}.npz" for index in range(count - 1)), "top.npz"]


def build_chain(chain: Chain, *, objective: str, provenance: Sequence[Provenance]) -> list[Artifact]:
    """Complete and certify every level of a float chain, finest first; each keeps its w.

    Raises:
        ParameterError, CertificateError: as :func:`trilift.verify.from_search`.
    """
    if len(provenance) != len(chain.levels):
        raise ParameterError(f"provenance must have {len(chain.levels)} entries, got {len(provenance)}")
    return [
        from_search(level, objective=objective, provenance=entry, interior=not level.is_plain)
        for level, entry in zip(chain.levels, provenance, strict=True)
    ]


def chain_claims(chain: Chain, *, horizon: int, objective: str) -> dict[str, Any]:
    """Return what is claimed of an exact chain at a horizon, as JSON values.

    Keys: "horizon", "objective", "charges" and "scales" (fractions as text, finest first, for epsilon = 1),
    "max_row_norm_sq" and "mean_row_norm_sq" (decimals rounded up: half of MaxSE and MeanSE at epsilon = 1).

    Raises:
        ParameterError: a float chain, another objective.
        HorizonError: a horizon past the capacity.
    """
    n = chain.check_horizon(horizon)
    choice("objective", objective, OBJECTIVES)
    if not chain.is_exact:
        raise ParameterError("only an exact chain has exact charges")
    charges = [Fraction(charge) for charge in chain.level_sensitivities()]
    scales = _spending_at_most_one(charges, horizon_scales(chain, n, objective=objective).tolist())
    largest, mean = _row_norms_sq(chain, n, scales)
    return {
        "horizon": n,
        "objective": objective,
        "charges": [_text(charge) for charge in charges],
        "scales": [_text(scale) for scale in scales],
        "max_row_norm_sq": str(_DIGITS.create_decimal_from_float(largest * _MARGIN)),
        "mean_row_norm_sq": str(_DIGITS.create_decimal_from_float(mean * _MARGIN)),
    }


def write_chain(
    folder: Path, artifacts: Sequence[Artifact], *, horizon: int, objective: str, **more: Any
) -> dict[str, Any]:
    """Write the levels and ``chain.json`` into an existing folder; return what the latter says.

    ``more`` is stored beside the claims and proves nothing (such as what the chain was made from).
    """
    chain = Chain(artifacts[-1].stage, [artifact.stage for artifact in artifacts[:-1]])
    claims = chain_claims(chain, horizon=horizon, objective=objective)
    files = level_files(len(artifacts))
    for file, artifact in zip(files, artifacts, strict=True):
        save(artifact, folder / file)
    levels = [
        {"file": file, "name": artifact.name, "sha256": artifact.certificate.sha256}
        for file, artifact in zip(files, artifacts, strict=True)
    ]
    record = {"format": FORMAT, "levels": levels, **claims, **more}
    atomic_write(folder / CHAIN_FILE, (json.dumps(record, indent=1, allow_nan=False) + "\n").encode("ascii"))
    return record


def chain_report(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Prove everything that a chain's folder claims.

    Returns:
        "verified", the claims, and "failure" where one is false.

    Raises:
        ArtifactFormatError: ``chain.json`` or a level cannot be read.
        OSError: it is missing.
    """
    place = Path(folder)
    record = _read(place)
    claims = {name: record[name] for name in ("horizon", "objective", "charges", "scales")}
    claims |= {name: record[name] for name in ("max_row_norm_sq", "mean_row_norm_sq")}
    names = [level["file"] for level in record["levels"]]
    report = {"verified": True, "kind": "chain", "levels": names, **claims}
    try:
        _prove(place, record)
    except CertificateError as error:
        report |= {"verified": False, "failure": str(error)}
    return report


def _prove(place: Path, record: dict[str, Any]) -> None:
    artifacts = []
    for level in record["levels"]:
        artifact = load(place / level["file"], verify_hash=False)
        check_certificate(artifact)
        if artifact.certificate.sha256 != level["sha256"]:
            raise CertificateError(f"{level['file']}: sha256 = {level['sha256']} fails: the file has another")
        artifacts.append(artifact)
    try:
        chain = Chain(artifacts[-1].stage, [artifact.stage for artifact in artifacts[:-1]])
        n = chain.check_horizon(record["horizon"])
    except TriliftError as error:
        raise CertificateError(f"the levels do not make the chain: {error}") from None
    charges, scales = record["exact_charges"], record["exact_scales"]
    for index, exact in enumerate(chain.level_sensitivities()):
        if charges[index] < exact:
            raise CertificateError(f"the charge of level {index} fails: it is {_text(Fraction(exact))}")
    spent = sum((b / s for b, s in zip(charges, scales, strict=True)), Fraction(0))
    if spent > 1:
        raise CertificateError(
            f"the charges over the scales sum to 1 + {float(spent - 1):.3g}, not at most 1"
        )
    for name, value in zip(("max", "mean"), _row_norms_sq(chain, n, scales), strict=True):
        if not float(record[f"{name}_row_norm_sq"]) >= value:
            raise CertificateError(f"{name}_row_norm_sq fails: it is {value:.15g}")


def _read(place: Path) -> dict[str, Any]:
    path = place / CHAIN_FILE
    text = read_regular(path, max_bytes=_MAX_BYTES)
    if text is None:
        raise ArtifactFormatError(f"{path} is larger than {_MAX_BYTES} bytes")
    try:
        record = parse_json(text)
        count = len(record["levels"])
        known = record["format"] == FORMAT and 1 <= count <= _MAX_LEVELS
        known = known and [level["file"] for level in record["levels"]] == level_files(count)
        known = known and all(isinstance(level["sha256"], str) for level in record["levels"])
        integer("horizon", record["horizon"], minimum=1)
        choice("objective", record["objective"], OBJECTIVES)
        for name in ("charges", "scales"):
            values = [_exact(value) for value in record[name]]
            known = known and len(values) == count and all(float(value) > 0 for value in values)
            record[f"exact_{name}"] = values
        for name in ("max_row_norm_sq", "mean_row_norm_sq"):
            known = known and 0 < float(record[name]) < math.inf
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError, ParameterError) as error:
        raise ArtifactFormatError(f"{path} does not describe a chain: {show(error)}") from None
    if not known:
        raise ArtifactFormatError(f"{path} does not describe a chain of this format")
    return dict(record)


def _exact(text: Any) -> Fraction:
    """Return a rational written "p/q" or "p"; Fraction alone would also multiply 1e999999999 out."""
    if not isinstance(text, str) or not _RATIONAL.fullmatch(text):
        raise ValueError("not a rational")
    return Fraction(text)


def _spending_at_most_one(charges: list[Fraction], scales: list[float]) -> list[Fraction]:
    """Return rationals close to the scales, the charges over which sum to at most 1."""
    unit = Fraction(1, 1 << _SCALE_PLACES)
    exact = [-(-Fraction(scale) // unit) * unit for scale in scales]  # rounded up
    while sum(b / s for b, s in zip(charges, exact, strict=True)) > 1:
        exact = [-(-(s * (1 + unit)) // unit) * unit for s in exact]
    return exact


def _row_norms_sq(chain: Chain, horizon: int, scales: Sequence[Fraction]) -> tuple[float, float]:
    floats = [float(scale) for scale in scales]
    means = mean_row_norms_sq(chain, horizon).tolist()
    mean = sum(s * s * q for s, q in zip(floats, means, strict=True))
    return float(max_row_norm_sq(chain, horizon, scales=floats)), float(mean)


def _text(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"
