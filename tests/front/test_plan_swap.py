"""``trilift plan`` with ``--delta`` or ``--unbounded`` for swap neighbours."""

import shlex
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from trilift import Counter, GaussianCounter

Run = Callable[..., Any]

DELTA = Fraction(1, 10**6)


def test_gaussian_counters(run: Run) -> None:
    """The errors are those that the counters themselves tell of every step."""
    record = run("plan", "-e", 1, "--delta", "1e-6", "-n", 300, "--json").json
    assert [v["mechanism"] for v in record["variants"]] != ["chain"]
    for variant in record["variants"]:
        counter = GaussianCounter(1, DELTA, horizon=300, mechanism=variant["mechanism"], simulation_seed=1)
        squares = [counter.sd(t) ** 2 for t in range(1, 301)]
        assert variant["max_se"] == pytest.approx(max(squares), rel=1e-9)
        assert variant["mean_se"] == pytest.approx(sum(squares) / 300, rel=1e-9)
    assert record["chosen"] == record["variants"][0]
    assert record["chosen"]["max_se"] == min(v["max_se"] for v in record["variants"])


@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_counters_without_a_horizon(run: Run, delta: str | None) -> None:
    given = () if delta is None else ("--delta", delta)
    record = run("plan", "-e", 1, "--unbounded", "-n", 200, *given, "--json").json
    assert {v["growth"] for v in record["variants"]} == {"tapered", "relay", "doubling"}
    assert (record["horizon"], record["steps"], record["chosen"]["growth"]) == (None, 200, "tapered")
    counter: Any = Counter(1, horizon=None) if delta is None else GaussianCounter(1, DELTA)
    squares = [counter.sd(t) ** 2 for t in range(1, 201)]
    assert record["chosen"]["mean_se"] == pytest.approx(sum(squares) / 200, rel=1e-9)


@pytest.mark.parametrize(
    "options",
    [("--delta", "1e-6", "-n", 50), ("--unbounded", "-n", 90), ("--unbounded", "--delta", "1e-6", "-n", 90)],
)
def test_the_use_line_counts(run: Run, options: tuple[object, ...]) -> None:
    done = run("plan", "-e", "1/2", *options)
    assert done.code == 0, done.err
    assert "sd of worst step" in done.out
    use = shlex.split(done.out.splitlines()[-1])
    assert use[:4] == ["use", "trilift", "count", "FILE"]
    counted = run("count", "-", *use[4:], "-q", stdin=b"1\n0\n")
    assert (counted.code, len(counted.values)) == (0, 2), counted.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--delta", "1e-6"), "--horizon is needed, or --unbounded"),
        (("--delta", 2, "-n", 9), "delta must be"),
        (
            ("--unbounded", "--mechanism", "kary"),
            "--mechanism is about pure noise and a horizon: leave it out",
        ),
        (("--unbounded", "--objective", "best"), "objective must be one of"),
        (("--delta", "1e-6", "-n", 9, "--rate", "1/2"), "--rate is about edit neighbours"),
    ],
)
def test_bad_arguments(refused: Run, arguments: tuple[object, ...], message: str) -> None:
    assert message in str(refused("plan", "-e", 1, *arguments))
