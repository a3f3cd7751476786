"""The part "supply": the shipped artifacts are those of the repository, and the bill of materials is whole.

Every file of matrices has the hash in ``SHA256SUMS``, its numbers have the hash in the index, and what its
certificate claims is proved again by the checker that needs numpy alone. The bill of materials (CycloneDX) is
made of the environment that this runs in, and must list everything that trilift needs at run time, in the
installed version.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trilift.artifacts import catalogue, catalogue_l2, find, find_l2
from trilift.artifacts.listing import SHIPPED
from trilift.lift.errors import ArtifactFormatError
from trilift.verify import check_artifact

__all__ = ["PART", "SUMS", "bill_of_materials", "changed_files", "listed_hashes", "measure", "runtime_needs"]

PART = "supply"

SUMS = SHIPPED / "SHA256SUMS"
"""The hashes of the shipped files, as sha256sum writes them."""

_QUICK = 200_000  # bytes; larger files take the checker up to seconds

Row = dict[str, Any]


def listed_hashes() -> dict[str, str]:
    """Return the SHA-256 of every shipped file by its name below ``artifacts``."""
    lines = SUMS.read_text(encoding="ascii").splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def changed_files(folder: Path = SHIPPED) -> list[str]:
    """Return the files of matrices and indices that are changed, missing or not in ``SHA256SUMS``."""
    listed = listed_hashes()
    here = {
        path.relative_to(folder).as_posix() for kind in ("*.npz", "index.json") for path in folder.rglob(kind)
    }
    wrong = here ^ set(listed)
    for name in here & set(listed):
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != listed[name]:
            wrong.add(name)
    return sorted(wrong)


def runtime_needs(name: str = "trilift") -> dict[str, str]:
    """Return what an installed distribution needs at run time, and what that needs: versions by name.

    Names are normalised (lower case, hyphens). Extras are left out, but for those that a requirement names.

    Raises:
        importlib.metadata.PackageNotFoundError: something that is needed is not installed.
    """
    from packaging.requirements import Requirement  # comes with cyclonedx-bom

    found: dict[str, str] = {}
    waiting: list[tuple[str, frozenset[str]]] = [(name, frozenset())]
    seen = set(waiting)
    while waiting:
        each, extras = waiting.pop()
        for text in metadata.requires(each) or ():
            need = Requirement(text)
            if need.marker and not any(need.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
                continue
            found[_normal(need.name)] = metadata.version(need.name)
            further = (need.name, frozenset(need.extras))
            if further not in seen:
                seen.add(further)
                waiting.append(further)
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def bill_of_materials() -> dict[str, Any]:
    """Return the bill of materials of the running environment, valid CycloneDX 1.6 (the tool checks it).

    Raises:
        subprocess.CalledProcessError: the tool failed.
    """
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--validate"]
    command += ["--sv", "1.6", "--of", "JSON", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    bill: dict[str, Any] = json.loads(done.stdout)
    return bill


def listed_versions(bill: dict[str, Any]) -> dict[str, str]:
    """Return the versions in a bill of materials by normalised name."""
    return {_normal(part["name"]): part["version"] for part in bill["components"]}


def measure(*, full: bool, seed: int = 1, tell: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Count the files whose hashes hold, the certificates that are proved, and the entries of the bill.

    Args:
        full: read and prove every certificate, make the bill; else small files alone.
        seed: nothing is random here.
        tell: is told what is checked.
    """
    tell("hashes of files")
    wrong = changed_files()
    rows = [
        _row("shipped files with the listed SHA-256", len(listed_hashes()), wrong, "artifacts/SHA256SUMS")
    ]
    tell("hashes of numbers")
    rows.append(_numbers(full))
    tell("certificates")
    rows.append(_proofs(full))
    if full and find_spec("cyclonedx_py"):
        tell("bill of materials")
        needs, listed = runtime_needs(), listed_versions(bill_of_materials())
        missing = [name for name, version in needs.items() if listed.get(name) != version]
        rows.append(
            _row("run-time dependencies in the SBOM", len(needs), missing, "CycloneDX 1.6, validated")
        )
    return {
        "part": PART,
        "full": full,
        "rows": rows,
        "note": "The checker needs numpy alone. The SBOM is that of the environment in which this was "
        "measured; the tool that makes it (cyclonedx-bom) is in the extra dev.",
    }


def _row(what: str, tried: int, wrong: list[str], detail: str) -> Row:
    held = tried - min(len(wrong), tried)
    return {"what": what, "tried": tried, "held": held, "detail": "; ".join(wrong[:5]) or detail}


def _numbers(full: bool) -> Row:
    """Numbers against the index: loading compares them with the certificate, finding that with the index."""
    names: list[tuple[Callable[[str], Any], str]] = []
    for look_up, entries in ((find, catalogue()), (find_l2, catalogue_l2())):
        shipped = (entry for entry in entries if entry.source == "shipped")
        names += [(look_up, entry.name) for entry in shipped if full or entry.path.stat().st_size <= _QUICK]
    wrong = []
    for look, name in names:
        try:
            look(name)
        except ArtifactFormatError as error:
            wrong.append(f"{name}: {error}")
    return _row(
        "artifacts whose numbers have the index's hash", len(names), wrong, "canonical bytes, docs/format.md"
    )


def _proofs(full: bool) -> Row:
    paths: Iterable[Path] = (SHIPPED / name for name in listed_hashes() if name.endswith(".npz"))
    files = [path for path in paths if full or path.stat().st_size <= _QUICK]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        check_artifact.main(["--json", *map(str, files)])
    wrong = [record["file"] for record in json.loads(said.getvalue()) if record["verdict"] != "verified"]
    return _row("certificates proved again by the standalone checker", len(files), wrong, "exact arithmetic")
