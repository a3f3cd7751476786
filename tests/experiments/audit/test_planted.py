"""Planted faults are caught, and leave nothing behind."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from trilift.experiments.audit.planted import FAULTS
from trilift.experiments.audit.shipped import MECHANISMS, make_subject
from trilift.experiments.trust import faults

IN_A_BANK = ("split-25-over", "scale-halved")  # where runs are cheap; the full measurement has chains too
MEASUREMENTS = Path(__file__).resolve().parents[3] / "docs" / "measurements"


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name: str) -> None:
    """The bound is wrong with probability at most 0.001; the fault is far above it."""
    fault = replace(FAULTS[name], **({"mechanism": "noise-bank"} if name in IN_A_BANK else {}))
    runs = 50_000 if name in IN_A_BANK else fault.runs // 2
    result = faults.tried(fault, planted=True, runs=runs, seed=2)
    assert result.violated, result


def test_faults_are_gone_afterwards() -> None:
    subject: Any = make_subject("counter-mean", epsilon=Fraction(1))
    stream = subject.pairs()[0].first
    before = subject.release([stream], seed=4)[0]
    for fault in FAULTS.values():
        with fault.planted():
            pass
    again: Any = make_subject("counter-mean", epsilon=Fraction(1))
    assert (again.release([stream], seed=4)[0] == before).all()


def test_the_measurements_are_of_every_mechanism_and_fault() -> None:
    kept = {
        part: json.loads((MEASUREMENTS / f"trust_{part}.json").read_text()) for part in ("audits", "faults")
    }
    assert [row["what"] for row in kept["audits"]["rows"]] == list(MECHANISMS)
    assert [row["fault"] for row in kept["faults"]["rows"]] == list(FAULTS)
    for result in kept.values():
        assert result["full"]
        assert all(row["held"] == row["tried"] for row in result["rows"])
