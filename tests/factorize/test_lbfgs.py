"""Polishing: it gains where something is left, never loses, and keeps v in [0, 1]."""

import numpy as np
import pytest
from trilift.factorize import search_direct, search_stage
from trilift.factorize.lbfgs import polish
from trilift.factorize.sources import load_float_stage
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage

QUICK = {"steps": 60, "starts": 1, "seed": 2, "progress": False}


@pytest.mark.parametrize("objective", ["mean", "max"])
@pytest.mark.parametrize("kind", ["two-sided", "one-sided", "direct"])
def test_a_short_search_gains(kind, objective):
    if kind == "direct":
        found = search_direct(9, objective=objective, **QUICK)
    else:
        found = search_stage(9, objective=objective, one_sided=kind == "one-sided", **QUICK)
    better = polish(found.stage, objective=objective, iterations=90)
    assert better.before == found.stage.kappa(objective)
    assert better.cost < 0.999 * better.before
    assert better.cost == better.stage.kappa(objective)
    assert better.stage.residual() < 1e-12
    assert (better.stage.is_plain, better.stage.one_sided) == (kind == "direct", kind != "two-sided")
    assert -1e-14 <= better.stage.v.min() <= better.stage.v.max() <= 1 + 1e-14
    assert 0 < better.iterations <= 90


def test_a_good_stage_is_never_made_worse():
    """With so much smoothing the method walks away from the optimum; the stage given is what is kept."""
    good = load_float_stage("stage-max-9")
    kept = polish(good, objective="max", smoothing=2.0, exponent=2.0, iterations=20)
    assert kept.cost == kept.before == good.kappa("max")
    np.testing.assert_array_equal(kept.stage.B, good.B)


def test_it_stops_when_told_to_with_the_best_so_far():
    found = search_stage(9, objective="mean", **QUICK)
    asked = []
    stopped = polish(found.stage, objective="mean", stop=lambda: asked.append(1) or len(asked) == 5)
    assert (stopped.stopped, stopped.iterations, stopped.converged) == (True, 5, False)
    assert stopped.cost < stopped.before
    assert not polish(found.stage, objective="mean", iterations=6, stop=lambda: False).stopped


def test_what_cannot_be_polished_is_refused():
    plain = Stage.plain(np.tril(np.ones((3, 3))), np.eye(3))
    wide = Stage.plain(np.ones((2, 3)), np.ones((3, 2)))
    for arguments, message in (
        ({"objective": "median"}, "objective"),
        ({"objective": "max", "iterations": 0}, "iterations"),
        ({"objective": "max", "exponent": float("nan")}, "exponent"),
        ({"objective": "max", "smoothing": 0}, "smoothing"),
    ):
        with pytest.raises(ParameterError, match=message):
            polish(plain, **arguments)
    with pytest.raises(ParameterError, match="square B"):
        polish(wide, objective="mean")
    with pytest.raises(ParameterError, match="stage must be"):
        polish("stage-max-9", objective="max")
