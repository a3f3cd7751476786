"""The page about speed is what the command writes from the committed record."""

import json
from pathlib import Path

import pytest
from trilift.experiments.profile_speed import main
from trilift.experiments.speed_page import page
from trilift.stream.fast import switch

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_made_from_the_record(tmp_path) -> None:
    record = DOCS / "measurements" / "speed_profile.json"
    main(["--out", str(record), "--page", str(tmp_path / "speed.md")])
    assert (tmp_path / "speed.md").read_text() == (DOCS / "speed.md").read_text()


def test_the_record_says_what_is_claimed() -> None:
    """Faster with the kernels in what they replace, never below the floor, and far above the peer."""
    record = json.loads((DOCS / "measurements" / "speed_profile.json").read_text())
    plain, fast = record["ns_a_step"]["plain"], record["ns_a_step"]["fast"]
    assert all(fast[name] < plain[name] for name in ("comparisons", "blending", "extend"))
    assert record["floor"]["ns"] < fast["extend"]
    assert all(row["times_opendp"] > 20 for row in record["rates"])


def test_the_command_measures(tmp_path, monkeypatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(switch, "_switch", switch._Switch())
    monkeypatch.setenv("TRILIFT_THREADS", "2")
    out = tmp_path / "profile.json"
    main(f"--horizon 3000 --seconds 0.01 --repeats 1 --peer-draws 50 --out {out}".split())
    record = json.loads(out.read_text())
    assert [(row["path"], row["threads"]) for row in record["rates"]] == [
        ("plain", 1),
        ("fast", 1),
        ("fast", 2),
    ]
    assert all(row["steps_per_s"] > 0 and row["times_opendp"] > 0 for row in record["rates"])
    assert all(value >= 0 for parts in record["ns_a_step"].values() for value in parts.values())
    assert record["floor"]["ns"] > 0
    assert "| fast | 2 |" in page(record)
