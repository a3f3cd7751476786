"""Shipped files are those of the list, and the bill of materials lists all that a plain install needs."""

import re
import shutil
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from trilift.experiments.trust import supply

ROOT = Path(__file__).resolve().parents[2]


def test_the_shipped_files_are_those_of_the_list() -> None:
    assert supply.changed_files() == []
    assert len(supply.listed_hashes()) == len(list((ROOT / "artifacts").rglob("*.npz"))) + 2
    listed = (ROOT / "artifacts" / "SHA256SUMS").read_text(encoding="ascii")
    assert listed.splitlines() == [f"{digest}  {name}" for name, digest in supply.listed_hashes().items()]


def test_changed_missing_and_foreign_files_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = {
        name: digest for name, digest in supply.listed_hashes().items() if re.search(r"-(9|17)\.npz", name)
    }
    assert len(some) > 4
    monkeypatch.setattr(supply, "listed_hashes", lambda: some)
    for name in some:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "artifacts" / name, tmp_path / name)
    assert supply.changed_files(tmp_path) == []
    changed, missing, *_ = some
    data = bytearray((tmp_path / changed).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / changed).write_bytes(data)
    (tmp_path / missing).unlink()
    (tmp_path / "l2" / "foreign.npz").write_bytes(b"")
    (tmp_path / "README.txt").write_bytes(b"not of the kind")
    assert supply.changed_files(tmp_path) == sorted([changed, missing, "l2/foreign.npz"])


@pytest.mark.slow
def test_the_bill_of_materials_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    bill = supply.bill_of_materials()  # the tool validates it against the schema
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    needs, listed = supply.runtime_needs(), supply.listed_versions(bill)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[<>=~!; \[]", text)[0] for text in project["dependencies"]}
    assert declared <= set(needs)
    assert {"jaxlib", "mpmath", "cffi"} <= set(needs), "what is needed by what is needed"
    assert "pytest" not in needs
    assert needs["numpy"] == version("numpy")
    assert {name: listed.get(name) for name in needs} == needs
    assert all("://" not in part.get("purl", "") for part in bill["components"])

    # the part counts what is missing from a bill
    bill["components"] = [part for part in bill["components"] if part["name"] != "numpy"]
    monkeypatch.setattr(supply, "bill_of_materials", lambda: bill)
    monkeypatch.setattr(supply, "_numbers", lambda full: _held("numbers"))
    monkeypatch.setattr(supply, "_proofs", lambda full: _held(f"proofs, full: {full}"))
    result = supply.measure(full=True)
    assert [row["tried"] - row["held"] for row in result["rows"]] == [0, 0, 0, 1]
    assert result["rows"][-1]["detail"] == "numpy"
    assert result["rows"][2]["what"] == "proofs, full: True"


def _held(what: str) -> dict[str, Any]:
    return {"what": what, "tried": 1, "held": 1, "detail": ""}


def test_certificates_and_numbers_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supply, "_QUICK", 3000)
    row = supply._proofs(full=False)
    assert row["tried"] == row["held"] > 8
    entries = [entry for entry in supply.catalogue() if entry.size <= 9]
    monkeypatch.setattr(supply, "catalogue", lambda: entries)
    monkeypatch.setattr(supply, "catalogue_l2", lambda: [])
    row = supply._numbers(full=True)
    assert row["tried"] == row["held"] == len(entries) > 3
    monkeypatch.setattr(supply, "find", lambda name: (_ for _ in ()).throw(supply.ArtifactFormatError("no")))
    row = supply._numbers(full=True)
    assert (row["held"], row["detail"].split(";")[0]) == (0, f"{entries[0].name}: no")
