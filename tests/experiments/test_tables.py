"""The README's tables are what the shipped certificates and the exact costs give."""

import re
from pathlib import Path

import pytest
from trilift.artifacts import catalogue
from trilift.experiments.published import KAPPA_CERTIFIED, KAPPA_DIRECT
from trilift.experiments.tables import TABLES, fill_in

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.mark.slow
def test_readme_tables_are_current() -> None:
    text = README.read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- table: (\w+) -->", text)) == set(TABLES)
    assert fill_in(text) == text


def test_filling_in_replaces_old_numbers() -> None:
    text = "before\n<!-- table: direct -->\n| 4 | wrong |\n<!-- end -->\nafter\n"
    made = fill_in(text)
    assert "wrong" not in made
    assert made.startswith("before\n")
    assert made.endswith("\nafter\n")
    assert fill_in(made) == made


def test_every_shipped_factorisation_of_t_k_is_below_the_published_constant() -> None:
    entries = [e for e in catalogue() if e.source == "shipped" and e.kind == "direct"]
    assert {e.size for e in entries} >= {4, 8, 16, 32, 64, 128}
    for entry in entries:
        worst, mean = KAPPA_DIRECT[entry.size]
        claims = entry.certificate
        assert (claims.kappa_max < worst) if entry.objective == "max" else (claims.kappa_mean < mean)


def test_the_largest_stages_are_below_the_published_constants() -> None:
    entries = {e.name: e.certificate for e in catalogue() if e.source == "shipped"}
    assert entries["stage-max-129"].kappa_max < KAPPA_CERTIFIED[0]
    assert entries["stage-mean-129"].kappa_mean < KAPPA_CERTIFIED[1]
