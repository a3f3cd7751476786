"""Unbounded noise: layouts, random access, exact variances, covariances over keys, and what binds a key."""

import copy
import pickle
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift import Chain, Dyadic, HorizonError, ParameterError, Stage, StateError
from trilift.stream.epoch_layout import GROWTHS, LAST_STEP, Layout
from trilift.stream.epochs import EpochNoise, epoch_purpose
from trilift.stream.keys import simulation_key
from trilift.stream.ledger import make_ledger
from trilift.stream.noise import Noise
from trilift.stream.process import NoiseProcess

LAYOUTS = [Layout.doubling(), Layout.relay(first=4), Layout.relay(first=5, exponent=2), Layout.tapered()]


class Sums:
    """Epochs of the plainest counters, T = T I: noise of local step m is z_0 + .. + z_m, variances known."""

    def __init__(self, key: bytes, *, epsilon: Fraction = Fraction(1), places: int = 0) -> None:
        self.key, self.epsilon, self.places = key, epsilon, places
        self.identity = b"s" * 32
        self.made: list[str] = []

    def _processes(self, budget: Fraction, length: int, purposes: Sequence[str]) -> list[Noise]:
        size = min(length, 64)
        lower = np.tril(np.ones((size, size), dtype=np.int64))
        chain = Chain(Stage.plain(Dyadic(lower), Dyadic(np.eye(size, dtype=np.int64))))
        ledger = make_ledger(chain, budget, scales=[1.0])
        self.made += purposes
        return [
            Noise(
                chain,
                ledger,
                horizon=size,
                key=self.key,
                stream_id=bytes(16),
                purpose=purpose,
                places=self.places,
            )
            for purpose in purposes
        ]

    def counters(self, epoch: int, length: int, share: Fraction, purposes: Sequence[str]) -> list[Noise]:
        return self._processes(self.epsilon * (1 - share), length, purposes)

    def totals(self, epoch: int, share: Fraction, purposes: Sequence[str]) -> list[Noise]:
        return self._processes(self.epsilon * share, 1, purposes)


def small(seed: int, layout: Layout, **options: Any) -> EpochNoise:
    return EpochNoise(layout, Sums(simulation_key(seed), **options), purpose="test")


# -- layouts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [*LAYOUTS, Layout.tapered(law="gaussian"), Layout.relay()])
def test_layouts_cover_every_step_once(layout: Layout) -> None:
    assert layout.ends[-1] == LAST_STEP
    assert all(a < b for a, b in zip(layout.ends, layout.ends[1:], strict=False))
    assert len(layout.shares) == len(layout.ends)
    assert all(0 <= share < 1 for share in layout.shares)
    steps = sorted({0, 1, 2, LAST_STEP - 1} | {e + d for e in layout.ends[:-1] for d in (-1, 0, 1)})
    steps = [step for step in steps if step < LAST_STEP]
    for step, epoch in zip(steps, layout.epoch_of(steps).tolist(), strict=True):
        assert layout.start(epoch) <= step < layout.ends[epoch]


def test_the_doubling_layout_is_the_papers() -> None:
    layout = Layout.doubling()
    for t in [*range(1, 70), 2**40 - 1, 2**40, 2**61]:
        j = t.bit_length() - 1
        assert int(layout.epoch_of([t - 1])[0]) == j
        assert layout.start(j) == 2**j - 1


def test_relays_grow_in_their_logarithms() -> None:
    ends = Layout.relay(first=16, exponent=2).ends
    assert [b - a for a, b in zip((0, *ends), ends[:3], strict=False)] == [16, 256, 65536]
    assert Layout.relay(first=16).length(1) == 64


@pytest.mark.parametrize("options", [{"first": 3}, {"first": 2.0}, {"exponent": 1}, {"exponent": "2"}])
def test_bad_relays(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Layout.relay(**options)


def test_layouts_by_name() -> None:
    assert [Layout.of(growth).growth for growth in GROWTHS] == list(GROWTHS)
    for wrong in ("Doubling", "", None, 2):
        with pytest.raises(ParameterError):
            Layout.of(wrong)  # type: ignore[arg-type]
    texts = {layout.text for layout in [*LAYOUTS, Layout.relay(), Layout.tapered(law="gaussian")]}
    assert len(texts) == 6


# -- values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_are_sums_of_parts(layout: Layout) -> None:
    """Each part is rounded on its own and read from a process made apart from the others."""
    noise = small(1, layout)
    values = noise.range(0, 60)
    for step in range(60):
        total = 0
        for kind, epoch, local in noise.parts(step):
            mechanism = Sums(simulation_key(1))
            purpose = [epoch_purpose("test", layout, kind, epoch)]
            share = layout.shares[epoch]
            process = (
                mechanism.totals(epoch, share, purpose)
                if kind == "total"
                else mechanism.counters(epoch, layout.length(epoch), share, purpose)
            )[0]
            total += int(process.at([local])[0])
        assert values[step] == total


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parts_are_disjoint_epochs(layout: Layout) -> None:
    """Parallel composition needs it: a step's parts are of different epochs, none of a later one."""
    noise = small(1, layout)
    for step in [0, 1, 2, 3, 6, 7, 14, 30, 62, 2**20, LAST_STEP - 1]:
        parts = noise.parts(step)
        epochs = [epoch for _, epoch, _ in parts]
        assert epochs == list(range(int(layout.epoch_of([step])[0]) + 1))
        for kind, epoch, local in parts[:-1]:
            assert (kind == "total") == (layout.shares[epoch] > 0)
            assert local == (0 if kind == "total" else layout.length(epoch) - 1)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(0, 66), max_size=12),
    st.integers(0, 66),
    st.integers(0, 20),
    st.sampled_from(LAYOUTS[:2]),
)
def test_random_access(steps: list[int], start: int, more: int, layout: Layout) -> None:
    whole = small(2, layout).range(0, 90)
    fresh = small(2, layout)
    assert fresh.at(np.array(steps, dtype=np.int64)).tolist() == whole[steps].tolist() if steps else True
    assert fresh.range(start, start + more).tolist() == whole[start : start + more].tolist()


def test_large_noise_stays_exact() -> None:
    noise = small(3, LAYOUTS[0], epsilon=Fraction(1, 1 << 70))
    values = noise.range(0, 20)
    assert values.dtype == object
    assert [int(v) for v in noise.at(np.arange(20)[::-1])[::-1]] == [int(v) for v in values]
    assert max(abs(int(v)) for v in values) > 1 << 64


def test_refusals() -> None:
    noise = small(1, LAYOUTS[0])
    for wrong in (lambda: noise.range(-1, 2), lambda: noise.at([0.5]), lambda: noise.parts("0")):
        with pytest.raises((ParameterError, HorizonError)):
            wrong()
    for past in (lambda: noise.range(0, LAST_STEP + 1), lambda: noise.at([-1]), lambda: noise.variance([-1])):
        with pytest.raises((HorizonError, ParameterError)):
            past()
    for copied in (lambda: pickle.dumps(noise), lambda: copy.copy(noise), lambda: copy.deepcopy(noise)):
        with pytest.raises(StateError):
            copied()
    with pytest.raises(ParameterError):
        EpochNoise.family(LAYOUTS[0], Sums(simulation_key(1)), purposes=["a", "a"])
    assert isinstance(noise, NoiseProcess)
    assert noise.horizon is None


def test_keys_bind_layout_epoch_purpose_and_budget() -> None:
    base = small(4, LAYOUTS[0], places=30).range(3, 60)
    others = [
        small(5, LAYOUTS[0], places=30),
        EpochNoise(LAYOUTS[0], Sums(simulation_key(4), places=30), purpose="other"),
        small(4, LAYOUTS[0], places=30, epsilon=Fraction(1001, 1000)),
    ]
    for other in others:
        assert not (other.range(3, 60) == base).any()
    digests = {small(4, layout).digest for layout in LAYOUTS}
    assert len(digests) == len(LAYOUTS)
    first, second = (Sums(simulation_key(4)) for _ in range(2))
    EpochNoise(LAYOUTS[1], first, purpose="x").range(0, 40)
    EpochNoise(LAYOUTS[2], second, purpose="x").range(0, 40)
    assert not set(first.made) & set(second.made)
    assert len(set(first.made)) == len(first.made)


def test_a_family_is_what_its_members_are_alone() -> None:
    family = EpochNoise.family(LAYOUTS[0], Sums(simulation_key(6)), purposes=["test", "b"])
    assert family[0].range(0, 60).tolist() == small(6, LAYOUTS[0]).range(0, 60).tolist()
    assert family[1].range(0, 60).tolist() != family[0].range(0, 60).tolist()


# -- laws ---------------------------------------------------------------------------------------------

COPIES = 600
LAW_PLACES = 8


@pytest.mark.parametrize("layout", [Layout.doubling(), Layout.relay(first=4)])
def test_covariances_over_keys(layout: Layout) -> None:
    """Empirical covariances across epoch boundaries are what ``covariance`` and ``variance`` say.

    A sum of Laplace variates has kurtosis at most 6, so a sample covariance of n keys errs by a standard
    deviation of at most sqrt(6 V_s V_t / n); 5.5 of them, 105 pairs: false alarm below 1e-5. The wrong model,
    parts of different epochs sharing their noise, lies far outside.
    """
    steps = np.array([0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14])
    family = EpochNoise.family(
        layout, Sums(simulation_key(7), places=LAW_PLACES), purposes=[f"p/{i}" for i in range(COPIES)]
    )
    drawn = np.ldexp(np.array([noise.at(steps).astype(float) for noise in family]), -LAW_PLACES)
    exact = np.array([[family[0].covariance(int(s), int(t)) for t in steps] for s in steps])
    variances = family[0].variance(steps)
    assert np.allclose(np.diag(exact), variances, rtol=1e-3)
    found = drawn.T @ drawn / COPIES
    allowed = 5.5 * np.sqrt(6.0 * np.outer(variances, variances) / COPIES)
    assert (np.abs(found - exact) <= allowed).all()
    shared = np.sqrt(np.outer(variances, variances))  # all noise in common
    assert (np.abs(shared - exact) > allowed).any()


def test_doublings_variance_is_the_papers_formula() -> None:
    """sigma_t^2 = V_total j + V_j(m) inside epoch j, V_total (j + 1) at its end; equal halves."""
    noise = small(8, Layout.doubling(), places=20)
    unit = 2.0 * 2.0**2  # Laplace of scale 2 / epsilon
    for t in range(1, 64):
        j = t.bit_length() - 1
        m = t - 2**j + 1
        expected = unit * (j + 1) if m == 2**j else unit * (j + m)
        assert noise.variance([t - 1])[0] == pytest.approx(expected, rel=2e-3)


def test_a_relay_hands_on_the_last_value() -> None:
    noise = small(9, Layout.relay(first=4), places=20)
    assert noise.covariance(3, 4) == pytest.approx(noise.covariance(3, 3))
    assert noise.covariance(2, 4) == pytest.approx(noise.covariance(2, 3))
    assert noise.variance([4])[0] == pytest.approx(2.0 * 4 + 2.0, rel=2e-3)
