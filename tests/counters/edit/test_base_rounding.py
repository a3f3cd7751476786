"""Unbounded bases: their released integers are one rounding of the noise that delays are made for."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trilift.counters.edit import PartitionCC
from trilift.counters.edit.base import GAUSSIAN, UNBOUNDED, BaseSpec
from trilift.counters.edit.toeplitz_epochs import LAYOUTS
from trilift.stream.keys import simulation_key


@pytest.mark.parametrize("kind", UNBOUNDED)
def test_roundings_of_parts_do_not_add_up(kind: str) -> None:
    """Six epochs of "doubling" used to be off by up to three steps; where noise is small that is much."""
    budget: dict[str, Any] = {"mu" if kind in GAUSSIAN else "epsilon": Fraction(8)}
    spec = BaseSpec(kind, None, **budget)
    built: Any = spec.build(key=simulation_key(5), stream_id=bytes(16), purpose="test")
    released, fine = built.range(0, 300), built.fine.range(0, 300)
    assert built.places == 0
    assert built.fine.places == 20
    off = released - fine / 2.0**20
    assert np.abs(off).max() <= 0.5
    assert np.abs(off).max() > 0.4


def test_small_noise_of_many_epochs_is_not_lost() -> None:
    """Parts of deviation 0.2 are nearly always rounded to 0 each; their sum is not."""
    spec = BaseSpec("cc", None, mu=Fraction(7))
    built: Any = spec.build(key=simulation_key(5), stream_id=bytes(16), purpose="test")
    index = np.arange(1 << 12, (1 << 12) + 400)
    deviation = float(np.sqrt(np.square(built.at(index).astype(float)).mean()))
    claimed = float(np.sqrt(np.square(spec.sd(index)).mean() + 1 / 12))
    assert 0.2 * claimed < deviation < 3 * claimed


def test_segments_past_the_noise_of_the_counter() -> None:
    """PartitionCC's counter serves as many segments as its epochs have steps: the last one then stays."""
    counter = PartitionCC(1000, 1e-5, horizon=1 << 30, simulation_seed=3)
    last = LAYOUTS["cc"].ends[-1]
    assert counter.design.capacity == last
    counter._now = replace(counter._now, bucket=last)
    shown = counter.extend([1] * 200)
    assert counter._now.bucket == last
    assert set(shown.tolist()) == {0}
    assert counter.update(1) == 0
