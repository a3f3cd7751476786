"""Single rows of L against the dense matrix."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.chain import Chain
from trilift.lift.dense import materialise
from trilift.lift.errors import HorizonError, ParameterError
from trilift.lift.rows import row_covariance, row_entries

shapes = st.tuples(st.lists(st.integers(2, 4), max_size=3), st.integers(1, 4))


@settings(max_examples=40, deadline=None)
@given(shape=shapes, seed=st.integers(0, 10**6), exact=st.booleans())
def test_rows_are_those_of_the_matrix(
    make: Any, shape: tuple[list[int], int], seed: int, exact: bool
) -> None:
    chain = make.chain(seed, *shape, exact=exact)
    n, levels = chain.capacity, len(chain.levels)
    dense = materialise(chain.to_float(), n)
    for step in range(n):
        row = np.zeros(dense.L.shape[1])
        entries = row_entries(chain, step)
        assert len(entries) == levels
        for index, (level, blocks) in enumerate(zip(chain.levels, entries, strict=True)):
            assert len(blocks) <= 4
            place = np.searchsorted(dense.level, index)  # where the level's coordinates begin
            for block, values in blocks.items():
                row[place + block * level.inner : place + (block + 1) * level.inner] = values
        np.testing.assert_allclose(row, dense.L[step], rtol=1e-9, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(shape=shapes, seed=st.integers(0, 10**6))
def test_covariances(make: Any, shape: tuple[list[int], int], seed: int) -> None:
    chain = make.chain(seed, *shape)
    rng = np.random.default_rng(seed)
    scales = np.exp(rng.normal(size=len(chain.levels)))
    L, _ = materialise(chain, chain.capacity).scaled(scales)
    for first, second in rng.integers(0, chain.capacity, size=(20, 2)):
        covariance = row_covariance(chain, int(first), int(second), scales=scales)
        assert covariance == pytest.approx(L[first] @ L[second], rel=1e-9, abs=1e-9)


def test_steps_and_scales_that_are_refused(make: Any) -> None:
    chain: Chain = make.chain(1, [3], 2)
    for step in (-1, chain.capacity):
        with pytest.raises(HorizonError):
            row_entries(chain, step)
        with pytest.raises(HorizonError):
            row_covariance(chain, 0, step, scales=[1.0, 1.0])
    with pytest.raises(ParameterError, match="steps must be"):
        row_entries(chain, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="scales must"):
        row_covariance(chain, 0, 1, scales=[1.0])
