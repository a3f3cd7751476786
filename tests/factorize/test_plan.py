"""Schedules and cost estimates."""

import jax.numpy as jnp
import pytest
from trilift.factorize import cold, estimate_cost, warm
from trilift.factorize.precision import double_precision
from trilift.lift.errors import ParameterError


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("make", [cold, warm])
def test_schedules_start_and_end_where_they_say(make, largest):
    schedule = make(largest=largest)
    with double_precision():
        first = schedule.annealed(jnp.asarray(0), steps=100, size=10)
        last = schedule.annealed(jnp.asarray(95), steps=100, size=10)
        middle = schedule.annealed(jnp.asarray(45), steps=100, size=10)
    assert float(first.smoothing) == pytest.approx(schedule.smoothing[0] / 10)
    assert float(last.smoothing) == pytest.approx(schedule.smoothing[1] / 10)
    assert (float(first.exponent), float(last.exponent)) == pytest.approx(schedule.exponent)
    geometric = (schedule.smoothing[0] * schedule.smoothing[1]) ** 0.5
    assert float(middle.smoothing) == pytest.approx(geometric / 10)
    if not largest:
        assert schedule.exponent == (1.0, 1.0)


def test_estimates_grow_with_the_work():
    small, large = estimate_cost(33, steps=1000, starts=4), estimate_cost(66, steps=1000, starts=4)
    assert large.memory_bytes == 4 * small.memory_bytes
    assert 2 * small.seconds < large.seconds < 8 * small.seconds
    assert estimate_cost(33, steps=3000, starts=4).seconds == pytest.approx(3 * small.seconds)


@pytest.mark.parametrize("bad", [{"size": 1}, {"steps": 0}, {"starts": 1.5}])
def test_estimates_refuse_bad_arguments(bad):
    arguments = {"size": 9, "steps": 10, "starts": 2} | bad
    with pytest.raises(ParameterError):
        estimate_cost(arguments.pop("size"), **arguments)
