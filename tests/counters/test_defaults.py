"""Default chains: close to the best that exact planning finds, and light to load."""

import json
import subprocess
import sys
from typing import Any

import pytest
from trilift.artifacts import catalogue, load_stage
from trilift.counters import chain_of, default_names
from trilift.counters.defaults import LARGEST
from trilift.lift import plan
from trilift.lift.budget import chain_cost
from trilift.lift.errors import HorizonError, ParameterError

MARGIN = 0.02
"""How much worse a default chain may be; the worst seen on 80 horizons from 2 to 10^6 was 0.9 %."""

HORIZONS = (10, 100, 158, 256, 316, 631, 1025, 5012, 63_096, 10**6)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["max", "mean"])
def test_close_to_the_best(objective: str) -> None:
    shipped = {
        e.name: load_stage(e.name).to_float()
        for e in catalogue()
        if e.source == "shipped" and e.size <= LARGEST
    }
    for horizon in HORIZONS:
        chain = chain_of(default_names(horizon, objective=objective)).to_float()
        cost = chain_cost(chain, horizon, objective=objective).objective_row_sq
        best = plan(shipped, horizon, objective=objective, keep=8).cost.objective_row_sq
        assert cost <= best * (1 + MARGIN), (horizon, cost / best)


def test_every_horizon_has_a_chain() -> None:
    for horizon in (1, 2, 3, 4, 5, 127, 128, 129, 1024, 10**7, 10**9, 10**12):
        for objective in ("max", "mean"):
            assert chain_of(default_names(horizon, objective=objective)).capacity >= horizon


def test_defaults_are_small_enough_to_start_at_once() -> None:
    sizes = {e.name: e.size for e in catalogue()}
    for horizon in (10, 10**4, 10**9):
        for objective in ("max", "mean"):
            assert max(sizes[name] for name in default_names(horizon, objective=objective)) <= LARGEST


def test_defaults_are_reproducible() -> None:
    assert default_names(5000, objective="max") == default_names(5000, objective="max")


@pytest.mark.parametrize("horizon", [0, -1, 1.0, True, "5", None])
def test_bad_horizons(horizon: Any) -> None:
    with pytest.raises(ParameterError, match=r"^horizon must be an integer >= 1, got"):
        default_names(horizon, objective="max")
    with pytest.raises(ParameterError, match=r"^objective must be"):
        default_names(5, objective="least")


def test_chains_by_name() -> None:
    chain = chain_of(["stage-max-9", "direct-max-4"])
    assert chain.sizes == (9, 4)
    for bad in ("direct-max-4", (), (1,), [None]):
        with pytest.raises(ParameterError, match="sequence of artifact names"):
            chain_of(bad)
    with pytest.raises((ParameterError, HorizonError)):
        chain_of(["no such artifact"])


def test_a_first_release_imports_no_heavy_library() -> None:
    program = (
        "import json, sys, trilift.counters as c; c.Counter(1.0, horizon=1000).update(1);"
        "c.Counter(1.0, horizon=10).interval(3); print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert "numpy" in loaded
    assert not loaded & {
        "jax",
        "jaxlib",
        "optax",
        "scipy",
        "sympy",
        "flint",
        "matplotlib",
        "typer",
        "rich",
        "click",
    }
