"""One rounding of a sum of parts, instead of one a part."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trilift.lift.errors import ParameterError
from trilift.stream.process import NoiseProcess
from trilift.stream.rounded import RoundedOnce


class Given:
    """A process whose values are given."""

    horizon = None
    digest = bytes(32)

    def __init__(self, values: Any, places: int) -> None:
        self.values, self.places = values, places

    def range(self, start: int, stop: int) -> Any:
        return self.values[start:stop]

    def at(self, steps: Any) -> Any:
        return self.values[np.asarray(steps)]

    def variance(self, steps: Any) -> Any:
        return np.zeros(np.shape(steps))


@pytest.mark.parametrize("shift", [1, 2, 20, 61, 62, 70])
def test_it_is_floor_of_u_and_a_half(shift: int) -> None:
    half = 1 << (shift - 1)
    numbers = [0, 1, -1, half, half - 1, -half, -half - 1, 3 * half, -3 * half, 5 * half + 1]
    numbers += [2**63 - 1, -(2**63), 2**62 + half, 2**80 + half]
    fits = np.array([n for n in numbers if -(2**63) <= n < 2**63], dtype=np.int64)
    for values in (fits, np.array(numbers, dtype=object)):
        rounded = RoundedOnce(Given(values, shift), places=0).range(0, len(values))
        wanted = [(Fraction(int(n), 1 << shift) + Fraction(1, 2)).__floor__() for n in values]
        assert [int(n) for n in rounded] == wanted


def test_it_is_a_process_of_its_own() -> None:
    fine = Given(np.arange(-8, 8), 3)
    noise = RoundedOnce(fine, places=1)
    assert isinstance(noise, NoiseProcess)
    assert noise.at([[0, 15], [1, 8]]).tolist() == [[-2, 2], [-2, 0]]
    assert noise.variance([0]).tolist() == [1 / 48]
    assert noise.digest != RoundedOnce(fine, places=2).digest != fine.digest
    assert RoundedOnce(fine, places=3).range(0, 16).tolist() == list(range(-8, 8))
    with pytest.raises(ParameterError):
        RoundedOnce(fine, places=4)
