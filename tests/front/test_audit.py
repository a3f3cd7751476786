"""``trilift audit``: its contract, its exit codes, and what it refuses."""

from collections.abc import Callable
from typing import Any

import pytest
from trilift.experiments.audit.planted import FAULTS
from trilift.experiments.audit.shipped import MECHANISMS

Run = Callable[..., Any]
Refused = Callable[..., str]

COMMON = ("--epsilon", "1", "--runs", "2048", "--seed", "5")


def test_json_of_a_consistent_mechanism(run: Run) -> None:
    done = run("audit", "--mechanism", "counter-mean", *COMMON, "--json")
    assert (done.code, done.err) == (0, "")
    record = done.json
    assert (record["claimed_epsilon"], record["claimed_delta"]) == (1.0, 0.0)
    assert 0.5 < record["epsilon_lower_bound"] <= 1.0
    assert (record["confidence"], record["verdict"]) == (0.999, "consistent")
    assert record["pair"].startswith("step ")
    assert 2048 <= record["runs"] < 4096


def test_a_violation_is_said_loudly(run: Run) -> None:
    with FAULTS["scale-halved"].planted():
        done = run("audit", "-m", "counter-mean", *COMMON)
    assert done.code == 1
    assert "verdict     violated: it spends more than it claims" in done.out
    with FAULTS["coarse-lattice"].planted():
        done = run("audit", "-m", "counter-halves", *COMMON, "--json")
    assert done.code == 1
    assert done.json["verdict"] == "violated"
    assert done.json["epsilon_lower_bound"] > 1.0


def test_several_mechanisms_and_a_delta(run: Run) -> None:
    done = run("audit", "-m", "counter-mean", "-m", "GaussianCounter", *COMMON, "--delta", "1/20", "--json")
    first, second = done.json
    assert (first["mechanism"], first["claimed_delta"]) == ("counter-mean", 0.0)
    assert (second["mechanism"], second["claimed_delta"]) == ("gaussian-chain", 0.05)
    assert 0 <= second["delta_lower_bound"] <= 0.05
    text = run("audit", "-m", "biased", *COMMON)
    assert text.code == 0
    assert "claimed     epsilon 1, delta 0.01" in text.out
    assert "at the claimed epsilon" in text.out


def test_the_list_of_names(run: Run) -> None:
    assert run("audit", "-m", "list").out.split() == list(MECHANISMS)
    assert run("audit", "-m", "list", "--json").json == list(MECHANISMS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-e", "1"], "--mechanism is needed"),
        (["-m", "counter-mean"], "--epsilon is needed"),
        (["-m", "no such", "-e", "1"], "there is no mechanism 'no such'"),
        (["-m", "counter-mean", "-e", "0"], "epsilon must be"),
        (["-m", "counter-mean", "-e", "nan"], "epsilon must be"),
        (["-m", "biased", "-e", "1", "--delta", "1"], "delta must be"),
        (["-m", "biased", "-e", "1", "--delta", "0"], "needs a delta > 0"),
        (["-m", "counter-mean", "-e", "1", "--runs", "10"], "runs must be"),
        (["-m", "counter-mean", "-e", "1", "--runs", "1e5"], "runs must be an integer"),
        (["-m", "counter-mean", "-e", "1", "--confidence", "1"], "confidence must be"),
        (["-m", "counter-mean", "-e", "1", "--seed", "x"], "seed must be"),
    ],
)
def test_bad_input_is_one_line(refused: Refused, arguments: list[str], says: str) -> None:
    assert says in refused("audit", *arguments)
