"""A small two-level counter of shipped artifacts, cheap enough for dense matrices and many examples."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from trilift.counters import Counter
from trilift.stream.fast import switch

SMALL = ("stage-max-9", "direct-max-4")


@pytest.fixture(scope="session")
def small() -> Callable[..., Counter]:
    """Return a maker of simulated counters over 30 steps of a chain of capacity 36."""

    def make(epsilon: Any = 1, **options: Any) -> Counter:
        return Counter(epsilon, **{"horizon": 30, "chain": SMALL, "simulation_seed": 5} | options)

    return make


@pytest.fixture
def plain_path() -> Iterator[None]:
    """No compiled kernels are loaded meanwhile: loading them takes memory, and the process decides when."""
    before = switch._switch.wanted, switch._switch.asked
    switch.disable()
    yield
    switch._switch.wanted, switch._switch.asked = before
