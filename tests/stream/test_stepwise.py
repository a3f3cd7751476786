"""Steps in any order, of processes with and without an end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.errors import HorizonError, ParameterError
from trilift.stream import stepwise
from trilift.stream.stepwise import Stepwise


class Squares(Stepwise):
    """Step t has the value t^2, as Python integers past 2^63; records the chunks it was asked for."""

    def __init__(self, horizon: int | None) -> None:
        self.horizon = horizon
        self.chunks: list[list[int]] = []

    def _rounded(self, steps):
        assert steps.dtype == np.int64
        assert len(steps) > 0
        assert (np.diff(steps) > 0).all()
        self.chunks.append(steps.tolist())
        values = steps.astype(object) ** 2
        return values.astype(np.int64) if max(values) < 1 << 63 else values


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.integers(0, 40), max_size=30), horizon=st.sampled_from([41, None]))
def test_any_order_and_repetitions(steps, horizon) -> None:
    process = Squares(horizon)
    assert process.at(steps).tolist() == [t * t for t in steps]
    assert len(process.chunks) == bool(steps)


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_chunks_are_joined(monkeypatch, chunk) -> None:
    monkeypatch.setattr(stepwise, "_CHUNK", chunk)
    process = Squares(50)
    assert process.range(7, 50).tolist() == [t * t for t in range(7, 50)]
    assert max(map(len, process.chunks)) <= chunk
    assert process.range(50, 50).dtype == np.int64


def test_a_process_without_end() -> None:
    process = Squares(None)
    far = (1 << 62) - 1
    values = process.at([[far, 2], [0, 3]])
    assert values.dtype == object
    assert values.tolist() == [[far * far, 4], [0, 9]]
    assert process.range(far - 1, far + 1).tolist() == [(far - 1) ** 2, far**2]
    with pytest.raises(HorizonError):
        process.at([far + 1])


@pytest.mark.parametrize("ask", [lambda p: p.range(0, 6), lambda p: p.at([5]), lambda p: p.at(-1)])
def test_steps_outside_the_horizon(ask) -> None:
    with pytest.raises(HorizonError):
        ask(Squares(5))


@pytest.mark.parametrize(
    "ask",
    [lambda p: p.range(-1, 2), lambda p: p.range(3, 2), lambda p: p.at([0.0]), lambda p: p.range(0, 1.5)],
)
def test_steps_that_are_no_steps(ask) -> None:
    with pytest.raises(ParameterError):
        ask(Squares(5))
