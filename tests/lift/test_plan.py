"""Planning against brute force over every chain of a few small candidates."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from trilift.lift.budget import chain_cost
from trilift.lift.chain import Chain
from trilift.lift.diamond import diamond_stage
from trilift.lift.errors import HorizonError, ParameterError
from trilift.lift.plan import Plan, plan, screen, shape_of
from trilift.lift.stage import Stage, lower_ones

EVERYTHING = 10**6


def trivial(k: int) -> Stage:
    return Stage.plain(lower_ones(k), np.eye(k))


def candidates(make: Any, seed: int) -> dict[str, Stage]:
    rng = np.random.default_rng(seed)
    return {
        "diamond 3": diamond_stage(trivial(1)),
        "diamond 5": diamond_stage(trivial(2)),
        "random 2": make.float_stage(rng, 2),
        "random 4": make.float_stage(rng, 4, zeros=1),
        "top 1": trivial(1),
        "top 3": make.float_top(rng, 3),
        "top 6": trivial(6),
    }


def every_chain(given: dict[str, Stage], horizon: int, most: int) -> dict[tuple[str, ...], Chain]:
    """All chains of at most ``most`` stages that reach the horizon, stages in every order."""
    tops = [name for name, stage in given.items() if stage.is_plain]
    stages = [name for name in given if name not in tops]
    found = {}
    for count in range(most + 1):
        for names in product(stages, repeat=count):
            for top in tops:
                chain = Chain(given[top], [given[name] for name in names])
                if chain.capacity >= horizon:
                    found[(*names, top)] = chain
    return found


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("horizon", [1, 2, 5, 13])
@pytest.mark.parametrize("objective", ["max", "mean"])
def test_no_chain_is_better_than_the_plan(make: Any, seed: int, horizon: int, objective: str) -> None:
    given = candidates(make, seed)
    costs = {
        names: chain_cost(chain, horizon, objective=objective).objective_row_sq
        for names, chain in every_chain(given, horizon, most=2).items()
    }
    best = plan(given, horizon, objective=objective, keep=EVERYTHING)
    assert best.cost.objective_row_sq <= min(costs.values()) * (1 + 1e-12)


@pytest.mark.parametrize("objective", ["max", "mean"])
def test_deeper_plans(make: Any, objective: str) -> None:
    """Up to four levels, with no large top to stop at; stages above the finest come in one order only."""
    given = candidates(make, 2)
    del given["random 4"], given["top 6"]
    for horizon in (30, 50):
        costs = [
            chain_cost(chain, horizon, objective=objective).objective_row_sq
            for names, chain in every_chain(given, horizon, most=3).items()
            if list(names[1:-1]) == sorted(names[1:-1], key=lambda name: given[name].size)
        ]
        best = plan(given, horizon, objective=objective, keep=EVERYTHING)
        assert best.cost.objective_row_sq <= min(costs) * (1 + 1e-12)


def assert_consistent(found: Plan, given: dict[str, Stage], horizon: int, objective: str) -> None:
    assert found.chain.levels == tuple(given[name] for name in found.names)
    again = chain_cost(found.chain, horizon, objective=objective)
    assert found.cost.objective_row_sq == pytest.approx(again.objective_row_sq, rel=1e-12)
    assert (found.cost.horizon, found.cost.objective) == (horizon, objective)
    assert found.chain.capacity >= horizon


@pytest.mark.parametrize("horizon", [1, 7, 1000, 10**5])
def test_plans_are_consistent_and_deterministic(make: Any, horizon: int) -> None:
    rng = np.random.default_rng(3)
    given = {"top 30": make.float_top(rng, 30), "top 12": make.float_top(rng, 12), "top 4": trivial(4)}
    given |= {f"stage {m}": make.float_stage(rng, m, zeros=m // 4) for m in (5, 9, 17)}
    for objective in ("max", "mean"):
        first = plan(given, horizon, objective=objective, keep=6)
        assert_consistent(first, given, horizon, objective)
        again = plan(dict(given), horizon, objective=objective, keep=6)
        assert again.names == first.names
        assert again.cost.objective_row_sq == first.cost.objective_row_sq
        wider = plan(given, horizon, objective=objective, keep=18)
        assert wider.cost.objective_row_sq <= first.cost.objective_row_sq


def test_a_larger_top_is_used_up_to_the_horizon() -> None:
    """A top of which only the first steps are needed costs what those cost, not what all of it does."""
    given = {"short": Stage.plain(2.0 * lower_ones(4), 0.5 * np.eye(4)), "long": trivial(50)}
    for horizon in (1, 4, 5, 49, 50):
        found = plan(given, horizon, objective="max")
        assert found.cost.max_row_sq == pytest.approx(horizon)
    assert plan(given, 5, objective="max").names == ("long",)


def test_each_objective_has_its_own_plan() -> None:
    """Of two tops one has the smaller largest row, the other the smaller mean."""
    flat = Stage.plain(np.linalg.cholesky(np.ones((3, 3)) + np.eye(3)), np.eye(3))
    steep = Stage.plain(np.diag([0.1, 0.1, 2.0]), np.eye(3))
    given = {"flat": flat, "steep": steep}
    assert plan(given, 3, objective="max").names == ("flat",)
    assert plan(given, 3, objective="mean").names == ("steep",)


def test_exact_candidates_stay_exact(make: Any) -> None:
    rng = np.random.default_rng(0)
    given = {"stage": make.exact_stage(rng, 3), "top": make.exact_top(rng, 3)}
    found = plan(given, 9, objective="mean")
    assert found.names == ("stage", "top")
    assert found.chain.is_exact
    assert found.chain.levels == (given["stage"], given["top"])


def test_screening_orders_by_the_sum_of_the_costs(make: Any) -> None:
    given = candidates(make, 4)
    shapes = [shape_of(stage, name=name) for name, stage in given.items()]
    by_name = {shape.name: shape for shape in shapes}
    chains = screen(shapes, 6, objective="max", keep=EVERYTHING)
    assert len(chains) == len(set(chains)) > 10

    def total(names: tuple[str, ...]) -> float:
        need, cost = 6, 0.0
        for place, name in enumerate(names[:-1]):
            shape = by_name[name]
            cost += (shape.interior if place else shape.finest)["max"]
            need = max(-(-(need - shape.tail) // shape.size), 1)
        return cost + float(by_name[names[-1]].prefix["max"][need - 1])

    totals = [total(names) for names in chains]
    assert totals == sorted(totals)
    for keep in (1, 2, 5):
        few = screen(shapes, 6, objective="max", keep=keep)
        assert [total(names) for names in few] == pytest.approx(totals[:keep])


def test_what_has_no_plan(make: Any) -> None:
    rng = np.random.default_rng(0)
    stage, top = make.float_stage(rng, 3), make.float_top(rng, 3)
    for given in ({}, {"stage": stage}):
        with pytest.raises(ParameterError, match="at least one candidate must be a plain factorisation"):
            plan(given, 5)
    with pytest.raises(HorizonError, match="no chain of the given candidates reaches horizon 4"):
        plan({"top": top}, 4)
    for horizon in (0, -1, 1.0, float("nan"), True, "5", None):
        with pytest.raises(ParameterError, match="horizon must be an integer >= 1"):
            plan({"top": top}, horizon)  # type: ignore[arg-type]
    for objective in ("median", None, 1):
        with pytest.raises(ParameterError, match="objective must be one of"):
            plan({"top": top}, 2, objective=objective)  # type: ignore[arg-type]
    for keep in (0, 1.5, True):
        with pytest.raises(ParameterError, match="keep must be an integer >= 1"):
            plan({"top": top}, 2, keep=keep)  # type: ignore[arg-type]


def test_a_top_of_one_step_is_enough(make: Any) -> None:
    rng = np.random.default_rng(1)
    given = {"stage": make.float_stage(rng, 2), "top": trivial(1)}
    for horizon in (1, 2, 3, 4, 5, 8, 9, 1000):
        assert plan(given, horizon).chain.capacity >= horizon


def test_stages_of_one_step_are_refused(make: Any) -> None:
    one = make.float_stage(np.random.default_rng(1), 1)
    assert not one.is_plain
    with pytest.raises(ParameterError, match="size at least 2"):
        plan({"one": one, "top": trivial(3)}, 2)


def test_horizons_beyond_reach_are_refused_at_once() -> None:
    one = Stage.plain(np.eye(1), np.eye(1))
    with pytest.raises(ParameterError, match="horizon must be"):
        plan({"one": one}, 10**40)
