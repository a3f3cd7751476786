"""Completion makes any invertible matrix an exact stage, and loses next to nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift import Dyadic
from trilift.lift.errors import ParameterError
from trilift.verify import COMPACT, DEFAULT, Bits, best_stage, complete, loss


@pytest.fixture(scope="module")
def exactly_complete(random_B, by_definition):
    """Complete a random matrix, and check the outcome by definition."""

    def make(seed, size, *, one_sided=False, **arguments):
        B, g = random_B(seed, size, spread=0.3)
        stage = complete(B, g=None if one_sided else g, **arguments)
        assert by_definition(stage) is not None
        assert stage.size == size
        return stage

    return make


@pytest.fixture(scope="module")
def tall_B_of(random_B):
    """A random B with more rows than columns, columns of l1 norm 1, and the g of least norm."""

    def make(seed, size, more):
        B, g = random_B(seed, size)
        rng = np.random.default_rng(seed)
        tall = np.concatenate([B, 0.3 * rng.normal(size=(more, size)) * (rng.random((more, size)) < 0.5)])
        norms = np.abs(tall).sum(axis=0)
        return tall / norms, np.linalg.pinv(tall / norms).T @ (B.T @ g)

    return make


seeds = st.integers(0, 2**32)
all_bits = st.sampled_from(
    [DEFAULT, COMPACT, Bits(B=5, A=6, g=6, v=3, w=3), Bits(B=40, A=60, g=60, v=20, w=40)]
)


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(1, 8), all_bits, st.sampled_from([None, "max", "mean"]))
def test_two_sided_completion_is_exact(exactly_complete, seed, size, bits, objective):
    stage = exactly_complete(seed, size, bits=bits, objective=objective)
    assert stage.inner <= 2 * size + 1


@settings(deadline=None, max_examples=25)
@given(seeds, st.integers(1, 8), all_bits, st.booleans())
def test_one_sided_and_plain_completion_is_exact(exactly_complete, seed, size, bits, plain):
    stage = exactly_complete(seed, size, one_sided=True, bits=bits, plain=plain)
    assert stage.one_sided
    assert stage.is_plain or not plain
    assert stage.inner <= 2 * size  # no row for rho


@pytest.mark.parametrize("seed", range(4))
def test_loss_is_small(random_B, seed):
    B, g = random_B(seed, 24)
    for plain in (False, True):
        reference = best_stage(B, g=None if plain else g, plain=plain)
        for objective in ("max", "mean"):
            stage = complete(B, g=None if plain else g, plain=plain, objective=objective)
            assert loss(stage, reference, objective=objective) < 1e-4


@settings(deadline=None, max_examples=25)
@given(seeds, st.integers(1, 7), st.integers(1, 5), all_bits, st.sampled_from([None, "max", "mean"]))
def test_tall_completion_is_exact(tall_B_of, by_definition, seed, size, more, bits, objective):
    B, g = tall_B_of(seed, size, more)
    stage = complete(B, g=g, bits=bits, objective=objective)
    assert by_definition(stage) is not None
    assert stage.inner <= 2 * size + more + 1
    assert stage.B[: size + more].equals(Dyadic.round(B, bits.B))
    plain = complete(B, bits=bits, plain=True)
    assert plain.is_plain
    assert by_definition(plain) is not None


@pytest.mark.parametrize("seed", range(3))
def test_tall_completion_loses_little(tall_B_of, seed):
    B, g = tall_B_of(seed, 20, 6)
    for plain in (False, True):
        reference = best_stage(B, g=None if plain else g, plain=plain)
        assert reference.residual() < 1e-12
        for objective in ("max", "mean"):
            stage = complete(B, g=None if plain else g, plain=plain, objective=objective)
            assert loss(stage, reference, objective=objective) < 1e-4


def test_tall_stages_have_the_shortest_rows_and_g(tall_B_of):
    B, g = tall_B_of(3, 6, 3)
    pseudo = np.linalg.pinv(B)
    free = np.linalg.svd(B.T)[2][6:].sum(axis=0)  # adds nothing to v
    reference = best_stage(B, g=g + free)
    np.testing.assert_allclose(reference.g, g, atol=1e-12)
    target = np.tril(np.ones((6, 6))) - np.outer(reference.w, 1 - B.T @ g)
    np.testing.assert_allclose(reference.A, target @ pseudo, atol=1e-12)
    exact = complete(B, g=g + free, w=reference.w)
    np.testing.assert_allclose(exact.A.to_float()[:, :9], reference.A, atol=5e-3)  # v is rounded to 10 places
    np.testing.assert_allclose(exact.g.to_float()[:9], g, atol=5e-3)


def test_compact_places_are_coarser(random_B):
    B, g = random_B(5, 12)
    fine, compact = complete(B, g=g), complete(B, g=g, bits=COMPACT)
    assert (compact.A.exp, compact.v.normalized().exp) == (26, 8)
    assert compact.B.exp == 36
    assert fine.A.exp == 32


def test_chosen_exponents_are_no_worse_than_fixed_ones(random_B):
    B, g = random_B(6, 20)
    reference = best_stage(B, g=g)
    chosen = loss(complete(B, g=g), reference, objective="mean")
    for e in (6, 9, 12):
        assert (
            chosen <= loss(complete(B, g=g, bits=Bits(defect=e, rho=e)), reference, objective="mean") + 1e-12
        )


def test_objective_improves_the_rounding_of_v(random_B):
    for seed in range(3):
        B, g = random_B(seed, 12)
        reference = best_stage(B, g=g)
        for objective in ("max", "mean"):
            plain = loss(complete(B, g=g), reference, objective=objective)
            assert loss(complete(B, g=g, objective=objective), reference, objective=objective) <= plain + 1e-7


def test_identically_zero_rows_are_dropped(by_definition):
    stage = complete(np.eye(4), plain=True)
    assert stage.inner == 4
    assert by_definition(stage) is not None
    stage = complete(np.eye(4), g=[0.0, 0.25, 0.5, 1.0])
    assert stage.inner < 9
    assert by_definition(stage) is not None


def test_v_is_clipped(by_definition):
    stage = complete(np.eye(3), g=[-0.5, 0.5, 1.5])
    assert stage.v.to_float().tolist() == [0.0, 0.5, 1.0]
    assert by_definition(stage) is not None


def test_given_w_is_kept(by_definition):
    stage = complete(np.eye(3), w=[-1.0, 0.5, 2.0])
    assert stage.w.to_float().tolist() == [0.0, 0.5, 1.0]
    assert by_definition(stage) is not None


def test_first_rows_are_the_rounded_matrix(random_B):
    B, g = random_B(1, 7)
    stage = complete(B, g=g)
    assert stage.B[:7].equals(Dyadic.round(B, 20))


def test_best_w_is_best(random_B):
    B, g = random_B(2, 6)
    best = best_stage(B, g=g)
    assert best.residual() < 1e-12
    rng = np.random.default_rng(0)
    L, d = np.cumsum(np.linalg.inv(B), axis=0), np.linalg.inv(B).sum(axis=0) - g
    for _ in range(200):
        w = np.clip(best.w + rng.normal(0, 0.1, 6), 0, 1)
        q = ((L - np.outer(w, d)) ** 2).sum(axis=1) + (1 - w) ** 2 * (g @ g)
        assert np.all(q >= best.row_norms_sq() - 1e-12)


def test_ill_conditioned_matrices_are_refined(by_definition):
    """The float inverse is good to a few digits; the exact residual still comes down to the rounding."""
    B = np.vander(np.linspace(0.1, 1.0, 7), increasing=True).T
    stage = complete(B, plain=True, bits=Bits(B=40, A=50))
    assert by_definition(stage) is not None
    assert abs(stage.B[7:]).max() < 2.0**-10


@pytest.mark.parametrize(
    ("B", "arguments", "message"),
    [
        ([[1.0, 2.0]], {}, "as many rows as columns"),
        ([[1.0, 1.0], [1.0, 1.0]], {}, "singular"),
        ([[1.0, 0.0], [0.0, 1e-9]], {}, "singular"),
        ([[np.nan]], {}, "finite"),
        ([[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]], {}, "singular"),
        (np.eye(2), {"g": [1.0]}, "2 entries"),
        (np.eye(2), {"g": [np.inf, 0.0]}, "finite"),
        (np.eye(2), {"w": [0.0]}, "2 entries"),
        (np.eye(2), {"plain": True, "g": [0.0, 0.0]}, "no g"),
        (np.eye(2), {"objective": "best"}, "objective"),
    ],
)
def test_refusals(B, arguments, message):
    with pytest.raises(ParameterError, match=message):
        complete(B, **arguments)


@pytest.mark.parametrize("places", [{"B": 0}, {"v": 1.5}, {"defect": -1}, {"w": True}])
def test_refused_places(places):
    with pytest.raises(ParameterError, match="bits"):
        Bits(**places)
