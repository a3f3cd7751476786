"""``trilift certify``: prove every claim of an artifact again, or what a right factor alone proves."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["CLAIMS", "NAME", "command"]

NAME = "certify"

CLAIMS = (
    "verified",
    "kind",
    "size",
    "objective",
    "sensitivity",
    "max_row_norm_sq",
    "mean_row_norm_sq",
    "kappa_max",
    "kappa_mean",
    "interior_kappa_max",
    "interior_kappa_mean",
    "sha256",
)
"""What ``--json`` prints, in this order; "failure" follows where a claim is false."""

L2_CLAIMS = (
    "verified",
    "norm",
    "kind",
    "size",
    "objective",
    "sensitivity_sq",
    "max_row_norm_sq",
    "mean_row_norm_sq",
    "gamma_max",
    "gamma_mean",
    "interior_gamma_max",
    "interior_gamma_mean",
    "sha256",
)
"""The same for an artifact about Gaussian noise (norm l2)."""


def command(
    file: Annotated[
        str, typer.Argument(help="An artifact file, a name of the catalogue, a chain's folder, or R.npy.")
    ],
    *,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Prove an artifact's certificate from its numbers, in exact arithmetic.

    For a square right factor in an .npy file, bounds on its norms, on those of L = T R^-1 and on the leading
    constants are proved instead. For a folder that trilift optimize chain wrote, every level is proved, and
    that the charges over the scales sum to at most 1.

    Exit code 0: every claim holds; 1: a claim is false, or could not be proved; 2: the file cannot be read.
    """
    from trilift.matrices import is_array
    from trilift.output import note, print_json, print_pairs

    if Path(file).is_dir():
        record = _chain(file)
    else:
        record = _right_factor(Path(file)) if is_array(file) else _artifact(file)
    failure = record.pop("failure", None)
    if json:
        print_json(record if failure is None else {**record, "failure": failure})
    else:
        print_pairs({name: _shown(value) for name, value in record.items() if value is not None})
    if failure is not None:
        why = " ".join(failure.split())
        note(f"trilift: not verified: {why if json else _with_decimals(why)}")
        raise typer.Exit(1)


def _artifact(file: str) -> dict[str, Any]:
    from trilift.arguments import artifact_path
    from trilift.verify import verification_report

    report = verification_report(artifact_path(file))
    claims = L2_CLAIMS if "norm" in report else CLAIMS
    names = (*claims, "failure") if "failure" in report else claims
    return {name: report[name] for name in names}


def _chain(folder: str) -> dict[str, Any]:
    from trilift.verify.chains import chain_report

    return chain_report(folder)


def _right_factor(path: Path) -> dict[str, Any]:
    from trilift.lift.errors import CertificateError
    from trilift.matrices import read_matrix
    from trilift.verify import right_factor_record

    matrix = read_matrix(path)
    try:
        return {"verified": True, **right_factor_record(matrix)}
    except CertificateError as error:
        return {"verified": False, "kind": "right-factor", "size": len(matrix), "failure": str(error)}


def _shown(value: Any) -> str:
    """Show a rational with its value, for people."""
    if isinstance(value, str) and "/" in value:
        top, bottom = value.split("/")  # a damaged claim may lie far beyond the floats
        return f"{Decimal(top) / Decimal(bottom):.9g} = {value}" if bottom != "1" else top
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return str(value)


def _with_decimals(text: str) -> str:
    """Put the value of every rational in a message behind it, for people.

    >>> _with_decimals("sensitivity <= 7/4 fails: it is 3/1")
    'sensitivity <= 7/4 (1.75) fails: it is 3'
    """
    return re.sub(r"(?<![\w./])-?[0-9]+/[0-9]+(?![\w/])", lambda found: _value(found[0]), text)


def _value(ratio: str) -> str:
    top, bottom = ratio.split("/")
    return top if bottom == "1" else f"{ratio} ({Decimal(top) / Decimal(bottom):.9g})"
