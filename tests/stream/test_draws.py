"""Batches of exact integers: conversions agree, floats keep their bound, nothing is shown."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trilift.lift.errors import StateError
from trilift.stream.draws import Draws, Part
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import LaplaceRows

STREAM = Keystream(simulation_key(30))


@pytest.mark.parametrize("scale", [1, 1 << 20, 1 << 55, (1 << 55) + 1, 1 << 70, 3 << 90, 1 << 300])
def test_conversions_agree(scale) -> None:
    draws = LaplaceRows([scale, 2, scale]).sample(STREAM, 0, range(300))
    exact = draws.to_objects()
    floats = draws.to_float()
    assert exact.shape == floats.shape == draws.shape == (300, 3)
    assert exact.tolist() == [draws.block(i) for i in range(300)]
    for value, approximate in zip(exact.ravel(), floats.ravel().tolist(), strict=True):
        assert abs(Fraction(approximate) - value) * (1 << 52) <= abs(value)
        assert abs(value) >= 1 << 53 or approximate == value
    if max(map(abs, exact.ravel())) < 1 << 63:
        assert draws.to_int64().tolist() == exact.tolist()
        assert draws.to_int64().dtype == np.int64
    else:
        with pytest.raises(StateError):
            draws.to_int64()


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([0, 1, (1 << 32) - 1, 1 << 31, (1 << 21) - 1]), min_size=1, max_size=7),
    st.integers(0, 1 << 60),
    st.sampled_from([-1, 1]),
)
@example([(1 << 32) - 1] * 6, 0, 1)
def test_float_conversion_keeps_its_bound_on_hard_integers(halves, low, sign) -> None:
    """Magnitudes made of extreme 32-bit halves, given in packed form: |X| - 1, behind three flags."""
    magnitude = sum(half << 32 * k for k, half in enumerate(halves)) + low
    bits = magnitude << 3 | (1 if sign > 0 else 3)
    limbs = -(-bits.bit_length() // 64)
    packed = np.array([[[bits >> 64 * k & (1 << 64) - 1 for k in range(limbs)]]], dtype=np.uint64)
    draws = Draws((1, 1), [Part(range(1), packed)])
    exact = sign * (magnitude + 1)
    assert draws.block(0) == [exact]
    assert draws.to_objects().tolist() == [[exact]]
    assert abs(Fraction(float(draws.to_float()[0, 0])) - exact) * (1 << 52) < abs(exact)
    if abs(exact) < 1 << 63:
        assert draws.to_int64().tolist() == [[exact]]
    else:
        with pytest.raises(StateError):
            draws.to_int64()


def test_floats_that_do_not_exist_are_refused() -> None:
    draws = LaplaceRows([1 << 1100]).sample(STREAM, 0, range(4))
    with pytest.raises(StateError):
        draws.to_float()
    assert max(map(abs, draws.to_objects().ravel())) > 1 << 1024


def test_empty_batches_and_levels() -> None:
    assert LaplaceRows([3, 1 << 80]).sample(STREAM, 0, []).to_float().shape == (0, 2)
    assert LaplaceRows([]).sample(STREAM, 0, [1, 2]).to_int64().shape == (2, 0)


def test_draws_do_not_show_their_values() -> None:
    draws = LaplaceRows([1 << 60] * 2).sample(STREAM, 0, [0])
    assert repr(draws) == "Draws(shape=(1, 2))"
