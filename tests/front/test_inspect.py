"""``trilift inspect``."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift.artifacts import find, save
from trilift.lifted import lifted_factors

Run = Callable[..., Any]


def test_figures(run: Run) -> None:
    done = run("inspect", "stage-mean-9", "--json")
    assert (done.code, done.err) == (0, "")
    record, artifact = done.json, find("stage-mean-9")
    assert record["name"] == "stage-mean-9"
    assert record["sha256"] == artifact.certificate.sha256
    assert record["sensitivity"] == pytest.approx(float(artifact.certificate.sensitivity), rel=1e-15)
    assert record["sensitivity"] >= artifact.certificate.sensitivity
    assert record["nonzero_B"] == np.mean(artifact.stage.B.to_float() != 0)
    assert record["provenance"] == artifact.provenance.to_json()
    assert record["interior_kappa_mean"] == artifact.certificate.interior_kappa_mean
    text = run("inspect", "stage-mean-9").out
    assert "interior_kappa_mean" in text
    assert f"found: seed       {artifact.provenance.seed}" in text or artifact.provenance.seed is None


def test_claims_that_do_not_stand_are_not_repeated(run: Run) -> None:
    artifact = find("stage-mean-9")
    low = replace(artifact.certificate, kappa_mean=artifact.certificate.kappa_mean / 2)
    save(replace(artifact, certificate=low), "false.npz")
    done = run("inspect", "false.npz", "--json")
    assert (done.code, done.json["certified"]) == (0, False)
    claims = [value for key, value in done.json.items() if "kappa" in key or "norm" in key]
    assert claims == [None] * 6
    assert done.json["sensitivity"] is None
    assert done.err.startswith("trilift: not verified: kappa_mean <=")
    assert ["certified", "NO"] in [line.split() for line in run("inspect", "false.npz").out.splitlines()]
    save(artifact, "true.npz")
    assert run("inspect", "true.npz", "--json").json["certified"] is True


@pytest.mark.parametrize("arguments", [("direct-max-8",), ("stage-max-9",), ("stage-max-9", "--horizon", 30)])
def test_pictures(run: Run, arguments: tuple[object, ...]) -> None:
    done = run("inspect", *arguments, "--png", "p.png")
    assert done.code == 0
    data = Path("p.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 10_000


@pytest.mark.parametrize(
    ("name", "horizon"), [("stage-mean-9", 40), ("stage-mean-9", 2000), ("direct-max-16", 5)]
)
def test_what_is_drawn_is_a_factorisation(name: str, horizon: int) -> None:
    L, R, what = lifted_factors(find(name), horizon=horizon)
    assert what.startswith(name)
    assert np.allclose(L @ R, np.tril(np.ones((horizon, horizon))))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "neither a file"),
        (("direct-max-8", "--png", "p.jpg"), "a picture must be a .png file, got p.jpg"),
        (("direct-max-8", "--png", "p.png", "--horizon", 9), "horizon 9 is past the capacity 8"),
        (("direct-max-8", "--png", "p.png", "--horizon", 0), "horizon must be an integer >= 1"),
        (("direct-max-8", "--horizon", 4), "name its file with --png"),
        (("direct-max-8", "--png", "no/p.png"), "--png no/p.png: the folder no does not exist"),
        (("direct-max-8", "--png", "catalogue"), "--png catalogue exists already"),
        (("direct-max-8", "--png", "p.png", "--horizon", "1e2"), "an integer, such as 100, got '1e2'"),
    ],
)
def test_refusals(refused: Callable[..., str], arguments: tuple[object, ...], message: str) -> None:
    assert message in refused("inspect", *arguments)


def test_a_missing_extra_is_named(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "pip install 'trilift[plot]'" in refused("inspect", "direct-max-8", "--png", "p.png")
