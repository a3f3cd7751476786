"""Executors in processes of their own, as on a cluster: the values are those of a single machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_two_executors(spark_env: dict[str, str]) -> None:
    job = Path(__file__).with_name("cluster_job.py")
    environment = {
        **spark_env,
        "SPARK_SCALA_VERSION": "2.13",
    }  # without a checkout of Spark its scripts guess
    done = subprocess.run(
        [sys.executable, str(job)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"rows": 600, "same": True, "master": "local-cluster[2,1,1024]"}
