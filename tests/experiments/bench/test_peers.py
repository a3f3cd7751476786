"""The peers' scripts against the real packages: OpenDP where it is installed, others where made."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift.experiments.bench.choices import dpcrpy_choices, opendp_choices
from trilift.experiments.bench.environments import ask, default_folder, interpreter, script
from trilift.experiments.bench.ours import answer
from trilift.experiments.bench.theory import consistent_tree, discrete_laplace_variance, summed_tree
from trilift.lift.mechanisms import price

ENVIRONMENTS = Path(os.environ.get("TRILIFT_BENCH_ENVS", default_folder()))


def peer(name: str) -> list[str]:
    python = interpreter(name, ENVIRONMENTS)
    if python is None:
        pytest.skip(f"no environment of {name}: trilift bench makes it, in TRILIFT_BENCH_ENVS or the cache")
    return [str(python), "-I", str(script(name))]


@pytest.mark.slow
def test_opendp_by_its_own_code() -> None:
    pytest.importorskip("opendp")
    asked: list[dict[str, Any]] = [
        {"do": "left factor", "n": 23, "kind": "consistent", "branching": 3},
        {"do": "errors", "n": 23, "kind": "consistent", "branching": 3},
        {"do": "errors", "n": 23, "kind": "tree", "branching": 3},
        {"do": "scale", "n": 23, "kind": "tree", "branching": 3},
        {"do": "speed", "n": 64, "kind": "tree", "branching": 4, "seconds": 0.01},
        {"do": "speed", "n": 64, "kind": "consistent", "branching": 4, "seconds": 0.5},
        {"do": "speed", "n": 64, "kind": "sampler", "branching": 4, "seconds": 0.01},
    ]
    reply = ask([sys.executable, str(script("opendp"))], asked, timeout=300)
    columns, scale = reply["answers"][0]
    norms = (np.array(columns) ** 2).sum(axis=0)
    assert scale == 4.0 == reply["answers"][3]  # layers of the tree: its own map at distance 1
    assert norms == pytest.approx(consistent_tree(23, branching=3), rel=1e-6)
    variance = discrete_laplace_variance(4.0)
    for found, steps in zip(
        reply["answers"][1:3],
        (consistent_tree(23, branching=3), summed_tree(23, branching=3)),
        strict=True,
    ):
        assert found["max"] == pytest.approx(variance * steps.max(), rel=1e-6)
        assert found["mean"] == pytest.approx(variance * steps.mean(), rel=1e-6)
    assert all(one["rate"] > 0 for one in reply["answers"][4:])
    # Released values err as they should. The noise is the operating system's, so that there is no seed: some
    # hundred runs of a mean over 64 steps are within a factor of 2 but with probability below 1e-9.
    squares = reply["answers"][5]["squares"]
    exact = discrete_laplace_variance(4.0) * consistent_tree(64, branching=4).mean()
    assert len(squares) >= 100
    assert 0.5 < np.mean(squares) / exact < 2.0


@pytest.mark.slow
def test_dpcrpy_by_its_own_code() -> None:
    command = peer("dpcrpy")
    n = 256
    chosen = dpcrpy_choices(n)
    asked = [{"do": "errors", "n": n, "mechanism": choice.asked} for choice in chosen]
    asked += [{"do": "speed", "n": n, "mechanism": choice.asked, "seconds": 0.01} for choice in chosen]
    answers = ask(command, asked, timeout=300)["answers"]
    for choice, errors in zip(chosen, answers, strict=False):
        if choice.max_se is not None:
            assert errors["max"] == pytest.approx(choice.max_se, rel=1e-9)
            assert errors["mean"] == pytest.approx(choice.mean_se, rel=1e-9)
        assert 0 < errors["mean"] <= errors["max"]
    assert all(rate > 0 for rate in answers[len(chosen) :])


@pytest.mark.slow
def test_jax_privacy_by_its_own_code() -> None:
    command = peer("jax_privacy")
    blt = {"buf_decay": [0.9, 0.5], "output_scale": [0.2, 0.1]}
    asked: list[dict[str, Any]] = [
        {"do": "sigma", "epsilon": 1, "delta": 1e-6},
        {"do": "errors", "n": 64, "blt": None},
        {"do": "errors", "n": 64, "blt": blt},
        {"do": "speed", "n": 64, "blt": blt, "seconds": 0.01},
    ]
    sigma, root, buffered, rate = ask(command, asked, timeout=300)["answers"]
    assert sigma == pytest.approx(4.2247, abs=1e-3)
    for objective in ("max", "mean"):
        assert root[objective] == pytest.approx((price("toeplitz-sqrt", 64).gamma(objective) or 0) ** 2)
    column = np.array([1.0, *(0.2 * 0.9**i + 0.1 * 0.5**i for i in range(63))])
    strategy = np.array([[column[i - j] if i >= j else 0.0 for j in range(64)] for i in range(64)])
    norms = ((np.tri(64) @ np.linalg.inv(strategy)) ** 2).sum(axis=1) * (column**2).sum()
    assert buffered["max"] == pytest.approx(norms.max(), rel=1e-6)
    assert buffered["mean"] == pytest.approx(norms.mean(), rel=1e-6)
    assert rate > 0


def test_our_own_answers() -> None:
    asked = {"kind": "default", "n": 64, "objective": "mean"}
    errors = answer({"do": "errors", "counter": asked})
    from trilift.counters import Counter

    counter = Counter(1, horizon=64, objective="mean")
    steps = [counter.sd(t) ** 2 for t in range(1, 65)]
    assert errors["max"] == pytest.approx(max(steps))
    assert errors["mean"] == pytest.approx(sum(steps) / 64)
    assert answer({"do": "speed", "counter": asked, "seconds": 0.001, "path": "plain"}) > 0
    averaged = answer({"do": "errors", "counter": {**asked, "kind": "averaged", "arity": 4}})
    known = price("kary-averaged", 64, arity=4, objective="max").max_se()
    assert known is not None
    assert averaged["max"] == pytest.approx(known, rel=0.05)  # a relative: the same worst step on whole trees
    solved = answer({"do": "optimise", "n": 8})
    assert 1.0 < solved["value"] < 3.0
    assert len(opendp_choices(64)) >= 2
