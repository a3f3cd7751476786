"""Data independence and the lifting lemma, on mechanisms small enough to see through."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from trilift.counters.neighbours import (
    all_streams,
    difference_stream,
    is_data_independent,
    lift,
    noise_of,
    prefix_sums,
    random_updates,
    running_sum_differences,
    sensitivity_set,
    trits_to_bits,
)
from trilift.lift.errors import ParameterError

STEPS = 24
STREAMS = (
    (0,) * STEPS,
    (1,) * STEPS,
    (None,) * STEPS,
    (1, 0, None) * (STEPS // 3),
    (None,) * 12 + (1,) * 12,
    (1,) * 12 + (None,) * 12,
)


def integers(seed: int, steps: int = STEPS, scale: int = 9) -> list[int]:
    return np.random.default_rng(seed).integers(-scale, scale + 1, size=steps).tolist()


def independent(stream: Any, seed: int) -> list[Any]:
    """As GaussianCC: fresh noise at every step."""
    return [s + z for s, z in zip(prefix_sums(stream), integers(seed, len(stream)), strict=True)]


def correlated(stream: Any, seed: int) -> list[Any]:
    """As CC: noise that is a running sum itself."""
    noise = np.cumsum(integers(seed, len(stream)))
    return [s + int(z) for s, z in zip(prefix_sums(stream), noise, strict=True)]


def never_below(stream: Any, seed: int) -> list[Any]:
    """As BCC, with a shift so small that the maximum binds."""
    return [max(s + z + 1, s) for s, z in zip(prefix_sums(stream), integers(seed), strict=True)]


def scaled(stream: Any, seed: int) -> list[Any]:
    """Noise in proportion to the count."""
    return [s * (1 + z) for s, z in zip(prefix_sums(stream), integers(seed), strict=True)]


def partitioned(stream: Any, seed: int) -> list[Any]:
    """As PartitionCC: the count moves on when a noisy threshold is reached."""
    shown, since, outputs = 0, 0, []
    for item, z in zip(stream, integers(seed, scale=2), strict=True):
        since += item or 0
        if since + z >= 4:
            shown, since = shown + since, 0
        outputs.append(shown)
    return outputs


def scheduled(stream: Any, seed: int) -> list[Any]:
    """As SimECC: the partition reads no input, but the output is late."""
    outputs, late = [], 3
    sums = (0,) * late + prefix_sums(stream)
    for step, z in enumerate(integers(seed)):
        outputs.append(sums[step // 5 * 5] + z)
    return outputs


@pytest.mark.parametrize("mechanism", [independent, correlated])
def test_noise_that_does_not_look(mechanism: Callable[..., Iterable[Any]]) -> None:
    assert is_data_independent(mechanism, streams=STREAMS, seeds=range(10))
    assert noise_of(mechanism, stream=STREAMS[0], seed=4) == noise_of(mechanism, stream=STREAMS[3], seed=4)
    assert noise_of(mechanism, stream=STREAMS[0], seed=4) != noise_of(mechanism, stream=STREAMS[0], seed=5)


@pytest.mark.parametrize("mechanism", [scaled, partitioned, scheduled])
def test_noise_that_looks(mechanism: Callable[..., Iterable[Any]]) -> None:
    for seed in range(10):
        assert not is_data_independent(mechanism, streams=STREAMS, seeds=[seed])


def test_a_lower_bound_by_the_sum_is_no_look() -> None:
    """max(s + z, s) is s + max(z, 0); other bounds, and rounding up of sums that are no integers, look."""
    assert is_data_independent(never_below, streams=STREAMS)
    up = lambda stream, seed: [math.ceil(y) for y in never_below(stream, seed)]  # noqa: E731
    assert is_data_independent(up, streams=STREAMS)
    assert not is_data_independent(up, streams=[*STREAMS, (0.5,) * STEPS])
    clipped = lambda stream, seed: [max(y, 0) for y in independent(stream, seed)]  # noqa: E731
    assert not is_data_independent(clipped, streams=STREAMS)


def test_rounding_of_floats() -> None:
    """A mechanism that adds in floats passes with a tolerance alone."""

    def floats(stream: Any, seed: int) -> Any:
        exact = np.cumsum([item or 0 for item in stream])
        return exact + np.random.default_rng(seed).normal(size=len(stream))

    assert not is_data_independent(floats, streams=STREAMS)
    assert is_data_independent(floats, streams=STREAMS, tolerance=1e-13)


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="at least two streams and one seed"):
        is_data_independent(independent, streams=STREAMS[:1])
    with pytest.raises(ParameterError, match="at least two streams and one seed"):
        is_data_independent(independent, streams=STREAMS, seeds=[])
    with pytest.raises(ParameterError, match="must have values of one length"):
        is_data_independent(independent, streams=[(1,), (1, 0)])
    with pytest.raises(ParameterError, match="a release must be 2 numbers, got 1 entries"):
        noise_of(lambda stream, seed: [1], stream=(0, 0), seed=0)
    with pytest.raises(ParameterError, match=r"release\[1\] must be a finite number, got nan"):
        noise_of(lambda stream, seed: [1, float("nan")], stream=(0, 0), seed=0)


def laws(release: Any, stream: Any, seeds: range) -> dict[tuple[Any, ...], int]:
    counts: dict[tuple[Any, ...], int] = {}
    for seed in seeds:
        y = tuple(release(stream, seed))
        counts[y] = counts.get(y, 0) + 1
    return counts


def test_lifting_to_other_problems() -> None:
    """Every pair of neighbours of the new problem has the laws of a pair of the old one, moved."""
    edit = sensitivity_set(3)
    trits = sensitivity_set(3, relation="prefix", alphabet=[-1, 0, 1])
    assert trits == edit
    lifted = lift(
        correlated,
        base=(0, 0, 0),
        sensitivity=edit,
        lifted_sensitivity=trits,
        function=lambda log: prefix_sums(difference_stream(log)),
    )
    logs = [random_updates(3, items=2, seed=seed) for seed in range(5)]
    distinct = lambda log: prefix_sums(difference_stream(log))  # noqa: E731
    assert is_data_independent(lifted, streams=logs, function=distinct, seeds=range(5))
    seeds = range(200)
    for log in logs:
        moved = {
            tuple(s + z for s, z in zip(distinct(log), noise, strict=True)): count
            for noise, count in laws(correlated, (0, 0, 0), seeds).items()
        }
        assert laws(lifted, log, seeds) == moved


def test_the_lemma() -> None:
    """A pair of P' has the laws of any pair of P with the same difference, moved."""
    edit = sensitivity_set(3)
    lifted = lift(
        independent, base=(0, 0, 0), sensitivity=edit, lifted_sensitivity=edit, function=prefix_sums
    )
    seeds = range(16)
    by_difference: dict[tuple[Any, ...], set[frozenset[Any]]] = {}
    for x in all_streams(3, alphabet=[0, 1]):
        for other in all_streams(3, alphabet=[0, 1]):
            difference = tuple(a - b for a, b in zip(prefix_sums(x), prefix_sums(other), strict=True))
            if difference in edit:
                # the joint view of both laws, with the origin moved to the sums of the second stream
                shift = prefix_sums(other)
                pair = frozenset(
                    (side, tuple(a - b for a, b in zip(y, shift, strict=True)), n)
                    for side, stream in enumerate((x, other))
                    for y, n in laws(lifted, stream, seeds).items()
                )
                by_difference.setdefault(difference, set()).add(pair)
    assert set(by_difference) == edit
    assert all(len(pairs) == 1 for pairs in by_difference.values())
    swap = sensitivity_set(3, relation="swap", alphabet=[0, 1])
    with pytest.raises(ParameterError, match="does not cover 8 differences of the new problem"):
        lift(independent, base=(0,) * 3, sensitivity=swap, lifted_sensitivity=edit, function=prefix_sums)


def test_bits_carry_trits() -> None:
    """Through TritsToBits a counter of bits counts trits: the differences stay in the set of 2 T steps."""
    differences = sensitivity_set(
        2, relation="prefix", alphabet=[-1, 0, 1], function=lambda x: prefix_sums(trits_to_bits(x))
    )
    assert differences <= running_sum_differences(4)
    lifted = lift(
        independent,
        base=(0,) * 4,
        sensitivity=running_sum_differences(4),
        lifted_sensitivity=differences,
        function=lambda x: prefix_sums(trits_to_bits(x)),
    )
    assert len(lifted((1, -1), 3)) == 4
    with pytest.raises(ParameterError, match="the function has 2 entries, the noise has 4"):
        lifted((1,), 3)
