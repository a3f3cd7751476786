"""Reading command-line arguments: exact numbers, artifacts by name or path, output files."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from trilift.artifacts import catalogue, catalogue_l2
from trilift.artifacts.artifact import read_header
from trilift.artifacts.certificate import Certificate
from trilift.lift.checks import fail
from trilift.lift.errors import ParameterError

__all__ = ["artifact_path", "new_file", "number", "parse_number", "readable_artifact", "whole"]

# ASCII digits alone: no underscores, thousands separators, full-width digits, nan or inf.
_NUMBER = re.compile(
    r"([+-]?)(?:([0-9]{1,400})(?:\.([0-9]{0,400}))?|\.([0-9]{1,400}))(?:[eE]([+-]?[0-9]{1,3}))?"
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}")
_LONGEST = 10**18  # an example with more digits would not help
_RATIO = re.compile(r"([+-]?[0-9]{1,400})/([0-9]{1,400})")


def parse_number(text: str) -> Fraction | None:
    """Return a decimal number as the exact rational that it is, or None for anything else.

    >>> parse_number("-0.125"), parse_number("1e3"), parse_number("1_000")
    (Fraction(-1, 8), Fraction(1000, 1), None)
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    sign, whole, places, bare, power = match.groups()
    fraction = places or bare or ""
    exponent = int(power or 0) - len(fraction)
    value = Fraction(int((whole or "") + fraction)) * Fraction(10) ** exponent
    return -value if sign == "-" else value


def number(name: str, text: str, *, above: int | None = None) -> Fraction:
    """Read an exact number from an option: a decimal, or a ratio such as 1/3.

    >>> number("epsilon", "0.1", above=0)
    Fraction(1, 10)

    Raises:
        ParameterError: anything else, or a number that is not ``above``.
    """
    ratio = _RATIO.fullmatch(text)
    if ratio is not None and int(ratio[2]) != 0:
        value: Fraction | None = Fraction(int(ratio[1]), int(ratio[2]))
    else:
        value = parse_number(text)
    if value is None or (above is not None and value <= above):
        raise fail(name, "a finite number" + ("" if above is None else f" > {above}"), text)
    return value


def whole(name: str, text: str) -> int:
    """Read an integer from an option; for another number, say how it would be written.

    Raises:
        ParameterError: anything but digits with an optional sign.

    >>> whole("horizon", "1000")
    1000
    >>> whole("horizon", "1e5")
    Traceback (most recent call last):
    trilift.lift.errors.ParameterError: horizon must be an integer, such as 100000, got '1e5'
    """
    if _INTEGER.fullmatch(text):
        return int(text)
    value = parse_number(text)
    meant = value is not None and value.denominator == 1 and abs(value) < _LONGEST
    raise fail(name, f"an integer, such as {value if meant else 1000}", text)


def artifact_path(name: str) -> Path:
    """Return the file of an artifact given by its path or by its name in the catalogue.

    Raises:
        ParameterError: no artifact has that name.
    """
    if name.endswith(".npz") or Path(name).exists():
        return Path(name)
    paths = {entry.name: entry.path for entry in catalogue_l2()}
    paths |= {entry.name: entry.path for entry in catalogue()}
    if name not in paths:
        raise ParameterError(
            f"{name}: neither a file nor an artifact of the catalogue (see: trilift artifacts)"
        )
    return paths[name]


def readable_artifact(name: str) -> tuple[Path, Certificate]:
    """Return the file of an artifact and what it claims: see :func:`artifact_path`.

    Raises:
        ParameterError: no artifact has that name.
        ArtifactFormatError: the file is none, or one for Gaussian noise; it is named as it was given.
    """
    path = artifact_path(name)
    return path, read_header(path)[1]


def new_file(option: str, path: Path) -> Path:
    """Check, before any work is done, that a file can be made at ``path`` and is not there yet.

    Raises:
        ParameterError: the file exists, or its folder does not.
    """
    if path.exists():
        raise ParameterError(f"{option} {path} exists already: choose another name, or remove it first")
    if not path.parent.is_dir():
        raise ParameterError(f"{option} {path}: the folder {path.parent} does not exist")
    return path
