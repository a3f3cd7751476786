"""Starts shared over several devices: the result is that of one device. Two CPU devices are forced."""

import json
import os
import subprocess
import sys

import pytest
from trilift.factorize.devices import local_devices
from trilift.lift.errors import ParameterError

PROGRAM = """
import json, sys
import jax
from trilift.factorize import search_stage
from trilift.factorize.devices import local_devices

devices = int(sys.argv[1])
found = {"local": jax.local_device_count()}
for starts in (4, 3):
    shares = len(local_devices(starts, devices))
    for objective in ("mean", "max"):
        result = search_stage(
            7, objective=objective, steps=450, starts=starts, seed=5, devices=devices, progress=False
        )
        found[f"{objective} {starts}"] = {
            "shares": shares,
            "B": result.stage.B.tobytes().hex(),
            "g": result.stage.g.tobytes().hex(),
            "history": result.history,
        }
print(json.dumps(found))
"""


def run(devices):
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(devices)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_two_devices_find_what_one_finds_bit_for_bit():
    one, two = run(1), run(2)
    assert one.pop("local") == two.pop("local") == 2
    assert [found.pop("shares") for found in one.values()] == [1, 1, 1, 1]
    assert [found.pop("shares") for found in two.values()] == [2, 2, 1, 1]
    assert one == two


def test_bad_numbers_of_devices_are_refused():
    for bad in (0, 1.0, True):
        with pytest.raises(ParameterError, match="devices must be"):
            local_devices(4, bad)
