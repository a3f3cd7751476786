"""Joint searches: valid results that are never worse than the start, reproducible, resumable, stoppable."""

import json
import os
import signal
from dataclasses import replace
from itertools import pairwise

import jax
import numpy as np
import pytest
from trilift.artifacts import Provenance, load_stage
from trilift.factorize import (
    SearchStatus,
    composite_start,
    estimate_joint_cost,
    gentle,
    search_joint_direct,
    search_joint_stage,
)
from trilift.factorize.joint_objective import Problem
from trilift.factorize.joint_state import load_joint_checkpoint
from trilift.lift import Chain, Stage, chain_cost, interior_row_norms_sq, interior_sensitivity
from trilift.lift.errors import ArtifactFormatError, HorizonError, ParameterError
from trilift.verify import from_search


@pytest.fixture(scope="module")
def start():
    """A composite of 5 x 4 = 20 steps from small random two-sided stages."""
    levels = []
    for seed, size in enumerate((5, 4)):
        rng = np.random.default_rng(seed)
        B = np.eye(size) + 0.1 * rng.normal(size=(size, size)) * (rng.random((size, size)) < 0.5)
        B /= np.abs(B).sum(axis=0)
        v, w = rng.uniform(0.1, 0.6, size), np.linspace(0.2, 1, size)
        inverse = np.linalg.inv(B)
        A = (np.tril(np.ones((size, size))) - np.outer(w, 1 - v)) @ inverse
        levels.append(Stage(A, B, w, v @ inverse))
    return composite_start(*levels)


@pytest.fixture(scope="module")
def chain():
    return Chain(load_stage("direct-mean-4"), [load_stage("stage-mean-9")])


def quick(start, **arguments):
    return search_joint_stage(start, **({"objective": "mean", "steps": 120, "progress": False} | arguments))


def interior_kappa(stage, objective):
    q, b = interior_row_norms_sq(stage), interior_sensitivity(stage)
    return 2 * (q.max() if objective == "max" else q.mean()) * b**2 / np.log2(stage.size) ** 3


@pytest.mark.parametrize(
    ("objective", "interior"), [("mean", True), ("mean", False), ("max", False), ("max", True)]
)
def test_stage_searches_return_better_valid_stages(start, objective, interior):
    arguments = {"weight_range": (0.05, 0.95)} if interior and objective == "max" else {}
    found = quick(start, objective=objective, interior=interior, dilation=1, **arguments)
    assert found.status is SearchStatus.FINISHED
    assert found.cost < 0.98 * found.start_cost
    stage = found.stage
    assert stage.B.shape == (24, 20)
    assert stage.residual() < 1e-11
    assert stage.sensitivity() == pytest.approx(1.0)
    assert min(stage.v.min(), 1 - stage.v.max()) > -1e-12
    if interior:
        # an upper bound: the columns that a level shows can be shorter than 1, and w can stay off its ends
        assert interior_kappa(stage, objective) <= found.cost * (1 + 1e-9)
        assert interior_kappa(stage, objective) > 0.95 * found.cost
        low, high = found.settings.weight_range
        assert low <= stage.w.min() <= stage.w.max() <= high
    else:
        assert stage.kappa(objective) == pytest.approx(found.cost, rel=1e-9)


@pytest.mark.parametrize("objective", ["max", "mean"])
def test_direct_searches_beat_the_chain_they_start_from(chain, objective):
    found = search_joint_direct(chain, size=32, objective=objective, steps=200, dilation=2, progress=False)
    assert found.stage.is_plain
    assert found.stage.size == 32
    assert found.stage.residual() < 1e-11
    assert found.stage.kappa(objective) == pytest.approx(found.cost, rel=1e-9)
    of_chain = chain_cost(chain, 32, objective=objective).kappa(objective)
    # the pseudo-inverse and columns of equal length alone are worth something; for "mean" the search more
    assert found.cost < 0.97 * of_chain
    assert found.cost < 0.999 * found.start_cost


def test_direct_searches_start_from_factors_and_matrices_too(chain):
    first = search_joint_direct(chain, size=32, objective="mean", steps=20, progress=False)
    second = search_joint_direct(first.stage, objective="mean", steps=20, progress=False)
    third = search_joint_direct(first.stage.B, objective="mean", steps=20, progress=False)
    assert second.start_cost == pytest.approx(first.cost, rel=1e-3)  # small entries have been dropped
    assert second.cost == third.cost


def test_the_support_never_grows(start):
    found = quick(start, dilation=1, spread=0.3)
    before = np.abs(start.B) > 0
    wider = before.copy()
    wider[:, 1:] |= before[:, :-1]
    wider[:, :-1] |= before[:, 1:]
    assert not found.stage.B[~wider].any()
    assert found.settings.entries <= wider.sum()
    assert np.count_nonzero(found.stage.B) <= found.settings.entries


def test_the_start_counts_as_seen(start):
    good = quick(start)
    wild = replace(gentle(largest=False), rate=10.0)
    shaken = quick(good.stage, steps=5, spread=5.0, schedule=wild)
    assert shaken.cost == shaken.start_cost == pytest.approx(good.cost, rel=1e-4)
    assert all(a >= b for a, b in pairwise(cost for _, cost in shaken.history))


def test_same_arguments_same_numbers(start):
    first, second, other = (quick(start, spread=0.1, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.stage.B, second.stage.B)
    assert first.history == second.history
    assert not np.array_equal(first.stage.B, other.stage.B)
    assert first.seed == 1


def test_rounded_weights_stay(start):
    found = quick(start, weight_bits=4)
    on_lattice = found.stage.v * 16
    np.testing.assert_allclose(on_lattice, np.rint(on_lattice), atol=1e-10)
    assert found.cost < found.start_cost


def test_nan_never_wins(start, monkeypatch):
    right, calls = Problem.value_and_gradient, []

    def spoilt(self, point, **arguments):
        calls.append(1)
        value, by = right(self, point, **arguments)
        return value, by._replace(x=by.x * np.nan) if len(calls) > 60 else by

    monkeypatch.setattr(Problem, "value_and_gradient", spoilt)
    found = quick(start)
    assert found.status is SearchStatus.DIVERGED
    assert found.steps == 60
    assert np.isfinite(found.cost)
    assert found.cost < found.start_cost
    assert found.stage.residual() < 1e-11


def test_steps_far_too_long_end_where_they_began(start):
    found = quick(start, schedule=replace(gentle(largest=False), rate=1e300))
    assert found.cost == found.start_cost
    assert found.stage.residual() < 1e-11


def test_the_callers_jax_flags_are_left_alone(start):
    before = jax.config.jax_enable_x64, jax.numpy.zeros(1).dtype
    quick(start, steps=2)
    assert (jax.config.jax_enable_x64, jax.numpy.zeros(1).dtype) == before


def interrupted_at(chunk):
    seen = []

    def report(step, steps, kappa):
        seen.append(step)
        if len(seen) == chunk:
            os.kill(os.getpid(), signal.SIGTERM)

    return report


@pytest.mark.parametrize("objective", ["max", "mean"])
def test_a_resumed_search_equals_the_uninterrupted_one(start, tmp_path, objective):
    path = tmp_path / "joint.npz"
    arguments = {"objective": objective, "steps": 300, "spread": 0.1, "dilation": 1}
    whole = quick(start, **arguments)
    parts = [quick(start, **arguments, checkpoint=path, progress=interrupted_at(2))]
    parts.append(quick(start, **arguments, checkpoint=path, resume=True, progress=interrupted_at(1)))
    assert [part.status.value for part in parts] == ["interrupted", "interrupted"]
    assert 0 < parts[0].steps < parts[1].steps < 300
    last = quick(start, **arguments, checkpoint=path, resume=True)
    assert last.status.value == "finished"
    assert (last.history, last.cost, last.settings) == (whole.history, whole.cost, whole.settings)
    for part in "ABwg":
        np.testing.assert_array_equal(getattr(last.stage, part), getattr(whole.stage, part))


def test_checkpoints_of_other_searches_and_damaged_ones_are_refused(start, tmp_path):
    path = tmp_path / "joint.npz"
    settings = quick(start, steps=3, checkpoint=path).settings
    with pytest.raises(ParameterError, match="exists"):
        quick(start, steps=3, checkpoint=path)
    with pytest.raises(ParameterError, match="another search"):
        quick(start, steps=4, checkpoint=path, resume=True)
    with np.load(path) as file:
        data = dict(file)
    for name, value in (
        ("place", data["place"][:-1]),
        ("best", np.full_like(data["best"], np.nan)),
        ("costs", np.array([np.nan, 1.0])),
        ("meta", np.array("{}")),
        ("history", np.zeros(3)),
    ):
        np.savez(path, **(data | {name: value}))
        with pytest.raises(ArtifactFormatError):
            load_joint_checkpoint(path, settings)
    path.write_bytes(b"PK nothing")
    with pytest.raises(ArtifactFormatError):
        load_joint_checkpoint(path, settings)


def test_a_time_budget_sets_the_steps_and_is_kept_on_resuming(start, tmp_path):
    path = tmp_path / "joint.npz"
    first = quick(start, steps=None, seconds=0.2, checkpoint=path)
    assert first.steps >= 20 or first.status is SearchStatus.INTERRUPTED
    again = quick(start, steps=None, seconds=60, checkpoint=path, resume=True)
    assert again.settings == first.settings
    assert again.status is SearchStatus.FINISHED
    stopped = quick(start, steps=10**7, seconds=0.05)
    assert stopped.status is SearchStatus.INTERRUPTED
    assert stopped.steps < 10**7


@pytest.mark.parametrize("interior", [True, False])
def test_results_become_certified_artifacts(start, interior):
    found = quick(start, interior=interior, dilation=1)
    artifact = from_search(found, objective="mean", provenance=Provenance("mean", 20), interior=interior)
    claims = artifact.certificate
    certified = claims.interior_kappa_mean if interior else claims.kappa_mean
    assert certified <= found.cost * (1 + 1e-4)
    if interior:  # for the plain cost, v is improved further while it is rounded
        assert certified >= 0.95 * found.cost
    assert artifact.stage.B[:24].to_float() == pytest.approx(found.stage.B, abs=1e-6)


def test_settings_say_everything(start):
    found = quick(start, steps=2, dilation=1, spread=0.25, seed=9)
    data = json.loads(found.settings.as_json())
    assert (data["seed"], data["dilation"], data["spread"], data["inner"]) == (9, 1, 0.25, 24)
    assert len(data["start"]) == 64
    assert {"trilift", "numpy", "scipy"} == set(found.versions)
    assert found.summary().startswith("stage mean 20 interior: kappa 0.")
    assert found.seconds > 0


def test_estimates_grow_with_the_work():
    small = estimate_joint_cost(100, inner=110, entries=1000, steps=10)
    large = estimate_joint_cost(1000, inner=1100, entries=10000, steps=10)
    assert 50 < large.memory_bytes / small.memory_bytes < 110
    assert 100 < large.seconds / small.seconds < 1000
    assert estimate_joint_cost(100, inner=110, entries=1000, steps=20).seconds == 2 * small.seconds
    with pytest.raises(ParameterError):
        estimate_joint_cost(1, inner=1, entries=1, steps=1)


BAD = [
    {"objective": "median"},
    {"interior": 1},
    {"interior": False, "weight_range": (0.1, 0.9)},
    {"weight_range": (0.9, 0.1)},
    {"weight_range": (0.0, 1.5)},
    {"weight_range": 0.5},
    {"dilation": -1},
    {"threshold": float("nan")},
    {"seed": -1},
    {"spread": -0.1},
    {"steps": 0},
    {"steps": 2.5},
    {"seconds": 0},
    {"seconds": float("nan")},
    {"schedule": 0.1},
    {"weight_bits": 0},
    {"resume": True},
    {"checkpoint": 3},
    {"checkpoint": "/nonexistent-folder/joint.npz"},
]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_bad_arguments_are_refused_before_any_search(start, bad, monkeypatch):
    monkeypatch.setattr("trilift.factorize.joint._run", None)
    with pytest.raises(ParameterError):
        quick(start, **bad)


def test_bad_starts_are_refused(start, chain):
    plain = Stage.plain(np.tril(np.ones((3, 3))), np.eye(3))
    with pytest.raises(ParameterError, match="a Stage"):
        quick(np.eye(3))
    with pytest.raises(ParameterError, match="search_joint_direct"):
        quick(plain)
    for bad, arguments in (
        (start, {}),
        (chain, {"size": 10**6}),
        (np.eye(3), {"size": 4}),
        (np.ones((3, 3)), {}),
        (np.eye(3), {"objective": "both"}),
        (np.array([[np.inf]]), {}),
    ):
        with pytest.raises((ParameterError, HorizonError)):
            search_joint_direct(bad, **({"objective": "mean", "steps": 2} | arguments))
