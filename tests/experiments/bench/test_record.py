"""The committed record of trilift bench, and what docs/results.md says from it."""

import math
from pathlib import Path
from typing import Any

import pytest
from trilift.experiments.bench.choices import dpcrpy_choices, opendp_choices
from trilift.experiments.bench.page import load_record, section
from trilift.experiments.bench.pins import PINS
from trilift.experiments.bench.run import HORIZONS

DOCS = Path(__file__).resolve().parents[3] / "docs"
TOOLS = {"trilift", "dpcrpy", "OpenDP", "jax_privacy", "averaged tree"}
RECORD = load_record(DOCS / "measurements" / "bench.json")


def pure(n: int) -> list[dict[str, Any]]:
    return [e for e in RECORD["ratios"] if e["n"] == n and e["privacy"] == "pure"]


def test_the_page_shows_the_record() -> None:
    assert section(RECORD) in (DOCS / "results.md").read_text(encoding="utf-8")


def test_the_table_is_complete() -> None:
    assert RECORD["missing"] == []
    assert {row["n"] for row in RECORD["rows"]} == set(HORIZONS)
    pinned = {pin.split("==")[0]: pin.split("==")[1] for pins in PINS.values() for pin in pins}
    for n in HORIZONS:
        rows = [row for row in RECORD["rows"] if row["n"] == n]
        assert {row["tool"] for row in rows} == TOOLS
        for row in rows:
            if row["tool"].lower() in pinned:
                assert row["version"] == pinned[row["tool"].lower()]
            if row["privacy"] != "none":
                assert 0 < row["mean_se"] <= row["max_se"]
            timed = row["tool"] != "averaged tree" and row["mechanism"] != "Toeplitz square root"
            assert (row["released_per_s"] is not None) == timed


@pytest.mark.parametrize("n", HORIZONS)
def test_every_pure_peer_errs_more_by_the_factor_that_theory_predicts(n: int) -> None:
    entries = pure(n)
    assert {e["tool"] for e in entries} == {"dpcrpy", "OpenDP", "averaged tree"}
    for e in entries:
        for objective in ("max", "mean"):
            assert e[objective] > 1.5
            assert e[f"{objective}_default"] > 1.3
            theory = e[f"theory_{objective}"]
            assert (theory is None) == e["mechanism"].startswith("AuBCR")
            if theory is not None:
                assert math.isclose(theory, e[objective], rel_tol=1e-6)


def test_the_errors_of_the_record_are_those_of_theory_now() -> None:
    n = HORIZONS[0]
    for choice in [*dpcrpy_choices(n), *opendp_choices(n)]:
        row = next(r for r in RECORD["rows"] if r["n"] == n and r["mechanism"] == choice.title)
        if choice.max_se is not None and choice.mean_se is not None:
            assert math.isclose(row["max_se"], choice.max_se, rel_tol=1e-6)
            assert math.isclose(row["mean_se"], choice.mean_se, rel_tol=1e-6)


def test_ours_is_faster_than_every_peer_with_exact_noise() -> None:
    speeds = [e["speed"] for n in HORIZONS for e in pure(n) if e["noise"] == "exact"]
    assert len(speeds) >= 2 * len(HORIZONS)
    assert min(speeds) > 1


def test_runs_of_the_consistent_tree_agree_with_its_exact_errors() -> None:
    for row in RECORD["rows"]:
        squares = row.get("mean_squares", [])
        if row["tool"] == "OpenDP" and row["privacy"] == "pure" and len(squares) >= 5:
            ratio = sum(squares) / len(squares) / row["mean_se"]
            assert 0.4 < ratio < 2.5  # a mean over few runs of a strongly correlated square
