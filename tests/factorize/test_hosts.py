"""Several hosts at one job: two real processes on this machine, met through jax.distributed."""

import json
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
from trilift.factorize.books import BOOKS, load_books, pack_stage, unpack_stage
from trilift.factorize.hosts import ALONE, connect
from trilift.factorize.runlog import LOG, read_log
from trilift.factorize.runs import run_job
from trilift.factorize.sources import load_float_stage
from trilift.lift.errors import ParameterError

JOB = """
size = 5
objective = "mean"
seed = 11
checkpoint_seconds = 0.0
[[phase]]
method = "search"
steps = 300
starts = 1
rounds = 2
[[phase]]
method = "escape"
steps = 2000
starts = 2
[[phase]]
method = "polish"
iterations = 20
"""

PROGRAM = """
import json, sys
from trilift.factorize.hosts import connect
from trilift.factorize.runs import run_job

address, index, job, folder = sys.argv[1:]
hosts = connect(address, count=2, index=int(index))
result = run_job(job, folder, resume=True, hosts=hosts, progress=False)
print(json.dumps({"status": result.status, "kappa": result.kappa, "B": result.stage.B.tobytes().hex()}))
"""


def begin(job, folder):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1"}
    return [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, address, str(index), str(job), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for index in (0, 1)
    ]


def finish(processes):
    found = []
    for process in processes:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        found.append(json.loads(out.splitlines()[-1]))
    return found


@pytest.mark.slow
def test_two_hosts_share_the_work_and_end_with_the_same_stage(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(JOB, encoding="utf-8")
    first = finish(begin(job, tmp_path / "first"))
    assert first[0] == first[1]
    assert first[0]["status"] == "finished"
    # both searched with numbers of their own, and the better stage was taken by both
    logs = [read_log(place / LOG) for place in (tmp_path / "first", tmp_path / "first" / "host-1")]
    own = [
        [record["kappa"] for record in log if record.get("method") == "search" and "step" in record][-1]
        for log in logs
    ]
    assert own[0] != own[1]
    shared = [[r for r in log if r.get("event") == "done"] for log in logs]
    assert [r["kappa"] for r in shared[0]] == [r["kappa"] for r in shared[1]]
    assert shared[0][1]["kappa"] <= min(own) + 1e-12
    # host 0 does on its own what it does alone, so the two together are never worse after the first round
    alone = run_job(job, tmp_path / "alone", progress=False)
    before = [r["kappa"] for r in read_log(alone.folder / LOG) if r.get("event") == "done"]
    assert shared[0][0]["kappa"] <= before[0]

    # killed in the middle, both begin again where they were, and end the same, bit for bit
    killed = begin(job, tmp_path / "second")
    while len(read_log(tmp_path / "second" / LOG)) < 6:
        assert killed[0].poll() is None
    for process in killed:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert load_books(tmp_path / "second" / BOOKS).status == "running"
    assert finish(begin(job, tmp_path / "second")) == first


def test_alone_nothing_is_exchanged():
    assert ALONE.gather([1.0, float("inf")]).tolist() == [[1.0, float("inf")]]
    assert ALONE.broadcast(b"abc", source=0) == b"abc"
    assert connect("127.0.0.1:1", count=1, index=0) == ALONE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere", 2, 0), "coordinator must be an address with a port"),
        (("a:1", 0, 0), "hosts must be an integer >= 1"),
        (("a:1", 2, 2), "host must be an integer >= 0 and <= 1"),
        (("a:1", 2, True), "host must be an integer"),
    ],
)
def test_bad_places_are_refused(arguments, message):
    address, count, index = arguments
    with pytest.raises(ParameterError, match=message):
        connect(address, count=count, index=index)


def test_stages_travel_exactly():
    stage = load_float_stage("stage-mean-17")
    again, lineage = unpack_stage(pack_stage(stage, {"way": "search"}))
    assert lineage == {"way": "search"}
    for part in "ABwg":
        np.testing.assert_array_equal(getattr(again, part), getattr(stage, part))
    with pytest.raises(ParameterError, match="no stage"):
        pack_stage(None, {})
