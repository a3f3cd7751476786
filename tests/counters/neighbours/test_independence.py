"""Which counters of the library have noise that does not look at the data, seed by seed and exactly."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trilift.counters import Counter
from trilift.counters.edit.gaussian_cc import GaussianCC, HorizonGaussian
from trilift.counters.edit.mechanism import ECC, SimECC
from trilift.counters.edit.partition_cc import PartitionCC
from trilift.counters.neighbours import (
    count_distinct,
    is_data_independent,
    lift,
    noise_of,
    running_sum_differences,
    sensitivity_set,
)

STEPS = 30
STREAMS = (
    (0,) * STEPS,
    (1,) * STEPS,
    (1, 0, None) * (STEPS // 3),
    (None,) * 15 + (1,) * 15,
    (1,) * 15 + (None,) * 15,
)
CHAIN = ("stage-max-9", "direct-max-4")
LONG = 400
"""Steps after which counters by buckets have shown something."""
DELTA = Fraction(1, 1000)
Make = Callable[[int], Any]


def released(make: Make, *, silent: bool) -> Callable[[Any, int], list[Any]]:
    """A counter as a mechanism; BOT is handed on where the counter knows it, else it is 0."""

    def release(stream: Any, seed: int) -> list[Any]:
        items = list(stream) if silent else [item or 0 for item in stream]
        return np.asarray(make(seed).extend(items)).tolist()

    return release


INDEPENDENT: dict[str, tuple[Make, bool]] = {
    "Counter": (lambda seed: Counter(1, horizon=STEPS, chain=CHAIN, simulation_seed=seed), False),
    "Counter, unbounded": (lambda seed: Counter(1, simulation_seed=seed), False),
    "GaussianCC": (lambda seed: GaussianCC(1, delta=DELTA, simulation_seed=seed), True),
    "HorizonGaussian": (
        lambda seed: HorizonGaussian(1, delta=DELTA, horizon=STEPS, simulation_seed=seed),
        True,
    ),
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_noise_that_does_not_look(name: str) -> None:
    make, silent = INDEPENDENT[name]
    release = released(make, silent=silent)
    assert is_data_independent(release, streams=STREAMS, seeds=range(4))
    noise = [noise_of(release, stream=STREAMS[0], seed=seed) for seed in range(4)]
    assert len(set(noise)) == 4  # and it is noise


LOOKING: dict[str, Make] = {
    "PartitionCC": lambda seed: PartitionCC(1, DELTA, horizon=LONG, simulation_seed=seed),
    "SimECC": lambda seed: SimECC(20, DELTA, horizon=LONG, simulation_seed=seed),
    "ECC": lambda seed: ECC(20, DELTA, horizon=LONG, simulation_seed=seed),
}


@pytest.mark.parametrize("name", LOOKING)
def test_what_is_shown_depends_on_when_something_was_counted(name: str) -> None:
    """Every seed tells, on streams of other sums and on streams of one sum at other times."""
    release = released(LOOKING[name], silent=True)
    half = LONG // 2
    others = [(1,) * LONG, (0,) * LONG], [(1, None) * half, (None,) * half + (1,) * half]
    for seed in range(2):
        for streams in others:
            assert not is_data_independent(release, streams=streams, seeds=[seed])


def test_a_private_counter_counts_distinct_items() -> None:
    """GaussianCC's noise, private for edit neighbours, on the number of distinct items in a log."""
    steps, log = 5, (("+", "a"), ("+", "b"), None, ("-", "a"), ("-", "b"))
    make, silent = INDEPENDENT["GaussianCC"]
    lifted = lift(
        released(make, silent=silent),
        base=(None,) * steps,
        sensitivity=running_sum_differences(steps),  # what GaussianCC protects under edit neighbours
        lifted_sensitivity=sensitivity_set(steps, relation="prefix", alphabet=[-1, 0, 1]),
        function=count_distinct,
    )
    noise = noise_of(released(make, silent=silent), stream=(1, 0, 1, 1, None), seed=9)
    assert lifted(log, 9) == tuple(c + z for c, z in zip((1, 2, 2, 1, 0), noise, strict=True))
    assert is_data_independent(lifted, streams=[log, log[::-1], (None,) * steps], function=count_distinct)
