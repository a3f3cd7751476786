"""Standard deviations and intervals: against dense matrices, and against what is really released."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trilift.counters import Counter, chain_of
from trilift.counters.part_tails import coefficients as noise_coefficients
from trilift.lift.dense import materialise
from trilift.lift.errors import HorizonError, ParameterError

Make = Callable[..., Counter]
Floats = np.ndarray[Any, np.dtype[np.float64]]

SMALL = ("stage-max-9", "direct-max-4")
COPIES = 6000
EPSILON = 0.25


def covariance(counter: Counter) -> Floats:
    """2 L S^2 L^T from the dense matrix and the ledger's scales."""
    dense = materialise(counter.setup.chain, counter.horizon)
    L, _ = dense.scaled([float(s) for s in counter.setup.ledger.scales])
    return np.asarray(2.0 * L @ L.T)


@pytest.fixture(scope="module")
def noise() -> Floats:
    """Released noise of 6000 independent streams, shape (30, 6000): the coordinates of one counter."""
    counter = Counter(
        EPSILON * COPIES,
        horizon=30,
        chain=SMALL,
        dimension=COPIES,
        output_resolution=2.0**-4,
        simulation_seed=11,
    )
    return counter.extend(np.zeros((30, COPIES), dtype=np.int8)).astype(np.float64)


@pytest.fixture(scope="module")
def single() -> Counter:
    """The counter whose noise each of the copies has: the same scales, and one coordinate."""
    return Counter(EPSILON, horizon=30, chain=SMALL, output_resolution=2.0**-4, simulation_seed=11)


@pytest.mark.parametrize(
    "names", [SMALL, ("direct-mean-4",), ("stage-mean-9", "stage-mean-9", "direct-mean-4")]
)
@pytest.mark.parametrize("places", [0, 3])
def test_sd_and_range_sd_against_dense_matrices(names: tuple[str, ...], places: int) -> None:
    n = min(chain_of(names).capacity, 200)
    counter = Counter(
        0.7, horizon=n, chain=names, bounds=(0, 3), output_resolution=2.0**-places, simulation_seed=0
    )
    matrix = covariance(counter) + 4.0**-places / 12 * np.eye(n)
    for t in sorted({1, 2, 9, 10, 19, n - 1, n}):
        if 1 <= t <= n:
            assert counter.sd(t) == pytest.approx(math.sqrt(matrix[t - 1, t - 1]), rel=1e-9)
            assert counter.range_sd(0, t) == counter.sd(t)
    for start, stop in ((1, 2), (1, n), (n // 2, n), (n - 1, n)):
        a, b = start - 1, stop - 1
        expected = math.sqrt(matrix[a, a] + matrix[b, b] - 2 * matrix[a, b])
        assert counter.range_sd(start, stop) == pytest.approx(expected, rel=1e-9)


def test_released_noise_has_the_stated_covariance(noise: Floats, single: Counter) -> None:
    """Every entry of the 30 x 30 covariance; 5 standard errors, 465 entries: false alarm below 3e-4.

    Laplace sums have kurtosis at most 6, so the error of an entry is below sqrt(6 V_ss V_tt / copies).
    """
    matrix = covariance(single) + 4.0**-4 / 12 * np.eye(30)
    sd = np.sqrt(np.diag(matrix))
    assert np.abs(noise @ noise.T / COPIES - matrix).max() / sd.max() ** 2 < 5 * math.sqrt(6 / COPIES)
    assert (np.abs(noise @ noise.T / COPIES - matrix) < 5 * math.sqrt(6 / COPIES) * np.outer(sd, sd)).all()
    assert (np.abs(noise.mean(axis=1)) < 5 * sd / math.sqrt(COPIES)).all()
    assert [single.sd(t) for t in range(1, 31)] == pytest.approx(sd.tolist(), rel=1e-9)
    for start, stop in ((1, 2), (9, 10), (3, 27), (18, 19), (29, 30)):
        spread = (noise[stop - 1] - noise[start - 1]).std()
        assert spread == pytest.approx(single.range_sd(start, stop), rel=5 * math.sqrt(5 / COPIES) / 2)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_pointwise_coverage(noise: Floats, single: Counter, confidence: float) -> None:
    """Between the confidence and 0.02 above it; 5 standard errors, 60 comparisons: false alarm below 2e-5."""
    error = 5 * math.sqrt(confidence * (1 - confidence) / COPIES)
    for t in range(1, 31):
        covered = float((np.abs(noise[t - 1]) <= single.interval(t, confidence)).mean())
        assert confidence - error <= covered <= confidence + error + 0.02


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_simultaneous_coverage(noise: Floats, single: Counter, confidence: float) -> None:
    """At least the confidence, up to 5 standard errors (false alarm below 1e-6); never pointlessly wide."""
    widths = np.array([single.interval(t, confidence, simultaneous=True) for t in range(1, 31)])
    covered = float((np.abs(noise) <= widths[:, None]).all(axis=0).mean())
    assert covered >= confidence - 5 * math.sqrt(confidence * (1 - confidence) / COPIES)
    inside = (np.abs(noise) <= 0.6 * widths[:, None]).all(axis=0).mean()
    assert inside < confidence


def test_simultaneous_intervals_divide_the_failure(small: Make) -> None:
    counter = small()
    for t in (1, 17):
        joint = counter.interval(t, 0.9, simultaneous=True)
        assert joint == pytest.approx(counter.interval(t, 1 - Fraction(1, 300)), rel=1e-6)
    pair = small(dimension=2)
    joint = pair.interval(3, Fraction(9, 10), simultaneous=True)
    assert joint == pytest.approx(pair.interval(3, 1 - Fraction(1, 600)), rel=1e-6)


def test_intervals_grow_with_confidence(small: Make) -> None:
    counter = small()
    levels = [1e-300, 0.01, 0.5, 0.9, 0.99, 1 - 1e-6, 1 - 1e-9, 1 - 1e-15, 1 - Fraction(1, 10**300)]
    widths = [counter.interval(20, level) for level in levels]
    assert widths == sorted(widths)
    assert widths[0] == pytest.approx(0.5, abs=1e-3)  # the rounding remains
    assert counter.interval(20) == counter.interval(20, 0.95)


def test_accuracy_does_not_depend_on_the_stream(small: Make) -> None:
    counter, other = small(), small(simulation_seed=8)
    counter.extend([1] * 10)
    assert (counter.sd(5), counter.interval(5)) == (other.sd(5), other.interval(5))


@pytest.mark.parametrize("t", [0, -1, 1.0, True, "1", None, np.nan])
def test_bad_steps(small: Make, t: Any) -> None:
    counter = small()
    for call in (counter.sd, counter.interval):
        with pytest.raises(ParameterError, match=r"^t must be an integer >= 1, got"):
            call(t)
    with pytest.raises(ParameterError, match=r"^stop must be"):
        counter.range_sd(2, t)


def test_steps_past_the_horizon_and_reversed_ranges(small: Make) -> None:
    counter = small()
    calls: list[Callable[[], float]] = [
        lambda: counter.sd(31),
        lambda: counter.interval(31),
        lambda: counter.range_sd(0, 31),
        lambda: counter.range_sd(2, 31),
    ]
    for call in calls:
        with pytest.raises(HorizonError, match="step 31 is past the horizon 30"):
            call()
    for start in (-1, 1.0, True, "1", None):
        with pytest.raises(ParameterError, match=r"^start must be an integer >= 0, got"):
            counter.range_sd(start, 5)  # type: ignore[arg-type]
    for start, stop in ((5, 5), (5, 4), (0, 0)):
        with pytest.raises(ParameterError, match=r"^stop must be"):
            counter.range_sd(start, stop)


@pytest.mark.parametrize(
    "level", [0, 1, -0.5, 1.5, np.nan, np.inf, True, "0.9", None, 1 - Fraction(1, 10**400)]
)
def test_bad_confidences(small: Make, level: Any) -> None:
    with pytest.raises(ParameterError, match=r"^confidence") as caught:
        small().interval(3, level)
    assert "\n" not in str(caught.value)
    with pytest.raises(ParameterError, match=r"^simultaneous must be True or False"):
        small().interval(3, 0.9, simultaneous=1)


@pytest.mark.parametrize("names", [SMALL, ("stage-mean-9", "stage-mean-9", "direct-mean-4")])
def test_the_lattice_of_a_step_against_dense_matrices(names: tuple[str, ...]) -> None:
    """One lattice step of every measured row, weighted by L: what discreteness can move the noise by."""
    n = min(chain_of(names).capacity, 200)
    counter = Counter(0.7, horizon=n, chain=names, resolution=2.0**-5, simulation_seed=0)
    dense = materialise(counter.setup.chain, n)
    L, ledger = np.abs(dense.L.to_float()), counter.setup.ledger
    steps = np.empty(L.shape[1])
    for index, entry in enumerate(ledger.levels):
        mine = np.flatnonzero(dense.level == index)
        own = [float(2.0**-places) if places >= 0 else 0.0 for places in entry.places]
        steps[mine] = np.resize(own, len(mine))
    for t in (1, 9, 10, n):
        coefficients, lattice = noise_coefficients(counter._noises[0], t - 1)
        assert lattice == pytest.approx(float(L[t - 1] @ steps), rel=1e-12)
        assert 0 < lattice < 1e-2 * np.abs(coefficients).max()
