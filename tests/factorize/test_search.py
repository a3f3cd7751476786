"""What the searches return: valid stages, known optima, honest statuses."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from trilift.factorize import SearchStatus, cold, search_direct, search_stage
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage


def quick(size, **arguments):
    defaults = {"objective": "mean", "seed": 1, "steps": 300, "starts": 3, "progress": False}
    return search_stage(size, **(defaults | arguments))


@pytest.mark.parametrize(("objective", "c_squared"), [("max", 2.0), ("mean", 1.5)])
def test_direct_search_finds_the_known_optimum_of_two_steps(objective, c_squared):
    # c_2(T_2) = sqrt(2), c_F(T_2) = sqrt(3/2)
    found = search_direct(2, objective=objective, seed=0, steps=1500, starts=8, progress=False)
    assert found.status is SearchStatus.FINISHED
    assert found.cost == pytest.approx(2 * c_squared, rel=2e-5)
    assert found.cost >= 2 * c_squared * (1 - 1e-12)
    assert found.stage.is_plain


def test_direct_search_reaches_the_known_figure_of_four_steps():
    found = search_direct(4, objective="mean", seed=0, steps=2000, starts=16, progress=False)
    assert found.cost < 0.62502


def test_two_sided_search_reaches_its_figure_at_nine():
    found = search_stage(9, objective="mean", seed=1, steps=3000, starts=16, progress=False)
    assert found.cost < 0.0724
    assert found.stage.residual() < 1e-12
    assert found.stage.v.min() >= -1e-14
    assert found.stage.v.max() <= 1 + 1e-14
    # a "max" search from it ends close to the published figure too
    top = search_stage(9, objective="max", steps=2000, starts=4, initial=found.stage, progress=False)
    assert top.cost < 0.0890
    assert top.cost > found.cost


def test_cost_is_recomputed_from_the_stage_without_smoothing():
    found = quick(6, objective="max")
    assert found.cost == found.stage.kappa("max")
    assert found.history[-1][1] == pytest.approx(found.cost, rel=1e-12)


def test_history_never_rises_and_covers_all_steps():
    found = quick(5)
    steps, kappas = zip(*found.history, strict=True)
    assert steps[-1] == found.steps == 300
    assert list(steps) == sorted(set(steps))
    assert all(a >= b for a, b in pairwise(kappas))
    assert len(steps) == 2


def test_one_sided_search_keeps_g_at_zero():
    found = quick(5, one_sided=True)
    assert found.stage.one_sided
    assert not found.stage.is_plain
    assert found.stage.residual() < 1e-13


def test_one_sided_search_reaches_its_figure_at_five():
    found = search_stage(5, objective="mean", one_sided=True, steps=2000, starts=16, progress=False)
    assert found.status is SearchStatus.FINISHED
    assert found.cost < 0.1209


def test_same_seed_same_numbers_other_seed_other_numbers():
    first, second, other = quick(4), quick(4), quick(4, seed=2)
    np.testing.assert_array_equal(first.stage.B, second.stage.B)
    np.testing.assert_array_equal(first.stage.g, second.stage.g)
    assert first.history == second.history
    assert not np.array_equal(first.stage.B, other.stage.B)


def test_a_search_around_a_stage_never_returns_a_worse_one():
    good = quick(5)
    shaken = quick(5, steps=1, spread=(2.0, 2.0), starts=3, initial=good.stage)
    assert shaken.cost == pytest.approx(good.cost, rel=1e-12)
    other_kind = quick(5, steps=1, one_sided=True, initial=good.stage)
    assert other_kind.stage.one_sided


def test_rounded_weights_stay_where_they_are_while_b_adapts():
    free = quick(5, objective="max", steps=1000)
    coarse = quick(5, objective="max", steps=1, initial=free.stage, weight_bits=5)
    found = quick(5, objective="max", steps=1000, initial=free.stage, weight_bits=5, spread=(0.0, 0.05))
    on_lattice = found.stage.v * 32
    np.testing.assert_allclose(on_lattice, np.rint(on_lattice), atol=1e-11)
    np.testing.assert_allclose(found.stage.v, free.stage.v, atol=1 / 64 + 1e-12)
    assert found.cost < coarse.cost


def test_searches_that_blow_up_say_so():
    wild = replace(cold(largest=False), rate=1e300)
    found = quick(4, schedule=wild)
    assert found.status is SearchStatus.DIVERGED
    assert found.dropped == 3
    assert found.steps < 300
    assert "3 of 3 starts dropped" in found.summary()
    assert found.stage is None or np.isfinite(found.cost)


def test_a_start_that_blows_up_is_dropped_and_the_others_go_on():
    # the second start has entries near 1e200, whose squares overflow
    found = quick(4, starts=2, spread=(0.0, 1e200))
    assert found.status is SearchStatus.FINISHED
    assert found.dropped == 1
    assert np.isfinite(found.cost)
    assert "1 of 2 starts dropped" in found.summary()


def test_result_tells_how_it_was_found():
    found = quick(4, seed=7)
    assert found.seed == 7
    assert {"trilift", "jax", "optax", "numpy"} <= set(found.versions)
    assert found.seconds > 0
    assert found.settings.kind == "two-sided"
    assert '"seed": 7' in found.settings.as_json()


BAD = [
    {"size": 1},
    {"size": 2.0},
    {"size": True},
    {"size": 10**6},
    {"objective": "median"},
    {"objective": None},
    {"seed": -1},
    {"seed": 0.5},
    {"steps": 0},
    {"steps": float("nan")},
    {"starts": 0},
    {"spread": 0.3},
    {"spread": (0.3, 0.1)},
    {"spread": (0.0, float("nan"))},
    {"spread": (-1.0, 0.1)},
    {"schedule": 0.1},
    {"initial": np.eye(4)},
    {"initial": Stage.plain(np.tril(np.ones((3, 3))), np.eye(3))},
    {"initial": Stage.plain(np.zeros((4, 4)), np.zeros((4, 4)))},
    {"one_sided": 1},
    {"weight_bits": 10},
    {"weight_bits": 0, "initial": Stage.plain(np.tril(np.ones((4, 4))), np.eye(4))},
    {"weight_bits": 10, "one_sided": True, "initial": Stage.plain(np.tril(np.ones((4, 4))), np.eye(4))},
    {"resume": True},
    {"resume": "yes"},
    {"checkpoint": 3},
    {"checkpoint": "/nonexistent-folder/search.npz"},
]


@pytest.mark.parametrize("bad", BAD, ids=[str(i) for i in range(len(BAD))])
def test_bad_arguments_are_refused_before_any_compute(bad, monkeypatch):
    def never(*args, **kwargs):
        raise RuntimeError("computed")

    monkeypatch.setattr("trilift.factorize.search._chunk", never)
    arguments = {"size": 4, "objective": "mean"} | bad
    with pytest.raises(ParameterError):
        search_stage(arguments.pop("size"), **arguments)


@pytest.mark.parametrize("bad", [{"size": 0}, {"objective": "both"}, {"starts": "4"}])
def test_direct_search_refuses_bad_arguments(bad):
    arguments = {"size": 4, "objective": "mean"} | bad
    with pytest.raises(ParameterError):
        search_direct(arguments.pop("size"), **arguments)
