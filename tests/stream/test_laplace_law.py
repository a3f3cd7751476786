"""Statistical tests. All but one have fixed keys, hence fixed outcomes; each was set at a false-alarm
probability of 1e-6 per check for a random key."""

import math

import numpy as np
import pytest
from scipy import stats
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import LaplaceRows, variance

ALPHA = 1e-6
SIGMAS = 4.9  # two-sided normal tail 1e-6


def sample(scale: int, blocks: int, *, rows: int = 100, key: int = 1):
    return LaplaceRows([scale] * rows).sample(Keystream(simulation_key(key)), 0, np.arange(blocks))


def cells(scale: int, total: int) -> tuple[int, np.ndarray]:
    """Return (m, probabilities of <= -m, -m+1, .., m-1, >= m) with at least 20 expected in every cell."""
    u = math.exp(-1 / scale)
    m = 1 + int(scale * math.log(total * (1 - u) / (1 + u) / 20))
    inner = (1 - u) / (1 + u) * u ** np.abs(np.arange(-m + 1, m))
    outer = u**m / (1 + u)
    probabilities = np.concatenate([[outer], inner, [outer]])
    assert probabilities.min() * total > 19.99
    return m, probabilities


def p_value(values: np.ndarray, scale: int) -> float:
    m, probabilities = cells(scale, values.size)
    counts = np.bincount(np.clip(values, -m, m) + m, minlength=2 * m + 1)
    return float(stats.chisquare(counts, probabilities * values.size, sum_check=False).pvalue)


@pytest.mark.parametrize("scale", [1, 2, 3, 10])
def test_small_scales_follow_the_exact_law(scale) -> None:
    """Chi-square over all values with 20 expected or more; false alarm 1e-6."""
    assert p_value(sample(scale, 3000).to_int64().ravel(), scale) > ALPHA


@pytest.mark.parametrize(("drawn", "claimed"), [(11, 10), (9, 10), (3, 2)])
def test_the_chi_square_test_sees_a_wrong_scale(drawn, claimed) -> None:
    """Negative control: the same test rejects a scale that is off by a tenth."""
    assert p_value(sample(drawn, 3000).to_int64().ravel(), claimed) < 1e-12


@pytest.mark.parametrize("scale", [(1 << 25) - 3, (1 << 40) + 1, 3 << 90, 1 << 200])
def test_large_scales_follow_the_law(scale) -> None:
    """Kolmogorov-Smirnov against the continuous Laplace law, which is within 1/scale; false alarm 1e-6."""
    values = sample(scale, 1000).to_float().ravel() / scale
    assert stats.kstest(values, "laplace").pvalue > ALPHA
    assert stats.kstest(values * 1.1, "laplace").pvalue < ALPHA


@pytest.mark.parametrize("scale", [(1 << 40) + 1, 3 << 90])
def test_digits_and_their_pairs_at_large_scales(scale) -> None:
    """Each digit of |X| - 1 at its rate, and digits of a draw uncorrelated; false alarm 1e-6 in all."""
    values = np.array([abs(x) - 1 for x in sample(scale, 200).to_objects().ravel()], dtype=object)
    top = scale.bit_length() + 1
    digits = np.array([(values >> j) & 1 for j in range(top)], dtype=float)
    rates = np.array([1 / (1 + math.exp((1 << j) / scale)) for j in range(top)])
    sds = np.sqrt(rates * (1 - rates))
    scores = (digits.mean(axis=1) - rates) / sds * math.sqrt(values.size)
    assert np.abs(scores).max() < stats.norm.isf(ALPHA / 2 / top)
    standard = (digits - rates[:, None]) / sds[:, None]
    pairs = (standard @ standard.T / math.sqrt(values.size))[np.triu_indices(len(standard), 1)]
    assert np.abs(pairs).max() < stats.norm.isf(ALPHA / 2 / pairs.size)


@pytest.mark.parametrize("scale", [1, 10, 1000])
def test_mean_and_variance(scale) -> None:
    """z-tests at 4.9 standard deviations each: false alarm 1e-6; the fourth moment is summed from the law."""
    values = sample(scale, 4000, key=2).to_float().ravel()
    n, second = values.size, variance(scale)
    x = np.arange(-60 * scale, 60 * scale + 1, dtype=float)
    u = math.exp(-1 / scale)
    law = (1 - u) / (1 + u) * u ** np.abs(x)
    assert (law * x**2).sum() == pytest.approx(second, rel=1e-10)
    fourth = (law * x**4).sum()
    assert abs(values.mean()) < SIGMAS * math.sqrt(second / n)
    assert abs((values**2).mean() - second) < SIGMAS * math.sqrt((fourth - second**2) / n)


def test_rows_blocks_and_levels_are_uncorrelated() -> None:
    """Sums of products of signs and of centred magnitudes between neighbours; 4.9 deviations each."""
    rows = LaplaceRows([1 << 25, 1 << 25, 1 << 27, 1 << 27])
    stream = Keystream(simulation_key(3))
    batches = [rows.sample(stream, level, np.arange(20_000)).to_float() / rows.scales for level in (0, 1)]
    for transform in (np.sign, lambda x: np.abs(x) - 1.0):
        first, second = (transform(batch) for batch in batches)
        pairs = [(first[:, i], first[:, j]) for i in range(4) for j in range(i)]
        pairs += [(first[1:], first[:-1]), (first, second), (first[:, :2], second[:, 2:])]
        for a, b in pairs:
            assert abs((a * b).sum()) < SIGMAS * math.sqrt(a.size)


@pytest.mark.parametrize("scale", [1, 3, 10])
def test_agrees_with_an_independent_exact_sampler(scale) -> None:
    """Two-sample chi-square against OpenDP's discrete Laplace (fresh randomness); false alarm 1e-6."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    n = 5000
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    theirs = np.array(dp.m.make_laplace(*space, scale=float(scale))([0] * n))
    ours = sample(scale, n // 100, key=4).to_int64().ravel()
    m, _ = cells(scale, n)
    table = [np.bincount(np.clip(values, -m, m) + m, minlength=2 * m + 1) for values in (theirs, ours)]
    assert stats.chi2_contingency(table).pvalue > ALPHA
    wrong = np.bincount(np.clip(2 * ours, -m, m) + m, minlength=2 * m + 1)
    used = (table[0] + wrong) > 0
    assert stats.chi2_contingency([table[0][used], wrong[used]]).pvalue < ALPHA
