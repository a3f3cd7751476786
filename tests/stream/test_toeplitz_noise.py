"""Noise of the Toeplitz square root: decided exactly however it is reached, its law, its budget."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.stream import toeplitz_noise
from trilift.stream.keys import simulation_key
from trilift.stream.process import NoiseProcess
from trilift.stream.toeplitz_factor import ROOT_PLACES, left_exact, left_row_norms_sq, toeplitz_root
from trilift.stream.toeplitz_noise import ToeplitzNoise, toeplitz_sigma

STREAM = bytes(range(16))


def make(size: int, *, mu: Any = 1, seed: int = 1, purpose: str = "counter", **options: Any) -> ToeplitzNoise:
    key = simulation_key(seed)
    return ToeplitzNoise(size, mu=mu, key=key, stream_id=STREAM, purpose=purpose, **options)


def by_definition(noise: ToeplitzNoise, count: int) -> list[int]:
    """floor(N_t / h + 1/2) of the first steps, N = L z in fractions."""
    L, z = left_exact(count), noise._exact_draws(count)
    scale = Fraction(1 << noise.places, 1 << (ROOT_PLACES + noise.input_places))
    exact = [sum((L[k] * z[t - k] for k in range(t + 1)), Fraction(0)) for t in range(count)]
    return [math.floor(value * scale + Fraction(1, 2)) for value in exact]


class Shifted(ToeplitzNoise):
    """Its draws have R~ x added to them, x in units of the input lattice: what a release adds up."""

    shift: list[int]

    def _moved(self, z: list[int]) -> list[int]:
        column = toeplitz_root(self.horizon).tolist()
        x = self.shift
        return [value + sum(column[t - i] * x[i] for i in range(t + 1) if x[i]) for t, value in enumerate(z)]

    def _float_draws(self, length: int) -> tuple[list[int], Fraction]:
        z, error = super()._float_draws(length)
        return self._moved(z), error

    def _exact_draws(self, length: int) -> list[int]:
        return self._moved(super()._exact_draws(length))


class Given(ToeplitzNoise):
    """Its draws are given."""

    z: list[int]

    def _float_draws(self, length: int) -> tuple[list[int], Fraction]:
        return self.z[:length], Fraction(0)

    def _exact_draws(self, length: int) -> list[int]:
        return self.z[:length]


# -- one answer a step -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"mu": Fraction(1, 1000)}, {"input_places": 3}, {"places": 40}, {"input_places": 20, "places": 70}],
    ids=["plain", "large", "inputs", "fine", "both"],
)
def test_values_are_those_of_the_definition(options: dict[str, Any]) -> None:
    noise = make(100, **options)
    values = noise.range(0, 100)
    assert values.tolist() == by_definition(noise, 100)
    assert len(set(values.tolist())) > 3


@pytest.mark.parametrize("options", [{}, {"input_places": 12}], ids=["decided draws", "real draws"])
def test_the_exact_ways_give_the_same_values(options: dict[str, Any], monkeypatch: Any) -> None:
    noise = make(700, mu=Fraction(1, 20), **options)
    values = noise.range(0, 700)
    calls: list[int] = []
    plain = ToeplitzNoise._exact_draws

    def counted(self: ToeplitzNoise, length: int) -> list[int]:
        calls.append(length)
        return plain(self, length)

    monkeypatch.setattr(ToeplitzNoise, "_exact_draws", counted)
    assert (noise._prefix(700) == values).all()
    assert calls == []  # floats decide everything on the integer lattice
    assert (noise._prefix(700, inflate=1) == values).all()
    assert calls == [700]


@pytest.mark.parametrize("mu", [10**20, Fraction(1, 10**60)], ids=["hardly any noise", "enormous noise"])
def test_extreme_budgets(mu: Any) -> None:
    for places in (0, 80):
        noise = make(40, mu=mu, places=places)
        assert noise.range(0, 40).tolist() == by_definition(noise, 40)


def test_any_order_and_any_split_give_the_same_values() -> None:
    whole = make(3000).range(0, 3000)
    noise = make(3000)
    steps = np.random.default_rng(5).permutation(3000)[:200]
    assert (noise.at(steps[:3]) == whole[steps[:3]]).all()
    assert (noise.range(17, 300) == whole[17:300]).all()
    assert (noise.at(steps) == whole[steps]).all()
    assert noise.at(steps.reshape(20, 10)).shape == (20, 10)
    assert noise.range(5, 5).size == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_ties_are_rounded_up(sign: int) -> None:
    """z = (2^31, -2^30 - 1, ...) makes N_0 = 1/2 exactly, and N_1 = -2^-32."""
    noise = Given(300, mu=1, key=simulation_key(1), stream_id=STREAM, purpose="x")
    noise.z = [sign * (1 << 31), sign * (-(1 << 30) - 1), *[0] * 298]
    exact = [
        sum(a * b for a, b in zip(left_exact(t + 1), reversed(noise.z[: t + 1]), strict=True)) for t in (0, 1)
    ]
    assert exact == [sign * (1 << 31), -sign]
    assert noise.at([0, 1]).tolist() == [1 if sign > 0 else 0, 0]
    noise.z[1] += (1 << 31) * sign  # N_1 = 1/2 - 2^-32 in size: next to a tie, and decided
    fresh = Given(300, mu=1, key=simulation_key(1), stream_id=STREAM, purpose="x")
    fresh.z = noise.z
    assert fresh.at(1) == 0


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=60), st.sampled_from([0, 2]))
@settings(max_examples=30, deadline=None)
def test_moving_the_draws_by_a_stream_moves_the_values_by_its_sums(x: list[int], gamma: int) -> None:
    """floor(N + k) = floor(N) + k: the released values are a function of R~ x + z."""
    options: dict[str, Any] = {"mu": 1, "key": simulation_key(2), "stream_id": STREAM, "purpose": "x"}
    moved = Shifted(60, **options, input_places=gamma)
    moved.shift = x + [0] * (60 - len(x))
    still = ToeplitzNoise(60, **options, input_places=gamma)
    assert (moved.range(0, 60) - still.range(0, 60)).tolist() == np.cumsum(moved.shift).tolist()


def test_golden_values() -> None:
    """The draws, their addresses and the factor may never change under one digest."""
    noise = make(1000, mu=Fraction(1, 1000))
    assert noise.at([0, 1, 2, 255, 256, 999]).tolist() == GOLDEN
    assert noise.digest.hex()[:16] == GOLDEN_DIGEST


# -- law ----------------------------------------------------------------------------------------------


def sample(n: int, count: int) -> tuple[Any, ToeplitzNoise]:
    members = [make(n, purpose=f"member/{k}", places=24) for k in range(count)]
    return np.ldexp(np.array([member.range(0, n) for member in members], dtype=float), -24), members[0]


def distance(sampled: Any, covariance: Any) -> float:
    """The largest deviation of an entry of the empirical covariance, in its standard deviations."""
    count = len(sampled)
    empirical = sampled.T @ sampled / count
    diagonal = np.diag(covariance)
    spread = np.sqrt((covariance**2 + np.outer(diagonal, diagonal)) / count)
    return float(np.abs((empirical - covariance) / spread).max())


def test_covariance_over_keys() -> None:
    """Largest of 78 entries within 4.8 standard deviations: false alarm below 78 * 1.6e-6 * 2 = 3e-4."""
    n, count = 12, 1000
    sampled, noise = sample(n, count)
    column = np.array([float(x) for x in left_exact(n)])
    L = np.array([[column[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])
    sigma = float(noise.sigma)
    assert distance(sampled, sigma**2 * L @ L.T) < 4.8
    assert distance(sampled, (1.15 * sigma) ** 2 * L @ L.T) > 6  # the comparison does see a wrong scale,
    T = np.tri(n)
    assert distance(sampled, sigma**2 * T @ T.T) > 6  # a wrong factor,
    assert distance(sampled, np.diag(np.diag(sigma**2 * L @ L.T))) > 6  # and missing correlations
    assert abs(sampled.mean(axis=0) / np.sqrt(noise.variance(np.arange(n)) / count)).max() < 4.8


def test_variance() -> None:
    noise = make(50, mu=2, input_places=3)
    expected = float(noise.sigma) ** 2 * left_row_norms_sq(50) + 2.0**-6 / 12
    assert noise.variance(np.arange(50)) == pytest.approx(expected, rel=1e-14)
    for bad in (50, -1):
        with pytest.raises((HorizonError, ParameterError)):
            noise.variance(bad)


# -- budget -------------------------------------------------------------------------------------------

POSITIVE = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)


@given(st.integers(1, 60), POSITIVE, POSITIVE)
@settings(max_examples=80, deadline=None)
def test_sigma_spends_at_most_mu_and_hardly_less(n: int, mu: Fraction, change: Fraction) -> None:
    sigma = toeplitz_sigma(n, mu=mu, change=change)
    column = [Fraction(int(c), 1 << ROOT_PLACES) for c in toeplitz_root(n)]
    spent = max(sum((change * r) ** 2 for r in column[: n - i]) for i in range(n)) / sigma**2
    assert mu**2 * (1 - Fraction(1, 1 << 36)) <= spent <= mu**2


def test_the_noise_reports_what_it_spends() -> None:
    noise = make(500, mu=Fraction(1, 3), change=2)
    assert Fraction(1, 9) * (1 - Fraction(1, 1 << 36)) <= noise.spent_mu_sq <= Fraction(1, 9)
    assert noise.sigma == toeplitz_sigma(500, mu=Fraction(1, 3), change=2)


# -- the rest -----------------------------------------------------------------------------------------


def test_it_is_a_noise_process() -> None:
    noise = make(10)
    assert isinstance(noise, NoiseProcess)
    assert (noise.horizon, noise.places) == (10, 0)


def test_everything_is_bound_into_the_digest() -> None:
    variants = [
        make(100),
        make(101),
        make(100, mu=2),
        make(100, change=2),
        make(100, input_places=1, places=1),
        make(100, places=1),
    ]
    assert len({noise.digest for noise in variants}) == len(variants)
    assert make(100, seed=9).digest == variants[0].digest
    assert (make(100, seed=9).range(0, 100) != variants[0].range(0, 100)).any()
    assert (make(100, purpose="other").range(0, 100) != variants[0].range(0, 100)).any()


@pytest.mark.parametrize(
    "options",
    [
        {"size": 0},
        {"size": (1 << 20) + 1},
        {"size": 2.0},
        {"mu": 0},
        {"mu": float("nan")},
        {"mu": "1"},
        {"change": 0},
        {"change": 10**200},
        {"mu": 10**40},
        {"input_places": -1},
        {"input_places": 4, "places": 3},
        {"places": 257},
    ],
    ids=str,
)
def test_arguments_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        make(**({"size": 10} | options))


def test_steps_past_the_horizon_are_refused() -> None:
    noise = make(10)
    for call in (lambda: noise.range(0, 11), lambda: noise.at([10]), lambda: noise.at([-1])):
        with pytest.raises(HorizonError):
            call()
    with pytest.raises(ParameterError):
        noise.at([0.5])


def test_it_is_neither_copied_nor_pickled_and_hides_its_key() -> None:
    noise = make(10)
    for call in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(StateError):
            call(noise)
    assert simulation_key(1).hex() not in repr(noise)


def test_a_scale_that_proves_nothing_is_refused(monkeypatch: Any) -> None:
    monkeypatch.setattr(toeplitz_noise, "isqrt", lambda n: 1)
    with pytest.raises(StateError):
        toeplitz_sigma(10, mu=1)


GOLDEN = [1852, 49, -3757, -3417, -1840, -1368]
GOLDEN_DIGEST = "e3863883a789ef38"


def test_covariances_are_those_of_the_matrix() -> None:
    """sigma^2 (L L^T), with the variances on its diagonal (but for the rounding of released values)."""
    size = 12
    noise = ToeplitzNoise(size, mu=1, key=simulation_key(3), stream_id=bytes(16), purpose="example")
    L = np.linalg.inv(
        np.array([[toeplitz_root(size)[i - j] if i >= j else 0 for j in range(size)] for i in range(size)])
    )
    L = np.tril(np.ones((size, size))) @ L * 2.0**ROOT_PLACES
    expected = float(noise.sigma) ** 2 * L @ L.T
    found = [[noise.covariance(a, b) for b in range(size)] for a in range(size)]
    assert np.allclose(found, expected, rtol=1e-9)
    assert np.allclose(noise.variance(range(size)) - 1 / 12, np.diag(expected), rtol=1e-9)
    for bad in (-1, 1.0, True, None):
        with pytest.raises(ParameterError, match=r"^step must be an integer"):
            noise.covariance(bad, 1)
    with pytest.raises(HorizonError):
        noise.covariance(0, size)
