"""The GPU experiment from end to end at a small size on the processor, as a bare image runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from trilift.experiments import gpu_search

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "experiments" / "gpu_search.sh"

BLOCKED = ("rich", "typer", "cryptography", "platformdirs", "flint", "matplotlib", "hypothesis", "opendp")
# Put in front of everything by the environment: any import of these fails as where they are not installed.
SITE = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {set(BLOCKED)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}} on a bare image", name=name)
        return None

sys.meta_path.insert(0, Missing())
"""


def run(tmp_path, *arguments, **variables):
    (tmp_path / "sitecustomize.py").write_text(SITE, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        ["bash", str(SCRIPT), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=environment
        | {"PYTHON": sys.executable, "PYTHONPATH": str(tmp_path), "JAX_PLATFORMS": "cpu"}
        | variables,
    )


@pytest.mark.slow
def test_the_experiment_runs_on_a_bare_image(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SITE, encoding="utf-8")
    for name in BLOCKED:
        bare = os.environ | {"PYTHONPATH": str(tmp_path)}
        tried = subprocess.run(
            [sys.executable, "-P", "-c", f"import {name}"],
            env=bare,
            capture_output=True,
            check=False,
            text=True,
        )
        assert "on a bare image" in tried.stderr
    out = tmp_path / "stage.npz"
    done = run(tmp_path, "--size", 33, "--agreement", 17, "--steps", 300, "--out", out)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    events = [record["event"] for record in records]
    assert events[:4] == ["device", "precision", "agreement", "estimate"]
    assert events[-1] == "done"
    assert records[2]["agrees"] is True
    assert records[2]["kappa"] == records[2]["kappa_on_processor"]  # the device is the processor here
    last = records[-1]
    assert (last["size"], last["steps"], last["status"]) == (33, 300, "finished")
    assert last["kappa"] < 0.08
    assert last["residual"] < 1e-12
    with np.load(out, allow_pickle=False) as file:
        assert file["B"].shape == (33, 33)


@pytest.mark.slow
def test_a_device_without_full_precision_is_refused(tmp_path):
    """The environment asks for TF32: nothing is searched, and the exit code says so."""
    done = run(tmp_path, "--size", 5, "--agreement", 5, "--steps", 5, NVIDIA_TF32_OVERRIDE="1")
    assert done.returncode == 1
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["event"], last["float64"]) == ("precision", False)
    assert "NVIDIA_TF32_OVERRIDE" in last["reason"]


def test_differences_between_devices_are_found(monkeypatch):
    point = gpu_search._point
    calls = []

    def rounded(V, v):
        value, gradient = point(V, v)
        calls.append(1)
        if len(calls) == 1:  # the "device"; the second call is the processor's
            return value, gradient.astype(np.float32).astype(np.float64)
        return value, gradient

    monkeypatch.setattr(gpu_search, "_point", rounded)
    record = gpu_search.agreement(5, steps=3)
    assert record["agrees"] is False
    assert record["gradient_difference"] > gpu_search.GRADIENT_TOLERANCE
    assert record["value_difference"] <= gpu_search.VALUE_TOLERANCE


@pytest.mark.parametrize("arguments", [["--size", "1"], ["--steps", "0"], ["--seconds", "nan"]])
def test_bad_arguments(arguments, capsys):
    assert gpu_search.main(arguments) == 2
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["event"] == "error"
