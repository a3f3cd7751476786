"""Keyed Gaussian noise: any order of the steps, one rounding of real sums, its law, what it is bound to."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from fractions import Fraction
from itertools import pairwise
from math import floor
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.artifacts import load_stage_l2
from trilift.lift.chain import Chain
from trilift.lift.dense import materialise
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.lift.stage import Stage
from trilift.stream import gaussian_noise
from trilift.stream.gaussian import GaussianRows
from trilift.stream.gaussian_ledger import make_gaussian_ledger
from trilift.stream.gaussian_noise import GaussianNoise, GaussianReals, gaussian_digest
from trilift.stream.keys import derive_key, simulation_key
from trilift.stream.noise import Noise
from trilift.stream.process import NoiseProcess
from trilift.stream.reals import RealEvaluator

STREAM = bytes(range(16))
ALPHA = 1e-6


def gaussian_ledger(chain, mu=1, **options):
    return make_gaussian_ledger(chain, mu, scales=[1.0] * len(chain.levels), **options)


def make_noise(chain, *, seed=1, horizon=None, mu=1, purpose="counter", places=None, **options):
    return GaussianNoise(
        chain,
        gaussian_ledger(chain, mu, **options),
        horizon=chain.capacity if horizon is None else horizon,
        key=simulation_key(seed),
        stream_id=STREAM,
        purpose=purpose,
        places=places,
    )


def shipped(*names: str) -> Chain:
    *stages, top = [load_stage_l2(name) for name in names]
    return Chain(top, stages)


def tiny() -> Chain:
    """A two-sided stage of size 2 with a tail under T_2: B = [1 0; 1/2 1/2; 1/4 1/4]."""
    stage = Stage(
        Dyadic([[8, -8, 16], [1, 10, 0]], 3),
        Dyadic([[4, 0], [2, 2], [1, 1]], 2),
        Dyadic([0, 1], 1),
        Dyadic([1, 0, 4], 2),
    )
    return Chain(Stage.plain(Dyadic([[1, 0], [1, 1]]), Dyadic([[1, 0], [0, 1]])), [stage])


# -- steps in any order ------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(data=st.data(), seed=st.integers(0, 60), places=st.sampled_from([0, 6]))
def test_ranges_points_and_streaming_agree(lab, data, seed, places) -> None:
    made = make_noise(lab.chain(seed), places=places, mu=Fraction(1, 20))
    n = made.horizon
    whole = made.range(0, n)
    assert whole.dtype == np.int64
    cut = sorted(data.draw(st.lists(st.integers(0, n), min_size=2, max_size=4)))
    pieces = [made.range(a, b) for a, b in pairwise([0, *cut, n])]
    assert np.concatenate(pieces).tolist() == whole.tolist()
    steps = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=12))
    assert made.at(steps).tolist() == whole[steps].tolist()
    assert [int(made.at([t])[0]) for t in range(n)] == whole.tolist()


def test_replay_gives_the_same_noise_and_shorter_horizons_too() -> None:
    chain = shipped("stage-l2-mean-9", "stage-l2-max-9", "direct-l2-mean-4")
    long, short = make_noise(chain, mu=0.1), make_noise(chain, mu=0.1, horizon=37)
    assert short.digest == long.digest
    assert short.range(0, 37).tolist() == long.range(0, 37).tolist()
    assert make_noise(chain, mu=0.1).range(0, 200).tolist() == long.range(0, 200).tolist()
    with pytest.raises(HorizonError):
        short.at([37])
    with pytest.raises(HorizonError):
        make_noise(chain, horizon=chain.capacity + 1)


def test_it_is_a_noise_process(lab) -> None:
    chain = tiny()
    assert isinstance(make_noise(chain), NoiseProcess)
    laplace = Noise(
        chain, lab.ledger(chain), horizon=5, key=simulation_key(1), stream_id=STREAM, purpose="counter"
    )
    assert isinstance(laplace, NoiseProcess)


# -- one rounding of real sums -------------------------------------------------------------------------


class Reals:
    """Real draws, here rationals, given one by one."""

    def __init__(self, rows: dict[tuple[int, int], list[Fraction]], counts) -> None:
        self.rows, self.counts = rows, counts

    def get(self, level: int, block: int) -> list[Fraction]:
        return self.rows.get((level, block), [Fraction(0)] * self.counts[level])

    def draws(self, level, blocks):
        return Batch([self.get(level, int(block)) for block in blocks], self.counts[level])

    def finer(self, bits):
        return Finer(self, bits)


class Finer:
    def __init__(self, reals: Reals, bits: int) -> None:
        self.reals, self.bits = reals, bits

    def draws(self, level, blocks):
        values = [self.reals.get(level, int(block)) for block in blocks]
        rounded = [[floor(x * (1 << self.bits) + Fraction(1, 2)) for x in row] for row in values]
        return Batch(rounded, self.reals.counts[level])


class Batch:
    float_error = 1e-9

    def __init__(self, values, count: int) -> None:
        self.values, self.count = values, count

    def to_float(self):
        return np.array([[float(x) for x in row] for row in self.values]).reshape(-1, self.count)

    def block(self, index):
        return list(self.values[index])


def random_reals(lab, chain, ledger, seed: int) -> Reals:
    rng = np.random.default_rng(seed)
    rows = {}
    for level, (entry, blocks) in enumerate(zip(ledger.levels, lab.blocks(chain), strict=True)):
        for block in range(blocks):
            rows[level, block] = [
                Fraction(int(rng.integers(-3 * 10**9, 3 * 10**9)), 10**9) * scale
                for scale in entry.row_scales
            ]
    return Reals(rows, [len(entry.measured) for entry in ledger.levels])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 60), places=st.sampled_from([0, 5]), forced=st.booleans(), ties=st.booleans())
def test_the_exact_sum_is_rounded_once(lab, seed, places, forced, ties) -> None:
    """Against the definition of N in Fractions; real draws are not rounded on their own."""
    chain = lab.chain(seed, ties=ties)
    ledger = gaussian_ledger(chain, Fraction(1, 3))
    source = random_reals(lab, chain, ledger, seed)
    evaluator = RealEvaluator(chain, ledger, source)
    steps = np.arange(chain.capacity)
    exact = [lab.noise(chain, ledger, OneByOne(source), int(t)) for t in steps]
    expected = [floor(x * (1 << places) + Fraction(1, 2)) for x in exact]
    assert evaluator.rounded(steps, places=places, inflate=2.0 * forced).tolist() == expected
    values, error = evaluator.floats(steps)
    assert max(abs(Fraction(float(v)) - x) for v, x in zip(values, exact, strict=True)) <= Fraction(error)
    for bits in (8, 64):
        for t in steps.tolist():
            low, high = evaluator.enclosure(t, bits=bits)
            assert low <= exact[t] <= high
    with pytest.raises(StateError, match="no exact value"):
        evaluator.exact(0)


class OneByOne:
    """The draws of a Reals as the oracle asks for them."""

    def __init__(self, reals: Reals) -> None:
        self.reals = reals

    def draws(self, level, blocks):
        return Batch([self.reals.get(level, int(block)) for block in blocks], self.reals.counts[level])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 60), forced=st.booleans())
def test_equivariance(lab, seed, forced) -> None:
    """noise(z + R d) = noise(z) + T d, exactly; leaving out one changed row breaks it."""
    chain = lab.chain(seed)
    ledger = gaussian_ledger(chain, Fraction(1, 3), input_places=2)
    source = random_reals(lab, chain, ledger, seed)
    rng = np.random.default_rng(seed)
    d = [Fraction(int(x), 4) for x in rng.integers(-9, 10, size=chain.capacity)]
    d[0] += 100
    image = lab.measured(chain, ledger, d)
    moved = {
        key: [a + b for a, b in zip(source.get(*key), image[key], strict=True)]
        if key in image
        else source.get(*key)
        for key in source.rows.keys() | image.keys()
    }
    steps = np.arange(chain.capacity)

    def noise(rows) -> np.ndarray:
        evaluator = RealEvaluator(chain, ledger, Reals(rows, source.counts))
        return evaluator.rounded(steps, places=2, inflate=2.0 * forced)

    before, after = noise(source.rows), noise(moved)
    assert (after - before).tolist() == lab.sums(d, 2)
    broken = dict(moved)
    key = next(key for key in sorted(image) if any(image[key]) and key[0] == 0)
    broken[key] = source.get(*key)
    assert (noise(broken) - before).tolist() != lab.sums(d, 2)


@pytest.mark.parametrize("names", [("stage-l2-mean-9", "direct-l2-mean-8"), ("direct-l2-max-16",)])
@pytest.mark.parametrize("places", [0, 12])
def test_the_exact_path_gives_the_same_values(names, places) -> None:
    """Under the real sampler: every step forced through balls and integers."""
    made = make_noise(shipped(*names), mu=0.05, places=places)
    steps = np.arange(made.horizon)[:40]
    forced = made._evaluator.rounded(steps, places=places, inflate=1.0)
    assert forced.tolist() == made.range(0, len(steps)).tolist()
    assert len(set(forced.tolist())) > 10
    for t in (0, 5):
        low, high = made._evaluator.enclosure(t, bits=200)
        value, error = made._evaluator.floats(np.array([t]))
        assert low < high < low + Fraction(1, 1 << 150)
        assert Fraction(float(value[0]) - error) <= low
        assert high <= Fraction(float(value[0]) + error)


def test_draws_on_a_boundary_are_refused_not_guessed() -> None:
    """Draws whose sum is exactly one half never decide: no random draws do that."""
    chain = Chain(Stage.plain(Dyadic([[1, 0], [1, 1]]), Dyadic(np.eye(2, dtype=np.int64))))
    ledger = gaussian_ledger(chain)
    half = Fraction(1 << ledger.levels[0].places[0], 2)
    source = Reals({(0, 0): [half, half]}, [2])
    with pytest.raises(StateError, match="not random"):
        RealEvaluator(chain, ledger, source).rounded(np.array([0]), places=0)


def test_noise_past_int64() -> None:
    made = make_noise(tiny(), mu=Fraction(1, 2**80))
    values = made.range(0, 5)
    assert values.dtype == object
    assert max(abs(x) for x in values.tolist()) > 2**63


# -- what it is bound to -------------------------------------------------------------------------------


def test_family_is_what_the_constructor_makes() -> None:
    chain = tiny()
    ledger = gaussian_ledger(chain, Fraction(1, 100))
    options = {"horizon": 5, "key": simulation_key(3), "stream_id": STREAM, "places": 3}
    family = GaussianNoise.family(chain, ledger, purposes=["a", "b", "c"], **options)
    alone = [GaussianNoise(chain, ledger, purpose=name, **options) for name in ("a", "b", "c")]
    values = [member.range(0, 5).tolist() for member in family]
    assert values == [member.range(0, 5).tolist() for member in alone]
    assert len({tuple(row) for row in values}) == 3
    forced = [m._evaluator.rounded(np.arange(5), places=3, inflate=1.0).tolist() for m in family]
    assert forced == values
    with pytest.raises(ParameterError, match="all different"):
        GaussianNoise.family(chain, ledger, purposes=["a", "a"], **options)


def test_the_digest_is_bound_to_the_mechanism(lab, monkeypatch) -> None:
    chain = tiny()
    ledger = gaussian_ledger(chain)
    digests = [gaussian_digest(chain, ledger, places=places) for places in (0, 1)]
    for name, value in {"mu": Fraction(2), "change": Fraction(2), "input_places": 1}.items():
        digests.append(gaussian_digest(chain, dataclasses.replace(ledger, **{name: value}), places=0))
    fine, coarse = ledger.levels
    other = dataclasses.replace(
        ledger, levels=(dataclasses.replace(fine, scale_int=fine.scale_int + 1), coarse)
    )
    digests.append(gaussian_digest(chain, other, places=0))
    laplace = Noise(chain, lab.ledger(chain), horizon=5, key=simulation_key(1), stream_id=STREAM, purpose="x")
    digests.append(laplace.digest)
    monkeypatch.setattr(gaussian_noise, "SAMPLER_ID", "another")
    digests.append(gaussian_digest(chain, ledger, places=0))
    assert all(len(digest) == 32 for digest in digests)
    assert len(set(digests)) == len(digests) == 8


def test_keys_streams_and_purposes_differ_and_stay_secret() -> None:
    chain = tiny()
    ledger = gaussian_ledger(chain, Fraction(1, 1000))
    seen = set()
    for key, stream, purpose in ((1, 0, "a"), (2, 0, "a"), (1, 1, "a"), (1, 0, "b")):
        made = GaussianNoise(
            chain, ledger, horizon=5, key=simulation_key(key), stream_id=bytes([stream] * 16), purpose=purpose
        )
        seen.add(tuple(made.range(0, 5).tolist()))
        secret = bytes(simulation_key(key))
        for text in (repr(made), repr(vars(made)), repr(vars(made._evaluator)), ledger.as_text()):
            assert secret.hex() not in text
            assert repr(secret) not in text
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(StateError, match="not copied or pickled"):
                duplicate(made)
    assert len(seen) == 4
    assert repr(made) == "GaussianNoise(sizes=(2, 2), horizon=5, mu=0.001)"


def test_ledgers_that_do_not_prove_their_mu_are_refused() -> None:
    chain = tiny()
    ledger = dataclasses.replace(gaussian_ledger(chain), mu=Fraction(9, 10))
    with pytest.raises(ParameterError, match="more than mu"):
        GaussianNoise(chain, ledger, horizon=5, key=simulation_key(1), stream_id=STREAM, purpose="x")
    with pytest.raises(ParameterError, match="places"):
        make_noise(chain, input_places=3, places=2)


def test_golden_values() -> None:
    """Frozen: a change here re-draws the noise of saved streams and needs a new version label."""
    made = make_noise(tiny(), mu=Fraction(1, 3), change=2, input_places=1, places=3)
    assert made.digest.hex() == GOLDEN_DIGEST
    assert made.range(0, 5).tolist() == GOLDEN


GOLDEN = [154, 24, 325, 60, 28]
GOLDEN_DIGEST = "8a9a0c48fe8f685e299ee68899aac568903d550d5b0c9ffe991cef10e17e35f0"


# -- the law -------------------------------------------------------------------------------------------


def dense_covariance(chain: Chain, ledger) -> np.ndarray:
    """L S L^T, S = s_l^2, in squared units of the count."""
    dense = materialise(chain, chain.capacity)
    L = dense.L.to_float() * np.array([float(ledger.levels[level].scale) for level in dense.level.tolist()])
    for level, entry in enumerate(ledger.levels):
        own = np.flatnonzero(dense.level == level)
        dead = [i for n, i in enumerate(own) if n % chain.levels[level].inner not in entry.measured]
        L[:, dead] = 0.0
    return L @ L.T


@pytest.mark.parametrize("seed", range(8))
def test_variance_and_covariance_are_those_of_the_dense_matrices(lab, seed) -> None:
    chain = lab.chain(seed)
    made = make_noise(chain, mu=Fraction(1, 7), places=4)
    n = made.horizon
    expected = dense_covariance(chain, made.ledger)
    actual = np.array([[made.covariance(s, t) for t in range(n)] for s in range(n)])
    assert np.abs(actual - expected).max() < 1e-9 * np.abs(expected).max()
    np.testing.assert_allclose(made.variance(np.arange(n)), np.diag(expected) + 2.0**-8 / 12, rtol=1e-9)


def samples(chain: Chain, ledger, keys: int, *, fresh: bool = False, shared: bool = False) -> np.ndarray:
    """Noise of all steps in units of 2^-20, one row a key.

    Controls: ``fresh`` draws each step under a key of its own; ``shared`` gives every row of a level the
    same variate.
    """
    steps, out = np.arange(chain.capacity), np.empty((keys, chain.capacity))
    rows = [GaussianRows(entry.row_scales) for entry in ledger.levels]
    made = make_noise(chain)
    for index in range(keys):

        def noise(purpose: str, index: int = index) -> np.ndarray:
            key = derive_key(simulation_key(index), stream_id=STREAM, purpose=purpose, digest=made.digest)
            source = GaussianReals(rows, key)
            if shared:
                source.sample = lambda level, blocks: same(rows[level].sample(source._stream, level, blocks))
            return RealEvaluator(chain, ledger, source).rounded(steps, places=20)

        out[index] = [noise(f"step/{t}")[t] for t in steps] if fresh else noise("counter")
    return np.ldexp(out, -20)


def same(draws):
    draws.raw[:] = draws.raw[:, :1]
    return draws


def worst_deviation(drawn: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    """Largest standardised deviation of mean products, and its Bonferroni threshold (false alarm 1e-6)."""
    first, second = np.triu_indices(drawn.shape[1])
    worst = 0.0
    for s, t in zip(first, second, strict=True):
        product = drawn[:, s] * drawn[:, t]
        error = product.std() / np.sqrt(len(product))
        gap = abs(product.mean() - expected[s, t])
        worst = max(worst, gap / error if error > 0 else np.inf)
    return worst, NormalDist().inv_cdf(1 - ALPHA / (2 * len(first)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "three levels"])
def test_covariance_over_keys(lab, name) -> None:
    """Covariance over 2500 keys against L S L^T for every pair of steps; false alarm 1e-6.

    Controls that must fail: noise off, halved, a step late, fresh at every step, one variate for a level.
    """
    chain = tiny() if name == "tiny" else lab.chain(5, levels=3, ties=False)
    ledger = gaussian_ledger(chain)
    drawn, expected = samples(chain, ledger, 2500), dense_covariance(chain, ledger)
    worst, threshold = worst_deviation(drawn, expected)
    assert worst < threshold
    normal = drawn / np.sqrt(np.diag(expected))
    for level in (1.0, 2.0):  # tails of every step, each within 5.6 standard errors
        p = 2 * (1 - NormalDist().cdf(level))
        share = (np.abs(normal) > level).mean(axis=0)
        assert np.abs(share - p).max() < 5.6 * np.sqrt(p * (1 - p) / len(drawn))
    controls = [np.zeros_like(drawn), drawn / 2, np.roll(drawn, 1, axis=1)]
    if name == "tiny":
        controls += [samples(chain, ledger, 500, fresh=True), samples(chain, ledger, 500, shared=True)]
    for control in controls:
        assert worst_deviation(control, expected)[0] > threshold
