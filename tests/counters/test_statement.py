"""The privacy statement says what the guarantee is about, in words."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from trilift.counters import Counter, chain_of

Make = Callable[..., Counter]


def test_what_a_statement_holds(small: Make) -> None:
    text = small(Fraction(7, 5), simulation_seed=None).privacy_statement()
    for part in (
        "Neighbours: two streams of 30 steps that differ in one input, each within [0, 1]",
        "the total change is at most 1",
        "(epsilon, 0)-differentially private with epsilon = 7/5",
        "delta is 0",
        "adaptively",
        "stage-max-9 / direct-max-4",
        "exact discrete Laplace",
        "floor(u + 1/2)",
        "ChaCha20",
        "ideal bits",
        "key drawn from the operating system",
        "stay secret",
        "one key serves one version of one stream",
        "epsilon asked 7/5, spent 1.39",
        "level 0: size 9",
        "level 1: size 4",
    ):
        assert part in text
    assert "SIMULATION" not in text
    assert text.isascii()


def test_simulations_say_so_first(small: Make) -> None:
    text = small().privacy_statement()
    assert text.startswith("SIMULATION")
    assert "NOTHING BELOW PROTECTS" in text.splitlines()[0]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"max_contributions": 3}, ["differ in at most 3 inputs", "total change is at most 3."]),
        (
            {"bounds": (-0.5, 0.25), "resolution": 0.25},
            ["within [-1/2, 1/4]", "total change is at most 3/4."],
        ),
        (
            {"dimension": 4, "norm_bound": 1},
            ["in each of 4 coordinates", "l1 distance 1 of the low corner", "total change is at most 2."],
        ),
        ({"epsilon": 0.1}, ["epsilon = 0.1", "epsilon asked 3602879701896397/36028797018963968"]),
        ({"chain": chain_of(("stage-max-9", "direct-max-4"))}, ["a chain given by the caller"]),
        ({"epsilon": 2**500, "bounds": (0, 2**511)}, [str(2**500), str(2**511)]),
        ({"epsilon": Fraction(2**400, 3)}, ["epsilon = "]),
    ],
)
def test_parameters_appear(small: Make, options: dict[str, Any], parts: list[str]) -> None:
    text = small(**options).privacy_statement()
    for part in parts:
        assert part in text
