"""What edit-private mechanisms say about themselves."""

from fractions import Fraction

import pytest
import trilift.counters.edit as room
from trilift.counters.edit.design import make_design
from trilift.counters.edit.mechanism import class_of
from trilift.counters.edit.statement import described, first_wait, privacy_statement
from trilift.counters.statement import number

SIM = make_design(10, delta=1e-5, mechanism="simecc", horizon=2000, base="toeplitz")
EVENTS = make_design(
    10, delta=1e-5, mechanism="ecc", horizon=2000, base="toeplitz", high=Fraction(5, 2), resolution=0.5
)
PAPER = make_design(10, delta=1e-5, mechanism="ecc", accounting="paper", display="extrapolated")


@pytest.mark.parametrize("design", [SIM, EVENTS, PAPER])
def test_the_statement_says_who_what_and_how(design) -> None:
    lines = privacy_statement(design, simulated=False).splitlines()
    starts = ["Neighbours: edit", "Guarantee: ", "Mechanism: ", "Composition: ", "Conditions: ", "asked: "]
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=False))
    assert "epsilon = 10, delta = 1e-05" in lines[1]
    assert "fixed in advance" in lines[0]
    assert design.ledger.as_text() in "\n".join(lines)
    assert ("2000 steps" if design.horizon else "any number of steps") in lines[0]
    assert f"[0, {number(design.rule.largest)}]" in lines[0]


def test_simulations_say_so_first() -> None:
    counter = class_of(SIM).of(SIM, simulation_seed=1)
    assert counter.privacy_statement().startswith("SIMULATION: ")
    assert not class_of(SIM).of(SIM).privacy_statement().startswith("SIMULATION")


def test_descriptions() -> None:
    simple, events, paper = map(described, (SIM, EVENTS, PAPER))
    assert f"buckets of about {SIM.part.base} steps" in simple
    assert f"Shows 0 until about step {first_wait(SIM)[1]}" in simple
    assert "(of size 2.5)" in events or "(of size 5/2)" in events
    assert "a stream without events ends none" in events
    assert f"at most {SIM.capacity} different counts" in simple
    assert "mean rate" in paper
    assert "mean rate" not in simple
    assert class_of(SIM).of(SIM, simulation_seed=1).describe() == simple


def test_the_paper_shows_nothing_before_about_900_events() -> None:
    """tau = 536 and a clock drift of 170 at first to 375 after 10^4 steps: the specification's figures."""
    assert float(PAPER.part.tau) == pytest.approx(536, abs=0.5)
    short = make_design(10, delta=1e-5, mechanism="ecc", accounting="paper", horizon=10_000)
    unit, wait = first_wait(short)
    assert unit == "events"
    assert 850 < wait < 950


@pytest.mark.parametrize(
    ("value", "text"),
    [(Fraction(3), "3"), (Fraction(1, 3), "1/3"), (Fraction(0.1), "0.1"), (Fraction(5, 2), "5/2")],
)
def test_numbers_as_text(value, text) -> None:
    assert number(value) == text


def test_the_room_offers_its_counters() -> None:
    assert {"SimECC", "ECC", "PartitionCC", "EndingCounter", "GaussianCC", "BOT"} <= set(room.__all__)
    assert all(hasattr(room, name) for name in room.__all__)
