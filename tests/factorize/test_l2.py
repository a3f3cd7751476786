"""The search under the l2 norm: gradient, optimality for small sizes, and what it returns."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.factorize.l2 import search_l2_direct, search_l2_stage
from trilift.factorize.l2_objective import evaluate, gradient
from trilift.lift import ParameterError, Stage, lower_ones
from trilift.lift.toeplitz import toeplitz_cost


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), m=st.integers(2, 7), plain=st.booleans(), power=st.floats(1.0, 50.0))
def test_gradient_is_that_of_the_objective(seed: int, m: int, plain: bool, power: float) -> None:
    rng = np.random.default_rng(seed)
    U = np.triu(np.eye(m) + 0.3 * rng.normal(size=(m, m)))
    v = np.zeros(m) if plain else rng.uniform(0.1, 0.9, m)
    along_U, along_v = np.triu(rng.normal(size=(m, m))), rng.normal(size=m) * (not plain)

    def value(step: float) -> float:
        at = evaluate(U + step * along_U, v + step * along_v, plain=plain)
        assert at is not None
        return gradient(at, U + step * along_U, power)[0]

    here = evaluate(U, v, plain=plain)
    assert here is not None
    _, by_U, by_v = gradient(here, U, power)
    slope = float((by_U * along_U).sum() + by_v @ along_v)
    h = 1e-6
    assert slope == pytest.approx((value(h) - value(-h)) / (2 * h), rel=1e-4, abs=1e-6 * (1 + abs(slope)))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), m=st.integers(2, 7))
def test_an_evaluation_is_a_stage_with_the_best_rows(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    U, v = np.triu(np.eye(m) + 0.3 * rng.normal(size=(m, m))), rng.uniform(0.0, 1.0, m)
    at = evaluate(U, v, plain=False)
    assert at is not None
    np.testing.assert_allclose((at.B**2).sum(axis=0), 1.0)
    inverse = np.linalg.inv(at.B)
    stage = Stage((lower_ones(m) - np.outer(at.w, 1.0 - v)) @ inverse, at.B, at.w, v @ inverse)
    np.testing.assert_allclose(stage.row_norms_sq(), at.q, rtol=1e-7)
    for change in (-0.01, 0.01):  # w is the best one for every row
        w = np.clip(at.w + change, 0.0, 1.0)
        other = Stage((lower_ones(m) - np.outer(w, 1.0 - v)) @ inverse, at.B, w, v @ inverse)
        assert (other.row_norms_sq() >= at.q - 1e-9).all()


def test_a_singular_point_is_told_apart() -> None:
    assert evaluate(np.triu(np.ones((3, 3))) * [[1], [0], [1]], np.zeros(3), plain=True) is None


def test_two_steps_reach_the_known_optimum() -> None:
    """gamma_2(T_2) = 2/sqrt(3): Schur multipliers of size 2 are known (Mathias)."""
    found = search_l2_direct(2, objective="max")
    assert found.gamma == pytest.approx(2 / np.sqrt(3), rel=1e-5)


@pytest.mark.parametrize("objective", ["max", "mean"])
def test_the_search_is_between_the_lower_bound_and_the_square_root(objective: str) -> None:
    """The mean singular value of T_k bounds both objectives from below."""
    k = 16
    found = search_l2_direct(k, objective=objective)
    j = np.arange(1, k + 1)
    least = np.mean(0.5 / np.sin((2 * j - 1) * np.pi / (4 * k + 2)))
    root = toeplitz_cost(k)
    most = root.gamma_max if objective == "max" else root.gamma_mean
    assert least < found.gamma < (0.95 if objective == "max" else 0.99) * most
    assert found.stage.is_plain
    assert found.stage.residual() < 1e-9
    assert found.gamma == pytest.approx(found.stage.gamma(objective))


@pytest.mark.parametrize(("objective", "known"), [("max", 0.91064), ("mean", 0.89498)])
def test_starts_agree(objective: str, known: float) -> None:
    found = search_l2_stage(9, objective=objective, starts=3, seed=5)
    assert len(found.starts) == 3
    assert found.gamma == pytest.approx(min(found.starts), rel=1e-7)  # floats: processors differ
    assert max(found.starts) < known * 1.005
    stage = found.stage
    assert stage.residual() < 1e-9
    assert stage.v.min() >= -1e-12
    assert stage.v.max() <= 1 + 1e-12
    np.testing.assert_allclose(stage.column_norms_sq(), 1.0)
    assert found.complete
    assert json.loads(json.dumps(found.settings.as_json()))["norm"] == "l2"


def test_the_same_seed_gives_the_same_stage() -> None:
    first, second = (search_l2_stage(5, objective="max", seed=3) for _ in range(2))
    assert np.array_equal(first.stage.B, second.stage.B)
    assert first.starts == second.starts


def test_an_initial_stage_is_where_it_starts() -> None:
    """Also a tall one: only B^T B matters."""
    found = search_l2_stage(7, objective="mean")
    tall = Stage(
        np.concatenate([found.stage.A, np.zeros((7, 1))], axis=1),
        np.concatenate([found.stage.B, np.zeros((1, 7))]),
        found.stage.w,
        np.append(found.stage.g, 0.0),
    )
    again = search_l2_stage(7, objective="mean", initial=tall, steps=1)
    assert again.gamma <= found.gamma * (1 + 1e-6)
    assert search_l2_stage(7, objective="max", initial=tall).gamma < found.stage.gamma("max")


def test_rounded_weights_cost_almost_nothing() -> None:
    """B adapts to a v of few places, also where B is nearly singular."""
    for size, objective in ((12, "mean"), (9, "max")):
        found = search_l2_stage(size, objective=objective)
        coarse = search_l2_stage(size, objective=objective, initial=found.stage, weight_bits=8)
        scaled = coarse.stage.v * 2**8
        np.testing.assert_allclose(scaled, np.round(scaled), atol=1e-6)
        assert coarse.gamma < found.gamma * 1.0005
    with pytest.raises(ParameterError, match="weight_bits needs an initial stage"):
        search_l2_stage(4, objective="max", weight_bits=8)


def test_time_runs_out() -> None:
    found = search_l2_stage(33, objective="max", time_budget=0.05)
    assert not found.complete
    assert found.stage.residual() < 1e-9


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int, float]] = []
    search_l2_direct(4, objective="mean", progress=lambda *call: seen.append(call))
    assert seen
    assert seen[-1][1] == 1000
    assert seen[-1][2] == pytest.approx(1.31093, rel=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 1}, "size must be"),
        ({"objective": "mse"}, "objective must be"),
        ({"seed": -1}, "seed must be"),
        ({"steps": 0}, "steps must be"),
        ({"starts": 0}, "starts must be"),
        ({"spread": -0.1}, "spread must be"),
        ({"time_budget": 0}, "time_budget must be"),
        ({"time_budget": 1e-9}, "more time"),
        ({"initial": np.eye(4)}, "initial must be a Stage"),
        ({"initial": Stage.plain(lower_ones(3), np.eye(3))}, "initial must have B with 4 columns"),
    ],
)
def test_refused(change: dict, message: str) -> None:
    arguments = {"size": 4, "objective": "max", **change}
    with pytest.raises(ParameterError, match=message):
        search_l2_stage(arguments.pop("size"), **arguments)
