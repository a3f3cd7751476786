"""Artifacts for Gaussian noise on the command line: proved by certify, refused where it is about Laplace."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from trilift.artifacts import L2Artifact, find_l2, save_l2

FIELDS = (
    "verified norm kind size objective sensitivity_sq max_row_norm_sq mean_row_norm_sq "
    "gamma_max gamma_mean interior_gamma_max interior_gamma_mean sha256"
)


@pytest.mark.parametrize("name", ["stage-l2-max-9", "direct-l2-mean-8"])
def test_certify(run: Callable, name: str) -> None:
    done = run("certify", name, "--json")
    assert (done.code, done.err) == (0, "")
    record = done.json
    assert list(record) == FIELDS.split()
    claims = find_l2(name).certificate
    assert (record["verified"], record["norm"]) == (True, "l2")
    assert record["gamma_max"] == claims.gamma_max
    assert record["sha256"] == claims.sha256
    assert (record["interior_gamma_max"] is None) == (claims.kind == "direct")
    assert "gamma_max" in run("certify", name).out


def test_a_false_claim_is_told(run: Callable, tmp_path: Path) -> None:
    whole = find_l2("direct-l2-max-4")
    claims = replace(whole.certificate, gamma_max=1.0)
    save_l2(L2Artifact(whole.stage, claims, whole.provenance), tmp_path / "false.npz")
    done = run("certify", "false.npz", "--json")
    assert (done.code, done.json["verified"]) == (1, False)
    assert done.json["failure"].startswith("gamma_max <= 1.0 fails")


def test_plans_for_laplace_noise_take_none_of_them(run: Callable, refused: Callable) -> None:
    record = run("plan", "--horizon", 1000, "--epsilon", 1, "--json").json
    assert not any("-l2-" in level["name"] for level in record["levels"])
    assert not any("-l2-" in entry["name"] for entry in run("artifacts", "--json").json)
    assert "about norm l2 (Gaussian noise)" in refused("inspect", "stage-l2-max-9")
