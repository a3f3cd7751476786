"""The joint search of a chain: the right cost and gradient, never worse than the start, repeatable."""

from dataclasses import replace

import numpy as np
import pytest
from trilift.artifacts import Provenance
from trilift.factorize import SearchStatus, gentle, support_of
from trilift.factorize.joint_chain import _MAX, _MEAN, search_chain
from trilift.factorize.joint_chain_objective import (
    Annealing,
    LevelPoint,
    pairs_of,
)
from trilift.factorize.joint_objective import stage_at
from trilift.factorize.precision import double_precision
from trilift.lift import Chain, chain_cost, materialise
from trilift.lift.budget import best_scales
from trilift.lift.costs import mean_row_norms_sq, row_norms_sq
from trilift.lift.errors import HorizonError, ParameterError
from trilift.verify.chains import build_chain

SIZES = (4, 3, 5)
SHARP = Annealing(0.0, 1e4)
SCALES = np.array([1.5, 2.5, 3.0])


def level(size, seed, *, plain=False):
    """A small well-conditioned level, some entries zero."""
    rng = np.random.default_rng(seed)
    B = np.eye(size) + 0.3 * rng.normal(size=(size, size)) * (rng.random((size, size)) < 0.6)
    v, w = rng.uniform(0.1, 0.6, size), np.linspace(0.2, 0.9, size)
    return stage_at(B / np.abs(B).sum(axis=0), v, w, plain=plain)


@pytest.fixture(scope="module")
def chain():
    return Chain(level(5, 2, plain=True), [level(4, 0), level(3, 1)])


def parts(chain):
    supports = [support_of(each.B) for each in chain.levels]
    places = tuple(
        LevelPoint(support.values_of(each.B), each.v, each.w)
        for support, each in zip(supports, chain.levels, strict=True)
    )
    return places, tuple(map(pairs_of, supports)), tuple(support.shape for support in supports)


@pytest.fixture(scope="module")
def objectives(chain):
    """The logarithms of the mean and the largest cost at 50 steps, as the search compiles them."""
    _, pairs, shapes = parts(chain)
    return {
        "mean": lambda at, annealing: _MEAN(at, pairs, annealing, shapes=shapes, horizon=50),
        "max": lambda at, annealing: _MAX(at, pairs, annealing, SCALES, np.arange(50), shapes=shapes),
    }


def test_the_costs_are_those_of_lift(chain, objectives):
    places, _, _ = parts(chain)
    charges, q = chain.level_charges(norm="l1"), mean_row_norms_sq(chain, 50)
    with double_precision():
        mean, largest = (float(objectives[name](places, SHARP)[0]) for name in ("mean", "max"))
    used = best_scales(charges, q)
    # the largest charge is a power mean over some ten columns: up to log(10) / 2000 below it
    assert mean == pytest.approx(np.log(used**2 @ q), abs=5e-3)
    exact = (SCALES**2 @ row_norms_sq(chain, np.arange(50))).max() * np.sum(charges / SCALES) ** 2
    assert largest == pytest.approx(np.log(exact), abs=5e-3)


@pytest.mark.parametrize("objective", ["max", "mean"])
def test_gradients_agree_with_finite_differences(chain, objectives, objective):
    places, _, _ = parts(chain)
    annealing = Annealing(0.05, 20.0)
    rng = np.random.default_rng(0)
    with double_precision():
        _, by = objectives[objective](places, annealing)
        for index, place in enumerate(places):
            for name in ("x", "v", "w")[: 1 if index == len(places) - 1 else 3]:
                array = getattr(place, name)
                direction = rng.normal(size=array.shape)
                ends = []
                for step in (1e-6, -1e-6):
                    moved = list(places)
                    moved[index] = place._replace(**{name: array + step * direction})
                    ends.append(float(objectives[objective](tuple(moved), annealing)[0]))
                slope = (ends[0] - ends[1]) / 2e-6
                found = np.sum(np.asarray(getattr(by[index], name)) * direction)
                assert found == pytest.approx(slope, rel=1e-5, abs=1e-7), (index, name)


@pytest.mark.parametrize("objective", ["max", "mean"])
def test_a_search_gains_is_repeatable_and_certifies(chain, objective):
    found = search_chain(chain, horizon=50, objective=objective, steps=60, progress=False)
    again = search_chain(chain, horizon=50, objective=objective, steps=60, progress=False)
    assert found.status is SearchStatus.FINISHED
    assert found.steps == found.history[-1][0] == 60
    assert found.history == again.history
    for one, other in zip(found.chain.levels, again.chain.levels, strict=True):
        assert np.array_equal(one.B, other.B)
        assert np.array_equal(one.w, other.w)
    cost = chain_cost(found.chain, 50, objective=objective)
    assert 2 * cost.objective_row_sq == pytest.approx(found.cost, rel=1e-12)
    assert found.cost < 0.97 * found.start_cost
    assert found.start_cost == pytest.approx(2 * chain_cost(chain, 50, objective=objective).objective_row_sq)
    about = [Provenance(objective=objective, size=size) for size in SIZES]
    exact = [each.stage for each in build_chain(found.chain, objective=objective, provenance=about)]
    certified = Chain(exact[-1], exact[:-1])
    assert [each.residual() for each in exact] == [0, 0, 0]
    dense = materialise(certified.to_float(), 50)
    assert np.abs(dense.L @ dense.R - np.tril(np.ones((50, 50)))).max() < 1e-9
    after = 2 * chain_cost(certified, 50, objective=objective).objective_row_sq
    assert after == pytest.approx(found.cost, rel=1e-3)


def test_a_search_is_never_worse_than_its_start(chain):
    wild = replace(gentle(largest=False), rate=5.0)
    options = {"steps": 3, "spread": 5.0, "schedule": wild, "progress": False}
    found = search_chain(chain, horizon=50, objective="mean", **options)
    assert found.cost <= found.start_cost
    assert chain_cost(found.chain, 50, objective="mean").mean_row_sq * 2 == pytest.approx(found.cost)


def test_a_spent_time_limit_ends_the_search(chain):
    found = search_chain(chain, horizon=50, objective="mean", steps=40, seconds=1e-9, progress=False)
    assert found.status is SearchStatus.OUT_OF_TIME
    assert found.steps == 0


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (HorizonError, {"horizon": 61}),
        (ParameterError, {"horizon": 1}),
        (ParameterError, {"objective": "median"}),
        (ParameterError, {"steps": 0}),
        (ParameterError, {"spread": -1.0}),
        (ParameterError, {"seconds": 0}),
    ],
)
def test_bad_arguments_are_refused(chain, error, options):
    with pytest.raises(error):
        search_chain(chain, **({"horizon": 50, "objective": "mean"} | options))


def test_a_chain_without_full_column_rank_is_refused(chain):
    flat = np.ones((5, 5))
    with pytest.raises(ParameterError, match="full column rank"):
        search_chain(
            Chain(type(chain.top).plain(flat, flat), chain.stages), horizon=50, objective="mean", steps=1
        )
