"""Constants against values computed elsewhere."""

import math

import pytest
from trilift.experiments.edit.paper_constants import (
    gaussian_constant,
    log_delta,
    privacy_mu,
    textbook_gaussian_constant,
)


def test_known_values() -> None:
    assert gaussian_constant(0.05, ln_delta=math.log(5e-6)) == pytest.approx(61.3721, abs=5e-5)
    assert gaussian_constant(75, ln_delta=math.log(5e-6)) == pytest.approx(0.115416, abs=5e-7)
    assert privacy_mu(10, ln_delta=math.log(1e-5)) == pytest.approx(2.00045, abs=5e-6)
    assert privacy_mu(150, ln_delta=math.log(1e-5)) == pytest.approx(13.6216, abs=5e-5)
    assert gaussian_constant(100 / 9, ln_delta=-120.534) == pytest.approx(1.39014, abs=5e-6)


def test_log_delta_is_the_formula_where_floats_can_say_it() -> None:
    def phi(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2))

    for epsilon, mu in ((1.0, 0.5), (0.1, 1.0), (3.0, 2.0)):
        delta = phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)
        assert log_delta(epsilon, mu=mu) == pytest.approx(math.log(delta), abs=1e-9)


def test_the_textbook_routine_fails_where_delta_is_tiny() -> None:
    assert textbook_gaussian_constant(1.0, delta=1e-3) == pytest.approx(
        gaussian_constant(1.0, ln_delta=math.log(1e-3)), rel=1e-6
    )
    tiny = textbook_gaussian_constant(100 / 9, delta=math.exp(-120.534))
    assert tiny == pytest.approx(0.7917, abs=1e-4)
    assert log_delta(100 / 9, mu=1 / tiny) > -120.534 + 80  # it spends e^80 times the delta asked for
