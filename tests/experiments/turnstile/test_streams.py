"""Streams: truths by counting, shapes that the text promises."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.experiments.turnstile.streams import (
    GENERAL,
    STREAMS,
    STRICT,
    heavy_shape,
    make_stream,
    truth,
)
from trilift.lift.errors import ParameterError


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 1)), min_size=1, max_size=40))
def test_truth_by_counting(events: list[tuple[int, int]]) -> None:
    items, signs = np.array(events, dtype=np.int64).T
    distinct, moment, own = truth(items, signs)
    x: Counter[int] = Counter()
    for t, (item, sign) in enumerate(events):
        x[item] += sign
        assert distinct[t] == sum(value != 0 for value in x.values())
        assert moment[t] == sum(value**2 for value in x.values())
        assert own[t] == x[item]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("steps", [100, 1001, 4000])
def test_lengths_and_strictness(name: str, steps: int) -> None:
    stream = make_stream(name, steps=steps, rng=np.random.default_rng(3))
    assert len(stream.items) == len(stream.signs) == len(stream.distinct) == len(stream.moment) == steps
    assert set(np.unique(stream.signs)) <= {-1, 0, 1}
    assert stream.items.min() >= 0
    _, _, own = truth(stream.items, stream.signs)
    assert stream.strict == bool((own >= 0).all()) == (name in STRICT)


def test_every_stream_is_of_one_kind() -> None:
    assert set(STREAMS) == set(STRICT) | set(GENERAL)
    assert not set(STRICT) & set(GENERAL)


def test_what_the_streams_are() -> None:
    rng = np.random.default_rng(0)
    unit = make_stream("unit", steps=1000, rng=rng)
    assert int(unit.distinct.max()) == 500
    assert unit.distinct[-1] == 0
    heavy = make_stream("heavy element", steps=1000, rng=rng)
    assert heavy.moment.tolist() == [t * t for t in range(1, 1001)]
    assert (heavy.distinct == 1).all()
    rotation = make_stream("heavy rotation", steps=10**5, rng=rng)
    assert int(rotation.distinct.max()) == heavy_shape(10**5)[0] == 23
    assert int(rotation.moment.max()) == 23 * 2000**2
    flips = make_stream("flippancy", steps=1000, rng=rng)
    assert int(flips.distinct.max()) == 40
    assert (flips.distinct == flips.moment).all()
    assert flips.distinct[79] == 0
    marginals = make_stream("marginals", steps=10_000, rng=rng)
    assert marginals.distinct[49] == 50
    assert 50 <= marginals.distinct[50:].min() <= marginals.distinct.max() <= 100
    window = make_stream("window", steps=10_000, rng=rng)
    assert set(np.unique(window.distinct[200:])) == {100, 101}
    frequent = make_stream("frequent", steps=10**5, rng=rng)
    assert (frequent.distinct[-1], frequent.moment[-1]) == (1000, 1000 * 100**2)


def test_unknown_name() -> None:
    with pytest.raises(ParameterError, match="there is no stream dull"):
        make_stream("dull", steps=100, rng=np.random.default_rng(0))
