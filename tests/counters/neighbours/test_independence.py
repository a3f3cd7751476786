"""Which counters of the library have noise that does not look at the data, seed by seed and exactly."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trilift.counters import Counter
from trilift.counters.biased_counter import BiasedCounter
from trilift.counters.edit.gaussian_cc import GaussianCC, HorizonGaussian
from trilift.counters.edit.mechanism import ECC, SimECC
from trilift.counters.edit.partition_cc import PartitionCC
from trilift.counters.gaussian_counter import GaussianCounter
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
    "GaussianCounter": (
        lambda seed: GaussianCounter(1, DELTA, horizon=STEPS, mechanism="toeplitz", simulation_seed=seed),
        False,
    ),
    "GaussianCounter, unbounded": (lambda seed: GaussianCounter(1, DELTA, simulation_seed=seed), False),
    "GaussianCC": (lambda seed: GaussianCC(1, delta=DELTA, simulation_seed=seed), True),
    "HorizonGaussian": (
        lambda seed: HorizonGaussian(1, delta=DELTA, horizon=STEPS, simulation_seed=seed),
        True,
    ),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * name.endswith("unbounded")) for name in INDEPENDENT],
)
def test_noise_that_does_not_look(name: str) -> None:
    make, silent = INDEPENDENT[name]
    release = released(make, silent=silent)
    assert is_data_independent(release, streams=STREAMS, seeds=range(4))
    noise = [noise_of(release, stream=STREAMS[0], seed=seed) for seed in range(4)]
    assert len(set(noise)) == 4  # and it is noise


def biased(seed: int) -> BiasedCounter:
    return BiasedCounter(
        1, Fraction(1, 10), horizon=STEPS, chain=CHAIN, resolution=Fraction(1, 4), simulation_seed=seed
    )


def test_the_biased_counter_looks_where_it_rounds_up() -> None:
    """max(s + z + alpha, s) is s + max(z + alpha, 0): on the lattice of the sums BCC's error is the same
    for all. Rounding up to whole numbers, as in the paper, depends on the fractions of the sums.
    """
    exact = released(biased, silent=False)
    streams = [*STREAMS, (0.25,) * STEPS, (0.75, 0) * (STEPS // 2)]
    assert is_data_independent(exact, streams=streams)
    assert all(min(noise_of(exact, stream=x, seed=1)) >= 0 for x in streams)

    def whole(stream: Any, seed: int) -> list[int]:
        return [math.ceil(y) for y in exact(stream, seed)]

    assert is_data_independent(whole, streams=STREAMS)
    for seed in range(4):
        assert not is_data_independent(whole, streams=streams, seeds=[seed])


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
