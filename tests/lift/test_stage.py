"""The stage: its equation, its norms against Fractions, what it refuses."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage, lower_ones

kinds = st.fixed_dictionaries(
    {
        "m": st.integers(1, 7),
        "extra": st.integers(0, 3),
        "one_sided": st.booleans(),
        "zeros": st.integers(0, 3),
    }
)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), kind=kinds)
def test_exact_stages(make: Any, seed: int, kind: dict[str, Any]) -> None:
    stage = make.exact_stage(np.random.default_rng(seed), **kind)
    m, r = kind["m"], kind["m"] + kind["extra"]
    A, B, w, g = (part.fractions() for part in (stage.A, stage.B, stage.w, stage.g))
    v = B.T @ g
    assert ((A @ B + np.outer(w, 1 - v)) == lower_ones(m)).all()
    assert stage.residual() == 0
    assert stage.v.fractions().tolist() == v.tolist()
    assert (stage.size, stage.inner, stage.is_exact) == (m, r, True)
    assert stage.one_sided == (not g.any())
    assert stage.is_plain == (not g.any() and not w.any())
    assert stage.sensitivity() == max(abs(B).sum(axis=0))
    assert stage.column_norms().fractions().tolist() == abs(B).sum(axis=0).tolist()
    expected = (A * A).sum(axis=1) + (1 - w) ** 2 * (g * g).sum()
    assert stage.row_norms_sq().fractions().tolist() == expected.tolist()
    rounded = stage.to_float()
    assert not rounded.is_exact
    assert rounded.residual() < 1e-12
    np.testing.assert_allclose(rounded.row_norms_sq(), expected.astype(float), rtol=1e-12)
    assert rounded.sensitivity() == pytest.approx(float(stage.sensitivity()))
    assert (rounded.tail, rounded.is_plain, rounded.one_sided) == (
        stage.tail,
        stage.is_plain,
        stage.one_sided,
    )


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), kind=kinds)
def test_one_wrong_entry_is_seen(make: Any, seed: int, kind: dict[str, Any]) -> None:
    rng = np.random.default_rng(seed)
    stage = make.exact_stage(rng, **kind)
    A = stage.A.num.copy()
    row, column = int(rng.integers(A.shape[0])), int(rng.integers(kind["m"]))  # no zero row of B
    A[row, column] += 1
    wrong = Stage(Dyadic(A, stage.A.exp), stage.B, stage.w, stage.g)
    expected = Fraction(1, 2**stage.A.exp) * max(abs(stage.B[column].fractions()))
    assert wrong.residual() == expected > 0


def test_defect_of_a_float_stage(make: Any) -> None:
    stage = make.float_stage(np.random.default_rng(1), 4)
    moved = Stage(stage.A, stage.B, stage.w + np.array([0, 0, 1e-3, 0]), stage.g)
    defect = moved.defect()
    np.testing.assert_allclose(defect[2], -1e-3 * (1 - stage.v), atol=1e-12)
    assert moved.residual() == pytest.approx(1e-3 * (1 - stage.v).max())


def test_tails_are_the_leading_zeros_of_w(make: Any) -> None:
    for zeros in range(5):
        for kind in (make.float_stage, make.exact_stage):
            assert kind(np.random.default_rng(zeros), 5, zeros=zeros).tail == zeros


def test_plain_stages() -> None:
    top = Stage.plain(lower_ones(3), np.eye(3))
    exact = Stage.plain(Dyadic(lower_ones(3)), Dyadic(np.eye(3, dtype=np.int64)))
    for stage in (top, exact):
        assert stage.is_plain
        assert stage.one_sided
        assert stage.residual() == 0
        assert stage.sensitivity() == 1
        assert stage.tail == 0
    assert top.cost_third("max") == pytest.approx(3 ** (1 / 3))
    assert exact.cost_third("mean") == pytest.approx(2 ** (1 / 3))
    assert top.kappa("max") == pytest.approx(2 * 3 / np.log2(3) ** 3)
    assert Stage.plain([[1]], [[1]]).size == 1


def test_kappa_needs_a_logarithm() -> None:
    with pytest.raises(ParameterError, match="at least 2"):
        Stage.plain([[1.0]], [[1.0]]).kappa("max")


def test_a_stage_keeps_its_own_read_only_copy(make: Any) -> None:
    A, B, w, g = lower_ones(2).astype(float), np.eye(2), np.zeros(2), np.zeros(2)
    stage = Stage(A, B, w, g)
    A[:] = 7
    assert stage.residual() == 0
    for part in (stage.A, stage.B, stage.w, stage.g):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 1.0
    with pytest.raises(AttributeError):
        stage.A = A  # type: ignore[misc]


GOOD: dict[str, Any] = {"A": np.eye(2), "B": np.eye(2), "w": np.zeros(2), "g": np.zeros(2)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"A": np.eye(3)}, "shapes must be"),
        ({"B": np.ones((3, 2))}, "shapes must be"),
        ({"w": np.zeros(3)}, "shapes must be"),
        ({"g": np.zeros(1)}, "shapes must be"),
        ({"A": np.ones(2)}, "A must have 2 dimension"),
        ({"w": np.zeros((2, 1))}, "w must have 1 dimension"),
        ({"A": [[1.0, np.nan], [0.0, 1.0]]}, "A must be finite"),
        ({"w": [0.0, np.inf]}, "w must be finite"),
        ({"B": [["a", "b"], ["c", "d"]]}, "B must be a numeric array"),
        ({"g": [True, False]}, "g must be a numeric array"),
        ({"B": Dyadic([[1, 0], [0, 1]])}, "all float arrays or all Dyadic"),
    ],
)
def test_stages_that_are_refused(change: dict[str, Any], words: str) -> None:
    Stage(**GOOD)
    with pytest.raises(ParameterError, match=words) as caught:
        Stage(**{**GOOD, **change})
    assert "\n" not in str(caught.value)


def test_exact_shapes_are_checked_too() -> None:
    one, two = Dyadic([1]), Dyadic([[1, 0], [0, 1]])
    with pytest.raises(ParameterError, match="shapes must be"):
        Stage(two, two, Dyadic.zeros(3), Dyadic.zeros(2))
    with pytest.raises(ParameterError, match="shapes must be"):
        Stage(one, two, Dyadic.zeros(2), Dyadic.zeros(2))
    with pytest.raises(ParameterError, match="shapes must be"):
        Stage(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0), np.zeros(0))
