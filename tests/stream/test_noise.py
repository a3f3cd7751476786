"""Keyed noise: any order and any split of the steps, its law, what it is bound to, golden values."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.artifacts import load_stage
from trilift.lift.chain import Chain
from trilift.lift.dense import materialise
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.lift.stage import Stage
from trilift.stream import laplace, noise, stepwise
from trilift.stream.evaluate import Evaluator
from trilift.stream.keys import derive_key, simulation_key
from trilift.stream.noise import Noise, mechanism_digest

STREAM = bytes(range(16))


def make_noise(lab, chain, *, seed=1, horizon=None, epsilon=1, purpose="counter", places=None, **options):
    return Noise(
        chain,
        lab.ledger(chain, epsilon, **options),
        horizon=chain.capacity if horizon is None else horizon,
        key=simulation_key(seed),
        stream_id=STREAM,
        purpose=purpose,
        places=places,
    )


def shipped(*names: str) -> Chain:
    *stages, top = [load_stage(name) for name in names]
    return Chain(top, stages)


def tiny() -> Chain:
    """A two-sided stage of size 2 with a tail under T_2, written down by hand.

    B = [1 0; 1/2 1/2; 1/4 1/4], g = (1/4, 0, 1), v = (1/2, 1/4), w = (0, 1/2).
    """
    B = Dyadic([[4, 0], [2, 2], [1, 1]], 2)
    g = Dyadic([1, 0, 4], 2)
    A = Dyadic([[8, -8, 16], [1, 10, 0]], 3)
    stage = Stage(A, B, Dyadic([0, 1], 1), g)
    return Chain(Stage.plain(Dyadic([[1, 0], [1, 1]]), Dyadic([[1, 0], [0, 1]])), [stage])


# -- steps in any order ------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(data=st.data(), seed=st.integers(0, 60), places=st.sampled_from([0, 6]))
def test_ranges_points_and_streaming_agree(lab, data, seed, places) -> None:
    """range, any split of it, single steps and shuffled repeated steps give the same bits."""
    chain = lab.chain(seed)
    made = make_noise(lab, chain, places=places)
    n = made.horizon
    whole = made.range(0, n)
    assert whole.dtype == np.int64
    cut = sorted(data.draw(st.lists(st.integers(0, n), min_size=2, max_size=4)))
    cuts = [0, *cut, n]
    pieces = [made.range(a, b) for a, b in pairwise(cuts)]
    assert np.concatenate(pieces).tolist() == whole.tolist()
    steps = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=12))
    assert made.at(steps).tolist() == whole[steps].tolist()
    assert [int(made.at([t])[0]) for t in range(n)] == whole.tolist()
    assert int(made.at(steps[0])) == whole[steps[0]]


@pytest.mark.parametrize("chunk", [1, 2, 7, 64])
def test_chunk_boundaries_do_not_show(lab, monkeypatch, chunk) -> None:
    made = make_noise(lab, shipped("stage-mean-9", "direct-mean-8"))
    whole = made.range(0, made.horizon)
    scattered = np.random.default_rng(1).integers(0, made.horizon, size=200)
    monkeypatch.setattr(stepwise, "_CHUNK", chunk)
    assert made.range(0, made.horizon).tolist() == whole.tolist()
    assert made.range(3, 50).tolist() == whole[3:50].tolist()
    assert made.at(scattered).tolist() == whole[scattered].tolist()


def test_a_chunk_of_python_integers_makes_the_whole_so(lab, monkeypatch) -> None:
    """Noise near 2^62: some chunks fit int64, others do not; all values are kept."""
    made = make_noise(lab, shipped("stage-mean-9", "direct-mean-8"), epsilon=2.0**-60)
    whole = made.range(0, made.horizon)
    monkeypatch.setattr(stepwise, "_CHUNK", 1)
    parts = [made.range(t, t + 1) for t in range(made.horizon)]
    assert {part.dtype for part in parts} == {np.dtype(np.int64), np.dtype(object)}
    again = made.range(0, made.horizon)
    assert again.dtype == object
    assert again.tolist() == whole.tolist() == [int(part[0]) for part in parts]
    assert made.at([5, 5, 0]).tolist() == [whole[5], whole[5], whole[0]]


def test_shapes_of_results(lab) -> None:
    made = make_noise(lab, tiny())
    assert made.at([]).shape == made.range(2, 2).shape == (0,)
    assert made.at([]).dtype == made.range(0, 0).dtype == np.int64
    assert made.at([[0, 1], [2, 0]]).tolist() == made.range(0, 3)[[[0, 1], [2, 0]]].tolist()
    assert made.at(np.uint8(2)).shape == ()


@pytest.mark.parametrize("horizon", [1, 2, 9, 10, 37, 81, 90, 200, 323])
def test_a_shorter_horizon_has_the_same_noise(lab, horizon) -> None:
    """The horizon is not part of the mechanism: noise at t is the same for every horizon past t."""
    chain = shipped("stage-mean-9", "stage-max-9", "direct-mean-4")
    long, short = make_noise(lab, chain), make_noise(lab, chain, horizon=horizon)
    assert short.digest == long.digest
    assert short.range(0, horizon).tolist() == long.range(0, horizon).tolist()
    assert int(short.at([horizon - 1])[0]) == int(long.at([horizon - 1])[0])


@pytest.mark.parametrize("places", [0, 5, 30])
def test_noise_is_the_definition_under_the_derived_key(lab, places) -> None:
    """HKDF of key, stream, purpose and digest; the sampler's integers; L z in Fractions; floor(N/h + 1/2)."""
    chain = shipped("stage-mean-9", "direct-mean-4")
    made = make_noise(lab, chain, places=places)
    key = derive_key(simulation_key(1), stream_id=STREAM, purpose="counter", digest=made.digest)
    source = lab.Keyed(made.ledger, key)
    exact = [lab.noise(chain, made.ledger, source, t) for t in range(made.horizon)]
    expected = [(x * (1 << places) + Fraction(1, 2)) // 1 for x in exact]
    assert made.range(0, made.horizon).tolist() == expected


def test_threads_share_one_object(lab) -> None:
    made = make_noise(lab, shipped("stage-mean-9", "stage-max-9", "direct-mean-8"))
    whole = made.range(0, made.horizon)
    spans = [(a, min(a + 37, made.horizon)) for a in range(0, made.horizon, 11)]
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda span: made.range(*span), spans))
        variances = list(pool.map(lambda span: made.variance([span[0]])[0], spans))
    for (a, b), part, variance in zip(spans, parts, variances, strict=True):
        assert part.tolist() == whole[a:b].tolist()
        assert variance == made.variance([a])[0]


def test_a_family_is_what_the_constructor_makes(lab) -> None:
    """Members share the prepared factors, not the key: each equals the noise of its purpose alone."""
    chain = shipped("stage-mean-9", "direct-mean-8")
    ledger = lab.ledger(chain, 1e-12, input_places=2)
    common = {"horizon": 70, "key": simulation_key(1), "stream_id": STREAM, "places": 4}
    purposes = ["counter/0", "counter/1", "counter"]
    members = Noise.family(chain, ledger, purposes=purposes, **common)
    values = [member.range(0, 70) for member in members]
    for member, value, purpose in zip(members, values, purposes, strict=True):
        alone = Noise(chain, ledger, purpose=purpose, **common)
        assert member.digest == alone.digest
        assert value.tolist() == alone.range(0, 70).tolist() == member.range(0, 70).tolist()
        assert member.at([69, 0]).tolist() == alone.at([69, 0]).tolist()
    for a in range(3):
        assert not np.any(values[a] == values[a - 1])
    for bad in ([], ["a", "a"]):
        with pytest.raises(ParameterError, match="purposes"):
            Noise.family(chain, ledger, purposes=bad, **common)


# -- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "steps", [4, -1, [0, 4], [-1, 0], [2**63], np.array([4], dtype=np.uint64), [-(2**63)]]
)
def test_steps_outside_the_horizon(lab, steps) -> None:
    made = make_noise(lab, tiny(), horizon=4)
    assert made.at([3]).shape == (1,)
    with pytest.raises(HorizonError, match=r"outside 0\.\.3"):
        made.at(steps)


@pytest.mark.parametrize(
    "steps", [1.0, [1.0], True, [True], "1", ["1"], None, [2**70], [None], [[0], [1, 2]], 1j]
)
def test_steps_that_are_no_integers(lab, steps) -> None:
    with pytest.raises(ParameterError, match="steps"):
        make_noise(lab, tiny()).at(steps)


def test_ranges_outside_the_horizon(lab) -> None:
    made = make_noise(lab, tiny(), horizon=4)
    with pytest.raises(HorizonError, match="past the horizon 4"):
        made.range(0, 5)
    for start, stop in [(-1, 3), (3, 2), (0.0, 3), (0, 3.0), (True, 3), (0, True), ("0", 3), (None, 3)]:
        with pytest.raises(ParameterError, match=r"start|stop"):
            made.range(start, stop)


@pytest.mark.parametrize("horizon", [0, -1, 1.0, True, "3", None])
def test_horizons_that_are_no_positive_integers(lab, horizon) -> None:
    chain = tiny()
    with pytest.raises(ParameterError, match="horizon"):
        Noise(chain, lab.ledger(chain), horizon=horizon, key=simulation_key(1), stream_id=STREAM, purpose="a")


def test_a_horizon_past_the_capacity(lab) -> None:
    chain = tiny()
    assert chain.capacity == 5  # the tail included
    with pytest.raises(HorizonError, match="capacity 5"):
        make_noise(lab, chain, horizon=6)


@pytest.mark.parametrize("places", [2, 257, 3.0, True, "3"])
def test_output_lattices_coarser_than_the_inputs_or_absurd(lab, places) -> None:
    """Adding noise on a coarser lattice to fractional sums would show their fractions."""
    assert make_noise(lab, tiny(), input_places=3).places == 3
    assert make_noise(lab, tiny(), input_places=3, places=256).places == 256
    with pytest.raises(ParameterError, match="places must be an integer >= 3 and <= 256"):
        make_noise(lab, tiny(), input_places=3, places=places)


def test_a_ledger_of_another_chain_is_refused(lab) -> None:
    """Same shapes, other numbers: every lattice and every charge is checked against the chain at hand."""
    chain = tiny()
    top = Stage.plain(Dyadic([[1, 0], [1, 2]], 1), Dyadic([[2, 0], [0, 1]]))  # not T_2
    longer = Stage.plain(Dyadic([[1, 0], [1, 1]], 2), Dyadic([[4, 0], [0, 4]]))
    for other in (
        Chain(longer, chain.stages),
        Chain(top, chain.stages),
        shipped("stage-mean-9", "direct-mean-4"),
    ):
        with pytest.raises(ParameterError, match=r"epsilon|factorisation|another chain"):
            Noise(other, lab.ledger(chain), horizon=2, key=simulation_key(1), stream_id=STREAM, purpose="a")
    ledger = dataclasses.replace(lab.ledger(chain), epsilon=Fraction(1, 2))
    with pytest.raises(ParameterError, match="more than epsilon 1/2"):
        Noise(chain, ledger, horizon=2, key=simulation_key(1), stream_id=STREAM, purpose="a")


# -- what the noise is bound to ------------------------------------------------------------------------


def test_keys_streams_purposes_and_mechanisms_have_their_own_noise(lab) -> None:
    """Noise of sd 10^13 at 36 steps: equal values at any step would be a repetition."""
    chain = shipped("stage-mean-9", "direct-mean-4")
    ledger = lab.ledger(chain, 1e-12)
    common = {"horizon": 36, "key": simulation_key(1), "stream_id": STREAM, "purpose": "counter"}
    base = Noise(chain, ledger, **common).range(0, 36)
    assert Noise(chain, ledger, **common).range(0, 36).tolist() == base.tolist()
    others = [
        Noise(chain, ledger, **{**common, "key": simulation_key(2)}),
        Noise(chain, ledger, **{**common, "stream_id": bytes(16)}),
        Noise(chain, ledger, **{**common, "purpose": "counter/0"}),
        Noise(chain, lab.ledger(chain, Fraction(1, 10**12)), **common),
        Noise(chain, lab.ledger(chain, 1e-12, input_places=1), **common, places=1),
    ]
    for other in others:
        assert not np.any(other.range(0, 36) == base)


def test_keys_do_not_show(lab) -> None:
    made = make_noise(lab, tiny())
    secret = simulation_key(1)
    for text in (repr(made), str(made), repr(vars(made)), repr(vars(made._evaluator)), made.ledger.as_text()):
        assert bytes(secret).hex() not in text
        assert repr(bytes(secret)) not in text
    assert repr(made) == "Noise(sizes=(2, 2), horizon=5, epsilon=1)"
    assert not any(bytes(secret) == value for value in vars(made).values())


def changed(part: Dyadic) -> Dyadic:
    """One more unit in the last place of the last entry."""
    num = np.array(part.num)
    num.reshape(-1)[-1] += 1
    return Dyadic(num, part.exp)


def test_the_digest_is_bound_to_every_number(lab, monkeypatch) -> None:
    chain = tiny()
    ledger = lab.ledger(chain)
    digests = [mechanism_digest(chain, ledger, places=0), mechanism_digest(chain, ledger, places=1)]
    for level, stage in enumerate(chain.levels):
        for name in ("A", "B", "w", "g") if level == 0 else ("A", "B"):
            levels = list(chain.levels)
            levels[level] = dataclasses.replace(stage, **{name: changed(getattr(stage, name))})
            digests.append(mechanism_digest(Chain(levels[-1], levels[:-1]), ledger, places=0))
    digests.append(
        mechanism_digest(Chain(chain.top), dataclasses.replace(ledger, levels=ledger.levels[1:]), places=0)
    )
    for name, value in {"epsilon": Fraction(2), "change": Fraction(2), "input_places": 1}.items():
        digests.append(mechanism_digest(chain, dataclasses.replace(ledger, **{name: value}), places=0))
    fine, coarse = ledger.levels
    for entry in (
        dataclasses.replace(fine, scale_int=fine.scale_int + 1),
        dataclasses.replace(fine, places=(fine.places[0] + 1, *fine.places[1:])),
    ):
        other = dataclasses.replace(ledger, levels=(entry, coarse))
        digests.append(mechanism_digest(chain, other, places=0))
    monkeypatch.setattr(noise, "SAMPLER_ID", laplace.SAMPLER_ID + "x")
    digests.append(mechanism_digest(chain, ledger, places=0))
    assert all(len(digest) == 32 for digest in digests)
    assert len(set(digests)) == len(digests) == 15


def test_the_digest_depends_on_values_alone(lab) -> None:
    """The same numbers over another power of two, or as Python integers, are the same mechanism."""
    chain = tiny()

    def finer(stage: Stage) -> Stage:
        parts = [getattr(stage, name) for name in ("A", "B", "w", "g")]
        return Stage(*(Dyadic(part.num.astype(object) << 70, part.exp + 70) for part in parts))

    other = Chain(finer(chain.top), [finer(stage) for stage in chain.stages])
    a, b = make_noise(lab, chain), make_noise(lab, other)
    assert a.digest == b.digest
    assert a.range(0, 5).tolist() == b.range(0, 5).tolist()


def test_golden_values(lab) -> None:
    """Frozen: a change here re-draws the noise of saved streams and needs a new version label."""
    eye = Dyadic(np.eye(3, dtype=np.int64))
    stage = tiny().stages[0]
    chain = Chain(Stage.plain(Dyadic(np.tril(np.ones((3, 3), dtype=np.int64))), eye), [stage, stage])
    made = make_noise(lab, chain, epsilon=Fraction(1, 3), change=2, input_places=1, places=3)
    assert made.ledger.spent == Fraction(1, 3)
    assert made.digest.hex() == "7d121bde61edcbcda852b4c4fbc4c2a165455268991b277ba34f305e33a35bbc"
    assert made.range(0, 12).tolist() == [597, 1209, 1298, 416, -882, -444, 1022, 462, -2375, 182, -658, 330]


# -- the law of the noise ------------------------------------------------------------------------------


def dense_covariance(chain: Chain, ledger, horizon: int) -> np.ndarray:
    """L S L^T with S the exact variances of the discrete Laplace draws, in squared units of the count."""
    dense = materialise(chain, horizon)
    variances, starts = np.zeros(len(dense.level)), {}
    for index, level in enumerate(dense.level.tolist()):
        entry = ledger.levels[level]
        row = (index - starts.setdefault(level, index)) % chain.levels[level].inner
        if entry.places[row] >= 0:
            sigma = entry.scale_int << (entry.places[row] - entry.coarsest)
            variances[index] = laplace.variance(sigma) * 4.0 ** -entry.places[row]
    L = dense.L.to_float()
    return (L * variances) @ L.T


@pytest.mark.parametrize("seed", range(12))
def test_variance_and_covariance_are_those_of_the_dense_matrices(lab, seed) -> None:
    chain = lab.chain(seed)
    made = make_noise(lab, chain, epsilon=Fraction(1, 7), places=4)
    n = made.horizon
    expected = dense_covariance(chain, made.ledger, n)
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    actual = np.array([[made.covariance(s, t) for t in range(n)] for s in range(n)])
    assert np.abs(actual - expected).max() < 1e-6 * size.max()
    np.testing.assert_allclose(made.variance(np.arange(n)), np.diag(expected) + 2.0**-8 / 12, rtol=1e-6)


class Repeated:
    """Repetition ``index`` of a stream: the real draws of its own blocks, all repetitions drawn at once."""

    def __init__(self, lab, ledger, blocks: list[int], repetitions: int) -> None:
        keyed = lab.Keyed(ledger, 20)
        self.blocks, self.index = blocks, 0
        self.values = [
            keyed.draws(level, np.arange(count * repetitions)).to_float().reshape(repetitions, count, -1)
            for level, count in enumerate(blocks)
        ]

    def draws(self, level, blocks):
        return Floats(self.values[level][self.index][blocks])


class Floats:
    float_error = 0.0

    def __init__(self, values) -> None:
        self.values = values

    def to_float(self):
        return self.values

    def block(self, index):
        return [int(x) for x in self.values[index]]


REPETITIONS = 20_000
ALPHA = 1e-6


def samples(lab, chain: Chain, ledger) -> np.ndarray:
    """Noise of all steps in units of 2^-20, one row a repetition."""
    source = Repeated(lab, ledger, lab.blocks(chain), REPETITIONS)
    evaluator, steps = Evaluator(chain, ledger, source), np.arange(chain.capacity)
    out = np.empty((REPETITIONS, chain.capacity))
    for source.index in range(REPETITIONS):
        out[source.index] = evaluator.rounded(steps, places=20)
    return np.ldexp(out, -20)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_noise_is_not_copied(lab, duplicate) -> None:
    """A copy would hold the key, and be continued beside the original."""
    chain = tiny()
    family = Noise.family(
        chain,
        lab.ledger(chain, Fraction(1, 2)),
        horizon=3,
        key=simulation_key(1),
        stream_id=bytes(16),
        purposes=["a", "b"],
    )
    for member in family:
        with pytest.raises(StateError, match="not copied or pickled"):
            duplicate(member)


def worst_deviation(drawn: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    """Largest standardised deviation of an empirical covariance (known mean 0) and the threshold for it.

    Every entry's mean product is standardised by its own empirical error; the threshold is normal with a
    Bonferroni correction over all pairs of steps: a random key gives a false alarm with probability 1e-6.
    """
    n = drawn.shape[1]
    first, second = np.triu_indices(n)
    worst = 0.0
    for s, t in zip(first, second, strict=True):
        product = drawn[:, s] * drawn[:, t]
        error = product.std() / np.sqrt(len(product))
        gap = abs(product.mean() - expected[s, t])
        worst = max(worst, gap / error if error > 0 else np.inf)
    return worst, NormalDist().inv_cdf(1 - ALPHA / (2 * len(first)))


def eye_stage(m: int, w: list[int], v: list[int], places: int) -> Stage:
    """A stage with B = 1 and the given weights."""
    exact_w, exact_v = Dyadic(w, places), Dyadic(v, places)
    ones = Dyadic(np.ones(m, dtype=np.int64))
    target = Dyadic(np.tril(np.ones((m, m), dtype=np.int64))) - exact_w[:, None] * (ones - exact_v)[None, :]
    return Stage(target, Dyadic(np.eye(m, dtype=np.int64)), exact_w, exact_v)


def law_chains(lab) -> dict[str, Chain]:
    two = eye_stage(3, [0, 2, 3], [1, 0, 3], 2)
    three = eye_stage(2, [0, 1], [1, 1], 1)
    one_sided = eye_stage(2, [1, 4], [0, 0], 2)
    top = Stage.plain(Dyadic([[1, 0, 0], [1, 1, 0], [1, 1, 1]]), Dyadic(np.eye(3, dtype=np.int64)))
    return {
        "two levels": Chain(top, [two]),
        "three levels": Chain(top, [two, three]),
        "one-sided between": Chain(top, [two, one_sided]),
        "completed": lab.chain(5, levels=3, ties=False),
        "shipped": shipped("stage-mean-9", "direct-mean-4"),
    }


NAMES = ("two levels", "three levels", "one-sided between", "completed", "shipped")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_empirical_covariance(lab, name) -> None:
    """Covariance of 20000 streams against L S L^T, for every pair of steps.

    Within and across the blocks of every level, first blocks and tails. Fixed key; false alarm 1e-6 for a
    random one. Controls on the same draws must fail: noise off, halved, fresh at each step, a step late.
    """
    chain = law_chains(lab)[name]
    ledger = lab.ledger(chain, Fraction(1, 2))
    drawn = samples(lab, chain, ledger)
    expected = dense_covariance(chain, ledger, chain.capacity)
    worst, threshold = worst_deviation(drawn, expected)
    assert worst < threshold
    rng = np.random.default_rng(1)
    fresh = np.stack([rng.permutation(column) for column in drawn.T], axis=1)
    for control in (np.zeros_like(drawn), drawn / 2, fresh, np.roll(drawn, 1, axis=1)):
        assert worst_deviation(control, expected)[0] > threshold


@pytest.mark.slow
def test_empirical_covariance_over_keys(lab) -> None:
    """The same through the front door: 2000 keys, streams and purposes on the hand-written chain."""
    chain = tiny()
    ledger = lab.ledger(chain, Fraction(1, 2))
    drawn = np.empty((2000, chain.capacity))
    for index in range(len(drawn)):
        made = Noise(
            chain,
            ledger,
            horizon=chain.capacity,
            key=simulation_key(index % 50),
            stream_id=(index // 50 % 8).to_bytes(16, "little"),
            purpose=f"repetition/{index // 400}",
            places=20,
        )
        drawn[index] = np.ldexp(made.range(0, chain.capacity), -20)
    worst, threshold = worst_deviation(drawn, dense_covariance(chain, ledger, chain.capacity))
    assert worst < threshold
    assert worst_deviation(np.roll(drawn, 1, axis=1), dense_covariance(chain, ledger, 5))[0] > threshold
