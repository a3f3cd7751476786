"""``trilift plan --neighbours edit``: the JSON that programs rely on, and what people are told."""

import math
import shlex
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from trilift.counters.edit.choose import choose_design
from trilift.counters.edit.gaussian_cc import HorizonGaussian
from trilift.edit_plan import best_counter

Run = Callable[..., Any]

EDIT = ("plan", "--neighbours", "edit")
ASK = ("--epsilon", 10, "--delta", "1e-5")


@pytest.fixture
def planned(run: Run) -> Any:
    done = run(*EDIT, *ASK, "-n", 10_000, "--json")
    assert (done.code, done.err) == (0, "")
    return done.json


def test_the_contract(planned: Any) -> None:
    variants = planned["variants"]
    assert planned["chosen"] == variants[0]
    assert {v["mechanism"] for v in variants} == {"simecc", "ecc", "gaussian", "horizon-gaussian"}
    assert {v["accounting"] for v in variants} >= {"sharp", "joint", "paper"}
    for variant in variants:
        assert type(variant["base"]) is str
        assert type(variant["predicted_rmse"]) is float
        assert variant["predicted_rmse"] > 0
        assert type(variant["first_update_events"]) is float
        assert all(set(part) == {"part", "epsilon", "ln_delta"} for part in variant["ledger"])


def test_ledgers_spend_what_was_asked_at_most(planned: Any) -> None:
    """Epsilons exactly; deltas in floats, which the exact ledgers round up."""
    for variant in planned["variants"]:
        tops = [part["epsilon"].split("/") for part in variant["ledger"]]
        assert sum(Fraction(int(top), int(bottom)) for top, bottom in tops) <= 10
        deltas = [math.exp(part["ln_delta"]) for part in variant["ledger"] if part["ln_delta"] is not None]
        assert 0 < sum(deltas) <= 1e-5 * (1 + 1e-12)


def test_the_chosen_one_is_the_best_of_all(planned: Any) -> None:
    errors = [variant["predicted_rmse"] for variant in planned["variants"]]
    assert errors == sorted(errors)
    design = choose_design(10, delta=Fraction(1, 10**5), horizon=10_000)
    assert planned["chosen"]["predicted_rmse"] == pytest.approx(design.predicted_rmse, rel=1e-9)


def test_the_paper_needs_many_events_before_it_shows_one(planned: Any) -> None:
    """About 900 events at delta = 1e-5 and epsilon = 10; our thresholds need fewer."""
    needed = {
        v["accounting"]: v["first_update_events"] for v in planned["variants"] if v["mechanism"] == "ecc"
    }
    assert 800 < needed["paper"] < 1000
    assert needed["sharp"] < 60


def test_the_table_says_in_words_what_each_will_do(run: Run) -> None:
    done = run(*EDIT, *ASK, "-n", 10_000, "--rate", "1/10")
    assert (done.code, done.err) == (0, "")
    assert "no update before about 884 events" in done.out
    assert "Cuts the stream into buckets of about" in done.out
    assert "Adds independent noise to every running sum" in done.out


@pytest.mark.slow
def test_the_use_line_counts(run: Run) -> None:
    for options in (("-n", 500), ("--unbounded",), ("-n", 500, "--rate", "1/8", "--display", "extrapolated")):
        done = run(*EDIT, "-e", "1/2", "--delta", "1e-6", *options)
        (use,) = [line for line in done.out.splitlines() if line.startswith("use")]
        command = shlex.split(use)[1:]
        assert command[:3] == ["trilift", "count", "FILE"]
        counted = run("count", "-", *command[3:], "-q", stdin=b"1\nnull\n0\n")
        assert (counted.code, len(counted.values)) == (0, 3), counted.err


def test_a_short_stream_is_for_independent_noise(run: Run) -> None:
    """Over a few steps nothing beats it; what count takes by itself is what the plan names."""
    ask = {"delta": Fraction(1, 10**6), "horizon": 30, "rate": 0.5, "display": "latest"}
    assert isinstance(best_counter(Fraction(10), **ask), HorizonGaussian)
    done = run("count", "-", *EDIT[1:], "-e", 10, "--delta", "1e-6", "-n", 30, stdin=b"1\n")
    assert "Mechanism: HorizonGaussian" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*EDIT, "-e", 1, "-n", 9), "--delta is needed for edit neighbours"),
        ((*EDIT, *ASK), "--horizon is needed, or --unbounded"),
        ((*EDIT, *ASK, "-n", 9, "--rate", 2), "rate must be"),
        ((*EDIT, *ASK, "-n", 9, "--rate", 0), "rate must be a finite number > 0, got '0'"),
        ((*EDIT, *ASK, "-n", 0), "horizon must be"),
        ((*EDIT, *ASK, "-n", 9, "--display", "never"), "display must be one of"),
        ((*EDIT, *ASK, "-n", 9, "--mechanism", "kary"), "--mechanism is about swap neighbours: leave it out"),
        ((*EDIT, *ASK, "-n", 9, "--objective", "max"), "--objective is about swap neighbours: leave it out"),
        ((*EDIT, "-e", 1, "--delta", 1, "-n", 9), "delta must be"),
        (("plan", "--neighbours", "near", "-e", 1, "-n", 9), "neighbours must be one of 'swap', 'edit'"),
        (("plan", "-e", 1), "--horizon is needed"),
        (
            ("plan", "-e", 1, "-n", 9, "--rate", "1/2"),
            "--rate is about edit neighbours: add --neighbours edit",
        ),
        (("plan", "-e", 1, "-n", 9, "--display", "latest"), "--display is about edit neighbours"),
    ],
)
def test_bad_arguments(refused: Run, arguments: tuple[object, ...], message: str) -> None:
    assert message in str(refused(*arguments))
